"""The choice of a Host: recorded choices of the .NET tool, and what goes beyond them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.discovery.host_binary import HostBinary, find_host
from uno_devserver.issues import Issue

DLL = "Uno.UI.RemoteControl.Host.dll"
EXE = "Uno.UI.RemoteControl.Host.exe"


def package(root: Path, *files: str) -> str:
    for file in files:
        write(root / "tools/rc/host" / file, "MZ")
    return str(root)


def no_question() -> Sequence[str]:
    raise AssertionError("the runtimes need not be asked for")


def only_net10() -> Sequence[str]:
    return ["10.0.12"]


def found(result: HostBinary | Issue) -> tuple[str, bool]:
    """The choice as `<framework>/<file>`, and whether the Host must roll forward."""
    assert isinstance(result, HostBinary)
    folder, file = os.path.split(result.path)
    assert os.path.basename(folder) == result.tfm
    return f"{result.tfm}/{file}", result.requires_major_roll_forward


def message(result: HostBinary | Issue) -> str:
    assert isinstance(result, Issue)
    assert result.code == "HostBinaryNotFound"
    assert result.fatal
    return result.message


# --- as recorded from the .NET tool, with SDK and runtime 10 ---


def test_the_exact_framework_is_taken(tmp_path: Path) -> None:
    home = package(tmp_path, f"net9.0/{DLL}", f"net10.0/{DLL}")

    assert found(find_host(home, "net10.0", no_question, "linux")) == (f"net10.0/{DLL}", False)


def test_one_major_lower_is_taken_and_must_roll_forward(tmp_path: Path) -> None:
    home = package(tmp_path, f"net9.0/{DLL}")

    assert found(find_host(home, "net10.0", no_question, "linux")) == (f"net9.0/{DLL}", True)


@pytest.mark.parametrize(
    ("files", "present"),
    [
        ([f"net8.0/{DLL}"], "present: net8.0)"),
        ([f"net11.0/{DLL}"], "present: net11.0)"),
        ([f"net9.0/{EXE}", f"net10.0/{EXE}"], f"present: net9.0, net10.0; net9.0, net10.0 without a usable {DLL})"),
        (["net10.0/readme.txt"], f"present: net10.0; net10.0 without a usable {DLL})"),
    ],
    ids=["two majors lower", "newer only", "exe only", "folder empty"],
)
def test_what_does_not_fit_is_listed(tmp_path: Path, files: list[str], present: str) -> None:
    result = find_host(package(tmp_path, *files), "net10.0", only_net10, "linux")

    assert "for net10.0" in message(result)
    assert present in message(result)


# --- beyond the records ---


def test_the_nearest_lower_is_the_highest_of_them(tmp_path: Path) -> None:
    home = package(tmp_path, f"net9.0/{DLL}", f"net10.0/{DLL}", f"net10.1/{DLL}", f"net11.0/{DLL}")

    assert found(find_host(home, "net10.2", no_question, "linux")) == (f"net10.1/{DLL}", False)


def test_a_higher_one_is_taken_when_its_runtime_is_installed(tmp_path: Path) -> None:
    home = package(tmp_path, f"net8.0/{DLL}", f"net11.0/{DLL}", f"net12.0/{DLL}", f"net13.1/{DLL}")

    def choice(*runtimes: str) -> HostBinary | Issue:
        return find_host(home, "net10.0", lambda: runtimes, "linux")

    assert found(choice("10.0.12", "11.0.1", "12.0.0")) == (f"net11.0/{DLL}", False)
    assert found(choice("12.0.0-rc.1", "junk", "x.y.z", "")) == (f"net12.0/{DLL}", False)
    assert "present: net8.0, net11.0, net12.0, net13.1" in message(choice("10.0.12", "13.0.9"))


def test_a_folder_without_a_usable_file_does_not_stand_in_the_way(tmp_path: Path) -> None:
    home = package(tmp_path, f"net9.0/{DLL}", "net10.0/readme.txt")

    assert found(find_host(home, "net10.0", no_question, "linux")) == (f"net9.0/{DLL}", True)


def test_an_empty_file_or_a_folder_of_that_name_cannot_be_started(tmp_path: Path) -> None:
    home = package(tmp_path, f"net10.0/{DLL}/nested")
    write(tmp_path / "tools/rc/host/net9.0" / DLL, "")

    result = find_host(home, "net10.0", only_net10, "linux")

    assert "net9.0, net10.0 without a usable" in message(result)


@pytest.mark.parametrize(
    ("platform", "files", "expected"),
    [
        ("win32", [DLL, EXE], EXE),
        ("win32", [DLL], DLL),
        ("win32", [EXE], EXE),
        ("linux", [DLL, EXE], DLL),
        ("darwin", [DLL, EXE], DLL),
    ],
)
def test_windows_prefers_the_exe_and_others_take_the_dll(
    tmp_path: Path, platform: str, files: list[str], expected: str
) -> None:
    home = package(tmp_path, *(f"net10.0/{file}" for file in files))

    assert found(find_host(home, "net10.0", no_question, platform)) == (f"net10.0/{expected}", False)


def test_folders_of_other_families_are_passed_over(tmp_path: Path) -> None:
    others = [
        "net4.8",
        "net472",
        "net10.0-windows",
        "netstandard2.0",
        "net010.0",
        "net10",
        "net10.0.1",
        "net",
        "xnet10.0",
    ]
    home = package(tmp_path, *(f"{name}/{DLL}" for name in others))

    assert "no folder such as net10.0" in message(find_host(home, "net10.0", only_net10, "linux"))


def test_a_package_without_hosts_names_the_folder_that_was_looked_at(tmp_path: Path) -> None:
    assert str(tmp_path / "tools/rc/host") in message(find_host(str(tmp_path), "net10.0", only_net10, "linux"))


@pytest.mark.parametrize("tfm", [None, "", "nonsense"])
def test_nothing_is_chosen_for_an_unknown_sdk(tmp_path: Path, tfm: str | None) -> None:
    home = package(tmp_path, f"net10.0/{DLL}")

    assert "present: net10.0" in message(find_host(home, tfm, no_question, "linux"))
