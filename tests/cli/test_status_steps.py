"""What `mcp status` says is to be done: to people with short paths, to programs with whole ones."""

from __future__ import annotations

from typing import Any

import pytest

from support.machine import Machine
from support.registration import DOCS, UVX, Clients


@pytest.fixture
def clients(machine: Machine) -> Clients:
    (machine.tools / "uvx").touch(mode=0o755)
    return Clients(machine)


def _servers(**app: Any) -> dict[str, Any]:
    return {"mcpServers": {"UnoApp": {**UVX, **app}, "UnoDocs": DOCS}}


def _steps(clients: Clients, *options: str) -> list[str]:
    steps: list[str] = clients.status("cursor", "--release", *options).json["nextSteps"]
    return steps


def test_where_all_is_well_there_is_nothing_to_do(clients: Clients) -> None:
    clients.write(".cursor/mcp.json", _servers())

    assert _steps(clients) == []
    assert "Next steps" not in clients.text("status", "cursor", "--release").stdout


def test_a_program_that_is_not_there_is_installed_or_named_by_its_path(clients: Clients) -> None:
    (clients.machine.tools / "uvx").unlink()
    clients.write(".cursor/mcp.json", _servers())
    call = f"uno-devserver mcp install cursor --runner path --workspace {clients.workspace}"
    step = f"'uvx' is not on PATH: install it, or '{call}' names this program by its path."

    assert _steps(clients, "--workspace", str(clients.workspace)) == [step]


def test_an_entry_that_is_switched_off_is_switched_on_in_the_client_or_its_file(clients: Clients) -> None:
    path = clients.write(".cursor/mcp.json", _servers(disabled=True))

    text = " ".join(clients.text("status", "cursor", "--release").stdout.split())

    assert _steps(clients) == [f"Switch the entry 'UnoApp' on in Cursor, or in '{path}'."]
    assert text.endswith("Next steps: - Switch the entry 'UnoApp' on in Cursor, or in '.cursor/mcp.json'.")


def test_of_several_files_the_one_that_counts_is_named_and_the_way_out_of_all(clients: Clients) -> None:
    path = clients.write(".cursor/mcp.json", _servers())
    clients.write("~/.cursor/mcp.json", {"mcpServers": {"UnoApp": UVX}})

    (step,) = _steps(clients)
    command = step.split("'")[3].split()

    assert step == (
        f"Cursor uses the entry in '{path}' for UnoApp; "
        "'uno-devserver mcp uninstall cursor --servers UnoApp' removes all."
    )
    assert clients.machine.run(*command[1:]).exit_code == 0
    assert clients.status("cursor").json["servers"][0]["ides"] == [{"ide": "cursor", "status": "missing"}]


@pytest.mark.parametrize("content", ['{"mcpServers": {}}', '{"mcpServers": {"UnoApp": {"url": "http://x"}}}'])
def test_a_file_that_may_not_be_written_is_told_before_the_command_that_would_write_it(
    clients: Clients, content: str
) -> None:
    path = clients.write(".cursor/mcp.json", content)
    path.chmod(0o444)

    assert _steps(clients) == [
        f"Make '{path}' writable: it is read-only.",
        "Run 'uno-devserver mcp install cursor --release' to register what is missing or outdated.",
    ]
