"""What people read about changed files, at 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from setup.made import here_at
from uno_devserver.cli.mcp.changes import change_text
from uno_devserver.setup.change_writer import WriteOptions
from uno_devserver.setup.paths import Here
from uno_devserver.setup.plan.changes import Action, Operation

WAYS = WriteOptions("/state")


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return here_at(tmp_path)


def lines(here: Here, *operations: Operation, steps: tuple[str, ...] = ()) -> list[str]:
    return change_text("MCP Install", operations, steps, here, WAYS).splitlines()


def test_a_line_has_server_action_path_and_reason_in_columns(here: Here) -> None:
    shown = lines(
        here,
        Operation(
            "UnoApp", "cursor", Action.CREATED, f"{here.workspace}/.cursor/mcp.json", "Added UnoApp stdio server"
        ),
        Operation("UnoDocs", "cursor", Action.SKIPPED, f"{here.home}/.cursor/mcp.json", "Already registered"),
    )

    assert shown == [
        "MCP Install",
        "===========",
        "",
        "  UnoApp   created  .cursor/mcp.json     Added UnoApp stdio server",
        "  UnoDocs  skipped  ~/.cursor/mcp.json   Already registered",
    ]


def test_what_is_wrong_with_a_file_is_told_once_for_all_servers(here: Here) -> None:
    error = Operation("UnoApp", "cursor", Action.ERROR, "/x", "File is read-only")

    shown = lines(here, error, error.replace(server="UnoDocs"), error.replace(path="/y"))

    assert shown[3:] == [
        "  UnoApp, UnoDocs  error  /x   File is read-only",
        "  UnoApp           error  /y   File is read-only",
    ]


def test_what_has_no_path_has_its_reason_behind_the_action(here: Here) -> None:
    shown = lines(here, Operation("UnoApp", "cursor", Action.NOT_FOUND, None, "Not found in any config file"))

    assert shown[3:] == ["  UnoApp  not_found  Not found in any config file"]


def test_a_reason_that_does_not_fit_stands_below_and_is_folded(here: Here) -> None:
    path = f"/elsewhere/{'long/' * 12}mcp.json"

    shown = lines(here, Operation("UnoApp", "cursor", Action.ERROR, path, "many words " * 12))

    assert shown[3] == f"  UnoApp  error  {path}"
    assert len(shown) > 5
    assert all(line.startswith("      ") and len(line) <= 80 for line in shown[4:])


def test_notes_and_backups_are_listed_once_and_steps_last(here: Here) -> None:
    operation = Operation("UnoApp", "cursor", Action.CREATED, "/x", "Added", ("A note.",), "/state/backup")

    shown = lines(here, operation, operation.replace(server="UnoDocs"), steps=("Do this.",))

    assert shown[6:] == [
        "Notes:",
        "- A note.",
        "",
        "Backups (for 'uno-devserver mcp restore'):",
        "- /state/backup",
        "",
        "Next steps:",
        "- Do this.",
    ]


def test_a_backups_path_stays_whole_so_that_it_can_be_copied(here: Here) -> None:
    backup = "/home/someone/.local/share/Uno Platform/uno.devserver/registration/backups/mcp.json-0293b6c4.2026"

    shown = lines(here, Operation("UnoApp", "cursor", Action.CREATED, "/x", "Added", (), backup))

    assert shown[-1] == f"- {backup}"


def test_a_path_in_a_sentence_stays_whole_too(here: Here) -> None:
    path = "/home/o'brien/Library/Application Support/Some Client/User/settings/mcp.json"
    note = f"Some Client takes the entry in '{path}' first, so this one does not count yet."

    shown = lines(here, Operation("UnoApp", "cursor", Action.CREATED, "/x", "Added", (note,)))

    assert shown[-3:] == ["- Some Client takes the entry in", f"  '{path}'", "  first, so this one does not count yet."]


def test_a_line_end_in_a_name_begins_no_line(here: Here) -> None:
    shown = lines(here, Operation("UnoApp", "cursor", Action.SKIPPED, "/a\nb", "Fine"))

    assert shown[3:] == ["  UnoApp  skipped  /a\\nb   Fine"]
