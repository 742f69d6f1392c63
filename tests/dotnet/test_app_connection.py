"""An app in C# on `/rc` of the bundled Host: .NET's WebSocket, BinaryWriter, BinaryReader and System.Text.Json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dotnet.sdk import Client, Conversation
from support.bundled import BundledHost
from support.files import write
from support.machine import Machine
from support.workspace import WorkspaceBuilder

SERVER, HOT_RELOAD = "RemoteControlServer", "HotReload"
NORMAL_CLOSURE = 1000


@pytest.fixture
def page(net_workspace: WorkspaceBuilder) -> Path:
    net_workspace.project("App/App.csproj").solution("App.slnx")
    return write(net_workspace.root / "App" / "Größe.xaml", "<Page>\r\n  <Old/>\r\n</Page>")


@pytest.fixture
def app(net_workspace: WorkspaceBuilder, page: Path, client: Client) -> Iterator[Conversation]:
    machine: Machine = net_workspace.machine
    solution = str(net_workspace.root / "App.slnx")
    arguments = ("--addins", ";", "--solution", solution)
    with BundledHost(machine.root, *arguments) as host, client.talk("app", str(host.port)) as app:
        yield app


def test_a_keep_alive_is_answered_in_the_characters_of_dotnet(app: Conversation) -> None:
    app.send(SERVER, "KeepAliveMessage", json.dumps({"AssemblyVersion": "6.5.0", "SequenceId": 2**64 - 1}))

    answer = app.receive()

    assert (answer["scope"], answer["name"], answer["version"]) == (SERVER, "KeepAliveMessage", 1)
    assert answer["message"]["SequenceId"] == 2**64 - 1
    assert (answer["binary"], answer["unread"], answer["same"]) == (True, 0, True)


def test_processors_are_told_in_the_characters_of_dotnet(app: Conversation, client_dll: Path) -> None:
    app.send(SERVER, "ProcessorsDiscovery", json.dumps({"BasePath": str(client_dll), "AppInstanceId": "1"}))

    answer = app.receive()

    assert answer["name"] == "ProcessorsDiscoveryResponse"
    assert answer["message"]["Assemblies"] == [str(client_dll)]
    assert (answer["unread"], answer["same"]) == (0, True)


# 0x7F and 0x3FFF are where the length of a string in a frame takes one byte more.
@pytest.mark.parametrize("length", [1, 0x7F, 0x80, 0x3FFF, 0x4000, 200_000])
def test_a_file_is_edited_and_the_result_told(app: Conversation, page: Path, length: int) -> None:
    new = "ü✓" * length
    edit = {"FilePath": str(page), "OldText": "<Old/>", "NewText": new, "IsCreateDeleteAllowed": False}

    app.send(HOT_RELOAD, "UpdateFileRequest", json.dumps({"RequestId": "ä" * length, "Edits": [edit]}))

    answer = app.receive()
    assert answer["name"] == "UpdateFileResponse_2"
    assert answer["message"]["RequestId"] == "ä" * length
    assert answer["message"]["Results"] == [{"FilePath": str(page), "Result": 200, "Error": None}]
    assert (answer["unread"], answer["same"]) == (0, True)
    assert page.read_bytes() == f"<Page>\r\n  {new}\r\n</Page>".encode()


def test_a_goodbye_is_returned(app: Conversation) -> None:
    app.end_input()

    assert app.receive() == {"closed": NORMAL_CLOSURE}
