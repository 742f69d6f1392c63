"""What a keeper makes of an upstream that works, dies, refuses, comes late, or never comes."""

from __future__ import annotations

import asyncio
import gc
import warnings
from pathlib import Path
from typing import Any

import pytest

from support.mcp_peers import TestPeer
from support.upstreams import SWIFT, Kept, Lists, ScriptedRunning, ScriptedUpstream
from support.waiting import until
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.issues import fatal
from uno_devserver.protocol.client.connection import AccessDenied, ConnectionLost, Denial, UnusableServer
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.protocol.service import Params
from uno_devserver.proxy.calls.upstream_link import Unavailable
from uno_devserver.proxy.upstream.base import Ending, StartFailure
from uno_devserver.proxy.upstream.lifecycle import UpstreamLimits
from uno_devserver.proxy.upstream.supervision import Event, SupervisedUpstream

MODERN = ClientInfo("modern", "1", {"sampling": {}}, "2026-07-28")
HANDSHAKE = ClientInfo("older", "1", {"sampling": {}}, "2025-06-18")


def failure(*, final: bool = False) -> StartFailure:
    issue = fatal("HostCrashed", "It does not start.", "Repair it.")
    return StartFailure(issue, final=final, ending=Ending("it ended with exit code 1", 1, ("boom",)))


async def connected(folder: Path, *outcomes: ScriptedRunning | StartFailure, limits: UpstreamLimits = SWIFT) -> Kept:
    """A keeper whose upstream is connected."""
    kept = Kept(folder, ScriptedUpstream(*outcomes), limits=limits)
    assert await kept.keeper.until_connected(5)
    return kept


# --- connecting


async def test_what_is_started_is_connected_and_what_it_offers_is_published(tmp_path: Path) -> None:
    running = ScriptedRunning(Lists(tools=["one", "two"], prompts=["ask"]))
    kept = Kept(tmp_path, ScriptedUpstream(running))

    assert await kept.keeper.until_connected(5)

    assert kept.keeper.generation == 1
    assert kept.tools == ["one", "two"]
    assert kept.keeper.tool("two") == {"name": "two"}
    assert kept.keeper.tool("three") is None
    assert kept.facts.lists_fresh
    assert kept.state.server.instructions is not None
    assert kept.state.server.instructions.endswith("Use it well.")
    assert kept.broadcasts == ["notifications/tools/list_changed", "notifications/prompts/list_changed"]
    assert kept.facts.upstream.name == "scripted"
    assert (kept.facts.tool_count, kept.facts.lists_fresh) == (2, True)
    assert kept.changes == 1, "the relay was told"


async def test_a_server_without_any_tools_is_connected_too(tmp_path: Path) -> None:
    kept = Kept(tmp_path, ScriptedUpstream(ScriptedRunning(Lists(tools=[]))))

    assert await kept.keeper.until_connected(5)

    assert kept.tools == []
    assert kept.broadcasts == []


async def test_the_upstream_is_spoken_to_in_the_era_of_the_client(tmp_path: Path) -> None:
    for client in (MODERN, HANDSHAKE):
        running = ScriptedRunning()
        kept = Kept(tmp_path, ScriptedUpstream(running), limits=SWIFT.replace(hello_seconds=5.0))
        kept.keeper.met(client)

        assert await kept.keeper.until_connected(5)

        assert running.connections[0].modern_first is (client is MODERN)
        assert running.connections[0].peer.client.name == client.name
        assert running.connections[0].peer.client.capabilities == {}, "these belong to the client's own conversation"


async def test_a_client_that_never_says_hello_does_not_hold_up_the_connection(tmp_path: Path) -> None:
    kept = Kept(tmp_path, ScriptedUpstream(ScriptedRunning()))

    assert await kept.keeper.until_connected(5)


async def test_only_the_first_connection_waits_for_a_hello(tmp_path: Path) -> None:
    kept = await connected(tmp_path, ScriptedRunning(), ScriptedRunning())
    kept.keeper.limits = SWIFT.replace(hello_seconds=3600.0)

    kept.keeper.renew()

    await until(lambda: kept.keeper.generation == 2)


