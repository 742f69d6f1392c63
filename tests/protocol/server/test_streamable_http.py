"""The front door: methods, media types, and the choice between one JSON answer and a stream."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from support.waiting import until
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, SESSION_REQUIRED
from uno_devserver.protocol.service import Call, Result

from ..conversations import (
    Client,
    Connection,
    ModernClient,
    ScriptedService,
    Waiting,
    connected,
    endpoint_of,
    text,
    timers,
)


@pytest.mark.parametrize("method", ["PUT", "HEAD", "OPTIONS", "PATCH", "BREW"])
async def test_other_methods_are_not_allowed(method: str) -> None:
    reply = await Client(endpoint_of(ScriptedService())).send(method)

    assert (reply.status, reply.headers["allow"], reply.body) == (405, "DELETE, GET, POST", b"")


@pytest.mark.parametrize(
    ("accept", "status"),
    [(kind, 406) for kind in (None, "application/json", "text/html", "")]  # so that launchers see a server
    + [(kind, 400) for kind in ("*/*", "text/event-stream", "text/*;q=0.5")],
)
async def test_get_without_event_stream_is_406_and_without_session_400(accept: str | None, status: int) -> None:
    reply = await Client(endpoint_of(ScriptedService())).send("GET", accept=accept)

    assert (reply.status, reply.error) == (status, INVALID_REQUEST if status == 406 else SESSION_REQUIRED)


ACCEPTED = [None, "*/*", "application/json, text/event-stream", "text/event-stream;q=1, APPLICATION/JSON"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        *(({"accept": accept}, 200) for accept in (*ACCEPTED, "application/*")),
        *(({"accept": accept}, 406) for accept in ("text/html", "image/png, text/plain", "")),
        *(({"content_type": kind}, 200) for kind in ("application/json; charset=utf-8", "Application/JSON")),
        *(({"content_type": kind}, 415) for kind in (None, "text/plain", "application/jsonx", "")),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
    ],
)
async def test_a_message_claims_to_be_json_and_its_client_takes_json_or_events(
    headers: dict[str, str | None], status: int
) -> None:
    reply = await (await connected(ScriptedService())).ask("ping", **headers)

    assert (reply.status, reply.error) == (status, None if status == 200 else INVALID_REQUEST)
    assert reply.json.get("result") == ({} if status == 200 else None)


async def _speak(call: Call) -> Result:
    call.notify("notifications/progress", {"progressToken": 1, "progress": 1})
    return text("spoken")


async def test_a_call_that_speaks_before_it_answers_gets_a_stream() -> None:
    client = await connected(ScriptedService(speak=_speak))

    stream = await client.stream("tools/call", {"name": "speak"}, request_id="a")
    messages = await stream.rest()

    assert stream.status == 200
    assert stream.headers["Content-Type"] == "text/event-stream"
    assert stream.headers["Cache-Control"].startswith("no-cache")
    assert messages == [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
        {"jsonrpc": "2.0", "id": "a", "result": text("spoken")},
    ]


async def test_a_client_that_takes_json_only_gets_the_answer_and_nothing_else() -> None:
    client = await connected(ScriptedService(speak=_speak))

    reply = await client.ask("tools/call", {"name": "speak"}, accept="application/json")

    assert reply.json["result"] == text("spoken")


async def test_a_client_that_takes_events_only_gets_a_stream() -> None:
    client = Client(endpoint_of(ScriptedService()))

    first = await client.stream("initialize", {}, accept="text/event-stream")
    session = first.headers["Mcp-Session-Id"]
    pinged = await client.stream("ping", accept="text/event-stream", mcp_session_id=session)

    assert (await first.rest())[0]["result"]["protocolVersion"] == "2025-11-25"
    assert (await pinged.rest())[0]["result"] == {}


async def test_a_call_that_takes_long_gets_a_stream_that_is_kept_alive() -> None:
    think = Waiting()
    limits = {"plain_answer_seconds": 0.01, "keep_alive_seconds": 0.01}
    client = await connected(ScriptedService(think=think), limits=limits)
    stream = await client.stream("tools/call", {"name": "think"})
    await until(lambda: stream.raw.count(b": keep-alive\n\n") >= 2)
    think.go.set()

    assert (await stream.rest())[-1]["result"] == text("done")


async def test_a_client_that_takes_json_only_waits_as_long_as_it_takes() -> None:
    think = Waiting()
    client = await connected(ScriptedService(think=think), limits={"plain_answer_seconds": 0.001})
    call = asyncio.create_task(client.ask("tools/call", {"name": "think"}, accept="application/json"))
    await asyncio.sleep(0.02)
    assert not call.done()
    think.go.set()

    assert (await call).json["result"] == text("done")


async def test_a_client_that_takes_json_only_is_not_told_to_come_back_for_its_answer() -> None:
    async def poll(call: Call) -> Result:
        call.close_stream()
        return text("polled")

    client = await connected(ScriptedService(poll=poll))
    reply = await client.ask("tools/call", {"name": "poll"}, accept="application/json")

    assert reply.json["result"] == text("polled")


async def test_a_call_is_answered_although_somebody_listens_in_on_its_stream() -> None:
    think = Waiting()
    client = await connected(ScriptedService(think=think))
    call = asyncio.create_task(client.ask("tools/call", {"name": "think"}, accept="application/json"))
    await asyncio.sleep(0)  # its stream is the first of the session
    listener = await client.listen(last_event_id="1-0")
    await listener.event()
    think.go.set()

    assert (await call).json["result"] == text("done")
    await listener.end()


async def test_notifications_may_come_from_any_thread_and_stay_in_order() -> None:
    async def work(call: Call) -> Result:
        def count() -> None:
            for number in range(50):
                call.notify("notifications/progress", {"progress": number})

        await asyncio.to_thread(count)
        return text("counted")

    client = await connected(ScriptedService(work=work))
    messages = await (await client.stream("tools/call", {"name": "work"})).rest()

    assert [message["params"]["progress"] for message in messages[:-1]] == list(range(50))


async def test_changes_may_be_announced_from_any_thread() -> None:
    client = await connected(ScriptedService())
    listener = await client.listen()

    thread = threading.Thread(target=client.endpoint.broadcast, args=("notifications/tools/list_changed",))
    thread.start()
    message = await listener.message()
    thread.join()

    assert message == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    await listener.lose()


def test_announcing_changes_before_anyone_came_does_nothing() -> None:
    endpoint = endpoint_of(ScriptedService())

    endpoint.broadcast("notifications/tools/list_changed")
    endpoint.resource_updated("a:b")

    assert endpoint.session_count == 0


async def test_both_eras_share_the_endpoint() -> None:
    service = ScriptedService(speak=_speak)
    old = await connected(service)
    new = ModernClient(old.endpoint)

    streams = await asyncio.gather(
        *(client.stream("tools/call", {"name": "speak"}, request_id=1) for client in (old, new, old, new))
    )
    answers = [(await stream.rest())[-1] for stream in streams]

    assert [answer["result"]["content"] for answer in answers] == [text("spoken")["content"]] * 4
    assert ["resultType" in answer["result"] for answer in answers] == [False, True, False, True]
    assert old.endpoint.session_count == 1


@pytest.mark.parametrize("version", ["2026-07-28", "2099-01-01"])
async def test_initialize_belongs_to_the_handshake_whatever_its_header_says(version: str) -> None:
    reply = await Client(endpoint_of(ScriptedService())).ask("initialize", {}, mcp_protocol_version=version)

    assert (reply.status, reply.json["result"]["protocolVersion"]) == (200, "2025-11-25")


@pytest.mark.parametrize("failure", [OSError("disk"), SystemExit(1)])
async def test_a_service_that_cannot_even_say_what_it_can_is_an_internal_error(failure: BaseException) -> None:
    class Broken(ScriptedService):
        def capabilities(self) -> dict[str, object]:
            raise failure

    client = Client(endpoint_of(Broken()))
    reply = await client.ask("initialize", {})

    assert (reply.status, reply.error) == (500, INTERNAL_ERROR)
    assert client.endpoint.session_count == 0


async def test_close_ends_everything_with_a_last_word() -> None:
    service = ScriptedService(wait=_wait_forever)
    old, new = await connected(service), ModernClient(endpoint_of(service))
    new.endpoint = old.endpoint
    streams = [
        await old.stream("tools/call", {"name": "wait"}),
        await new.stream("tools/call", {"name": "wait"}),
        await new.stream("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
        await old.listen(),
    ]

    await asyncio.wait_for(old.endpoint.close(), 5)
    last_words = [(await stream.rest())[-1:] for stream in streams]

    assert ["error" in last[0] for last in last_words[:2]] == [True, True]
    assert last_words[2][0]["result"]["resultType"] == "complete"
    assert last_words[3] == []
    assert service.sessions == []
    assert old.endpoint.session_count == 0
    assert [(await client.ask("tools/list")).status for client in (old, new)] == [503, 503]


@pytest.mark.parametrize("kind", [Client, ModernClient])
async def test_close_lets_calls_clean_up(kind: type[Client]) -> None:
    cleaned = False

    async def careful(call: Call) -> Result:
        nonlocal cleaned
        call.notify("notifications/progress", {"progress": 1})
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned = True
        return {}

    service = ScriptedService(careful=careful)
    client = await connected(service) if kind is Client else kind(endpoint_of(service))
    stream = await client.stream("tools/call", {"name": "careful"})
    await stream.message()
    await client.endpoint.close()

    assert cleaned
    await stream.end()


async def test_close_leaves_no_timer_behind() -> None:
    async def who(call: Call) -> Result:
        return await call.ask("elicitation/create", {})

    before = timers()
    service = ScriptedService(wait=_wait_forever, speak=_speak, who=who)
    old, new = await connected(service), ModernClient(endpoint_of(service), elicitation={})
    new.endpoint = old.endpoint
    await (await old.stream("tools/call", {"name": "speak"})).end()  # its answer is kept
    asked = [await new.ask("tools/call", {"name": "who"}) for _ in range(2)]
    state = asked[0].json["result"]["requestState"]
    answers = {"question-1": {"action": "decline"}}
    await new.ask("tools/call", {"name": "who", "requestState": state, "inputResponses": answers})
    streams = [
        await old.stream("tools/call", {"name": "wait"}),
        await new.stream("tools/call", {"name": "wait"}),
        await new.stream("subscriptions/listen", {"notifications": {}}),
        await old.listen(),
    ]
    for _ in range(3):
        old.endpoint.broadcast("notifications/tools/list_changed")
        await streams[3].message()

    await old.endpoint.close()
    for stream in streams:
        await stream.end()

    assert timers() == before


async def test_close_does_not_wait_for_a_call_that_refuses_to_stop() -> None:
    released = asyncio.Event()

    async def stubborn(call: Call) -> Result:
        call.notify("notifications/progress", {"progress": 1})
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return {}

    client = await connected(ScriptedService(stubborn=stubborn), limits={"close_seconds": 0.05})
    await client.stream("tools/call", {"name": "stubborn"})

    await asyncio.wait_for(client.endpoint.close(), 5)
    released.set()


async def _wait_forever(call: Call) -> Result:
    call.notify("notifications/progress", {"progress": 1})
    await asyncio.Event().wait()
    return {}


async def test_a_slow_reader_does_not_hold_up_the_call() -> None:
    """The service goes on while the client does not read; the answer is there when it does."""
    finished = asyncio.Event()
    reading = asyncio.Event()

    async def talk(call: Call) -> Result:
        for number in range(5000):
            call.notify("notifications/progress", {"progress": number})
        finished.set()
        return text("done")

    class SlowConnection(Connection):
        async def write(self, data: bytes) -> None:
            await reading.wait()
            await super().write(data)

    client = await connected(ScriptedService(talk=talk), limits={"stream_events": 100})
    client.connection = SlowConnection
    stream = await client.stream("tools/call", {"name": "talk"})
    await asyncio.wait_for(finished.wait(), 5)
    reading.set()
    messages = await stream.rest()

    assert messages[-1]["result"] == text("done")
    assert len(messages) <= 101
    assert json.dumps(messages[-2]["params"]) == '{"progress": 4999}'
