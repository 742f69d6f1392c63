"""Processors that an app asks for: ours are there, those of .NET are named with the reason why they are not."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from host.remote_control.apps import SERVER_SCOPE, VERSION, app_of, remote_control
from support.assemblies import SERVER_PROCESSOR, assembly, assembly_of_long_names
from support.files import write
from support.golden import GOLDEN
from uno_devserver.host.addins.handlers import Processor
from uno_devserver.host.assemblies import READ_SECONDS, assembly_reads
from uno_devserver.host.remote_control import server_scope
from uno_devserver.host.remote_control.server_scope import NEEDS_DOTNET

PROCESSORS_DLL = "Uno.UI.RemoteControl.Server.Processors.dll"
HOT_RELOAD = "Uno.UI.RemoteControl.Host.HotReload.ServerHotReloadProcessor"


def discover(*base_paths: object, processors: list[Processor] | None = None) -> list[dict[str, Any]]:
    """The answers to discoveries on one connection, one after the other."""

    async def scenario() -> list[dict[str, Any]]:
        async with app_of(remote_control(processors=lambda: processors or [])) as app:
            answers = []
            for base in base_paths:
                content = {"BasePath": base, "AppInstanceId": "app-1"}
                name, answer = await app.ask(SERVER_SCOPE, "ProcessorsDiscovery", content)
                assert name == "ProcessorsDiscoveryResponse"
                answers.append(answer)
            return answers

    return asyncio.run(scenario())


def dll(path: Path, *types: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(assembly([(SERVER_PROCESSOR, name) for name in types], version=(6, 5, 0, 1)))
    return path


def described(path: Path, type_: str) -> dict[str, Any]:
    return {
        "AssemblyPath": str(path),
        "Type": type_,
        "Version": "6.5.0.1",
        "IsLoaded": False,
        "LoadError": NEEDS_DOTNET,
    }


def test_dotnet_processors_in_a_folder_are_named_with_what_they_need(tmp_path: Path) -> None:
    found = dll(tmp_path / PROCESSORS_DLL, HOT_RELOAD)
    dll(tmp_path / "Other.Processors.dll", "Not.Ours")
    dll(tmp_path / "Uno.UI.dll", "Not.A.Processor")

    (answer,) = discover(str(tmp_path))

    assert answer["Assemblies"] == [str(found)]
    assert answer["Processors"] == [described(found, HOT_RELOAD)]


def test_processors_that_a_generic_attribute_declares_are_listed_with_the_version_that_dotnet_tells() -> None:
    sample = GOLDEN / "dotnet-cli" / "processors" / "Sample.Processors.dll"

    (answer,) = discover(str(sample))

    assert answer["Assemblies"] == [str(sample)]
    assert [found["Type"] for found in answer["Processors"]] == [
        "Sample.Generic",
        "Sample.Deep.Nested+Inner",
        "Sample.Boxed`1[[System.Collections.Generic.List`1[[System.String]]]]",
        "Sample.Plain",
    ]
    # The app compares its list of required processors with these, and shows the error of each that is not loaded.
    assert {(found["Version"], found["IsLoaded"], found["LoadError"]) for found in answer["Processors"]} == {
        ("3.4.5-beta.6+abc", False, NEEDS_DOTNET)
    }


def test_the_folder_of_the_newest_framework_is_looked_into(tmp_path: Path) -> None:
    dll(tmp_path / PROCESSORS_DLL, "Old")
    dll(tmp_path / "net9.0" / PROCESSORS_DLL, "Nine")
    ten = dll(tmp_path / "net10.0" / PROCESSORS_DLL, "Ten")

    assert discover(str(tmp_path))[0]["Assemblies"] == [str(ten)]


def test_a_relative_path_is_nowhere_even_where_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dll(tmp_path / "folder" / PROCESSORS_DLL, "One")
    monkeypatch.chdir(tmp_path)

    assert [answer["Assemblies"] for answer in discover("folder", f"folder/{PROCESSORS_DLL}")] == [[], []]


def test_a_folder_full_of_assemblies_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_scope, "MAX_ASSEMBLIES", 2)
    paths = [str(dll(tmp_path / f"Uno.UI.Processor{number}.dll", "One")) for number in range(3)]

    assert discover(str(tmp_path))[0]["Assemblies"] == paths[:2]


def test_processors_with_names_of_megabytes_do_not_add_up(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / f"Uno.UI.Processor{number}.dll", assembly_of_long_names(1))
    good = dll(tmp_path / "Good" / "Any.dll", "Acme.One")

    answers = discover(str(tmp_path), f"{tmp_path}/.", str(good))

    lengths = [sum(len(found["Type"]) for found in answer["Processors"]) for answer in answers]
    assert max(lengths) <= server_scope.MAX_TEXT
    assert described(good, "Acme.One") in answers[-1]["Processors"]


def test_a_single_assembly_can_be_named(tmp_path: Path) -> None:
    found = dll(tmp_path / "Any.dll", "Acme.One", "Acme.Two")

    (answer,) = discover(str(found))

    assert answer["Processors"] == [described(found, "Acme.One"), described(found, "Acme.Two")]


def test_processors_add_up_over_a_connection_and_assemblies_do_not(tmp_path: Path) -> None:
    one, two = dll(tmp_path / "One.dll", "One"), dll(tmp_path / "Two.dll", "Two")

    first, second, third = discover(str(one), str(two), str(one))

    assert [first["Assemblies"], second["Assemblies"]] == [[str(one)], [str(two)]]
    assert first["Processors"] == [described(one, "One")]
    assert second["Processors"] == third["Processors"] == [described(one, "One"), described(two, "Two")]


def test_processors_of_addins_are_listed_as_loaded() -> None:
    async def nothing(*_: object) -> None: ...

    (answer,) = discover(None, processors=[Processor("Acme", nothing, "/addins/acme.py")])

    assert answer["Processors"] == [
        {"AssemblyPath": "/addins/acme.py", "Type": "Acme", "Version": VERSION, "IsLoaded": True, "LoadError": None}
    ]


@pytest.mark.parametrize(
    "base", [None, "", "relative", "a\0b", "/none/such", "/dev/zero", "/proc/self/mem", 5, "x" * 100_000]
)
def test_odd_paths_are_answered_quickly_with_nothing(base: object) -> None:
    began = time.monotonic()

    (answer,) = discover(base)

    assert (answer["Assemblies"], answer["Processors"]) == ([], [])
    assert time.monotonic() - began < READ_SECONDS


async def test_a_disk_that_does_not_answer_does_not_keep_an_app_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    disk_is_back = threading.Event()

    def hang(_: object) -> tuple[list[str], dict[tuple[str, str], dict[str, object]]]:
        disk_is_back.wait(30)
        return [], {}

    monkeypatch.setattr(server_scope, "find_processors", hang)

    async with app_of(remote_control(workspace=str(tmp_path), assembly_reads=assembly_reads(0.01))) as app:
        for _ in range(40):  # more than asyncio has threads
            # when
            name, answer = await app.ask(SERVER_SCOPE, "ProcessorsDiscovery", {"BasePath": "/share"})
            # then
            assert (name, answer["Assemblies"]) == ("ProcessorsDiscoveryResponse", [])
        assert await app.answers() == []
        change = {"RequestId": "r", "FilePath": "a.cs", "NewText": "x", "IsCreateDeleteAllowed": True}
        assert (await app.ask("HotReload", "UpdateFile", change))[1]["Result"] == 200

    disk_is_back.set()

    assert "/share could not be searched" in capsys.readouterr().err


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    found = dll(tmp_path / PROCESSORS_DLL, HOT_RELOAD)
    (tmp_path / "Uno.Broken.Processors.dll").write_bytes(b"MZ broken")
    (tmp_path / "Uno.Folder.Processors.dll").mkdir()
    (tmp_path / "Uno.Gone.Processors.dll").symlink_to("nowhere")
    os.mkfifo(tmp_path / "Uno.Pipe.Processors.dll")

    assert discover(str(tmp_path))[0]["Assemblies"] == [str(found)]