async def test_clients_who_share_a_conversation_are_its_peer(tmp_path: Path) -> None:
    running = ScriptedRunning(Lists(), HostKind.COMMAND)
    kept = Kept(tmp_path, ScriptedUpstream(running))
    kept.shared_peer = clients = TestPeer()

    assert await kept.keeper.until_connected(5)

    assert running.connections[0].peer is clients


async def test_each_client_gets_a_connection_while_there_is_an_upstream(tmp_path: Path) -> None:
    running = ScriptedRunning()
    upstream = ScriptedUpstream(running)
    upstream.gate.clear()
    kept = Kept(tmp_path, upstream)
    with pytest.raises(Unavailable):
        await kept.keeper.connect(TestPeer(), modern_first=True)
    upstream.gate.set()
    assert await kept.keeper.until_connected(5)

    connection = await kept.keeper.connect(TestPeer(), modern_first=True)

    assert connection is running.connections[-1]
    assert len(running.connections) == 2


# --- lists


async def test_lists_that_changed_are_read_again_once_for_many_and_every_time(tmp_path: Path) -> None:
    lists = Lists()
    kept = await connected(tmp_path, ScriptedRunning(lists))

    for generation in range(3):
        lists.names["tools"] = [f"tool{generation}"]
        reads = lists.reads
        for _ in range(10):
            kept.keeper.lists_changed()
        await until(lambda: kept.tools == lists.names["tools"])
        assert lists.reads == reads + 1

    assert kept.broadcasts.count("notifications/tools/list_changed") == 4


async def test_the_servers_own_notification_has_the_lists_read(tmp_path: Path) -> None:
    running = ScriptedRunning()
    kept = await connected(tmp_path, running)
    running.lists.names["tools"] = ["other"]

    running.connections[0].peer.notify("notifications/tools/list_changed", {})

    await until(lambda: kept.tools == ["other"])


async def test_a_list_that_comes_back_with_an_error_stays_as_it_was(tmp_path: Path) -> None:
    lists = Lists(prompts=["ask"])
    kept = await connected(tmp_path, ScriptedRunning(lists))
    lists.names["tools"] = RpcError(INTERNAL_ERROR, "not now")
    lists.names["prompts"] = ["other"]

    kept.keeper.lists_changed()

    await until(lambda: b"other" in kept.state.lists.prompts)
    assert kept.tools == ["one"]
    (issue,) = kept.state.facts.issues
    assert "tools/list" in issue.message
    assert "prompts" not in issue.message

    lists.names["tools"] = ["two"]
    kept.keeper.lists_changed()

    await until(lambda: kept.tools == ["two"])
    assert kept.state.facts.issues == ()


async def test_a_list_that_the_server_does_not_have_is_empty(tmp_path: Path) -> None:
    lists = Lists(prompts=["ask"])
    kept = await connected(tmp_path, ScriptedRunning(lists))
    lists.names["prompts"] = RpcError(METHOD_NOT_FOUND, "no prompts here")

    kept.keeper.lists_changed()

    await until(lambda: kept.state.lists.prompts == b"[]")


async def test_a_conversation_that_breaks_off_is_begun_anew_with_the_same_server(tmp_path: Path) -> None:
    running = ScriptedRunning()
    upstream = ScriptedUpstream(running)
    kept = Kept(tmp_path, upstream)
    assert await kept.keeper.until_connected(5)
    for name in ("other", "another"):
        running.connections[-1].closed = True
        running.lists.names["tools"] = [name]

        kept.keeper.lists_changed()

        await until(lambda name=name: kept.tools == [name])  # type: ignore[misc]
    assert len(running.connections) == 3
    assert (kept.keeper.generation, upstream.starts, running.stops) == (1, 1, 0)


