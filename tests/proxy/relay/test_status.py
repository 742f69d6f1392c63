"""mcpStatus, and the queue as the relay's clients meet it."""

from __future__ import annotations

import asyncio
from typing import Any

from protocol.conversations import asynchronous, until
from support.authorities import CHANGED, ScriptedAuthority, failed_build
from support.relays import DEGRADED, QUICK, RECONNECTING, Scene, ScriptedCall, board_of, said, text_of, tool_call
from uno_devserver.hotreload.authority import UNCHANGED, Restarted
from uno_devserver.instances.health_report import ConnectionState
from uno_devserver.proxy.relay.pipeline import Pipeline
from uno_devserver.proxy.relay.policy import RelayPolicy
from uno_devserver.proxy.relay.reload_messages import META_KEY
from uno_devserver.workspace.config import Strategy

HEALTH = {
    "status": "Degraded",
    "issues": [{"severity": "Fatal", "message": "It ended at once.", "remediation": "Repair main.py."}],
    "logFile": "/logs/acme.log",
    "proxy": {"lastExit": {"lastLines": ["Traceback", "NameError: x"]}},
}


class Reloading(Scene):
    def __init__(
        self,
        state: ConnectionState = ConnectionState.CONNECTED,
        *,
        news: bool | None = None,
        status_seconds: float = 5.0,
        policy: RelayPolicy = QUICK,
    ) -> None:
        super().__init__(state, board=board_of(health=HEALTH), policy=policy)
        self.board.own_tools = frozenset({"mcpStatus", "uno_execute_tool"})
        self.authority = ScriptedAuthority(news)
        self.pipeline = Pipeline(
            self.authority,
            concurrency=None,
            strategy=Strategy.RESTART,
            waits=lambda: self.relay.wait_calls,
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
    scene = Reloading()
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
    scene = Reloading(news=False)
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
    starting = Reloading(ConnectionState.LAUNCHING, status_seconds=0.02)
    draining = Reloading(news=False, status_seconds=0.02)
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
    result = said(await Reloading(DEGRADED).relay.answer(status()))

    text = result["content"][0]["text"]
    assert text.startswith("Acme does not run. It ended at once.")
    assert "Traceback\nNameError: x" in text
    assert "Repair main.py." in text
    assert result["_meta"][META_KEY] == {"state": "failed", "run": False}


@asynchronous
async def test_status_without_a_workspace_says_who_has_to_name_it() -> None:
    scene = Reloading(ConnectionState.INITIALIZING)
    scene.link.fallback = True

    assert "uno_app_initialize" in text_of(await scene.relay.answer(status()))


@asynchronous
async def test_status_works_before_hot_reload_has_begun() -> None:
    scene = Reloading()
    scene.relay.pipeline = None

    assert text_of(await scene.relay.answer(status())).startswith("The MCP server is ready.")


@asynchronous
async def test_calls_through_uno_execute_tool_pass_the_same_queue() -> None:
    scene = Reloading()

    answer = scene.start(tool_call("uno_execute_tool", arguments={"toolName": "act"}))
    (await scene.check()).set_result(failed_build("error 7"))

    assert "error 7" in text_of(await answer)
    assert scene.link.asked == []


@asynchronous
async def test_what_is_no_tool_call_does_not_pass_the_queue() -> None:
    scene = Reloading()

    answer = scene.start(ScriptedCall("resources/read", {"uri": "file:///a"}))
    (await scene.next_asked()).answer(b'{"contents":[]}')

    assert said(await answer) == {"contents": []}
    assert scene.authority.checks == []


@asynchronous
async def test_a_call_is_not_silent_while_it_waits_for_a_check() -> None:
    scene = Reloading(policy=QUICK.replace(silence_seconds=0.05))

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
    scene = Reloading(DEGRADED)

    mended = scene.start(tool_call())
    (await scene.check()).set_result(CHANGED)

    assert said(await mended)["_meta"][META_KEY]["state"] == "restarting"
    await until(lambda: bool(scene.authority.restarts))


@asynchronous
async def test_without_an_upstream_and_without_news_a_call_hears_what_it_heard_before() -> None:
    scene = Reloading(DEGRADED, news=False)

    assert "does not work" in text_of(await scene.relay.answer(tool_call()))
    assert scene.link.attempts_wanted == 1
