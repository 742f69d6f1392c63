"""Streams by themselves: order, bounds, replaced and lost connections."""

from __future__ import annotations

import asyncio

from support.waiting import until
from uno_devserver.protocol.server.limits import DEFAULT_ENDPOINT_LIMITS
from uno_devserver.protocol.server.message_stream import MessageKind, MessageStream, StreamOpening


class Lines:
    """A connection that remembers the data it got, and can break."""

    def __init__(self, breaks_after: int = 10**9) -> None:
        self.raw: list[bytes] = []
        self._left = breaks_after

    async def write(self, data: bytes) -> None:
        if self._left == 0:
            raise ConnectionResetError
        self._left -= 1
        self.raw.append(data)

    @property
    def data(self) -> list[bytes]:
        lines = b"".join(self.raw).split(b"\n")
        return [line[6:] for line in lines if line.startswith(b"data: ") and len(line) > 6]


async def test_messages_arrive_in_order_until_the_end() -> None:
    stream, sink = MessageStream(DEFAULT_ENDPOINT_LIMITS, "1"), Lines()
    for number in range(3):
        stream.send(b"%d" % number)
    stream.end()
    stream.send(b"too late")

    await stream.deliver(sink)

    assert sink.data == [b"0", b"1", b"2"]
    assert not stream.connected


async def test_a_connection_that_breaks_loses_nothing() -> None:
    stream, broken, next_one = MessageStream(DEFAULT_ENDPOINT_LIMITS, "1"), Lines(breaks_after=1), Lines()
    stream.send(b"a")
    stream.end()

    await stream.deliver(broken)  # it gets the opening, no more
    await stream.deliver(next_one)

    assert broken.data == []
    assert next_one.data == [b"a"]


async def test_plain_answers_are_what_was_said_at_the_end() -> None:
    stream = MessageStream(DEFAULT_ENDPOINT_LIMITS)
    asyncio.get_running_loop().call_soon(stream.send, b"answer", MessageKind.ANSWER)
    asyncio.get_running_loop().call_soon(stream.end)

    assert await stream.plain_answers(5) == [b"answer"]


async def test_a_notification_before_the_end_needs_a_connection() -> None:
    stream = MessageStream(DEFAULT_ENDPOINT_LIMITS)
    stream.send(b"note")
    stream.send(b"answer", MessageKind.ANSWER)
    stream.end()

    assert await stream.plain_answers(5) is None


async def test_a_long_silence_needs_a_connection() -> None:
    assert await MessageStream(DEFAULT_ENDPOINT_LIMITS).plain_answers(0.01) is None


async def test_old_notifications_go_first_when_there_are_too_many() -> None:
    stream, sink = MessageStream(DEFAULT_ENDPOINT_LIMITS.replace(stream_events=3)), Lines()
    stream.send(b"question", MessageKind.REQUEST)
    for number in range(5):
        stream.send(b"%d" % number)
    stream.send(b"answer", MessageKind.ANSWER)
    stream.end()

    await stream.deliver(sink)

    assert sink.data == [b"question", b"4", b"answer"]


async def test_bytes_are_bounded_too() -> None:
    stream, sink = MessageStream(DEFAULT_ENDPOINT_LIMITS.replace(stream_bytes=10)), Lines()
    for letter in (b"a", b"b", b"c"):
        stream.send(letter * 4)
    stream.send(b"a long answer", MessageKind.ANSWER)
    stream.end()

    await stream.deliver(sink)

    assert sink.data == [b"a long answer"]
    assert stream.size == len(b"a long answer")


async def test_what_was_delivered_goes_before_what_was_not() -> None:
    stream, first, second = MessageStream(DEFAULT_ENDPOINT_LIMITS.replace(stream_events=2)), Lines(), Lines()
    stream.send(b"old question", MessageKind.REQUEST)
    task = asyncio.create_task(stream.deliver(first))
    await until(lambda: first.data == [b"old question"])
    task.cancel()
    await asyncio.wait([task])
    for number in range(2):
        stream.send(b"question %d" % number, MessageKind.REQUEST)
    stream.end()

    await stream.deliver(second, after=0)

    assert second.data == [b"question 0", b"question 1"]


async def test_the_same_message_waits_once() -> None:
    stream, sink = MessageStream(DEFAULT_ENDPOINT_LIMITS), Lines()
    task = asyncio.create_task(stream.deliver(sink))
    for _ in range(3):
        stream.send_once(b"changed")
    await until(lambda: sink.data == [b"changed"])
    stream.send_once(b"changed")
    stream.end()
    await task

    assert sink.data == [b"changed", b"changed"]


async def test_a_slow_connection_that_was_replaced_does_not_make_the_next_one_hear_things_twice() -> None:
    released = asyncio.Event()

    class Slow(Lines):
        async def write(self, data: bytes) -> None:
            await super().write(data)
            if b"first" in data:
                await released.wait()

    stream, slow, quick, last = MessageStream(DEFAULT_ENDPOINT_LIMITS, "s"), Slow(), Lines(), Lines()
    stream.send(b"first")
    tasks = [asyncio.create_task(stream.deliver(slow))]
    await until(lambda: slow.data == [b"first"])
    tasks.append(asyncio.create_task(stream.deliver(quick)))
    stream.send(b"second")
    await until(lambda: b"second" in quick.data)
    released.set()
    await tasks[0]
    stream.end()
    await tasks[1]

    await stream.deliver(last)

    assert last.data == []


async def test_openings_by_what_the_client_understands() -> None:
    openings = []
    for opening in StreamOpening:
        stream, sink = MessageStream(DEFAULT_ENDPOINT_LIMITS, "7"), Lines()
        stream.end()
        await stream.deliver(sink, opening=opening)
        openings += sink.raw

    assert openings == [b": keep-alive\n\n", b"retry: 1000\n\n", b"id: 7-0\nretry: 1000\ndata: \n\n"]