async def test_a_greeting_that_breaks_off_is_repeated_with_the_same_server(tmp_path: Path) -> None:
    running = ScriptedRunning()
    running.refusals = [ConnectionLost("It closed the connection.", sent=True)]
    upstream = ScriptedUpstream(running)
    kept = Kept(tmp_path, upstream)

    assert await kept.keeper.until_connected(5)

    assert (upstream.starts, running.stops) == (1, 0)


async def test_first_lists_that_break_off_are_read_over_another_connection_to_the_same_server(tmp_path: Path) -> None:
    class Interrupted(Lists):
        def answer(self, method: str, params: Params) -> dict[str, Any]:
            answer = super().answer(method, params)
            if self.reads == 1:
                raise ConnectionLost("It closed the connection.", sent=True)
            return answer

    running = ScriptedRunning(Interrupted())
    upstream = ScriptedUpstream(running)
    kept = Kept(tmp_path, upstream)

    assert await kept.keeper.until_connected(5)

    assert [connection.closed for connection in running.connections] == [True, False]
    assert (upstream.starts, running.stops, kept.tools) == (1, 0, ["one"])


# --- what it prints among its messages


async def test_a_line_that_is_no_message_is_known_while_the_server_runs_and_not_of_the_next(tmp_path: Path) -> None:
    first, second = ScriptedRunning(), ScriptedRunning()
    second.process_id = 4712
    upstream = ScriptedUpstream(first, second)
    upstream.gate.clear()
    kept = Kept(tmp_path, upstream)
    await until(lambda: upstream.observers)

    upstream.observers[0].strayed("starting up")
    upstream.gate.set()
    assert await kept.keeper.until_connected(5)
    assert kept.facts.upstream.stray_line == "starting up"
    upstream.observers[0].strayed("at work")
    await until(lambda: kept.facts.upstream.stray_line == "at work")
    first.die()
    await until(lambda: kept.keeper.generation == 2)
    upstream.observers[0].strayed("too late")
    await asyncio.sleep(0.01)

    assert kept.facts.upstream.stray_line == ""


# --- crashes


async def test_a_server_that_dies_is_replaced_and_its_end_is_remembered(tmp_path: Path) -> None:
    first, second = ScriptedRunning(), ScriptedRunning(Lists(tools=["new"]))
    kept = await connected(tmp_path, first, second)

    first.die()

    await until(lambda: kept.keeper.generation == 2)
    assert kept.tools == ["new"]
    assert first.stops == 1, "what it has left behind is cleaned up"
    assert first.connections[0].closed
    assert kept.facts.last_end == Ending("it ended with exit code 3", 3, ("its last line",))
    assert await kept.keeper.how_it_ended(1, 5) == kept.facts.last_end
    assert await kept.keeper.how_it_ended(2, 0.01) is None
    assert kept.facts.restarts == 1
    assert ("warning", "The server has gone: it ended with exit code 3. It is being started again.") in kept.messages
    assert kept.changes == 3, "connected, gone, connected"


async def test_a_server_that_somebody_else_restarts_has_not_crashed(tmp_path: Path) -> None:
    first, second = ScriptedRunning(), ScriptedRunning(Lists(tools=["new"]))
    kept = await connected(tmp_path, first, second)
    kept.ends_on_purpose_now = True

    first.die()

    await until(lambda: kept.keeper.generation == 2)
    assert kept.tools == ["new"]
    assert (kept.facts.restarts, kept.facts.reloads, kept.facts.last_end) == (0, 1, None)
    assert "warning" not in [level for level, _ in kept.messages]


async def test_a_second_crash_of_the_same_kind_is_told_too(tmp_path: Path) -> None:
    runs = [ScriptedRunning() for _ in range(3)]
    kept = Kept(tmp_path, ScriptedUpstream(*runs))
    for generation in (1, 2):
        await until(lambda generation=generation: kept.keeper.generation == generation)  # type: ignore[misc]
        runs[generation - 1].die()

    await until(lambda: kept.keeper.generation == 3)

    assert [level for level, _ in kept.messages].count("warning") == 2


