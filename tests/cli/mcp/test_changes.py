"""What all commands that change files share: for which clients they are, and in which order they tell what was done."""

from __future__ import annotations

import pytest

from support.machine import Machine
from support.registration import DOCS, UVX, Clients, operations


@pytest.fixture
def clients(machine: Machine) -> Clients:
    return Clients(machine)


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
