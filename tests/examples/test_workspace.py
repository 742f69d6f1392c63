"""The example workspace, used as a newcomer would: start, list, a client of the official SDK, stop."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest
from mcp.client import Client

from support.machine import WINDOWS, Machine

ROOT = Path(__file__).parents[2]
HOME = "USERPROFILE" if WINDOWS else "HOME"


@pytest.fixture
def example(machine: Machine) -> Path:
    folder = machine.workspace / "example"
    shutil.copytree(ROOT / "examples" / "workspace", folder)
    return folder


def processes_of(machine: Machine) -> list[int]:
    """Every process that has this machine's home, without the consoles that Windows gives them."""
    home = str(machine.home)
    found = []
    for process in psutil.process_iter():
        try:
            gone = process.status() == psutil.STATUS_ZOMBIE
            if process.environ().get(HOME) == home and not gone and process.name() != "conhost.exe":
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_start_list_a_tool_call_and_stop_without_net(
    machine: Machine, example: Path, mode: Literal["legacy", "auto"]
) -> None:
    async def talk(url: str) -> tuple[list[str], Any]:
        async with Client(url, mode=mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            return tools, await client.call_tool("find_todos", {"kind": "FIXME"})

    try:
        started = machine.run("start", "--trust", "--json", cwd=example)
        assert started.exit_code == 0
        assert processes_of(machine) == [started.json["processId"]]

        listed = machine.run("list", "--json", cwd=example).json["servers"]
        assert [(one["processId"], one["isInWorkspace"], one["hostKind"]) for one in listed] == [
            (started.json["processId"], True, "bundled")
        ]

        tools, answer = asyncio.run(talk(listed[0]["mcpEndpoint"]))
        assert tools == ["uno_health", "find_todos", "count_todos"]
        assert {todo["kind"] for todo in answer.structured_content["todos"]} == {"FIXME"}
    finally:
        stopped = machine.run("stop", cwd=example)

    assert stopped.exit_code == 0
    assert processes_of(machine) == []
    assert machine.run("list", "--json", cwd=example).json["servers"] == []