async def test_how_a_process_ended_tells_more_than_that_it_could_not_be_spoken_to(tmp_path: Path) -> None:
    first, second = ScriptedRunning(), ScriptedRunning()
    first.refusals = [ConnectionLost("It hung up.", sent=True)] * 2
    kept = Kept(tmp_path, ScriptedUpstream(first, second), limits=SWIFT.replace(end_seconds=5.0))
    await until(lambda: not first.refusals)

    first.die()

    await kept.until_state("Connected")
    assert kept.facts.last_end.exit_code == 3


async def test_nobody_is_told_the_number_of_a_process_that_is_gone(tmp_path: Path) -> None:
    first = ScriptedRunning()
    kept = await connected(tmp_path, first, limits=SWIFT.replace(backoff_seconds=(60.0,)))
    assert kept.facts.upstream.process_id is not None

    first.die()

    await kept.until_state("Reconnecting")
    assert (kept.facts.upstream.process_id, kept.facts.upstream.endpoint) == (None, None)


async def test_a_server_that_we_do_not_start_is_looked_for(tmp_path: Path) -> None:
    first, second = ScriptedRunning(), ScriptedRunning()
    kept = Kept(tmp_path, ScriptedUpstream(first, second, remote=True))
    assert await kept.keeper.until_connected(5)

    first.die("it cannot be reached any more")

    await until(lambda: kept.keeper.generation == 2)
    assert ("warning", "The server has gone: it cannot be reached any more. It is looked for again.") in kept.messages


async def test_what_was_offered_stays_offered_while_there_is_no_server(tmp_path: Path) -> None:
    first = ScriptedRunning()
    upstream = ScriptedUpstream(first, failure(final=True))
    kept = Kept(tmp_path, upstream)
    assert await kept.keeper.until_connected(5)

    first.die()

    await kept.until_state("Degraded")
    assert kept.tools == ["one"]
    assert not kept.facts.lists_fresh


async def test_a_server_that_hangs_up_on_every_greeting_is_given_up(tmp_path: Path) -> None:
    running = ScriptedRunning()
    running.refusals = [ConnectionLost("It hung up.", sent=True)] * 9
    upstream = ScriptedUpstream(running)
    kept = Kept(tmp_path, upstream)

    await kept.until_state("Degraded")

    assert upstream.starts == SWIFT.startup_attempts
    await until(lambda: running.stops == upstream.starts)
    assert kept.facts.last_end.reason == "the connection to it failed: It hung up"


async def test_one_that_has_answered_may_die_as_often_as_it_likes(tmp_path: Path) -> None:
    runs = [ScriptedRunning() for _ in range(9)]
    kept = Kept(tmp_path, ScriptedUpstream(*runs))
    for number, running in enumerate(runs[:-1], 1):
        await until(lambda number=number: kept.keeper.generation == number)  # type: ignore[misc]
        kept.keeper.worked(number)
        running.die()

    await until(lambda: kept.keeper.generation == 9)

    assert kept.facts.restarts == 8


async def test_a_connection_that_somebody_lost_makes_the_server_doubtful(tmp_path: Path) -> None:
    running = ScriptedRunning()
    kept = await connected(tmp_path, running)

    kept.keeper.lost(0)
    assert running.checks == 0, "that was another one"
    kept.keeper.lost(1)

    assert running.checks == 1


# --- no MCP there


async def test_a_host_without_mcp_is_left_running_and_not_called_crashed(tmp_path: Path) -> None:
    running = ScriptedRunning()
    running.refusals = [UnusableServer("It has no such endpoint.", status=404)]
    kept = Kept(tmp_path, ScriptedUpstream(running))

    await kept.until_state("Degraded")

    assert kept.facts.without_mcp
    assert kept.facts.last_end is None
    assert running.stops == 0


