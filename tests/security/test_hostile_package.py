"""A package that `addin check` looks at may come from anybody: it takes little memory, disk and time."""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path

import pytest

from support.files import snapshot, write_all
from support.machine import Machine, Result
from support.packages import Package, direct_add_in, targets
from uno_devserver.cli import addin
from uno_devserver.cli.parse import parse

MEMORY = 400 * 1024 * 1024  # of addresses; a check takes 40 MB
BOMB = 1024 * 1024 * 1024
NUSPEC = "<package><metadata><id>Acme.Tool</id><version>1.0.0</version></metadata></package>"
ADD_IN = "buildTransitive/Acme.Tool.targets"
DLL_PATH = "tools/devserver/Acme.Tool.dll"


def refused(machine: Machine, path: Path, address_space: int | None = None) -> str:
    before = snapshot(machine.root)
    result = machine.run("addin", "check", str(path), "--json", address_space=address_space)
    assert snapshot(machine.root) == before, "nothing is written, and nothing is left"
    assert result.exit_code == 1
    assert result.json["error"]["code"] == "PackageUnreadable"
    return str(result.json["error"]["message"])


def packed(machine: Machine, entries: dict[str, str | bytes]) -> Path:
    path = machine.root / "Acme.Tool.1.0.0.nupkg"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in entries.items():
            package.writestr(name, content)
    return path


@pytest.mark.parametrize("name", [DLL_PATH, ADD_IN])
@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_small_package_that_unpacks_to_gigabytes_takes_no_memory(machine: Machine, name: str, method: int) -> None:
    path = machine.root / "Acme.Tool.1.0.0.nupkg"
    with zipfile.ZipFile(path, "w", method) as package, package.open(name, "w", force_zip64=True) as stream:
        for _ in range(BOMB >> 24):
            stream.write(bytes(1 << 24))

    assert "compressed in a way that NuGet does not read" in refused(machine, path, address_space=MEMORY)


def test_nor_does_a_file_that_is_longer_than_it_says(machine: Machine) -> None:
    path = packed(machine, {"Acme.Tool.nuspec": bytes(256 * 1024 * 1024)})
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.find(b"PK\x01\x02") + 24, 1000)
    path.write_bytes(data)

    assert "CRC" in refused(machine, path, address_space=MEMORY)


def test_a_list_of_files_without_an_end_takes_no_memory(machine: Machine) -> None:
    path = machine.root / "Acme.Tool.1.0.0.nupkg"
    with path.open("wb") as file:
        file.truncate(BOMB)
        file.seek(BOMB)
        file.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, BOMB, 0, 0))

    assert f"more than {addin.MAX_READ_BYTES:,} bytes" in refused(machine, path, address_space=MEMORY)


def test_many_files_take_no_more_of_the_disk_than_one(machine: Machine) -> None:
    path = packed(machine, {f"build/{number}.targets": b" " * 4_000_000 for number in range(50)})

    assert f"more than {addin.MAX_TEXT_BYTES:,} bytes" in refused(machine, path)


@pytest.mark.parametrize(
    ("names", "named"),
    [
        ([f"{number}/a/b/c/d/e/f/g/h.dll" for number in range(5_000)], "30,000 files and folders"),
        (["a/" * 1_000 + "b.dll"], "100 levels"),
        (["a", "a/b"], "directory"),
        (["%00"], "null byte"),
        (["a" * 60_000], "too long"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_names_that_no_package_has_are_refused_and_leave_nothing(
    machine: Machine, names: list[str], named: str
) -> None:
    message = refused(machine, packed(machine, dict.fromkeys(names, "MZ")))

    assert named in message
    assert len(message) < 1_000


def test_a_damaged_file_in_it_is_told(machine: Machine) -> None:
    path = packed(machine, {"Acme.Tool.nuspec": NUSPEC * 10})
    data = bytearray(path.read_bytes())
    data[data.find(b"Acme.Tool.nuspec") + 16] ^= 0xFF  # the first byte of the compressed data
    path.write_bytes(data)

    refused(machine, path)


def test_no_file_is_written_outside_of_the_temporary_folder(machine: Machine) -> None:
    names = ["../../a.dll", f"{machine.root}/b.dll", "..%2F..%2Fc.dll", "d/../../../e.dll", "..\\..\\f.dll", "%2Fg.dll"]
    path = packed(machine, {"Acme.Tool.nuspec": NUSPEC, **dict.fromkeys(names, "MZ")})
    before = snapshot(machine.root)

    result = machine.run("addin", "check", str(path), "--json")

    assert (result.exit_code, result.json["package"]) == (1, "Acme.Tool")
    assert snapshot(machine.root) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["acme.tool.nuspec", "devserver-addin.json", ADD_IN, DLL_PATH])
def test_a_pipe_that_nobody_writes_holds_up_nothing(machine: Machine, name: str) -> None:
    folder = machine.root / "unpacked"
    write_all(folder, direct_add_in("Acme.Tool").all_files)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)

    assert check(machine, folder).exit_code in (0, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_neither_does_one_in_the_place_of_the_package(machine: Machine) -> None:
    os.mkfifo(machine.root / "Acme.Tool.1.0.0.nupkg")

    result = check(machine, machine.root / "Acme.Tool.1.0.0.nupkg")

    assert "not a regular file" in result.json["error"]["message"]


def test_a_link_to_nothing_in_the_place_of_its_identity_is_no_identity(machine: Machine) -> None:
    folder = machine.root / "Acme.Tool"
    write_all(folder, direct_add_in("Acme.Tool").files)
    (folder / "acme.tool.nuspec").symlink_to("nowhere")

    result = check(machine, folder)

    assert (result.exit_code, result.json["package"], result.json["version"]) == (0, "Acme.Tool", None)


def test_a_package_without_an_identity_has_the_name_of_its_file(machine: Machine) -> None:
    result = check(machine, packed(machine, {"Acme.Tool.nuspec": "<package />", "lib/a.dll": "MZ"}))

    assert result.json["package"] == "Acme.Tool.1.0.0"


def test_build_files_that_take_for_ever_are_not_all_evaluated(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Package(
        "Acme.Tool", "1.0.0", {ADD_IN: targets("../tools/a.dll"), "build/Other.targets": targets("b.dll")}
    )
    write_all(machine.root / "unpacked", package.all_files)
    monkeypatch.setattr(addin, "SECONDS", -1.0)

    result = addin.run(parse(["addin", "check", str(machine.root / "unpacked")]))

    assert result.exit_code == 1
    assert "some were not looked at" in str(result.data)


def check(machine: Machine, path: Path) -> Result:
    return machine.run("addin", "check", str(path), "--json")
