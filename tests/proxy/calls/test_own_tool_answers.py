"""The proxy's own tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from protocol.conversations import asynchronous, until
from support.relays import (
    DEGRADED,
    MODERN,
    QUICK,
    RECONNECTING,
    Scene,
    ScriptedCall,
    ScriptedSession,
    board_of,
    said,
    text_of,
    tool_call,
)
from uno_devserver.protocol.jsonrpc import INVALID_PARAMS
from uno_devserver.proxy.calls.upstream_link import CallLimits
from uno_devserver.proxy.lists.merge import Offered, merged
from uno_devserver.proxy.own_tools import Circumstances
from uno_devserver.proxy.state import ConnectionState

THEIRS = (("echo", b'{"name":"echo","inputSchema":{"n":1.0},"new":1}'), ("uno_health", b'{"name":"uno_health"}'))


def _scene(
    state: ConnectionState = ConnectionState.CONNECTED,
    *,
    tools: tuple[tuple[str, bytes], ...] = THEIRS,
    policy: CallLimits = QUICK,
    modern: bool = False,
) -> Scene:
    """With all tools of ours, and these of the upstream."""
    lists, own = merged(Offered(tools), Circumstances(by_workspace=True, uses_host=True, fallback=True))
    state = board_of(lists)
    state.own_tools = own
    return Scene(state, state=state, policy=policy, modern=modern)


def _own(name: str, **arguments: Any) -> ScriptedCall:
    return ScriptedCall("tools/call", {"name": name, "arguments": arguments})


async def _text(scene: Scene, name: str, **arguments: Any) -> str:
    result = said(await scene.relay.answer(_own(name, **arguments)))
    assert result["isError"] is True
    return str(result["content"][0]["text"])


@pytest.mark.parametrize(
    ("version", "structured"),
    [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True), ("2025-11-25", True), (MODERN, True)],
)
@asynchronous
async def test_health_has_structure_for_the_versions_that_know_it(version: str, structured: bool) -> None:
    scene = _scene(DEGRADED)

    result = said(await scene.relay.answer(tool_call("uno_health", ScriptedSession(version), arguments=None)))

    assert ("structuredContent" in result) is structured
    assert json.loads(result["content"][0]["text"])["status"] == "Healthy"


@asynchronous
async def test_discover_lists_the_upstreams_tools_byte_for_byte_and_none_of_ours() -> None:
    scene = _scene()

    result = await scene.relay.answer(_own("uno_discover_tools"))

    assert text_of(result) == '[{"name":"echo","inputSchema":{"n":1.0},"new":1}]'
    assert "isError" not in said(result)


@asynchronous
async def test_discover_waits_for_the_upstream() -> None:
    scene = _scene(ConnectionState.LAUNCHING)

    discovering = scene.start(_own("uno_discover_tools"))
    await until(lambda: scene.link.waited == [QUICK.discover_seconds])
    scene.link.connect_anew()

    assert '"name":"echo"' in text_of(await discovering)


@asynchronous
async def test_discover_reports_that_it_waits_and_says_in_the_end_what_health_knows() -> None:
    scene = _scene(ConnectionState.CONNECTING, policy=QUICK.replace(discover_seconds=0.05, progress_seconds=0.001))
    known = {"severity": "Warning", "message": "It has printed 'hello'.", "remediation": "Repair it."}
    scene.state.health = lambda: {"status": "Degraded", "issues": [known]}
    call = tool_call("uno_discover_tools", _meta={"progressToken": "tok"})

    result = said(await scene.relay.answer(call))

    reports = [params for method, params in call.heard if method == "notifications/progress" and params]
    assert len(reports) > 1
    assert {report["progressToken"] for report in reports} == {"tok"}
    assert result["isError"] is True
    assert "It has printed 'hello'. This request has not been run. Repair it." in result["content"][0]["text"]


@asynchronous
async def test_discover_says_why_there_is_nothing_to_list() -> None:
    launching = _scene(ConnectionState.LAUNCHING, policy=QUICK.replace(discover_seconds=0.01))
    degraded = _scene(DEGRADED)
    empty = _scene(tools=())

    assert "is starting, and is not ready yet" in await _text(launching, "uno_discover_tools")
    assert "does not work" in await _text(degraded, "uno_discover_tools")
    assert degraded.link.attempts_wanted == 1
    assert "it offers no tools" in await _text(empty, "uno_discover_tools")


@asynchronous
async def test_execute_runs_a_tool_as_if_it_had_been_called_by_its_name() -> None:
    scene = _scene()
    params = {
        "name": "uno_execute_tool",
        "arguments": {"toolName": "echo", "arguments": {"x": 1}},
        "_meta": {"progressToken": 7},
        "requestState": "theirs",
    }
    call = ScriptedCall("tools/call", params)

    answer = scene.start(call)
    asked = await scene.next_asked()
    asked.peer.notify("notifications/progress", {"progressToken": 7, "progress": 1})
    asked.answer(b'{"content":[],"unknown":1.0}')

    assert msgspec.json.encode(await answer) == b'{"content":[],"unknown":1.0}'
    assert asked.params == {**params, "name": "echo", "arguments": {"x": 1}}
    assert call.heard == [("notifications/progress", {"progressToken": 7, "progress": 1})]


@asynchronous
async def test_execute_repeats_what_may_be_repeated_and_nothing_else() -> None:
    scene = _scene()
    scene.link.tools = {"look": {"annotations": {"readOnlyHint": True}}}

    looking = scene.start(_own("uno_execute_tool", toolName="look"))
    await scene.next_asked()
    scene.link.crash()
    scene.link.connect_anew()
    (await scene.next_asked()).answer(b'{"content":[]}')
    acting = scene.start(_own("uno_execute_tool", toolName="act"))
    await scene.next_asked()
    scene.link.crash()

    assert said(await looking) == {"content": []}
    assert "was lost while it ran 'act'" in text_of(await acting)


@asynchronous
async def test_execute_tells_why_a_tool_could_not_be_run() -> None:
    scene = _scene()

    answer = scene.start(_own("uno_execute_tool", toolName="nope"))
    (await scene.next_asked()).fail(INVALID_PARAMS, "Unknown tool: 'nope'.")

    assert text_of(await answer) == (
        "The dev server refused 'nope': Unknown tool: 'nope'. uno_discover_tools lists its tools."
    )
    assert "has gone, and is not back yet" in await _text(_scene(RECONNECTING), "uno_execute_tool", toolName="echo")


@asynchronous
async def test_execute_runs_our_own_tools_too_but_not_itself() -> None:
    scene = _scene()

    health = said(await scene.relay.answer(_own("uno_execute_tool", toolName="uno_health")))
    itself = await _text(scene, "uno_execute_tool", toolName="uno_execute_tool", arguments={"toolName": "echo"})

    assert json.loads(health["content"][0]["text"])["status"] == "Healthy"
    assert "another tool than uno_execute_tool itself" in itself
    assert "workspaceDirectory is missing" in await _text(scene, "uno_execute_tool", toolName="uno_app_initialize")


@asynchronous
async def test_the_workspace_is_named_by_either_tool() -> None:
    scene = _scene()

    results = [
        await scene.relay.answer(_own("uno_app_initialize", workspaceDirectory="/w")),
        await scene.relay.answer(_own("uno_app_initialize", workspaceDirectory=" /w ", solutionPath="/w/a.sln")),
        await scene.relay.answer(_own("uno_app_set_roots", workspaceDirectory="/w")),
        await scene.relay.answer(_own("uno_app_set_roots", roots=["/r", "/other"])),
    ]

    assert scene.link.workspaces == [("/w", None), ("/w", "/w/a.sln"), ("/w", None), ("/r", None)]
    assert json.loads(text_of(results[0])) == {
        "status": "ready",
        "workspaceDirectory": "/w",
        "toolCount": 2,
        "message": "It works.",
    }
    assert {said(result)["isError"] for result in results} == {False}


@pytest.mark.parametrize(
    ("force", "wanted"), [({}, False), ({"forceRestart": True}, True), ({"forceRestart": None}, False)]
)
@asynchronous
async def test_a_solution_is_selected(force: dict[str, object], wanted: bool) -> None:
    scene = _scene()

    result = said(await scene.relay.answer(_own("uno_app_select_solution", solutionPath="/w/a.sln", **force)))

    assert scene.link.selections == [("/w/a.sln", wanted)]
    assert result == {"content": [{"type": "text", "text": '{"status":"started"}'}], "isError": False}


@asynchronous
async def test_a_rejected_solution_is_an_error() -> None:
    scene = _scene()
    scene.link.answer_of_selection = {"status": "rejected", "issues": []}

    assert json.loads(await _text(scene, "uno_app_select_solution", solutionPath="/x.sln"))["status"] == "rejected"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("uno_app_initialize", {}, "workspaceDirectory is missing: the absolute path of the folder"),
        ("uno_app_initialize", {"workspaceDirectory": 3}, "workspaceDirectory must be a string"),
        ("uno_app_initialize", {"workspaceDirectory": ""}, "workspaceDirectory must be the absolute path"),
        ("uno_app_initialize", {"workspaceDirectory": "a/b"}, "'a/b' is none"),
        ("uno_app_initialize", {"workspaceDirectory": "/w", "solutionPath": "a.sln"}, "solutionPath must be the abs"),
        ("uno_app_set_roots", {"roots": []}, "workspaceDirectory is missing"),
        ("uno_app_set_roots", {"roots": [1]}, "workspaceDirectory must be a string"),
        ("uno_app_select_solution", {}, "solutionPath is missing: the absolute path of the .sln or .slnx"),
        ("uno_app_select_solution", {"solutionPath": ["/a"]}, "solutionPath must be a string"),
        ("uno_app_select_solution", {"solutionPath": "/a", "forceRestart": "yes"}, "forceRestart must be true or f"),
        ("uno_execute_tool", {}, "toolName must be the name of a tool"),
        ("uno_execute_tool", {"toolName": ""}, "toolName must be the name of a tool"),
        ("uno_execute_tool", {"toolName": "echo", "arguments": [1]}, "arguments must be an object"),
    ],
)
@asynchronous
async def test_a_bad_argument_is_named(tool: str, arguments: dict[str, Any], words: str) -> None:
    scene = _scene()

    told = await _text(scene, tool, **arguments)

    assert told.startswith(f"{tool}: ")
    assert words in told
    assert (scene.link.workspaces, scene.link.selections, scene.link.asked) == ([], [], [])


@asynchronous
async def test_arguments_that_are_no_object_are_refused() -> None:
    scene = _scene()

    result = await scene.relay.answer(ScriptedCall("tools/call", {"name": "uno_health", "arguments": "all"}))

    assert text_of(result) == "uno_health: arguments must be an object."


@pytest.mark.parametrize("name", ["uno_app_initialize", "uno_app_set_roots", "uno_app_select_solution"])
@asynchronous
async def test_tools_that_are_not_ours_at_the_moment_are_the_upstreams(name: str) -> None:
    scene = _scene()
    scene.state.own_tools = frozenset({"uno_discover_tools"})

    answer = scene.start(_own(name, workspaceDirectory="/w"))
    (await scene.next_asked()).answer(b'{"theirs":1}')

    assert said(await answer) == {"theirs": 1}


@asynchronous
async def test_names_that_are_no_names_are_the_upstreams_to_refuse() -> None:
    scene = _scene()

    names: list[Any] = [[], {}, None, 1]
    answers = [scene.start(ScriptedCall("tools/call", {"name": name})) for name in names]
    await until(lambda: len(scene.link.asked) == 4)
    for asked in scene.link.asked:
        asked.answer()

    assert [said(result) for result in await asyncio.gather(*answers)] == [{"content": []}] * 4