async def test_when_a_host_without_mcp_is_replaced_the_next_one_is_tried(tmp_path: Path) -> None:
    first, second = ScriptedRunning(), ScriptedRunning()
    first.refusals = [UnusableServer("It has no such endpoint.", status=404)]
    kept = Kept(tmp_path, ScriptedUpstream(first, second))
    await kept.until_state("Degraded")

    first.die()

    await kept.until_state("Connected")
    assert not kept.facts.without_mcp


async def test_a_host_without_mcp_is_ended_when_another_is_found(tmp_path: Path) -> None:
    first, second = ScriptedRunning(), ScriptedRunning()
    first.refusals = [UnusableServer("It has no such endpoint.", status=404)]
    kept = Kept(tmp_path, ScriptedUpstream(first, second))
    await kept.until_state("Degraded")

    kept.keeper.wanted()

    await kept.until_state("Connected")
    await until(lambda: first.stops == 1)
    assert second.stops == 0


async def test_a_host_without_mcp_that_is_found_again_is_left_running(tmp_path: Path) -> None:
    running = ScriptedRunning()
    running.refusals = [UnusableServer("It has no such endpoint.", status=404)]
    kept = Kept(tmp_path, ScriptedUpstream(running))
    await kept.until_state("Degraded")

    kept.keeper.wanted()

    await kept.until_state("Connected")
    assert running.stops == 0


async def test_a_server_that_refuses_to_speak_says_why(tmp_path: Path) -> None:
    running = ScriptedRunning(Lists(), HostKind.COMMAND)
    running.refusals = [UnusableServer("It wants a token.", status=404)]
    kept = Kept(tmp_path, ScriptedUpstream(running))

    await kept.until_state("Degraded")

    assert kept.facts.connect_error == "It wants a token."
    assert not kept.facts.without_mcp
    await until(lambda: running.stops == 1, "it is of use to nobody")
    assert kept.facts.upstream.process_id is None


# --- starts that fail


async def test_a_start_that_fails_three_times_degrades_and_says_why(tmp_path: Path) -> None:
    upstream = ScriptedUpstream(failure())
    kept = Kept(tmp_path, upstream)

    assert not await kept.keeper.until_connected(5)

    assert upstream.starts == 3
    assert [issue.message for issue in kept.facts.issues] == ["It does not start."]
    assert kept.facts.last_end.last_lines == ("boom",)
    assert kept.messages[-1] == ("error", "It does not start.")


async def test_after_a_start_has_failed_for_good_the_version_is_negotiated_anew(tmp_path: Path) -> None:
    upstream = ScriptedUpstream(failure())
    kept = Kept(tmp_path, upstream)

    await kept.until_state("Degraded")

    assert (upstream.starts, upstream.renegotiations) == (3, 1)


async def test_a_final_failure_is_not_tried_again_until_somebody_needs_it(tmp_path: Path) -> None:
    upstream = ScriptedUpstream(failure(final=True), ScriptedRunning())
    kept = Kept(tmp_path, upstream)
    assert not await kept.keeper.until_connected(5)
    assert upstream.starts == 1

    kept.keeper.wanted()

    assert await kept.keeper.until_connected(5)
    assert kept.facts.issues == ()


class Denied(ScriptedUpstream):
    """A server whose credentials are refused until `changed` is set."""

    def __init__(self, *outcomes: ScriptedRunning | StartFailure) -> None:
        super().__init__(*outcomes, remote=True)
        self.changed = False

    def has_other_credentials(self) -> bool:
        return self.changed


@pytest.mark.parametrize(("status", "code"), [(401, "UpstreamUnauthorized"), (403, "UpstreamForbidden")])
async def test_refused_credentials_are_not_tried_again_until_they_change_or_a_call_asks(
    tmp_path: Path, status: int, code: str
) -> None:
    running = ScriptedRunning(Lists(), HostKind.COMMAND)
    running.refusals = [
        AccessDenied("The server asks for credentials.", Denial(status, "https://host/mcp")) for _ in range(2)
    ]
    upstream = Denied(running)
    kept = Kept(tmp_path, upstream)
    await kept.until_state("Degraded")
    assert code in [issue["code"] for issue in kept.state.report()["issues"]]  # type: ignore[attr-defined]
    await asyncio.sleep(20 * SWIFT.find_again_seconds)
    assert upstream.starts == 1

    kept.keeper.wanted()
    await until(lambda: upstream.starts == 2)
    await kept.until_state("Degraded")
    upstream.changed = True

    await kept.until_state("Connected")
    assert upstream.starts == 3
    assert kept.facts.access_denied is None


