"""Lines over real pipes: whole ones in and out, within bounds, and nobody waits for a server that does not read."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from support.loop_pipes import pipe_from_loop, pipe_to_loop, read_at_once
from support.waiting import until
from uno_devserver.protocol.client import pipe_lines as module
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.client.pipe_lines import OutgoingLine, PipeLines
from uno_devserver.protocol.jsonrpc import BUSY, RpcError
from uno_devserver.protocol.lines import LineSplitter, LineTooLong

if sys.platform != "win32":
    import fcntl

COPY_SECONDS = 2.0  # of the processor: it takes 0.2 s, and took 6 s when all that waits was copied for each 64 KiB


class Pipes:
    """The server's ends of a pair of pipes, and what the client's end reported."""

    def __init__(self) -> None:
        self.heard_lines: list[bytes | LineTooLong] = []
        self.turns: list[int] = []  # how many lines were heard at once
        self.reports: list[str] = []
        self.lines = PipeLines(lambda: self.reports.append("broken"))
        self.input, self._sink = pipe_from_loop()
        self._source, self.output = pipe_to_loop()

    async def open(self) -> None:
        await self.lines.open(self._source, self._sink, self)

    def received(self, lines: list[bytes | LineTooLong]) -> None:
        self.heard_lines += lines
        self.turns.append(len(lines))

    def output_lost(self) -> None:
        self.reports.append("output lost")

    def ended(self) -> None:
        self.reports.append("ended")

    def read(self) -> bytes:
        """What has been written to the server."""
        data = b""
        try:
            while chunk := read_at_once(self.input):
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


async def test_lines_go_both_ways() -> None:
    async with pipes() as server:
        os.write(server.output, b'{"a":1}\n{"b"')
        os.write(server.output, b":2}\r\n\n")
        server.lines.write(b'{"c":3}')
        await until(lambda: len(server.heard_lines) == 2)

        assert server.heard_lines == [b'{"a":1}', b'{"b":2}']
        assert server.read() == b'{"c":3}\n'


async def test_a_last_line_without_an_end_counts_too() -> None:
    async with pipes() as server:
        os.write(server.output, b"one\ntwo")
        os.close(server.output)
        await server.lines.over.wait()

        assert server.heard_lines == [b"one", b"two"]
        assert server.reports == ["ended", "broken"]
        with pytest.raises(ConnectionLost) as lost:
            server.lines.write(b"x")
        assert lost.value.sent is False


async def test_what_a_server_does_not_take_is_not_sent_and_follows_in_order_when_it_does() -> None:
    async with pipes() as server:
        server.fill()
        last = [server.lines.write(b"%d" % number) for number in range(3)]
        assert [line.sent for line in last] == [False] * 3

        received = await server.drain(b"\n2\n")

        assert received.endswith(b"xxx\n0\n1\n2\n")
        assert all(line.sent for line in last)


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


async def test_a_server_that_reads_again_is_busy_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 25_000)
    async with pipes() as server:
        for _ in range(3):
            server.fill()
            server.lines.write(b"y" * 10_000)
            with pytest.raises(RpcError):
                server.lines.write(b"y" * 10_000)
            await server.drain(b"y\n")


async def test_a_server_that_reads_a_little_gets_a_little() -> None:
    async with pipes() as server:
        server.fill()
        waiting = [server.lines.write(b"y" * 10_000) for _ in range(50)]

        server.read()
        await until(lambda: waiting[0].sent)

        assert not waiting[-1].sent


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
        assert not server.lines.withdraw(OutgoingLine(b"of somebody else"))


async def test_a_line_that_meets_a_closed_pipe_was_not_sent() -> None:
    async with pipes() as server:
        os.close(server.input)

        with pytest.raises(ConnectionLost) as lost:
            server.lines.write(b"x")

        assert lost.value.sent is False
        await until(lambda: server.reports == ["output lost", "broken"])
        with pytest.raises(ConnectionLost):
            server.lines.write(b"x")


async def test_lines_that_wait_when_the_pipe_closes_were_not_sent() -> None:
    async with pipes() as server:
        server.fill()
        waits = server.lines.write(b"waits")

        os.close(server.input)
        await until(lambda: "output lost" in server.reports)

        assert waits.sent is False
        with pytest.raises(ConnectionLost):
            server.lines.write(b"x")
        os.write(server.output, b"an answer to something else\n")
        await until(lambda: len(server.heard_lines) == 1)


async def test_closing_ends_both_directions_and_can_be_repeated() -> None:
    async with pipes() as server:
        server.lines.close_output()
        await until(lambda: "output lost" in server.reports)
        assert os.read(server.input, 1) == b""

        server.lines.close()
        server.lines.close()

        assert server.reports == ["output lost", "broken", "ended", "broken"]
        with pytest.raises(BrokenPipeError):
            await until(lambda: not os.write(server.output, b"x"))


async def test_a_server_sees_the_end_when_its_lines_are_closed() -> None:
    async with pipes() as server:
        server.lines.close()
        os.set_blocking(server.input, True)

        assert await asyncio.to_thread(os.read, server.input, 1) == b""


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

        assert server.heard_lines == [b"z" * size]
        assert received == b"y" * size + b"\n"
        assert turns > 50


async def test_lines_that_came_together_are_heard_together() -> None:
    async with pipes() as server:
        os.write(server.output, b"1\n2\n3\n")
        await until(lambda: bool(server.heard_lines))

        assert (server.heard_lines, server.turns) == ([b"1", b"2", b"3"], [3])


async def test_a_line_that_is_too_long_is_heard_as_such() -> None:
    async with pipes() as server:
        server.lines._splitter = LineSplitter(5000)
        os.write(server.output, b'{"id":1,"result":"' + b"x" * 5000 + b'"}\nnext\n')
        await until(lambda: len(server.heard_lines) == 2)

        assert server.heard_lines == [LineTooLong({"id": 1, "result": None}), b"next"]


# lines that are queued


def queue(server: Pipes, *texts: bytes) -> list[OutgoingLine]:
    lines = [OutgoingLine(text + b"\n") for text in texts]
    for line in lines:
        server.lines.queue(line)
    return lines


async def test_queued_lines_go_out_together_with_the_next_flush_and_not_before() -> None:
    async with pipes() as server:
        lines = queue(server, b"1", b"2", b"3")
        assert (server.read(), [line.sent for line in lines]) == (b"", [False] * 3)

        server.lines.flush()

        assert (server.read(), [line.sent for line in lines]) == (b"1\n2\n3\n", [True] * 3)
        server.lines.flush()
        assert server.read() == b""


async def test_a_line_that_is_written_goes_behind_those_that_are_queued() -> None:
    async with pipes() as server:
        queue(server, b"1", b"2")

        server.lines.write(b"3")

        assert server.read() == b"1\n2\n3\n"


@pytest.mark.parametrize("surplus", [-1, 0, 1, 5000, 9_999])
async def test_of_a_batch_that_fits_in_part_it_is_known_which_lines_the_server_may_have_seen(surplus: int) -> None:
    """`surplus` is how far the pipe's room reaches into the line that follows the last whole one."""
    async with pipes() as server:
        room = fcntl.fcntl(server.input, fcntl.F_GETPIPE_SZ)
        whole = room // 10_000 - 1
        first = b"f" * (room - whole * 10_000 - surplus - 1)  # then `whole` lines of 10,000 bytes, and `surplus` bytes
        lines = queue(server, first, *[b"x" * 9_999] * (whole + 5))

        server.lines.flush()

        sent = [line.sent for line in lines]
        seen = 1 + whole + (surplus > 0)
        assert sent == [True] * seen + [False] * (len(lines) - seen)
        last = server.lines.write(b"last")
        received = await server.drain(b"last\n")
        assert received == first + b"\n" + (b"x" * 9_999 + b"\n") * (whole + 5) + b"last\n"
        assert all(line.sent for line in (*lines, last))


