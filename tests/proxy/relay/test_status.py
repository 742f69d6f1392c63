"""mcpStatus, and the queue as the relay's clients meet it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from protocol.conversations import asynchronous, until
from support.authorities import CHANGED, ScriptedAuthority, failed_build
from support.relays import (
    CONNECTED,
    DEGRADED,
    QUICK,
    RECONNECTING,
    Scene,
    ScriptedCall,
    board_of,
    said,
    text_of,
    tool_call,
)
from uno_devserver.hotreload.authority import UNCHANGED, CheckResult, Restarted
from uno_devserver.proxy.calls.call_queue import CallQueue
from uno_devserver.proxy.calls.upstream_link import CallLimits
from uno_devserver.proxy.calls.reload_messages import META_KEY
from uno_devserver.proxy.state import ConnectionState
from uno_devserver.workspace.config import Strategy

HEALTH = {
    "status": "Degraded",
    "issues": [{"severity": "Fatal", "message": "It ended at once.", "remediation": "Repair main.py."}],
    "logFile": "/logs/acme.log",
    "proxy": {"lastExit": {"lastLines": ["Traceback", "NameError: x"]}},
}


class Reloader(Scene):
    def __init__(
        self,
        state: ConnectionState = ConnectionState.CONNECTED,
        *,
        news: bool | None = None,
        concurrency: int | None = None,
        strategy: Strategy = Strategy.RESTART,
        status_seconds: float = 5.0,
        policy: CallLimits = QUICK,
    ) -> None:
        super().__init__(state, state=board_of(health=HEALTH), policy=policy)
        self.state.own_tools = frozenset({"mcpStatus", "uno_execute_tool"})
        self.authority = ScriptedAuthority(news)
        self.pipeline = CallQueue(
            self.authority,
            concurrency=concurrency,
            strategy=strategy,
            waits=lambda: self.relay.wait_calls,
            serves=lambda: self.link.state is CONNECTED,
            name="Acme",
            source="/work/acme",
            status_seconds=status_seconds,
            policy=policy,
        )
        self.relay.pipeline = self.pipeline

    async def check(self, count: int = 1) -> asyncio.Future[object]:
        await until(lambda: len(self.authority.checks) == count)
        return self.authority.checks[-1]  # type: ignore[return-value]


def status(**more: Any) -> ScriptedCall:
    return tool_call("mcpStatus", **more)


@asynchronous
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
    scene.authority.restarts[0].set_result(Restarted(ok=True))
    ready = said(await waiting)
    again = scene.start(tool_call())
    (await scene.check(2)).set_result(UNCHANGED)
    (await scene.next_asked()).answer()

    assert all("mcpStatus" in text for text in told)
    assert not before
    assert ready["isError"] is False
    assert "Acme is ready." in ready["content"][0]["text"]
    assert "/logs/acme.log" in ready["content"][0]["text"]
    assert "/work/acme" in ready["content"][0]["text"]
    assert said(await again) == {"content": []}
    assert len(scene.link.asked) == 1


@asynchronous
async def test_status_waits_until_no_restart_is_due_and_the_server_is_there() -> None:
    scene = Reloader(news=False)
    call = status(_meta={"progressToken": "t"})
    pausing = asyncio.ensure_future(scene.pipeline.pause(hold=False))
    await pausing

    waiting = scene.start(call)
    await until(lambda: bool(call.heard))
    scene.link.be(RECONNECTING)
    scene.pipeline.resume()
    await until(lambda: bool(scene.link.waited))
    before = waiting.done()
    scene.link.connect_anew()

    assert not before
    assert said(await waiting)["_meta"][META_KEY] == {"state": "ready", "run": True}


@asynchronous
async def test_status_says_after_its_time_what_it_still_waits_for() -> None:
    starting = Reloader(ConnectionState.LAUNCHING, status_seconds=0.02)
    draining = Reloader(news=False, status_seconds=0.02)
    running = draining.start(tool_call())
    asked = await draining.next_asked()
    pausing = asyncio.ensure_future(draining.pipeline.pause(hold=False))
    await asyncio.sleep(0)

    results = [said(await scene.relay.answer(status())) for scene in (starting, draining)]
    asked.answer()
    await asyncio.gather(running, pausing)

    assert [result["_meta"][META_KEY]["state"] for result in results] == ["restarting", "restarting"]
    assert "not ready after 0.02 s: it is Launching." in results[0]["content"][0]["text"]
    assert "it waits for a call that still runs." in results[1]["content"][0]["text"]


@asynchronous
async def test_status_tells_why_a_server_does_not_run_with_its_last_lines() -> None:
    scene = Reloader(DEGRADED, news=False)

    result = said(await scene.relay.answer(status()))

    assert scene.link.attempts_wanted == 1
    text = result["content"][0]["text"]
    assert text.startswith("Acme does not run. It ended at once.")
    assert "Traceback\nNameError: x" in text
    assert "Repair main.py." in text
    assert result["_meta"][META_KEY] == {"state": "failed", "run": False}


@asynchronous
async def test_status_has_the_code_of_a_server_that_does_not_run_looked_at() -> None:
    scene = Reloader(DEGRADED)

    waiting = scene.start(status())
    (await scene.check()).set_result(CHANGED)
    await until(lambda: bool(scene.authority.restarts))
    scene.authority.known = False
    scene.link.connect_anew()
    scene.authority.restarts[0].set_result(Restarted(ok=True))

    assert said(await waiting)["_meta"][META_KEY] == {"state": "ready", "run": True}


@asynchronous
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
    scene.authority.restarts[0].set_result(Restarted(ok=True))

    assert "error 7" in told["content"][0]["text"]
    assert told["_meta"][META_KEY] == {"state": "failed", "run": False, "also": ["buildFailed"]}
    assert said(await second)["_meta"][META_KEY] == {"state": "ready", "run": True}


@asynchronous
async def test_status_of_a_start_that_has_just_failed_makes_no_other_attempt_with_the_same_code() -> None:
    scene = Reloader(ConnectionState.LAUNCHING, news=False)

    waiting = scene.start(status())
    await until(lambda: bool(scene.link.waited))
    scene.link.be(DEGRADED)

    assert said(await waiting)["_meta"][META_KEY]["state"] == "failed"
    assert scene.link.attempts_wanted == 0


@pytest.mark.parametrize(("strategy", "also"), [(Strategy.RESTART, "buildFailed"), (Strategy.SWAP, "swapFailed")])
@asynchronous
async def test_status_says_that_what_answers_is_not_the_newest_code(strategy: Strategy, also: str) -> None:
    scene = Reloader(strategy=strategy)
    call = scene.start(tool_call())
    if strategy is Strategy.SWAP:
        (await scene.check()).set_result(CHANGED)
        await until(lambda: bool(scene.authority.restarts))
        scene.authority.restarts[0].set_result(Restarted(ok=False, kept=True, problem="There was an error 7."))
        (await scene.next_asked()).answer()
    else:
        (await scene.check()).set_result(failed_build("> tsc\na.ts: error 7.\nend"))
    await call

    result = said(await scene.relay.answer(status()))

    assert "error 7)" in result["content"][0]["text"]
    assert result["_meta"][META_KEY] == {"state": "ready", "run": True, "also": [also]}


@asynchronous
async def test_status_says_that_the_extension_is_not_built() -> None:
    scene = Reloader()
    call = scene.start(tool_call())
    (await scene.check()).set_result(CheckResult(extension_changed=True, extension_build_error="ext.ts: error 9."))
    (await scene.next_asked()).answer()
    await call

    result = said(await scene.relay.answer(status()))

    assert "The build of the extension's code fails (ext.ts: error 9);" in result["content"][0]["text"]
    assert result["_meta"][META_KEY] == {"state": "ready", "run": True, "also": ["extensionBuildFailed"]}


@asynchronous
async def test_status_without_a_workspace_says_who_has_to_name_it() -> None:
    scene = Reloader(ConnectionState.INITIALIZING)
    scene.link.fallback = True

    assert "uno_app_initialize" in text_of(await scene.relay.answer(status()))


@asynchronous
async def test_status_works_before_hot_reload_has_begun() -> None:
    scene = Reloader()
    scene.relay.pipeline = None

    assert text_of(await scene.relay.answer(status())).startswith("The MCP server is ready.")


@asynchronous
async def test_a_call_where_new_code_did_not_start_tells_the_reasons_once() -> None:
    scene = Reloader()
    call = scene.start(tool_call())
    (await scene.check()).set_result(CHANGED)
    await call
    await until(lambda: bool(scene.authority.restarts))
    scene.link.state = DEGRADED
    scene.authority.restarts[0].set_result(Restarted(ok=False, problem="It ended at once."))
    await scene.pipeline.settled(5)

    waiting = scene.start(tool_call())
    (await scene.check(2)).set_result(UNCHANGED.replace(server_digest="d"))
    result = said(await waiting)

    assert [item["text"].count("It ended at once.") for item in result["content"]] == [1]
    assert result["_meta"][META_KEY] == {"state": "failed", "run": False}


@asynchronous
async def test_status_names_what_was_not_loaded_from_the_start() -> None:
    issue = {"code": "AddInLoadFailed", "severity": "Warning", "message": "a.py was not loaded."}
    scene = Scene(state=board_of(health={"issues": [issue]}))
    scene.state.own_tools = frozenset({"mcpStatus"})

    assert text_of(await scene.relay.answer(status())).startswith("The MCP server is ready. a.py was not loaded. Do")


@asynchronous
async def test_calls_through_uno_execute_tool_pass_the_same_queue() -> None:
    scene = Reloader()

    answer = scene.start(tool_call("uno_execute_tool", arguments={"toolName": "act"}))
    (await scene.check()).set_result(failed_build("error 7"))

    assert "error 7" in text_of(await answer)
    assert scene.link.asked == []


@pytest.mark.parametrize("method", ["resources/read", "prompts/get", "completion/complete"])
@pytest.mark.parametrize("strategy", list(Strategy))
@asynchronous
async def test_what_is_no_tool_call_waits_for_the_new_code_and_is_told_nothing(method: str, strategy: Strategy) -> None:
    scene = Reloader(strategy=strategy)

    answer = scene.start(ScriptedCall(method, {"uri": "file:///a"}))
    (await scene.check()).set_result(CHANGED)
    await until(lambda: bool(scene.authority.restarts))
    before = list(scene.link.asked)
    scene.authority.known = False
    scene.link.connect_anew()
    scene.authority.restarts[0].set_result(Restarted(ok=True))
    asked = await scene.next_asked()
    asked.answer(b'{"contents":[]}')

    assert before == []
    assert asked.connection.generation == 2
    assert said(await answer) == {"contents": []}


@asynchronous
async def test_what_is_no_tool_call_runs_on_the_old_code_if_the_new_cannot_be_built_and_a_call_is_told_of_it() -> None:
    scene = Reloader()

    answer = scene.start(ScriptedCall("resources/read", {"uri": "file:///a"}))
    (await scene.check()).set_result(failed_build("error 7"))
    (await scene.next_asked()).answer(b'{"contents":[]}')
    called = scene.start(tool_call())
    (await scene.check(2)).set_result(failed_build("error 7"))

    assert said(await answer) == {"contents": []}
    assert "error 7" in text_of(await called)


@asynchronous
async def test_what_is_no_tool_call_has_no_turn() -> None:
    """A tool that runs may ask its client something, and that may read a resource before it answers."""
    scene = Reloader(news=False, concurrency=1)
    running = scene.start(tool_call())
    call = await scene.next_asked()
    pausing = asyncio.ensure_future(scene.pipeline.pause(hold=False))
    await asyncio.sleep(0)

    answer = scene.start(ScriptedCall("resources/read", {"uri": "file:///a"}))
    await until(lambda: len(scene.link.asked) == 2)
    scene.link.asked[1].answer(b'{"contents":[]}')
    read = said(await answer)
    call.answer()
    await asyncio.gather(running, pausing)

    assert read == {"contents": []}


@asynchronous
async def test_an_authority_that_is_always_silent_does_not_keep_what_is_no_tool_call() -> None:
    scene = Reloader(news=True, policy=QUICK.replace(check_seconds=0.01))

    answer = scene.start(ScriptedCall("resources/read", {"uri": "file:///a"}))
    (await scene.next_asked()).answer(b'{"contents":[]}')

    assert said(await answer) == {"contents": []}


@asynchronous
async def test_a_list_waits_for_nothing_and_has_new_code_started_where_it_is_known_of() -> None:
    scene = Reloader(news=False)

    await scene.relay.answer(ScriptedCall("tools/list"))
    await asyncio.sleep(0)
    unasked = list(scene.authority.checks)
    scene.authority.known = True
    await scene.relay.answer(ScriptedCall("tools/list"))
    scene.relay.listed()
    (await scene.check()).set_result(CHANGED)
    await until(lambda: bool(scene.authority.restarts))

    assert unasked == []
    assert len(scene.authority.checks) == 1


@asynchronous
async def test_a_call_that_waited_for_the_first_start_passes_the_queue_that_came_meanwhile() -> None:
    scene = Reloader(ConnectionState.LAUNCHING)
    scene.relay.wait_calls, scene.relay.pipeline = True, None
    arranging: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    scene.relay.await_pipeline(arranging)

    early = scene.start(tool_call())
    await until(lambda: bool(scene.link.waited))
    scene.link.connect_anew()
    late = scene.start(tool_call())
    scene.relay.pipeline = scene.pipeline
    arranging.set_result(None)
    (await scene.check()).set_result(CHANGED)
    await until(lambda: bool(scene.authority.restarts))
    scene.authority.known = False
    scene.authority.restarts[0].set_result(Restarted(ok=True))
    scene.link.answers = lambda asked: asked.answer()

    assert [said(await call)["_meta"][META_KEY]["state"] for call in (early, late)] == ["reloaded", "reloaded"]
    assert len(scene.authority.checks) == 1


@asynchronous
async def test_a_call_is_not_silent_while_it_waits_for_a_check() -> None:
    scene = Reloader(policy=QUICK.replace(silence_seconds=0.05))

    answer = scene.start(tool_call())
    check = await scene.check()
    loop = asyncio.get_running_loop()
    waited: asyncio.Future[None] = loop.create_future()
    loop.call_later(0.1, waited.set_result, None)  # longer than a call may be silent
    await waited
    check.set_result(UNCHANGED)
    (await scene.next_asked()).answer()

    assert said(await answer) == {"content": []}


@asynchronous
async def test_without_an_upstream_the_code_is_checked_all_the_same() -> None:
    scene = Reloader(DEGRADED)

    mended = scene.start(tool_call())
    (await scene.check()).set_result(CHANGED)

    assert said(await mended)["_meta"][META_KEY]["state"] == "restarting"
    await until(lambda: bool(scene.authority.restarts))


@asynchronous
async def test_without_an_upstream_and_without_news_a_call_hears_what_it_heard_before() -> None:
    scene = Reloader(DEGRADED, news=False)

    assert "does not work" in text_of(await scene.relay.answer(tool_call()))
    assert scene.link.attempts_wanted == 1


@asynchronous
async def test_a_call_waits_until_it_is_known_who_watches_the_code_and_then_has_it_looked_at() -> None:
    scene = Reloader(news=None)
    scene.relay.pipeline = None
    arranging: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    scene.relay.await_pipeline(arranging)

    called = asyncio.ensure_future(scene.relay.answer(tool_call()))
    await asyncio.sleep(0)
    assert not scene.link.asked
    scene.relay.pipeline = scene.pipeline
    arranging.set_result(None)
    (await scene.check()).set_result(UNCHANGED)
    await until(lambda: bool(scene.link.asked))
    scene.link.asked[0].answer()

    assert said(await called)["content"] == []


@asynchronous
async def test_a_call_goes_on_where_it_is_not_known_in_time_who_watches_the_code() -> None:
    scene = Reloader(policy=QUICK.replace(check_seconds=0.01))
    scene.relay.pipeline = None
    scene.relay.await_pipeline(asyncio.get_running_loop().create_future())

    called = asyncio.ensure_future(scene.relay.answer(tool_call()))
    await until(lambda: bool(scene.link.asked))
    scene.link.asked[0].answer()

    assert said(await called)["content"] == []
