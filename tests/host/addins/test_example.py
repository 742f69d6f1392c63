"""examples/workspace: a workspace with an add-in that people look at first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.addins import text_of
from uno_devserver.host.addins.testing import Client, serve
from uno_devserver.protocol.jsonrpc import RESOURCE_NOT_FOUND, RpcError
from uno_devserver.workspace.addins import workspace_addins

WORKSPACE = Path(__file__).parents[3] / "examples" / "workspace"


@asynccontextmanager
async def example() -> AsyncIterator[Client]:
    async with serve(*workspace_addins(str(WORKSPACE)), workspace=str(WORKSPACE)) as client:
        yield client


def test_the_folder_is_a_workspace_with_one_add_in() -> None:
    assert (WORKSPACE / ".devtools" / "host.config.jsonc").is_file()
    assert [Path(path).name for path in workspace_addins(str(WORKSPACE))] == ["todos.py"]


async def test_todos_are_found_with_file_line_and_author() -> None:
    async with example() as client:
        found: dict[str, Any] = (await client.call("find_todos", folder="weather"))["structuredContent"]
        fixmes = (await client.call("find_todos", kind="FIXME"))["structuredContent"]["todos"]
        one = (await client.call("find_todos", limit=1))["structuredContent"]["todos"]

    assert found["files_searched"] == 3
    assert {
        "file": "weather/sensors.py",
        "line": 16,
        "kind": "TODO",
        "text": "talk to the real sensor over I2C",
        "who": "ada",
    } in found["todos"]
    assert {todo["file"] for todo in fixmes} == {"weather/sensors.py", "web/station.js"}
    assert len(one) == 1


async def test_todos_are_found_in_a_workspace_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(WORKSPACE)

    async with serve(*workspace_addins(str(WORKSPACE)), workspace=str(tmp_path / "link")) as client:
        found = (await client.call("find_todos", folder="weather"))["structuredContent"]

    assert {todo["file"] for todo in found["todos"]} == {"weather/sensors.py", "weather/forecast.py"}


async def test_a_search_tells_its_progress() -> None:
    async with example() as client:
        await client.request("tools/call", {"name": "find_todos", "_meta": {"progressToken": 1}})

    steps = [params for method, params in client.told if method == "notifications/progress" and params]
    assert [step["progress"] for step in steps] == list(range(1, len(steps) + 1))
    assert steps[-1]["progress"] == steps[-1]["total"]


async def test_todos_are_counted() -> None:
    async with example() as client:
        kinds = (await client.call("count_todos"))["structuredContent"]
        people = (await client.call("count_todos", by="who"))["structuredContent"]

    assert kinds == {"TODO": 4, "FIXME": 2, "HACK": 1}
    assert people["ada"] == 2


async def test_files_can_be_listed_read_and_completed_but_only_inside() -> None:
    async with example() as client:
        tree = (await client.request("resources/read", {"uri": "workspace://tree"}))["contents"][0]["text"]
        file = await client.request("resources/read", {"uri": "workspace://file/weather/forecast.py"})
        completed = await client.request(
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "workspace://file/{+path}"},
                "argument": {"name": "path", "value": "web/"},
            },
        )
        with pytest.raises(RpcError, match=r"'../../README.md' is outside the workspace."):
            await client.request("resources/read", {"uri": "workspace://file/../../README.md"})
        with pytest.raises(RpcError) as missing:
            await client.request("resources/read", {"uri": "workspace://file/none.py"})
        outside = await client.call("find_todos", folder="../..")

    assert tree.splitlines()[0] == "README.md"
    assert "Guesses tomorrow's weather" in file["contents"][0]["text"]
    assert completed["completion"]["values"] == ["web/index.html", "web/station.js"]
    assert missing.value.code == RESOURCE_NOT_FOUND
    assert text_of(outside) == "'../..' is outside the workspace."


async def test_the_prompt_lists_what_is_open() -> None:
    async with example() as client:
        prompt = await client.request("prompts/get", {"name": "plan_todos", "arguments": {"days": "3"}})

    asked = prompt["messages"][0]["content"]["text"]
    assert "- weather/sensors.py:16 TODO: talk to the real sensor over I2C" in asked
    assert "We have 3 days." in asked