async def test_other_credentials_are_tried_at_once_however_late_the_next_attempt_would_be(tmp_path: Path) -> None:
    running = ScriptedRunning(Lists(), HostKind.COMMAND)
    running.refusals = [AccessDenied("The server asks for credentials.", Denial(401, "https://host/mcp"))]
    upstream = Denied(running)
    kept = Kept(tmp_path, upstream, limits=SWIFT.replace(retry_seconds=3600.0))
    await kept.until_state("Degraded")

    upstream.changed = True

    await kept.until_state("Connected")


async def test_a_call_has_other_credentials_tried_at_once(tmp_path: Path) -> None:
    running = ScriptedRunning(Lists(), HostKind.COMMAND)
    running.refusals = [AccessDenied("The server asks for credentials.", Denial(401, "https://host/mcp"))]
    upstream = Denied(running)
    kept = Kept(tmp_path, upstream, limits=SWIFT.replace(retry_seconds=3600.0, credential_seconds=3600.0))
    await kept.until_state("Degraded")
    await kept.keeper.reconsider()
    assert upstream.starts == 1

    upstream.changed = True
    await kept.keeper.reconsider()

    assert await kept.keeper.until_connected(5)


@pytest.mark.parametrize(("status", "state"), [(401, "Degraded"), (403, "Connected")])
async def test_credentials_that_are_refused_later_end_the_connection_unless_others_may_be_allowed(
    tmp_path: Path, status: int, state: str
) -> None:
    upstream = Denied(ScriptedRunning(Lists(), HostKind.COMMAND))
    kept = Kept(tmp_path, upstream)
    await kept.until_state("Connected")

    kept.keeper.refused(kept.keeper.generation, AccessDenied("No.", Denial(status, "https://host/mcp")))

    assert kept.keeper.state.value == state


async def test_a_server_at_a_url_is_looked_for_again_without_being_asked(tmp_path: Path) -> None:
    failures = [failure() for _ in range(5)]
    upstream = ScriptedUpstream(*failures, ScriptedRunning(Lists(), HostKind.COMMAND), remote=True)
    kept = Kept(tmp_path, upstream)

    await kept.until_state("Connected")

    assert upstream.starts == 6
    assert [level for level, _ in kept.messages].count("error") == 1, "the same is not said again and again"


async def test_a_defect_of_a_start_is_a_failure_and_not_silence(tmp_path: Path) -> None:
    class Broken(ScriptedUpstream):
        def start(self, observer: Any) -> ScriptedRunning:
            raise ZeroDivisionError("a defect")

    kept = Kept(tmp_path, Broken())

    assert not await kept.keeper.until_connected(5)

    assert "ZeroDivisionError: a defect" in kept.facts.issues[0].message


async def test_a_defect_of_a_conversation_is_a_failure_and_not_silence(tmp_path: Path) -> None:
    running = ScriptedRunning()
    running.refusals = [ZeroDivisionError("a defect")] * 9
    kept = Kept(tmp_path, ScriptedUpstream(running))

    await kept.until_state("Degraded")

    assert "ZeroDivisionError: a defect" in kept.facts.last_end.reason


# --- other workspaces, and the end


async def test_another_upstream_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    first, second = ScriptedRunning(), ScriptedRunning(Lists(tools=["new"]))
    kept = await connected(tmp_path, first)

    kept.keeper.begin(ScriptedUpstream(second))

    assert kept.keeper.started
    assert await kept.keeper.until_connected(5)
    assert (kept.tools, first.stops, kept.facts.restarts) == (["new"], 1, 0)


