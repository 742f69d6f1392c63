"""Connections that are lost, replaced, closed by the server, and resumed."""

from __future__ import annotations

import asyncio

import pytest

from support.waiting import until
from uno_devserver.protocol.service import Call, Result

from ..conversations import Client, Connection, ScriptedService, connected, text


class Slow:
    """A tool that speaks when it is told to."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.finish = asyncio.Event()

    async def __call__(self, call: Call) -> Result:
        self.calls.append(call)
        call.notify("notifications/progress", {"progress": 0})
        await self.finish.wait()
        return text("done")

    def say(self, number: int) -> None:
        self.calls[-1].notify("notifications/progress", {"progress": number})


def progress(messages: list[dict[str, object]]) -> list[object]:
    return [message["params"]["progress"] for message in messages if "params" in message]  # type: ignore[index]


async def test_a_stream_begins_with_an_id_to_resume_from() -> None:
    slow = Slow()
    client = await connected(ScriptedService(slow=slow))

    stream = await client.stream("tools/call", {"name": "slow"})
    opening, first = await stream.event(), await stream.event()

    assert (opening.data, opening.fields["retry"]) == ("", "1000")
    assert opening.id is not None
    assert first.id not in (None, opening.id)
    assert first.fields["event"] == "message"
    slow.finish.set()
    await stream.end()


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_older_clients_get_no_event_without_data(version: str) -> None:
    slow = Slow()
    client = await connected(ScriptedService(slow=slow), version)
    slow.finish.set()

    stream = await client.stream("tools/call", {"name": "slow"})
    await stream.end()
    opening, first, answer = await stream.event(), await stream.event(), await stream.event()

    assert opening.fields == {"retry": "1000"}
    assert None not in (first.id, answer.id)
    assert first.id != answer.id


async def test_a_lost_connection_does_not_cancel_and_the_rest_is_resumed() -> None:
    slow = Slow()
    client = await connected(ScriptedService(slow=slow))
    stream = await client.stream("tools/call", {"name": "slow"}, request_id=9)
    await stream.event()
    first = await stream.event()
    await stream.lose()
    slow.say(1)
    slow.say(2)

    resumed = await client.listen(last_event_id=first.id)
    assert progress([await resumed.message(), await resumed.message()]) == [1, 2]
    slow.say(3)
    slow.finish.set()
    rest = await resumed.rest()

    assert progress(rest) == [3]
    assert (rest[-1]["id"], rest[-1]["result"]) == (9, text("done"))


async def test_an_answer_is_kept_for_a_client_that_comes_back_later() -> None:
    slow = Slow()
    client = await connected(ScriptedService(slow=slow))
    stream = await client.stream("tools/call", {"name": "slow"})
    opening = await stream.event()
    await stream.lose()
    slow.finish.set()
    await until(lambda: not slow.calls[0].session.calls)  # type: ignore[attr-defined]

    for _ in range(2):  # also twice: the first answer may have been lost, too
        resumed = await client.listen(last_event_id=opening.id)
        assert [message.get("id") for message in await resumed.rest()] == [None, 2]


async def test_an_answer_is_not_kept_for_ever() -> None:
    slow = Slow()
    client = await connected(ScriptedService(slow=slow), limits={"keep_answer_seconds": 0.02})
    stream = await client.stream("tools/call", {"name": "slow"})
    opening = await stream.event()
    slow.finish.set()
    await stream.end()

    async with asyncio.timeout(5):
        while isinstance(again := await client.exchange("GET", last_event_id=opening.id), Connection):
            await again.end()
    assert again.status == 400


async def test_kept_answers_are_bounded_and_the_newest_stays() -> None:
    slow = Slow()
    slow.finish.set()
    client = await connected(ScriptedService(slow=slow), limits={"kept_answers": 2})
    ids = []
    for _ in range(4):
        stream = await client.stream("tools/call", {"name": "slow"})
        ids.append((await stream.event()).id)
        await stream.end()

    found = [isinstance(await client.exchange("GET", last_event_id=one), Connection) for one in ids]

    assert found == [False, False, True, True]


async def test_one_answer_is_kept_however_large_it_is() -> None:
    async def large(call: Call) -> Result:
        call.notify("notifications/progress", {"progress": 0})
        return text("x" * 5000)

    client = await connected(ScriptedService(large=large), limits={"stream_bytes": 1000})
    ids = []
    for _ in range(2):
        stream = await client.stream("tools/call", {"name": "large"})
        ids.append((await stream.event()).id)
        await stream.lose()

    gone, kept = [await client.exchange("GET", last_event_id=one) for one in ids]

    assert not isinstance(gone, Connection)
    assert isinstance(kept, Connection)
    assert (await kept.rest())[-1]["result"] == text("x" * 5000)


async def test_resuming_replays_only_that_stream() -> None:
    one, two = Slow(), Slow()
    client = await connected(ScriptedService(one=one, two=two))
    first, second = [await client.stream("tools/call", {"name": name}) for name in ("one", "two")]
    opening = await first.event()
    client.endpoint.broadcast("notifications/tools/list_changed")
    two.say(22)
    one.say(11)
    await first.lose()
    one.finish.set()

    resumed = await (await client.listen(last_event_id=opening.id)).rest()

    assert progress(resumed) == [0, 11]
    assert len(resumed) == 3
    two.finish.set()
    assert progress(await second.rest()) == [0, 22]


async def test_event_ids_of_a_session_are_unique() -> None:
    slow = Slow()
    slow.finish.set()
    client = await connected(ScriptedService(slow=slow))
    standing = await client.listen()
    client.endpoint.broadcast("notifications/tools/list_changed")
    ids = [(await standing.event()).id, (await standing.event()).id]
    for _ in range(3):
        stream = await client.stream("tools/call", {"name": "slow"})
        await stream.end()
        ids += [(await stream.event()).id for _ in range(3)]

    assert len(set(ids)) == len(ids)
    await standing.lose()


@pytest.mark.parametrize("event", ["nonsense", "-1", "s", "99-0", "s-x", "s--1", "1-" + "9" * 50, "s-١"])
async def test_an_unknown_event_id_is_refused(event: str) -> None:
    reply = await (await connected(ScriptedService())).send("GET", last_event_id=event)

    assert reply.status == 400
    assert "resume" in reply.json["error"]["message"]


async def test_a_position_in_the_future_means_the_present() -> None:
    client = await connected(ScriptedService())

    listener = await client.listen(last_event_id="s-999")
    await listener.event()
    client.endpoint.broadcast("notifications/tools/list_changed")

    assert (await listener.message())["method"] == "notifications/tools/list_changed"
    await listener.lose()


async def test_another_session_cannot_resume_my_stream() -> None:
    slow = Slow()
    mine = await connected(ScriptedService(slow=slow))
    other = Client(mine.endpoint)
    await other.initialize()
    stream = await mine.stream("tools/call", {"name": "slow"})
    opening = await stream.event()

    stolen = await other.send("GET", last_event_id=opening.id)

    assert stolen.status == 400
    await stream.lose()


# --- the server closes the connection, and the client polls


async def test_a_call_may_close_its_connection_and_finish_later() -> None:
    slow = Slow()
    client = await connected(ScriptedService(slow=slow))
    stream = await client.stream("tools/call", {"name": "slow"}, request_id=1)
    slow.calls[0].close_stream()
    await stream.end()
    opening, last = await stream.event(), await stream.event()
    slow.finish.set()

    resumed = await client.listen(last_event_id=last.id)

    assert opening.fields["retry"] == "1000"
    assert [message["id"] for message in await resumed.rest()] == [1]


async def test_a_call_may_close_before_it_said_anything() -> None:
    closed, finish = asyncio.Event(), asyncio.Event()

    async def poll(call: Call) -> Result:
        call.close_stream()
        closed.set()
        await finish.wait()
        return text("later")

    client = await connected(ScriptedService(poll=poll))
    stream = await client.stream("tools/call", {"name": "poll"})
    await stream.end()
    opening = await stream.event()
    resumed = await client.listen(last_event_id=opening.id)
    finish.set()

    assert (await resumed.rest())[-1]["result"] == text("later")


async def test_closing_again_and_again_works_each_time() -> None:
    slow = Slow()
    client = await connected(ScriptedService(slow=slow))
    stream = await client.stream("tools/call", {"name": "slow"})
    last = (await stream.event()).id
    for number in range(3):
        slow.calls[0].close_stream()
        await stream.end()
        slow.calls[0].close_stream()  # nobody is connected: nothing to close, now or later
        slow.say(number)
        stream = await client.listen(last_event_id=last)
        opening = await stream.event()
        assert opening.id == last
        message = await stream.event()
        while message.message is None or message.message["params"]["progress"] != number:
            message = await stream.event()
        last = message.id
    slow.finish.set()

    assert (await stream.rest())[-1]["result"] == text("done")


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
async def test_older_clients_would_not_resume_so_their_connection_stays(version: str) -> None:
    slow = Slow()
    client = await connected(ScriptedService(slow=slow), version)
    stream = await client.stream("tools/call", {"name": "slow"})
    slow.calls[0].close_stream()
    slow.finish.set()

    assert (await stream.rest())[-1]["result"] == text("done")


# --- the stream for what belongs to no request


async def test_what_belongs_to_no_request_goes_to_the_standing_stream() -> None:
    service = ScriptedService()
    client = await connected(service)
    listener = await client.listen()

    service.sessions[0].notify("notifications/message", {"level": "warning", "data": "hot"})
    service.sessions[0].notify("notifications/message", {"level": "debug", "data": "dull"})
    client.endpoint.broadcast("notifications/prompts/list_changed")

    assert (await listener.message())["params"]["data"] == "hot"
    assert (await listener.message())["method"] == "notifications/prompts/list_changed"
    await listener.lose()


async def test_a_second_listener_replaces_the_first() -> None:
    client = await connected(ScriptedService())
    first = await client.listen()
    await first.event()

    second = await client.listen()
    await first.end()
    client.endpoint.broadcast("notifications/tools/list_changed")

    assert (await second.message())["method"] == "notifications/tools/list_changed"
    assert await first.rest() == []
    await second.lose()


async def test_a_listener_may_come_again_after_the_first_was_lost() -> None:
    client = await connected(ScriptedService())
    for _ in range(3):
        listener = await client.listen()
        await listener.event()
        await listener.lose()
        client.endpoint.broadcast("notifications/tools/list_changed")

    listener = await client.listen()

    assert (await listener.message())["method"] == "notifications/tools/list_changed"
    await listener.lose()


async def test_what_was_said_before_the_client_listened_is_not_lost_nor_repeated() -> None:
    client = await connected(ScriptedService())
    for _ in range(5):
        client.endpoint.broadcast("notifications/tools/list_changed")
    client.endpoint.broadcast("notifications/prompts/list_changed")

    listener = await client.listen()
    told = [(await listener.message())["method"] for _ in range(2)]
    await listener.lose()
    again = await client.listen()
    opening = await again.event()
    client.endpoint.broadcast("notifications/resources/list_changed")

    assert told == ["notifications/tools/list_changed", "notifications/prompts/list_changed"]
    assert (await again.message())["method"] == "notifications/resources/list_changed"
    await again.lose()

    resumed = await client.listen(last_event_id=opening.id)
    assert (await resumed.message())["method"] == "notifications/resources/list_changed"
    await resumed.lose()


async def test_what_waits_for_a_listener_is_bounded() -> None:
    service = ScriptedService()
    client = await connected(service, limits={"stream_events": 3})
    for number in range(10):
        service.sessions[0].notify("notifications/message", {"level": "info", "data": number})

    listener = await client.listen()

    assert [(await listener.message())["params"]["data"] for _ in range(3)] == [7, 8, 9]
    await listener.lose()


async def test_only_watchers_hear_of_a_resource() -> None:
    service = ScriptedService()
    one = await connected(service)
    other = Client(one.endpoint)
    await other.initialize()
    assert (await one.ask("resources/subscribe", {"uri": "file:///a"})).json["result"] == {}
    assert (await other.ask("resources/subscribe", {"uri": "file:///b"})).json["result"] == {}
    listeners = [await one.listen(), await other.listen()]

    for uri in ("file:///a", "file:///b", "file:///c"):
        one.endpoint.resource_updated(uri)
    heard = [(await listener.message())["params"] for listener in listeners]
    await one.ask("resources/unsubscribe", {"uri": "file:///a"})
    one.endpoint.resource_updated("file:///a")
    one.endpoint.broadcast("notifications/tools/list_changed")

    assert heard == [{"uri": "file:///a"}, {"uri": "file:///b"}]
    assert (await listeners[0].message())["method"] == "notifications/tools/list_changed"
    for listener in listeners:
        await listener.lose()


async def test_watched_resources_are_bounded_and_need_a_uri() -> None:
    client = await connected(ScriptedService(), limits={"watched": 1})
    await client.ask("resources/subscribe", {"uri": "a:1"})

    again = await client.ask("resources/subscribe", {"uri": "a:1"})
    more = await client.ask("resources/subscribe", {"uri": "a:2"})
    none = await client.ask("resources/subscribe", {})
    await client.ask("resources/unsubscribe", {"uri": "a:1"})
    other = await client.ask("resources/subscribe", {"uri": "a:2"})

    assert [reply.error for reply in (again, more, none, other)] == [None, -32010, -32602, None]
