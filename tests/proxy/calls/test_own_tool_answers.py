"""The proxy's own tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from support.authorities import CHANGED, ScriptedAuthority, failed_build, settled
from support.relays import (
    CONNECTED,
    DEGRADED,
    QUICK,
    RECONNECTING,
    Scene,
    ScriptedCall,
    ScriptedSession,
    said,
    state_of,
    text_of,
    tool_call,
)
from support.waiting import until
from uno_devserver.hotreload.authority import UNCHANGED, CheckResult, Demand, RestartResult
from uno_devserver.protocol.jsonrpc import INVALID_PARAMS
from uno_devserver.proxy.calls.call_queue import CallQueue
from uno_devserver.proxy.calls.reload_messages import META_KEY
from uno_devserver.proxy.calls.upstream_link import CallLimits
from uno_devserver.proxy.lists.merge import Offered, merged
from uno_devserver.proxy.own_tools import OwnToolFacts
from uno_devserver.proxy.state import ConnectionState, Lists, UpstreamFacts
from uno_devserver.proxy.upstream.base import Ending
from uno_devserver.workspace.config import Strategy

THEIRS = (("echo", b'{"name":"echo","inputSchema":{"n":1.0},"new":1}'), ("uno_health", b'{"name":"uno_health"}'))


def _scene(
    connection: ConnectionState = ConnectionState.CONNECTED,
    *,
    tools: tuple[tuple[str, bytes], ...] = THEIRS,
    limits: CallLimits = QUICK,
    modern: bool = False,
) -> Scene:
    """With all tools of ours, and these of the upstream."""
    lists, own = merged(Offered(tools), OwnToolFacts(by_workspace=True, selects_solution=True, fallback=True))
    return Scene(connection, state=state_of(lists, own_tools=own), limits=limits, modern=modern)


def _own(name: str, **arguments: Any) -> ScriptedCall:
    return ScriptedCall("tools/call", {"name": name, "arguments": arguments})


async def _text(scene: Scene, name: str = "mcpStatus", **arguments: Any) -> str:
    result = said(await scene.service.answer(_own(name, **arguments)))
    assert result["isError"] is True
    return str(result["content"][0]["text"])


async def test_discover_lists_the_upstreams_tools_byte_for_byte_and_none_of_ours() -> None:
    scene = _scene()

    result = await scene.service.answer(_own("uno_discover_tools"))

    assert text_of(result) == '[{"name":"echo","inputSchema":{"n":1.0},"new":1}]'
    assert "isError" not in said(result)


async def test_discover_waits_for_the_upstream() -> None:
    scene = _scene(ConnectionState.LAUNCHING)

    discovering = scene.start(_own("uno_discover_tools"))
    await until(lambda: scene.link.waited == [QUICK.discover_seconds])
    scene.link.connect_anew()

    assert '"name":"echo"' in text_of(await discovering)


async def test_discover_reports_that_it_waits_and_says_in_the_end_what_health_knows() -> None:
    scene = _scene(ConnectionState.CONNECTING, limits=QUICK.replace(discover_seconds=0.05, progress_seconds=0.001))
    known = {"severity": "Warning", "message": "It has printed 'hello'.", "remediation": "Repair it."}
    scene.state.health = {"status": "Degraded", "issues": [known]}
    call = tool_call("uno_discover_tools", _meta={"progressToken": "tok"})

    result = said(await scene.service.answer(call))

    reports = [params for method, params in call.heard if method == "notifications/progress" and params]
    assert len(reports) > 1
    assert {report["progressToken"] for report in reports} == {"tok"}
    assert result["isError"] is True
    assert "It has printed 'hello'. This request has not been run. Repair it." in result["content"][0]["text"]


async def test_discover_says_why_there_is_nothing_to_list() -> None:
    launching = _scene(ConnectionState.LAUNCHING, limits=QUICK.replace(discover_seconds=0.01))
    degraded = _scene(DEGRADED)
    empty = _scene(tools=())

    assert "is starting, and is not ready yet" in await _text(launching, "uno_discover_tools")
    assert "does not work" in await _text(degraded, "uno_discover_tools")
    assert degraded.link.attempts_wanted == 1
    assert "it offers no tools" in await _text(empty, "uno_discover_tools")


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


async def test_execute_tells_why_a_tool_could_not_be_run() -> None:
    scene = _scene()

    answer = scene.start(_own("uno_execute_tool", toolName="nope"))
    (await scene.next_asked()).fail(INVALID_PARAMS, "Unknown tool: 'nope'.")

    assert text_of(await answer) == (
        "The dev server refused 'nope': Unknown tool: 'nope'. uno_discover_tools lists its tools."
    )
    assert "has gone, and is not back yet" in await _text(_scene(RECONNECTING), "uno_execute_tool", toolName="echo")


async def test_execute_runs_our_own_tools_too_but_not_itself() -> None:
    scene = _scene()

    health = said(await scene.service.answer(_own("uno_execute_tool", toolName="uno_health")))
    itself = await _text(scene, "uno_execute_tool", toolName="uno_execute_tool", arguments={"toolName": "echo"})

    assert json.loads(health["content"][0]["text"])["status"] == "Healthy"
    assert "another tool than uno_execute_tool itself" in itself
    assert "workspaceDirectory is missing" in await _text(scene, "uno_execute_tool", toolName="uno_app_initialize")


async def test_the_workspace_is_named_by_either_tool() -> None:
    scene = _scene()

    results = [
        await scene.service.answer(_own("uno_app_initialize", workspaceDirectory="/w")),
        await scene.service.answer(_own("uno_app_initialize", workspaceDirectory=" /w ", solutionPath="/w/a.sln")),
        await scene.service.answer(_own("uno_app_set_roots", workspaceDirectory="/w")),
        await scene.service.answer(_own("uno_app_set_roots", roots=["/r", "/other"])),
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
async def test_a_solution_is_selected(force: dict[str, object], wanted: bool) -> None:
    scene = _scene()

    result = said(await scene.service.answer(_own("uno_app_select_solution", solutionPath="/w/a.sln", **force)))

    assert scene.link.selections == [("/w/a.sln", wanted)]
    assert result == {"content": [{"type": "text", "text": '{"status":"started"}'}], "isError": False}


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
        ("uno_app_initialize", {"workspaceDirectory": "a/b"}, "'a/b' is not absolute"),
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
async def test_a_bad_argument_is_named(tool: str, arguments: dict[str, Any], words: str) -> None:
    scene = _scene()

    told = await _text(scene, tool, **arguments)

    assert told.startswith(f"{tool}: ")
    assert words in told
    odd = ScriptedCall("tools/call", {"name": tool, "arguments": "all"})
    assert text_of(await scene.service.answer(odd)) == f"{tool}: arguments must be an object."
    assert (scene.link.workspaces, scene.link.selections, scene.link.asked) == ([], [], [])


@pytest.mark.parametrize("name", ["uno_app_initialize", "uno_app_set_roots", "uno_app_select_solution"])
async def test_tools_that_are_not_ours_at_the_moment_are_the_upstreams(name: str) -> None:
    scene = _scene()
    scene.state.own_tools = frozenset({"uno_discover_tools"})

    answer = scene.start(_own(name, workspaceDirectory="/w"))
    (await scene.next_asked()).answer(b'{"theirs":1}')

    assert said(await answer) == {"theirs": 1}


async def test_names_that_are_no_names_are_the_upstreams_to_refuse() -> None:
    scene = _scene()

    names: list[Any] = [[], {}, None, 1]
    answers = [scene.start(ScriptedCall("tools/call", {"name": name})) for name in names]
    await until(lambda: len(scene.link.asked) == 4)
    for asked in scene.link.asked:
        asked.answer()

    assert [said(result) for result in await asyncio.gather(*answers)] == [{"content": []}] * 4


# --- mcpStatus, and the queue as clients meet it

HEALTH = {
    "status": "Degraded",
    "issues": [{"severity": "Fatal", "message": "It ended at once.", "remediation": "Repair main.py."}],
}


class Reloader(Scene):
    def __init__(
        self,
        connection: ConnectionState = ConnectionState.CONNECTED,
        *,
        news: bool | None = None,
        concurrency: int | None = None,
        strategy: Strategy = Strategy.RESTART,
        status_seconds: float = 5.0,
        limits: CallLimits = QUICK,
    ) -> None:
        own_tools = frozenset({"mcpStatus", "mcpRestart", "uno_execute_tool"})
        super().__init__(connection, state=state_of(health=HEALTH, own_tools=own_tools), limits=limits)
        ending = Ending("it ended with exit code 1", 1, ("Traceback", "NameError: x"))
        self.state.learn(upstream=UpstreamFacts(log_file="/logs/acme.log"), last_end=ending)
        self.authority = ScriptedAuthority(news)
        self.queue = CallQueue(
            self.authority,
            concurrency=concurrency,
            strategy=strategy,
            waits=lambda: self.service.forwarding.waits,
            serves=lambda: self.link.state is CONNECTED,
            name="Acme",
            source="/work/acme",
            status_seconds=status_seconds,
            limits=limits,
        )
        self.service.forwarding.queue = self.queue

    async def check(self, count: int = 1) -> asyncio.Future[object]:
        await until(lambda: len(self.authority.checks) == count)
        return self.authority.checks[-1]  # type: ignore[return-value]

    async def restarted(self, result: RestartResult = RestartResult(ok=True), *, anew: bool = True) -> None:  # noqa: B008
        """The check finds new code, and the server is replaced."""
        (await self.check()).set_result(CHANGED)
        await until(lambda: bool(self.authority.restarts))
        self.authority.known = False
        if anew:
            self.link.connect_anew()
        self.authority.restarts[0].set_result(result)


def status(**more: Any) -> ScriptedCall:
    return tool_call("mcpStatus", **more)


def reading() -> ScriptedCall:
    return ScriptedCall("resources/read", {"uri": "file:///a"})


async def test_the_whole_way_of_an_agent_through_a_restart() -> None:
    scene = Reloader()
    first, second = scene.start(tool_call()), scene.start(tool_call())
    (await scene.check()).set_result(CHANGED)
    told = [text_of(await each) for each in (first, second)]

    waiting = scene.start(status(_meta={"progressToken": "t"}))
    await until(lambda: bool(scene.authority.restarts))
    scene.link.crash()
    before = waiting.done()
    scene.link.connect_anew()
    scene.authority.restarts[0].set_result(RestartResult(ok=True))
    (await scene.check(2)).set_result(UNCHANGED)
    ready = said(await waiting)
    again = scene.start(tool_call())
    (await scene.check(3)).set_result(UNCHANGED)
    (await scene.next_asked()).answer()

    assert all("mcpStatus" in text for text in told)
    assert not before
    assert ready["isError"] is False
    assert "Acme is ready." in ready["content"][0]["text"]
    assert "/logs/acme.log" in ready["content"][0]["text"]
    assert "/work/acme" in ready["content"][0]["text"]
    assert "It was restarted; what the old process had in memory is gone." in text_of(ready)
    assert said(await again) == {"content": []}
    assert len(scene.link.asked) == 1


async def test_status_waits_until_no_restart_is_due_and_the_server_is_there() -> None:
    scene = Reloader(news=False)
    call = status(_meta={"progressToken": "t"})
    pausing = asyncio.ensure_future(scene.queue.pause(hold=False))
    await pausing

    waiting = scene.start(call)
    await until(lambda: bool(call.heard))
    scene.link.be(RECONNECTING)
    scene.queue.resume()
    await until(lambda: bool(scene.link.waited))
    before = waiting.done()
    scene.link.connect_anew()

    assert not before
    assert said(await waiting)["_meta"][META_KEY] == {"state": "ready", "run": True}


async def test_status_says_after_its_time_what_it_still_waits_for() -> None:
    starting = Reloader(ConnectionState.LAUNCHING, news=False, status_seconds=0.02)
    checking = Reloader(status_seconds=0.02)
    draining = Reloader(news=False, status_seconds=0.02)
    running = draining.start(tool_call())
    asked = await draining.next_asked()
    pausing = asyncio.ensure_future(draining.queue.pause(hold=False))
    await asyncio.sleep(0)

    results = [said(await scene.service.answer(status())) for scene in (starting, draining, checking)]
    asked.answer()
    await asyncio.gather(running, pausing)

    assert [result["_meta"][META_KEY]["state"] for result in results] == ["restarting"] * 3
    assert "not ready after 0.02 s: it is Launching." in results[0]["content"][0]["text"]
    assert "it waits for a call that still runs." in results[1]["content"][0]["text"]
    assert "checking whether the code of Acme has changed." in results[2]["content"][0]["text"]


async def test_status_tells_why_a_server_does_not_run_with_its_last_lines() -> None:
    scene = Reloader(DEGRADED, news=False)

    result = said(await scene.service.answer(status()))

    assert scene.link.attempts_wanted == 1
    text = result["content"][0]["text"]
    assert text.startswith("Acme does not run. It ended at once.")
    assert "Traceback\nNameError: x" in text
    assert "Repair main.py." in text
    assert result["_meta"][META_KEY] == {"state": "failed", "run": False}


async def test_status_has_the_code_of_a_server_that_does_not_run_looked_at() -> None:
    scene = Reloader(DEGRADED)

    waiting = scene.start(status())
    await scene.restarted()

    assert said(await waiting)["_meta"][META_KEY] == {"state": "ready", "run": True}


async def test_status_has_a_build_that_failed_tried_again_where_nothing_runs() -> None:
    scene = Reloader(DEGRADED)
    first = scene.start(status())
    (await scene.check()).set_result(failed_build("error 7", "d1"))
    told = said(await first)
    scene.authority.known = False  # what stood in its way was no source

    second = scene.start(status())
    (await scene.check(2)).set_result(CHANGED)
    await until(lambda: bool(scene.authority.restarts))
    scene.link.connect_anew()
    scene.authority.restarts[0].set_result(RestartResult(ok=True))

    assert "error 7" in told["content"][0]["text"]
    assert told["_meta"][META_KEY] == {"state": "failed", "run": False, "also": ["buildFailed"]}
    assert said(await second)["_meta"][META_KEY] == {"state": "ready", "run": True}


async def test_status_of_a_start_that_has_just_failed_makes_no_other_attempt_with_the_same_code() -> None:
    scene = Reloader(ConnectionState.LAUNCHING, news=False)

    waiting = scene.start(status())
    await until(lambda: bool(scene.link.waited))
    scene.link.be(DEGRADED)

    assert said(await waiting)["_meta"][META_KEY]["state"] == "failed"
    assert scene.link.attempts_wanted == 0


@pytest.mark.parametrize(("strategy", "also"), [(Strategy.RESTART, "buildFailed"), (Strategy.SWAP, "swapFailed")])
async def test_status_says_that_what_answers_is_not_the_newest_code(strategy: Strategy, also: str) -> None:
    scene = Reloader(strategy=strategy)
    call = scene.start(tool_call())
    if strategy is Strategy.SWAP:
        await scene.restarted(RestartResult(ok=False, kept=True, problem="There was an error 7."), anew=False)
        (await scene.next_asked()).answer()
    else:
        (await scene.check()).set_result(failed_build("> tsc\na.ts: error 7.\nend"))
    await call

    waiting = scene.start(status())
    found = (
        UNCHANGED.replace(server_digest="d")
        if strategy is Strategy.SWAP
        else failed_build("> tsc\na.ts: error 7.\nend")
    )
    (await scene.check(2)).set_result(found)
    result = said(await waiting)

    assert scene.authority.demands[1] is Demand.BUILD, "it asks for the build that failed"
    assert "error 7)" in result["content"][0]["text"]
    assert result["_meta"][META_KEY] == {"state": "ready", "run": True, "also": [also]}


async def test_status_says_that_the_extension_is_not_built() -> None:
    scene = Reloader()
    call = scene.start(tool_call())
    (await scene.check()).set_result(CheckResult(extension_changed=True, extension_build_error="ext.ts: error 9."))
    (await scene.next_asked()).answer()
    await call

    waiting = scene.start(status())
    (await scene.check(2)).set_result(CheckResult(extension_changed=True, extension_build_error="ext.ts: error 9."))
    result = said(await waiting)

    assert "The build of the extension's code fails (ext.ts: error 9);" in result["content"][0]["text"]
    assert result["_meta"][META_KEY] == {"state": "ready", "run": True, "also": ["extensionBuildFailed"]}


async def test_status_works_without_a_workspace_and_before_hot_reload_has_begun() -> None:
    unnamed, ready = Reloader(ConnectionState.INITIALIZING), Reloader()
    unnamed.link.fallback = True
    ready.service.forwarding.queue = None

    assert "uno_app_initialize" in text_of(await unnamed.service.answer(status()))
    assert text_of(await ready.service.answer(status())).startswith("The MCP server is ready.")


async def test_a_call_where_new_code_did_not_start_tells_the_reasons_once() -> None:
    scene = Reloader()
    call = scene.start(tool_call())
    (await scene.check()).set_result(CHANGED)
    await call
    await until(lambda: bool(scene.authority.restarts))
    scene.link.state = DEGRADED
    scene.authority.restarts[0].set_result(RestartResult(ok=False, problem="It ended at once."))
    await settled(scene.queue, 5)

    waiting = scene.start(tool_call())
    (await scene.check(2)).set_result(UNCHANGED.replace(server_digest="d"))
    result = said(await waiting)

    assert [item["text"].count("It ended at once.") for item in result["content"]] == [1]
    assert result["_meta"][META_KEY] == {"state": "failed", "run": False}


async def test_status_names_what_was_not_loaded_from_the_start() -> None:
    issue = {"code": "AddInLoadFailed", "severity": "Warning", "message": "a.py was not loaded."}
    scene = Scene(state=state_of(health={"issues": [issue]}))
    scene.state.own_tools = frozenset({"mcpStatus"})

    assert text_of(await scene.service.answer(status())).startswith("The MCP server is ready. a.py was not loaded. Do")


async def test_calls_through_uno_execute_tool_pass_the_same_queue() -> None:
    scene = Reloader()

    answer = scene.start(tool_call("uno_execute_tool", arguments={"toolName": "act"}))
    (await scene.check()).set_result(failed_build("error 7"))

    assert "error 7" in text_of(await answer)
    assert scene.link.asked == []


@pytest.mark.parametrize("method", ["resources/read", "prompts/get", "completion/complete"])
@pytest.mark.parametrize("strategy", list(Strategy))
async def test_what_is_no_tool_call_waits_for_the_new_code_and_is_told_nothing(method: str, strategy: Strategy) -> None:
    scene = Reloader(strategy=strategy)

    answer = scene.start(ScriptedCall(method, {"uri": "file:///a"}))
    await scene.restarted()
    asked = await scene.next_asked()
    asked.answer(b'{"contents":[]}')

    assert asked.connection.generation == 2
    assert said(await answer) == {"contents": []}
    assert len(scene.link.asked) == 1


async def test_what_is_no_tool_call_runs_on_the_old_code_if_the_new_cannot_be_built_and_a_call_is_told_of_it() -> None:
    scene = Reloader()

    answer = scene.start(reading())
    (await scene.check()).set_result(failed_build("error 7"))
    (await scene.next_asked()).answer(b'{"contents":[]}')
    called = scene.start(tool_call())
    (await scene.check(2)).set_result(failed_build("error 7"))

    assert said(await answer) == {"contents": []}
    assert "error 7" in text_of(await called)


async def test_what_is_no_tool_call_has_no_turn() -> None:
    """A tool that runs may ask its client something, and that may read a resource before it answers."""
    scene = Reloader(news=False, concurrency=1)
    running = scene.start(tool_call())
    call = await scene.next_asked()
    pausing = asyncio.ensure_future(scene.queue.pause(hold=False))
    await asyncio.sleep(0)

    answer = scene.start(reading())
    await until(lambda: len(scene.link.asked) == 2)
    scene.link.asked[1].answer(b'{"contents":[]}')
    read = said(await answer)
    call.answer()
    await asyncio.gather(running, pausing)

    assert read == {"contents": []}


async def test_an_authority_that_is_always_silent_does_not_keep_what_is_no_tool_call() -> None:
    scene = Reloader(news=True, limits=QUICK.replace(check_seconds=0.01))

    answer = scene.start(reading())
    (await scene.next_asked()).answer(b'{"contents":[]}')

    assert said(await answer) == {"contents": []}


async def test_a_list_waits_for_nothing_and_has_new_code_started_where_it_is_known_of() -> None:
    scene = Reloader(news=False)

    await scene.service.answer(ScriptedCall("tools/list"))
    await asyncio.sleep(0)
    unasked = list(scene.authority.checks)
    scene.authority.known = True
    await scene.service.answer(ScriptedCall("tools/list"))
    scene.service.forwarding.list_read()
    (await scene.check()).set_result(CHANGED)
    await until(lambda: bool(scene.authority.restarts))

    assert unasked == []
    assert len(scene.authority.checks) == 1


async def test_a_call_that_waited_for_the_first_start_passes_the_queue_that_came_meanwhile() -> None:
    scene = Reloader(ConnectionState.LAUNCHING)
    scene.service.forwarding.waits, scene.service.forwarding.queue = True, None
    arranging: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    scene.service.forwarding.await_reloader(arranging)

    early = scene.start(tool_call())
    await until(lambda: bool(scene.link.waited))
    scene.link.connect_anew()
    late = scene.start(tool_call())
    scene.service.forwarding.queue = scene.queue
    arranging.set_result(None)
    await scene.restarted(anew=False)
    scene.link.answers = lambda asked: asked.answer()

    assert [said(await call)["_meta"][META_KEY]["state"] for call in (early, late)] == ["reloaded", "reloaded"]
    assert len(scene.authority.checks) == 1


async def test_a_call_is_not_silent_while_it_waits_for_a_check() -> None:
    scene = Reloader(limits=QUICK.replace(silence_seconds=0.05))

    answer = scene.start(tool_call())
    check = await scene.check()
    await asyncio.wait([answer], timeout=0.1)  # longer than a call may be silent
    check.set_result(UNCHANGED)
    (await scene.next_asked()).answer()

    assert said(await answer) == {"content": []}


async def test_without_an_upstream_the_code_is_checked_all_the_same() -> None:
    scene = Reloader(DEGRADED)

    mended = scene.start(tool_call())
    (await scene.check()).set_result(CHANGED)

    assert said(await mended)["_meta"][META_KEY]["state"] == "restarting"
    await until(lambda: bool(scene.authority.restarts))


async def test_without_an_upstream_and_without_news_a_call_hears_what_it_heard_before() -> None:
    scene = Reloader(DEGRADED, news=False)

    assert "does not work" in text_of(await scene.service.answer(tool_call()))
    assert scene.link.attempts_wanted == 1


async def test_a_call_waits_until_it_is_known_who_watches_the_code_and_then_has_it_looked_at() -> None:
    scene = Reloader(news=None)
    scene.service.forwarding.queue = None
    arranging: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    scene.service.forwarding.await_reloader(arranging)

    called = asyncio.ensure_future(scene.service.answer(tool_call()))
    await asyncio.sleep(0)
    assert not scene.link.asked
    scene.service.forwarding.queue = scene.queue
    arranging.set_result(None)
    (await scene.check()).set_result(UNCHANGED)
    await until(lambda: bool(scene.link.asked))
    scene.link.asked[0].answer()

    assert said(await called)["content"] == []


async def test_a_call_goes_on_where_it_is_not_known_in_time_who_watches_the_code() -> None:
    scene = Reloader(limits=QUICK.replace(check_seconds=0.01))
    scene.service.forwarding.queue = None
    scene.service.forwarding.await_reloader(asyncio.get_running_loop().create_future())

    called = asyncio.ensure_future(scene.service.answer(tool_call()))
    await until(lambda: bool(scene.link.asked))
    scene.link.asked[0].answer()

    assert said(await called)["content"] == []


async def test_restart_has_the_server_restarted_although_its_code_is_the_same() -> None:
    scene = Reloader(news=False)

    waiting = scene.start(tool_call("mcpRestart"))
    await scene.restarted()
    result = said(await waiting)

    assert scene.authority.demands == [Demand.RESTART]
    assert text_of(result).startswith("Acme is ready. It was restarted;")
    assert result["_meta"][META_KEY] == {"state": "ready", "run": True, "also": ["reloaded"]}


async def test_restart_says_that_the_build_fails_and_that_nothing_was_restarted() -> None:
    scene = Reloader(news=False)

    waiting = scene.start(tool_call("mcpRestart"))
    (await scene.check()).set_result(failed_build("a.ts: error 7"))
    result = said(await waiting)

    assert "It was not restarted." in text_of(result)
    assert "that cannot be used (a.ts: error 7)" in text_of(result)
    assert result["_meta"][META_KEY] == {"state": "ready", "run": True, "also": ["buildFailed"]}


async def test_status_says_that_the_code_could_not_be_checked() -> None:
    scene = Reloader(news=True)

    waiting = scene.start(tool_call("mcpStatus"))
    (await scene.check()).set_exception(RuntimeError("the disk is gone"))
    result = said(await waiting)

    assert "But whether the code of Acme has changed could not be checked; the proxy's log says why." in text_of(result)
    assert result["_meta"][META_KEY] == {"state": "ready", "run": True, "also": ["unchecked"]}


async def test_status_names_the_tools_that_differ_from_those_that_the_client_has_listed() -> None:
    scene = Reloader(news=False)
    session = ScriptedSession()
    scene.state.lists = Lists(tools=b'[{"name":"add","inputSchema":{}},{"name":"gone","inputSchema":{}}]')
    await scene.service.answer(ScriptedCall("tools/list", {}, session))
    same = text_of(await scene.service.answer(status(session=session)))
    scene.state.lists = Lists(tools=b'[{"name":"add_all","inputSchema":{}},{"name":"new","inputSchema":{}}]')

    told = text_of(await scene.service.answer(status(session=session)))
    other = text_of(await scene.service.answer(status()))

    assert "Since you listed them" not in same + other
    assert "Since you listed them: the tools: 2 new ('add_all', 'new'), 2 gone ('add', 'gone')" in told
    assert "'add' is probably 'add_all' now. List the tools again." in told