async def test_a_start_that_is_overtaken_leaves_nothing_running(tmp_path: Path) -> None:
    late, wanted = ScriptedRunning(Lists(tools=["late"])), ScriptedRunning(Lists(tools=["wanted"]))
    slow = ScriptedUpstream(late, stubborn=True)
    slow.gate.clear()
    kept = Kept(tmp_path, slow)
    await until(lambda: slow.starts)

    kept.keeper.begin(ScriptedUpstream(wanted))
    assert await kept.keeper.until_connected(5)
    slow.gate.set()

    await until(lambda: late.stops == 1)
    assert (kept.tools, wanted.stops) == (["wanted"], 0)


async def test_what_becomes_ready_although_its_workspace_has_gone_is_stopped(tmp_path: Path) -> None:
    late = ScriptedRunning()
    slow = ScriptedUpstream(late, stubborn=True)
    slow.gate.clear()
    kept = Kept(tmp_path, slow)
    await until(lambda: slow.starts)

    kept.keeper.halt("There is no workspace.")
    slow.gate.set()

    await until(lambda: late.stops == 1)
    assert kept.keeper.running is None


async def test_without_anything_to_keep_it_waits_and_says_that_waiting_is_no_use(tmp_path: Path) -> None:
    kept = Kept(tmp_path, None)
    waiting = asyncio.ensure_future(kept.keeper.until_connected(5))
    await asyncio.sleep(0)

    kept.keeper.halt("There is no workspace.")

    assert await waiting is False
    kept.keeper.wanted()
    assert kept.keeper.state.value == "Degraded", "there is nothing that could be tried"
    assert kept.messages == [("error", "There is no workspace.")]


async def test_at_the_end_the_upstream_is_stopped_and_nothing_starts_any_more(tmp_path: Path) -> None:
    running = ScriptedRunning()
    upstream = ScriptedUpstream(running)
    kept = Kept(tmp_path, upstream)
    assert await kept.keeper.until_connected(5)

    await kept.keeper.close()

    assert running.stops == 1
    kept.keeper.begin(upstream)
    kept.keeper.wanted()
    assert (upstream.starts, kept.keeper.state.value) == (1, "Shutdown")


async def test_at_the_end_a_start_that_is_under_way_is_given_up_and_waited_for(tmp_path: Path) -> None:
    upstream = ScriptedUpstream(ScriptedRunning())
    upstream.gate.clear()
    kept = Kept(tmp_path, upstream)
    await until(lambda: upstream.starts)

    async with asyncio.timeout(5):
        await kept.keeper.close()

    assert kept.keeper.state.value == "Shutdown"


async def test_what_becomes_ready_although_the_end_has_come_is_stopped(tmp_path: Path) -> None:
    running = ScriptedRunning()
    upstream = ScriptedUpstream(running, stubborn=True)
    upstream.gate.clear()
    kept = Kept(tmp_path, upstream)
    await until(lambda: upstream.starts)

    closing = asyncio.ensure_future(kept.keeper.close())
    await asyncio.sleep(0)
    upstream.gate.set()
    await asyncio.wait_for(closing, 5)

    assert running.stops == 1


async def test_a_start_that_waits_for_the_end_of_a_crashed_server_does_not_come_when_all_ends(tmp_path: Path) -> None:
    ours, running, stopped = asyncio.all_tasks(), ScriptedRunning(), asyncio.Event()
    kept = await connected(tmp_path, running)
    running.stop = lambda **_: stopped.wait()  # type: ignore[method-assign, assignment]
    begun: list[object] = []
    kept.launcher.start = lambda *start: begun.append(start)  # type: ignore[method-assign]
    running.die()
    await kept.until_state("Reconnecting")

    closing = asyncio.ensure_future(kept.keeper.close())
    await asyncio.sleep(0)
    stopped.set()
    await asyncio.wait_for(closing, 5)
    await asyncio.wait_for(asyncio.gather(*asyncio.all_tasks() - ours, return_exceptions=True), 5)

    assert begun == []


