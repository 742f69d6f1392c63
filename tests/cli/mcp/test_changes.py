"""What `mcp install`, `uninstall` and `restore` share: which clients are changed, and the text at 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from setup.made import here_at
from support.registration import DOCS, UVX, Clients, operations
from uno_devserver.cli.mcp.changes import change_text
from uno_devserver.setup.change_writer import WriteOptions
from uno_devserver.setup.paths import Here
from uno_devserver.setup.plan.changes import Action, Operation

OPTIONS = WriteOptions("/state")


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return here_at(tmp_path)


def lines(here: Here, *operations: Operation, steps: tuple[str, ...] = ()) -> list[str]:
    return change_text("MCP Install", operations, steps, here, OPTIONS).splitlines()


def test_a_line_has_server_action_path_and_reason_in_columns(here: Here) -> None:
    shown = lines(
        here,
        Operation("UnoApp", "cursor", Action.CREATED, f"{here.workspace}/.cursor/mcp.json", "Added UnoApp server"),
        Operation("UnoDocs", "cursor", Action.SKIPPED, f"{here.home}/.cursor/mcp.json", "Already registered"),
    )

    assert shown == [
        "MCP Install",
        "===========",
        "",
        "  UnoApp   created  .cursor/mcp.json     Added UnoApp server",
        "  UnoDocs  skipped  ~/.cursor/mcp.json   Already registered",
    ]


def test_what_is_wrong_with_a_file_is_told_once_for_all_servers(here: Here) -> None:
    error = Operation("UnoApp", "cursor", Action.ERROR, "/x", "File is read-only")

    shown = lines(here, error, error.replace(server="UnoDocs"), error.replace(path="/y"))

    assert shown[3:] == [
        "  UnoApp, UnoDocs  error  /x   File is read-only",
        "  UnoApp           error  /y   File is read-only",
    ]


@pytest.mark.parametrize(
    ("path", "action", "shown"),
    [
        (None, Action.NOT_FOUND, "  UnoApp  not_found  The reason"),
        ("/a\nb", Action.SKIPPED, "  UnoApp  skipped  /a\\nb   The reason"),
    ],
)
def test_an_odd_path_stays_in_its_line(here: Here, path: str | None, action: Action, shown: str) -> None:
    assert lines(here, Operation("UnoApp", "cursor", action, path, "The reason"))[3:] == [shown]


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


def test_a_path_stays_whole_so_that_it_can_be_copied(here: Here) -> None:
    backup = "/home/someone/.local/share/Uno Platform/uno.devserver/registration/backups/mcp.json-0293b6c4.2026"
    path = "/home/o'brien/Library/Application Support/Some Client/User/settings/mcp.json"
    note = f"Some Client uses the entry in '{path}' first, so this one does not count yet."

    shown = lines(here, Operation("UnoApp", "cursor", Action.CREATED, "/x", "Added", (note,), backup))

    assert shown[-1] == f"- {backup}"
    folded = ["- Some Client uses the entry in", f"  '{path}'", "  first, so this one does not count yet."]
    assert shown[shown.index("Notes:") + 1 :][:3] == folded


@pytest.mark.parametrize(("there", "actions"), [({"UnoApp": UVX}, ["skipped", "created"]), ({"UnoDocs": DOCS}, None)])
def test_servers_are_told_in_their_order_whatever_was_done(
    clients: Clients, there: dict[str, object], actions: list[str] | None
) -> None:
    clients.write(".cursor/mcp.json", {"mcpServers": there})

    done = operations(clients.install("cursor", "--release"))

    assert [one["server"] for one in done] == ["UnoApp", "UnoDocs"]
    assert [one["action"] for one in done] == (actions or ["created", "skipped"])


def test_what_has_no_mcp_client_is_left_out_of_all_for_install_and_cleaned_by_uninstall(clients: Clients) -> None:
    clients.write(".aider/mcp.json", {"mcpServers": {"UnoApp": UVX}})
    clients.write(".cursor/mcp.json", {})

    installed = operations(clients.install("--all-ides", "--release"))
    removed = operations(clients.uninstall("--all-ides"))

    assert {one["ide"] for one in installed} == {"cursor"}
    assert ("aider", "removed") in [(one["ide"], one["action"]) for one in removed]


def test_a_dry_run_does_not_build_on_what_could_not_be_written(clients: Clients) -> None:
    clients.write("~/.qwen/settings.json", {})
    clients.write(".mcp.json", {}).chmod(0o444)

    tried = operations(clients.install("--all-ides", "--dry-run", "--scope", "workspace", "--servers", "UnoApp"))

    told = {one["ide"]: (one["action"], one["path"]) for one in tried}
    assert told["claude-code"][0] == "error"
    assert told["qwen"] == ("created", str(clients.at(".qwen/settings.json"))), "nothing is there for it yet"
