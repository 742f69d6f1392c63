"""Lines over real pipes: whole ones in and out, within bounds, and nobody waits for a server that does not read."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.conversations import asynchronous, until
from uno_devserver.protocol.client import lines as module
from uno_devserver.protocol.client.connection import Lost
from uno_devserver.protocol.client.lines import Line, PipeLines, Splitter
from uno_devserver.protocol.jsonrpc import BUSY, RpcError


class Pipes:
    """The server's ends of a pair of pipes, and what the client's end reported."""

    def __init__(self) -> None:
        self.heard_lines: list[bytes] = []
        self.reports: list[str] = []
        self.lines = PipeLines(self, lambda: self.reports.append("broken"))
        self.input, self._sink = os.pipe()
        self._source, self.output = os.pipe()
        os.set_blocking(self.input, False)

    async def open(self) -> None:
        await self.lines.open(os.fdopen(self._source, "rb", 0), os.fdopen(self._sink, "wb", 0))

    def heard(self, line: bytes) -> None:
        self.heard_lines.append(line)

    def deaf(self) -> None:
        self.reports.append("deaf")

    def ended(self) -> None:
        self.reports.append("ended")

    def read(self) -> bytes:
        """What has been written to the server."""
        data = b""
        try:
            while chunk := os.read(self.input, 1 << 20):
                data += chunk
        except BlockingIOError:
            pass
        return data

    def fill(self) -> None:
        """Write until the pipe is full: one line is sent in part, and one waits."""
        sent = 0
        while self.lines.write(b"x" * 9_999).sent:
            sent += 10_000
        assert sent < fcntl.fcntl(self.input, fcntl.F_GETPIPE_SZ) + 10_000

    async def drain(self, end: bytes) -> bytes:
        """Read until that comes."""
        received = b""
        while not received.endswith(end):
            received += self.read()
            await asyncio.sleep(0)
        return received

    def close(self) -> None:
        self.lines.close()
        for handle in (self.input, self.output):
            try:
                os.close(handle)
            except OSError:
                pass  # by the test


@asynccontextmanager
async def pipes() -> AsyncIterator[Pipes]:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    both = Pipes()
    await both.open()
    try:
        yield both
    finally:
        both.close()
    assert failures == []


@asynchronous
async def test_lines_go_both_ways() -> None:
    async with pipes() as server:
        os.write(server.output, b'{"a":1}\n{"b"')
        os.write(server.output, b":2}\r\n\n")
        server.lines.write(b'{"c":3}')
        await until(lambda: len(server.heard_lines) == 2)

        assert [line.strip() for line in server.heard_lines] == [b'{"a":1}', b'{"b":2}']
        assert server.read() == b'{"c":3}\n'


@asynchronous
async def test_a_last_line_without_an_end_counts_too() -> None:
    async with pipes() as server:
        os.write(server.output, b"one\ntwo")
        os.close(server.output)
        await server.lines.over.wait()

        assert server.heard_lines == [b"one", b"two"]
        assert server.reports == ["ended", "broken"]
        with pytest.raises(Lost) as lost:
            server.lines.write(b"x")
        assert lost.value.sent is False


@asynchronous
async def test_what_a_server_does_not_take_is_not_sent_and_follows_in_order_when_it_does() -> None:
    async with pipes() as server:
        server.fill()
        last = [server.lines.write(b"%d" % number) for number in range(3)]
        assert [line.sent for line in last] == [False] * 3

        received = await server.drain(b"\n2\n")

        assert received.endswith(b"xxx\n0\n1\n2\n")
        assert all(line.sent for line in last)


@asynchronous
async def test_a_server_that_does_not_read_is_busy_at_some_point_and_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 1000)
    async with pipes() as server:
        server.fill()  # the last one waits, whatever its size: it is the only one

        with pytest.raises(RpcError) as busy:
            server.lines.write(b"y" * 1001)

        assert busy.value.code == BUSY
        os.write(server.output, b"still heard\n")
        await until(lambda: server.heard_lines == [b"still heard"])


@asynchronous
async def test_a_server_that_reads_again_is_busy_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 25_000)
    async with pipes() as server:
        for _ in range(3):
            server.fill()
            server.lines.write(b"y" * 10_000)
            with pytest.raises(RpcError):
                server.lines.write(b"y" * 10_000)
            await server.drain(b"y\n")


@asynchronous
async def test_a_server_that_reads_a_little_gets_a_little() -> None:
    async with pipes() as server:
        server.fill()
        waiting = [server.lines.write(b"y" * 10_000) for _ in range(50)]

        server.read()
        await until(lambda: waiting[0].sent)

        assert not waiting[-1].sent


@asynchronous
async def test_a_line_that_is_withdrawn_makes_room_and_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 25_000)
    async with pipes() as server:
        server.fill()
        line = server.lines.write(b"unwanted" * 1000)
        with pytest.raises(RpcError):
            server.lines.write(b"y" * 10_000)

        assert server.lines.withdraw(line)
        assert not server.lines.withdraw(line)
        server.lines.write(b"y" * 10_000)

        assert b"unwanted" not in await server.drain(b"yyy\n")
        assert not server.lines.withdraw(Line(b"of somebody else"))


@asynchronous
async def test_a_line_that_meets_a_closed_pipe_was_not_sent() -> None:
    async with pipes() as server:
        os.close(server.input)

        with pytest.raises(Lost) as lost:
            server.lines.write(b"x")

        assert lost.value.sent is False
        await until(lambda: server.reports == ["deaf", "broken"])
        with pytest.raises(Lost):
            server.lines.write(b"x")


@asynchronous
async def test_lines_that_wait_when_the_pipe_closes_were_not_sent() -> None:
    async with pipes() as server:
        server.fill()
        waits = server.lines.write(b"waits")

        os.close(server.input)
        await until(lambda: "deaf" in server.reports)

        assert waits.sent is False
        with pytest.raises(Lost):
            server.lines.write(b"x")
        os.write(server.output, b"an answer to something else\n")
        await until(lambda: len(server.heard_lines) == 1)


@asynchronous
async def test_closing_ends_both_directions_and_can_be_repeated() -> None:
    async with pipes() as server:
        server.lines.close_output()
        await until(lambda: "deaf" in server.reports)
        assert os.read(server.input, 1) == b""

        server.lines.close()
        server.lines.close()

        assert server.reports == ["deaf", "broken", "ended", "broken"]
        with pytest.raises(BrokenPipeError):
            await until(lambda: not os.write(server.output, b"x"))


@asynchronous
async def test_a_server_sees_the_end_when_its_lines_are_closed() -> None:
    async with pipes() as server:
        server.lines.close()
        os.set_blocking(server.input, True)

        assert await asyncio.to_thread(os.read, server.input, 1) == b""


@asynchronous
async def test_a_large_message_lets_other_work_go_on_in_both_directions() -> None:
    size = 16 * 1024 * 1024
    async with pipes() as server:
        received = bytearray()
        os.set_blocking(server.output, False)
        to_say = memoryview(b"z" * size + b"\n")
        server.lines.write(b"y" * size)
        turns = 0
        while len(received) <= size or not server.heard_lines:
            received += server.read()
            try:
                to_say = to_say[os.write(server.output, to_say) :] if to_say else to_say
            except BlockingIOError:
                pass
            turns += 1
            await asyncio.sleep(0)

        assert len(server.heard_lines[0]) == size
        assert received == b"y" * size + b"\n"
        assert turns > 50


# splitting


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"\n\n  \n\r\na\n", [b"a"]),
        (b"a\r\n", [b"a\r"]),
        (b"1234\n12345\n1234\n", [b"1234", b"1234"]),
        (b"123456789", []),
    ],
)
def test_blank_lines_and_long_ones_are_skipped(data: bytes, lines: list[bytes]) -> None:
    assert Splitter(most=4).feed(data) == lines


def test_a_long_line_is_skipped_to_its_end_and_not_kept() -> None:
    splitter = Splitter(most=4)

    assert splitter.feed(b"12345") == []
    assert splitter.feed(b"6789") == []
    assert splitter.feed(b"0\nab") == []
    assert splitter.feed(b"c\n") == [b"abc"]


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"", b"\r", b"defghi"]), max_size=12))
def test_lines_are_the_same_wherever_they_were_cut(parts: list[bytes]) -> None:
    whole, piecemeal = Splitter(most=5), Splitter(most=5)

    at_once = [*whole.feed(b"".join(parts)), whole.rest()]

    assert [*(line for part in parts for line in piecemeal.feed(part)), piecemeal.rest()] == at_once