async def test_of_a_batch_that_fits_in_part_the_lines_that_wait_can_be_withdrawn_and_no_others() -> None:
    async with pipes() as server:
        lines = queue(server, *(b"%d" % number * 9_999 for number in range(10)))
        server.lines.flush()
        sent = sum(line.sent for line in lines)
        assert 0 < sent < 9

        withdrawn = [server.lines.withdraw(line) for line in lines]

        assert withdrawn == [False] * sent + [True] * (10 - sent)
        server.lines.write(b"last")
        assert (await server.drain(b"last\n")).count(b"\n") == sent + 1
        assert not any(line.sent for line in lines[sent:])


async def test_lines_that_are_queued_behind_waiting_ones_wait_too() -> None:
    async with pipes() as server:
        server.fill()
        lines = queue(server, b"1", b"2")

        server.lines.flush()

        assert not any(line.sent for line in lines)
        assert (await server.drain(b"\n2\n")).endswith(b"x\n1\n2\n")
        assert all(line.sent for line in lines)


async def test_lines_that_are_queued_when_the_pipe_has_room_again_keep_their_place() -> None:
    async with pipes() as server:
        server.fill()
        waiting = server.lines.write(b"waits")
        [queued] = queue(server, b"queued")

        received = server.read()
        await until(lambda: waiting.sent)
        server.lines.flush()
        received += server.read()

        assert received.endswith(b"x\nwaits\nqueued\n")
        assert queued.sent


async def test_lines_that_are_flushed_to_a_server_that_has_just_gone_were_not_sent() -> None:
    async with pipes() as server:
        lines = queue(server, b"1", b"2")
        os.close(server.input)

        server.lines.flush()

        await until(lambda: server.reports == ["output lost", "broken"])
        assert not any(line.sent for line in lines)
        with pytest.raises(ConnectionLost):
            server.lines.queue(OutgoingLine(b"3\n"))


async def test_lines_that_are_queued_when_the_server_closes_its_input_were_not_sent() -> None:
    async with pipes() as server:
        os.close(server.input)
        await until(lambda: "output lost" in server.reports)
        with pytest.raises(ConnectionLost) as lost:
            server.lines.queue(OutgoingLine(b"1\n"))
        assert lost.value.sent is False

        os.write(server.output, b"but it still answers\n")
        await until(lambda: server.heard_lines == [b"but it still answers"])


async def test_a_server_that_does_not_read_is_busy_for_queued_lines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 20_000)
    async with pipes() as server:
        server.fill()
        queue(server, b"y" * 5000)
        server.lines.flush()

        with pytest.raises(RpcError) as busy:
            queue(server, b"y" * 9_999)

        assert busy.value.code == BUSY


async def test_what_waits_for_a_slow_server_is_not_copied_again_for_each_piece_that_it_takes() -> None:
    """64 MiB may wait, and a pipe takes 64 KiB at a time."""
    async with pipes() as server:
        for _ in range(100_000):
            server.lines.queue(OutgoingLine(b"y" * 99 + b"\n"))
        server.lines.flush()
        server.lines.write(b"z" * 20_000_000)
        last = server.lines.write(b"last")
        began = time.process_time()

        received = 0
        while not last.sent:
            received += len(server.read())
            await asyncio.sleep(0)

        assert received + len(server.read()) == 100_000 * 100 + 20_000_001 + 5
        assert time.process_time() - began < COPY_SECONDS
