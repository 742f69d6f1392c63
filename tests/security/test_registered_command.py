"""What `mcp install` registers runs this program, not what somebody uploads under its name before a release."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from support.machine import Machine
from support.proxies import ProxyClient
from support.registration import UVX, UVX_PRERELEASE

from .marks import Marks

# Programs that download what a name means on a package index, and run it.
DOWNLOADERS = ("uvx", "uv", "dnx", "dotnet", "npx", "npm", "pipx", "pip", "bunx")

CLIENTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "cursor": (".cursor/mcp.json", lambda text: json.loads(text)["mcpServers"]),
    "vscode": (".vscode/mcp.json", lambda text: json.loads(text)["servers"]),
    "codex": (".codex/config.toml", lambda text: tomllib.loads(text)["mcp_servers"]),
}


@pytest.fixture
def marks(machine: Machine) -> Marks:
    """A machine on which whatever is downloaded leaves a mark."""
    marks = Marks(machine)
    for name in DOWNLOADERS:
        marks.program(machine.tools / name, "downloaded")
    return marks


def run_as_a_client(machine: Machine, client: str) -> str:
    """Start the entry by its own words, and say hello; what the server calls itself."""
    file, servers = CLIENTS[client]
    entry = servers((machine.workspace / file).read_text("utf-8"))["UnoApp"]
    environment = {**machine.variables(), **entry.get("env", {})}
    errors = machine.root / f"{client}.stderr"
    started = ProxyClient([entry["command"], *entry["args"]], machine.workspace, environment, errors)
    try:
        return str(started.initialize()["serverInfo"]["name"])
    finally:
        started.close_stdin()
        started.ends()


@pytest.mark.parametrize(
    ("client", "before"),
    [*((client, None) for client in CLIENTS), ("cursor", UVX), ("cursor", UVX_PRERELEASE)],
    ids=[*CLIENTS, "an entry of uvx", "an entry of uvx for prereleases"],
)
def test_an_unreleased_version_registers_itself_and_says_why(marks: Marks, client: str, before: Any) -> None:
    if before is not None:
        marks.file(".cursor/mcp.json", json.dumps({"mcpServers": {"UnoApp": before}}))

    installed = marks.machine.run("mcp", "install", client, "--servers", "UnoApp")
    name = None
    try:
        name = run_as_a_client(marks.machine, client)
    except (AssertionError, BrokenPipeError):
        pass  # what was downloaded is no server

    assert marks.left == set()
    assert name is not None
    assert re.search("(?<!pre)release", installed.stdout + installed.stderr), "it says why"


def test_the_path_can_be_asked_for_and_works(marks: Marks) -> None:
    marks.machine.run("mcp", "install", "cursor", "--servers", "UnoApp", "--runner", "path")

    assert run_as_a_client(marks.machine, "cursor")
    assert marks.left == set()


@pytest.mark.parametrize("command", ["./tools/uno-devserver", "{workspace}/tools/uno-devserver"])
@pytest.mark.parametrize("name", ["UnoApp", "helper"])
def test_a_program_of_the_repository_is_not_taken_for_ours_and_install_replaces_it(
    marks: Marks, command: str, name: str
) -> None:
    machine = marks.machine
    marks.program(machine.workspace / "tools" / "uno-devserver", "of the repository")
    entry = {"command": command.format(workspace=machine.workspace), "args": ["--mcp-app"]}
    marks.file(".cursor/mcp.json", json.dumps({"mcpServers": {name: entry}}))

    (found,) = machine.run("mcp", "status", "cursor", "--json").json["servers"][0]["ides"]
    installed = machine.run("mcp", "install", "cursor", "--servers", "UnoApp")

    assert found["status"] == "outdated"
    assert any("may have come with the workspace" in one and entry["command"] in one for one in found["warnings"])
    assert "may have come with the workspace" in " ".join(installed.stdout.split())
    registered = CLIENTS["cursor"][1]((machine.workspace / ".cursor/mcp.json").read_text("utf-8"))
    assert registered[name]["command"] != entry["command"]
    assert marks.left == set()
