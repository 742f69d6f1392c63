"""The scope HotReload over the wire: honest about updates of code, careful with files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from host.remote_control.apps import app_at, app_of, remote_control, served
from support.waiting import until

SCOPE = "HotReload"


async def ask(workspace: Path | None, name: str, content: object) -> tuple[str, Any]:
    async with app_of(remote_control(workspace=str(workspace) if workspace else None)) as app:
        return await app.ask(SCOPE, name, content)


async def test_updates_of_code_are_said_to_need_the_dotnet_host() -> None:
    async with app_of(remote_control()) as app:
        await app.send(SCOPE, "ConfigureServer", {"ProjectPath": "/p/App.csproj", "EnableMetadataUpdates": True})
        loaded, status = await app.receive(), await app.receive()
        assert (loaded.scope, loaded.name, loaded.content) == (
            SCOPE,
            "UpdateFile",
            '{"WorkspaceInitialized":false}',
        )
        assert (status.scope, status.name) == (SCOPE, "HotReloadStatusMessage")
        assert list(json.loads(status.content)) == ["State", "Operations", "ServerError", "Scope"]
        content = json.loads(status.content)
        assert (content["State"], content["Operations"]) == (-1, [])
        assert "--host dotnet" in content["ServerError"]


@pytest.mark.parametrize("asked", [{"EnableMetadataUpdates": False}, {}])
async def test_an_app_that_asks_for_no_updates_of_code_is_shown_no_error(asked: dict[str, bool]) -> None:
    async with app_of(remote_control()) as app:
        await app.send(SCOPE, "ConfigureServer", {"ProjectPath": "/p/App.csproj", **asked})
        loaded, status = await app.receive(), await app.receive()
        assert (loaded.name, loaded.content) == ("UpdateFile", '{"WorkspaceInitialized":false}')
        assert status.name == "HotReloadStatusMessage"
        assert json.loads(status.content) == {"State": -1, "Operations": [], "ServerError": None, "Scope": SCOPE}


async def test_files_are_edited_and_every_edit_has_its_result(tmp_path: Path) -> None:
    (tmp_path / "Main.xaml").write_text("one")
    edits: list[dict[str, Any]] = [
        {"FilePath": "Main.xaml", "OldText": "one", "NewText": "two", "IsCreateDeleteAllowed": False},
        {"FilePath": str(tmp_path / "New.cs"), "OldText": None, "NewText": "new", "IsCreateDeleteAllowed": True},
        {"FilePath": "Missing.cs", "OldText": "a", "NewText": "b"},
        {"FilePath": "../out.cs", "NewText": "b", "IsCreateDeleteAllowed": True},
    ]

    name, response = await ask(
        tmp_path, "UpdateFileRequest", {"RequestId": "r-1", "Edits": edits, "ForceSaveOnDisk": False}
    )

    assert name == "UpdateFileResponse_2"
    assert list(response) == ["RequestId", "GlobalError", "Results", "HotReloadCorrelationId"]
    assert (response["RequestId"], response["GlobalError"]) == ("r-1", None)
    assert response["HotReloadCorrelationId"] is None  # there is nothing to wait for
    assert [list(result) for result in response["Results"]] == [["FilePath", "Result", "Error"]] * 4
    assert [result["Result"] for result in response["Results"]] == [200, 200, 404, 400]
    assert [result["FilePath"] for result in response["Results"]] == [edit["FilePath"] for edit in edits]
    assert [result["Error"] is None for result in response["Results"]] == [True, True, False, False]
    assert (tmp_path / "Main.xaml").read_text() == "two"
    assert (tmp_path / "New.cs").read_text() == "new"
    assert not (tmp_path.parent / "out.cs").exists()


async def test_an_older_app_edits_one_file(tmp_path: Path) -> None:
    (tmp_path / "Main.xaml").write_text("one")

    name, response = await ask(
        tmp_path, "UpdateFile", {"requestId": "r", "filePath": "Main.xaml", "oldText": "one", "newText": "two"}
    )

    assert name == "UpdateFileResponse"
    assert list(response.items()) == [
        ("RequestId", "r"),
        ("FilePath", "Main.xaml"),
        ("Result", 200),
        ("Error", None),
        ("HotReloadCorrelationId", None),
    ]
    assert (tmp_path / "Main.xaml").read_text() == "two"


@pytest.mark.parametrize("name", ["UpdateFile", "UpdateFileRequest"])
async def test_a_request_that_cannot_be_answered_edits_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "Main.xaml").write_text("one")
    change = {"FilePath": "Main.xaml", "OldText": "one", "NewText": "two"}

    async with app_of(remote_control(workspace=str(tmp_path))) as app:
        await app.send(SCOPE, name, {"RequestId": 7, "Edits": [change], **change})
        # The answer to the next one of this scope comes after it.
        assert (await app.ask(SCOPE, "UpdateFile", {"RequestId": "next"}))[1]["RequestId"] == "next"

    assert (tmp_path / "Main.xaml").read_text() == "one"


async def test_a_relative_workspace_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "Main.xaml"
    page.write_text("one")
    monkeypatch.chdir(tmp_path)
    control = remote_control(workspace="")  # the folder of "App.sln"
    monkeypatch.chdir("/")

    async with app_of(control) as app:
        change = {"RequestId": "r", "FilePath": str(page), "OldText": "one", "NewText": "two"}
        assert (await app.ask(SCOPE, "UpdateFile", change))[1]["Result"] == 200

    assert page.read_text() == "two"


async def test_without_a_workspace_nothing_is_edited(tmp_path: Path) -> None:
    page = tmp_path / "Main.xaml"
    page.write_text("one")
    change = {"FilePath": str(page), "OldText": "one", "NewText": "two"}

    _, response = await ask(None, "UpdateFileRequest", {"RequestId": "r", "Edits": [change]})
    _, older = await ask(None, "UpdateFile", {"RequestId": "r", **change})

    assert response["Results"][0]["Result"] == older["Result"] == 503
    assert "--solution" in older["Error"]
    assert page.read_text() == "one"


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"Edits": []}, "0 edits"),
        ({}, "0 edits"),
        ({"Edits": [{"FilePath": "a"}] * 1001}, "1,001 edits"),
        ({"Edits": "x"}, "Edits is not a list of objects"),
        ({"Edits": [{"FilePath": 5}]}, "FilePath is not a text"),
        ({"Edits": [{"FilePath": "a", "IsCreateDeleteAllowed": "yes"}]}, "IsCreateDeleteAllowed"),
    ],
)
async def test_a_request_that_cannot_be_understood_is_answered_too(
    tmp_path: Path, request_: dict[str, Any], problem: str
) -> None:
    _, response = await ask(tmp_path, "UpdateFileRequest", {"RequestId": "r", **request_})

    assert response["RequestId"] == "r"
    assert problem in response["GlobalError"]
    assert response["Results"] == []


async def test_an_older_request_that_cannot_be_understood_is_answered_too(tmp_path: Path) -> None:
    _, response = await ask(tmp_path, "UpdateFile", {"RequestId": "r", "FilePath": 5})

    assert (response["RequestId"], response["Result"]) == ("r", 400)


@pytest.mark.parametrize(
    ("path", "reason"), [("a/" * 1900 + "x.cs", "too many folders"), ("q\ud800.cs", "half a surrogate pair")]
)
async def test_an_edit_of_a_path_that_cannot_be_made_is_answered(tmp_path: Path, path: str, reason: str) -> None:
    edit = {"FilePath": path, "NewText": "x", "IsCreateDeleteAllowed": True}

    _, response = await ask(tmp_path, "UpdateFileRequest", {"RequestId": "r", "Edits": [edit]})

    assert response["Results"][0]["Result"] == 400
    assert reason in response["Results"][0]["Error"]
    assert list(tmp_path.iterdir()) == []


async def test_a_line_end_in_a_value_of_an_app_begins_no_entry_of_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = "2026-01-01T00:00:00Z warn: forged"
    async with app_of(remote_control(workspace=str(tmp_path))) as app:
        await app.send(SCOPE, "XamlLoadError", {"FilePath": f"f\n{forged}", "ExceptionType": "", "Message": ""})
        await app.ask(SCOPE, "UpdateFile", {"RequestId": "r", "FilePath": f"q\n{forged}"})

    lines = [line for line in capsys.readouterr().err.splitlines() if forged in line]
    assert len(lines) > 1
    assert all(line.startswith("      ") for line in lines)


async def test_what_an_app_reports_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    async with app_of(remote_control()) as app:
        error = {"FilePath": "Main.xaml", "ExceptionType": "XamlParseException", "Message": "bad \x1b[31m tag"}
        await app.send(SCOPE, "XamlLoadError", error)
        await app.send(SCOPE, "HotReloadClientOperationEvent", {"OperationSequenceId": 1})
        await app.send(SCOPE, "UnknownMessage", {})
        await app.send(SCOPE, "UpdateFileRequest", "not JSON")
        # A last question in the same scope: what came before has been handled.
        assert (await app.ask(SCOPE, "UpdateFile", {"RequestId": "last"}))[1]["RequestId"] == "last"

    logged = capsys.readouterr().err
    assert "The app could not load Main.xaml: XamlParseException: bad" in logged
    assert "\x1b" not in logged
    assert "[HotReload / UpdateFileRequest] could not be read: it is not JSON" in logged


async def test_edits_of_many_apps_at_once_do_not_undo_each_other(tmp_path: Path) -> None:
    # given: a file in which each app changes a line of its own
    page = tmp_path / "Main.xaml"
    page.write_text("".join(f"<a{number}>old</a{number}>\n" for number in range(8)))

    async with served(remote_control(workspace=str(tmp_path))) as port:

        async def change(number: int) -> int:
            async with app_at(port) as app:
                edit = {"FilePath": "Main.xaml", "OldText": f"<a{number}>old", "NewText": f"<a{number}>new"}
                _, response = await app.ask(SCOPE, "UpdateFileRequest", {"RequestId": "r", "Edits": [edit]})
                return int(response["Results"][0]["Result"])

        assert await asyncio.gather(*map(change, range(8))) == [200] * 8

    assert page.read_text() == "".join(f"<a{number}>new</a{number}>\n" for number in range(8))


async def test_an_edit_is_made_also_when_the_app_leaves_at_once(tmp_path: Path) -> None:
    page = tmp_path / "Main.xaml"
    page.write_text("one")

    async with served(remote_control(workspace=str(tmp_path))) as port:
        async with app_at(port) as app:
            edit = {"FilePath": "Main.xaml", "OldText": "one", "NewText": "two"}
            await app.send(SCOPE, "UpdateFileRequest", {"RequestId": "r", "Edits": [edit]})
        await until(lambda: page.read_text() == "two", "the edit")