async def test_at_the_end_all_that_are_just_being_ended_are_waited_for(tmp_path: Path) -> None:
    late, slow, stopped = ScriptedRunning(), ScriptedRunning(), asyncio.Event()
    overtaken = ScriptedUpstream(late, stubborn=True)
    overtaken.gate.clear()
    kept = Kept(tmp_path, overtaken)
    await until(lambda: overtaken.starts)
    kept.keeper.begin(ScriptedUpstream(slow))
    assert await kept.keeper.until_connected(5)
    slow.stop = lambda **_: stopped.wait()  # type: ignore[method-assign, assignment]

    closing = asyncio.ensure_future(kept.keeper.close())
    overtaken.gate.set()
    await until(lambda: late.stops == 1)
    await asyncio.wait([closing], timeout=0.05)
    assert not closing.done()
    stopped.set()

    await asyncio.wait_for(closing, 5)


# --- the supervision of one upstream


async def test_one_that_is_over_before_anything_was_done_leaves_no_work_that_nobody_awaits(tmp_path: Path) -> None:
    told: list[Event] = []
    keeper = Kept(tmp_path, None).keeper

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        supervised = SupervisedUpstream(keeper, ScriptedRunning(), lambda _, event: told.append(event))
        supervised.start()
        supervised.release()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()

    assert [str(each.message) for each in seen] == []
    assert told == []


# --- upstreams that have to go


class Leaving(ScriptedRunning):
    """Notes how it is stopped, and may take its time."""

    def __init__(self) -> None:
        super().__init__(Lists(), HostKind.COMMAND)
        self.patience: list[bool] = []
        self.takes = asyncio.Event()
        self.takes.set()

    async def stop(self, *, patient: bool = False) -> None:
        self.patience.append(patient)
        await self.takes.wait()


async def swapped(folder: Path, before: Leaving, after: Leaving, *later: Leaving) -> tuple[Kept, asyncio.Event]:
    """A keeper with another server than before, which has still to answer until the event is set."""
    kept, unused = Kept(folder, ScriptedUpstream(before, after, *later)), asyncio.Event()
    kept.until_unused = lambda _: unused.wait()  # type: ignore[method-assign, assignment, return-value]
    assert await kept.keeper.until_connected(5)
    assert (await kept.restarter.swap()).ok
    assert kept.keeper.running is after
    return kept, unused


async def test_one_that_still_has_to_answer_is_stopped_when_nobody_waits_any_more(tmp_path: Path) -> None:
    before, after = Leaving(), Leaving()
    kept, unused = await swapped(tmp_path, before, after, Leaving())
    after.die()
    await until(lambda: kept.keeper.generation == 3)
    assert before.patience == [], "a start does not wait for it"

    unused.set()

    await until(lambda: before.patience == [True])


async def test_one_that_ends_by_itself_while_it_leaves_is_cleaned_up(tmp_path: Path) -> None:
    before = Leaving()
    kept, _ = await swapped(tmp_path, before, Leaving())

    before.die()

    await until(lambda: before.patience == [True])
    assert kept.facts.last_end is None, "it has not crashed"


async def test_at_the_end_all_go_at_once_and_are_waited_for(tmp_path: Path) -> None:
    before, after = Leaving(), Leaving()
    kept, _ = await swapped(tmp_path, before, after)
    after.takes.clear()

    closing = asyncio.ensure_future(kept.keeper.close())
    await until(lambda: before.patience == [False] and after.patience == [False])
    assert not closing.done()
    after.takes.set()

    await closing


async def test_one_that_hangs_is_not_waited_for_longer_than_its_bound(tmp_path: Path) -> None:
    running = Leaving()
    kept = await connected(tmp_path, running, limits=SWIFT.replace(stop_seconds=0.02))
    running.takes.clear()

    await asyncio.wait_for(kept.keeper.close(), 5)

    assert running.patience == [False]
