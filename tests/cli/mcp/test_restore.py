"""`mcp restore` as people call it; what is put back when has its own tests."""

from __future__ import annotations

import os
from pathlib import Path

from support.registration import Clients, operations


def test_all_files_of_a_client_are_put_back(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", "{ }")
    clients.write("~/.cursor/mcp.json", "{  }")
    before = clients.tree()
    clients.install("cursor")
    clients.install("cursor", "--scope", "user")

    text = clients.text("restore", "cursor").stdout.replace("\\", "/")

    assert text.startswith("MCP Restore\n===========\n\n  (file)  restored  .cursor/mcp.json")
    assert clients.tree() == before


def test_a_dry_run_shows_what_would_be_put_back(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", "{ }\n")
    clients.install("cursor")
    before = clients.tree()

    (operation,) = operations(clients.mcp("restore", "cursor", "--dry-run"))

    assert operation["server"] is None
    assert "\n+{ }\n" in operation["diff"]
    assert clients.tree() == before


def test_of_all_clients_only_those_count_that_were_changed(clients: Clients) -> None:
    clients.write("~/.cursor/mcp.json", "{ }")
    clients.write("~/.kiro/settings/mcp.json", "{ }")
    clients.install("kiro")

    result = clients.mcp("restore", "--all-ides")

    assert [(one["ide"], one["action"]) for one in operations(result)] == [("kiro", "restored")]
    assert result.exit_code == 0


def test_a_dry_run_counts_a_shared_file_once_as_the_real_run_does(clients: Clients) -> None:
    clients.write("~/.qwen/settings.json", "{ }")
    clients.write(".mcp.json", "{ }")
    clients.install("claude-code")

    tried, done = clients.mcp("restore", "--all-ides", "--dry-run"), clients.mcp("restore", "--all-ides")

    told = [[(one["ide"], one["path"]) for one in operations(run)] for run in (tried, done)]
    assert told[0] == told[1] == [("claude-code", str(clients.at(".mcp.json")))]


def test_by_force_a_file_that_several_clients_read_is_put_back_once(clients: Clients) -> None:
    clients.write("~/.qwen/settings.json", "{ }")
    clients.write("~/.claude.json", "{ }")
    clients.write(".mcp.json", "{ }")
    for content in ("{  }", "{   }"):
        clients.install("claude-code")
        clients.write(".mcp.json", content)

    result = clients.mcp("restore", "--all-ides", "--force")

    assert [(one["ide"], one["action"]) for one in operations(result)] == [("claude-code", "restored")]
    assert clients.bytes(".mcp.json") == b"{  }"


def test_what_else_is_kept_is_named_with_its_whole_path(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", "{ }")
    clients.install("cursor")
    clients.write(".cursor/mcp.json", "{  }")

    lines = clients.text("restore", "cursor").stdout.splitlines()

    (kept,) = [line for line in lines if f"{os.sep}backups{os.sep}" in line]
    assert Path(kept.strip().strip("'")).read_bytes() == b"{ }"
    assert max(len(line) for line in lines if line != kept) <= 80


def test_a_file_that_belongs_to_other_clients_is_put_back_on_request_only(clients: Clients) -> None:
    before = clients.tree()
    clients.install("claude-code")
    written = clients.tree()

    left = clients.mcp("restore", "vscode")
    assert clients.tree() == written
    taken = clients.mcp("restore", "vscode", "--all-scopes")

    (told,) = operations(left)
    assert (told["action"], told["path"]) == ("not_found", str(clients.at(".mcp.json")))
    assert "Claude Code" in told["reason"]
    assert "--all-scopes" in told["reason"]
    assert left.exit_code == 1
    assert [one["action"] for one in operations(taken)] == ["restored"]
    assert clients.tree() == before


def test_a_shared_file_is_put_back_by_its_scope_where_the_client_has_no_other_of_it(clients: Clients) -> None:
    clients.install("copilot-cli", "--scope", "workspace")

    result = clients.mcp("restore", "copilot-cli", "--scope", "workspace")

    assert [(one["action"], one["path"]) for one in operations(result)] == [("restored", str(clients.at(".mcp.json")))]
    assert not clients.at(".mcp.json").exists()


def test_a_scope_reaches_its_own_files_only(clients: Clients) -> None:
    clients.install("cursor")
    clients.install("cursor", "--scope", "user")

    result = clients.mcp("restore", "cursor", "--scope", "workspace")

    assert [one["path"] for one in operations(result)] == [str(clients.at(".cursor/mcp.json"))]
    assert clients.at("~/.cursor/mcp.json").exists()


def test_a_file_of_the_user_with_a_part_for_the_workspace_is_the_users(clients: Clients) -> None:
    clients.write("~/.claude.json", "{ }")
    clients.install("claude-code", "--scope", "user")

    workspace = clients.mcp("restore", "claude-code", "--scope", "workspace")
    user = clients.mcp("restore", "claude-code", "--scope", "user")

    assert [one["action"] for one in operations(workspace)] == ["not_found"]
    assert [one["action"] for one in operations(user)] == ["restored"]


def test_a_client_without_the_scope_is_an_error_with_a_next_step(clients: Clients) -> None:
    result = clients.mcp("restore", "claude-desktop", "--scope", "workspace")

    assert [one["action"] for one in operations(result)] == ["error"]
    assert result.json["nextSteps"] == ["Take a scope that it has, or leave --scope out."]
