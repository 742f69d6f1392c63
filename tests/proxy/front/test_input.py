"""The one reader of standard input: pipes, sockets, files and devices, without an event loop and with one."""

from __future__ import annotations

import _thread
import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.terminals import open_terminal
from support.waiting import until
from uno_devserver.protocol.lines import LineTooLong
from uno_devserver.proxy.front.input import (
    MAX_LINE_BYTES,
    ClientInput,
    PolledInput,
    ThreadedInput,
    client_input,
    tells_closed,
)

if sys.platform != "win32":
    pass

PATIENCE_MS = 60_000
LINES = [b'{"id":1}', b'{"id":2}', b'{"id":3}']
DATA = b'{"id":1}\n{"id":2}\r\n\n{"id":3}'


class Client:
    """The other end of our input."""

    def __init__(self, handle: int, write: Callable[[bytes], object], close: Callable[[], None]) -> None:
        self.handle = handle  # ours to read
        self.write = write
        self.close = close


@pytest.fixture(params=["pipe"] if sys.platform == "win32" else ["pipe", "socket", "thread"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A pipe; a socket, as Node gives it to its children; a pipe as on Windows, where none can be waited for.

    On Windows itself a socket is no file that can be read.
    """
    if request.param == "socket":
        ours, theirs = socket.socketpair()
        with ours, theirs:
            yield Client(ours.fileno(), theirs.sendall, theirs.close)
        return
    if request.param == "thread":
        monkeypatch.setattr("uno_devserver.proxy.front.input._can_be_watched", lambda _: False)
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", 0) as file:
        yield Client(reading, file.write, file.close)
    if request.param == "pipe":  # a thread may be about to read: the number must not become that of another pipe
        os.close(reading)


def read_to_end(source: ClientInput) -> list[bytes | LineTooLong]:
    """All lines, as the proxy reads them without its engine."""
    lines: list[bytes | LineTooLong] = []
    while not source.ended:
        assert source.wait(PATIENCE_MS)
        lines += source.read()
    return lines


class Reader:
    """Reads in an event loop, as the proxy does with its engine."""

    def __init__(self, source: ClientInput) -> None:
        self.lines: list[bytes | LineTooLong] = []
        self.source = source
        self.attach()

    def attach(self) -> None:
        self.source.attach(asyncio.get_running_loop(), self._readable)

    def detach(self) -> None:
        self.source.detach(asyncio.get_running_loop())

    def _readable(self) -> None:
        self.lines += self.source.read()
        if self.source.ended:
            self.detach()


# without an event loop


def test_lines_are_read_to_the_end(client: Client) -> None:
    source = client_input(client.handle)
    client.write(DATA)
    client.close()

    assert read_to_end(source) == LINES
    assert source.read() == []


def test_lines_are_there_as_soon_as_they_are_written(client: Client) -> None:
    source = client_input(client.handle)
    for line in LINES:
        client.write(line + b"\n")

        lines: list[bytes | LineTooLong] = []
        while not lines:  # a wait may also end for a line that was read before
            assert source.wait(PATIENCE_MS)
            lines = source.read()
        assert lines == [line]
    assert not source.ended


def test_nothing_is_read_where_nothing_came_and_nobody_waits_for_it(client: Client) -> None:
    source = client_input(client.handle)

    assert not source.wait(0)
    assert source.read() == []
    assert not source.ended


def test_a_wait_ends_when_it_is_woken_from_another_thread(client: Client) -> None:
    source = client_input(client.handle)
    threading.Timer(0.01, source.wake).start()

    assert source.wait(PATIENCE_MS)
    assert source.read() == []
    assert not source.wait(0), "once"


def test_what_wakes_before_the_wait_counts_once_however_often(client: Client) -> None:
    source = client_input(client.handle)
    for _ in range(100_000):  # more than a pipe holds
        source.wake()

    assert source.wait(PATIENCE_MS)
    while source.wait(0):
        pass
    client.write(b"line\n")
    lines: list[bytes | LineTooLong] = []
    while not lines:
        assert source.wait(PATIENCE_MS)
        lines = source.read()
    assert lines == [b"line"]


def test_a_long_message_passes_and_a_longer_one_is_reported(client: Client) -> None:
    source = client_input(client.handle, limit=1_000_000)

    def write() -> None:
        client.write(b"x" * 1_000_000 + b"\n" + b'{"id":7,"method":"m","params":"' + b"y" * 1_000_000 + b'"}\nnext\n')
        client.close()

    writing = threading.Thread(target=write)
    writing.start()
    lines = read_to_end(source)
    writing.join()

    assert lines == [b"x" * 1_000_000, LineTooLong({"id": 7, "method": "m", "params": None}), b"next"]


def test_a_descriptor_that_somebody_made_non_blocking_is_read_too() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    source = client_input(reading)
    os.write(writing, b"one\n")

    assert source.wait(PATIENCE_MS)
    assert source.read() == [b"one"]
    assert source.read() == [], "another one of the same descriptor may have been faster"
    os.close(writing)
    assert read_to_end(source) == []
    os.close(reading)


def test_a_socket_whose_other_end_was_closed_with_something_unread_is_at_its_end() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        source = client_input(ours.fileno())
        ours.sendall(b"an answer that is never read")
        theirs.sendall(b"last\n")
        theirs.close()

        assert read_to_end(source)[:1] in ([b"last"], [])


# what cannot be waited for


def test_pipes_and_sockets_are_watched_and_everything_else_is_read_by_a_thread(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    reading, writing = os.pipe()
    ours, theirs = socket.socketpair()
    file, nothing = os.open(tmp_path / "file", os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)

    kinds = [type(client_input(handle)) for handle in (reading, ours.fileno(), file, nothing)]

    assert kinds == [PolledInput, PolledInput, ThreadedInput, ThreadedInput]
    for handle in (reading, writing, file, nothing):
        os.close(handle)
    ours.close()
    theirs.close()


@pytest.fixture
def requests(tmp_path: Path) -> tuple[Path, list[bytes]]:
    """A file with more than is read ahead, and its lines."""
    lines = [b"%d " % number + b"x" * 997 for number in range(10_000)]
    (tmp_path / "requests").write_bytes(b"\n".join(lines))
    return tmp_path / "requests", lines


def test_a_file_and_a_device_are_read_to_their_end(requests: tuple[Path, list[bytes]]) -> None:
    """`uno-devserver mcp start < requests.jsonl`, or `< /dev/null`."""
    for path, lines in (requests, (os.devnull, [])):
        with open(path, "rb") as file:
            assert read_to_end(client_input(file.fileno())) == lines


def test_a_terminal_is_read_and_is_at_its_end_when_it_is_gone() -> None:
    controller, terminal = open_terminal()
    source = client_input(terminal)
    assert isinstance(source, ThreadedInput)
    os.write(controller, b'{"id":1}\n')
    assert source.wait(PATIENCE_MS)
    assert source.read() == [b'{"id":1}']

    os.close(controller)

    assert read_to_end(source) == []
    os.close(terminal)


# signals


def test_a_signal_ends_a_wait_also_when_it_comes_just_before() -> None:
    """Python runs its handlers between two instructions; one that came before `poll` would wait for input."""
    reading, writing = os.pipe()
    source = client_input(reading)
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        source.heed_signals()
        os.kill(os.getpid(), signal.SIGUSR1)

        assert source.wait(PATIENCE_MS)
        assert seen == [signal.SIGUSR1]
        assert source.read() == []
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGUSR1, before)
        os.close(reading)
        os.close(writing)


# in an event loop


async def test_a_loop_reads_what_came_before_it_and_what_comes_later(client: Client) -> None:
    source = client_input(client.handle)
    client.write(DATA[:12])
    if isinstance(source, ThreadedInput):
        assert source.wait(PATIENCE_MS)  # the thread has read it

    reader = Reader(source)
    await until(lambda: reader.lines == LINES[:1])
    client.write(DATA[12:])
    client.close()
    await until(lambda: source.ended)
    assert reader.lines == LINES


async def test_nothing_is_read_between_detaching_and_attaching(client: Client) -> None:
    """While a client leaves too much unread."""
    source = client_input(client.handle)

    reader = Reader(source)
    client.write(b"1\n")
    await until(lambda: reader.lines == [b"1"])
    reader.detach()
    client.write(b"2\n")
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert reader.lines == [b"1"]
    reader.attach()
    await until(lambda: reader.lines == [b"1", b"2"])


async def test_waking_an_input_that_a_loop_reads_does_no_harm(client: Client) -> None:
    source = client_input(client.handle)

    reader = Reader(source)
    for _ in range(3):
        source.wake()
        await asyncio.sleep(0.001)
    client.write(b"1\n")
    await until(lambda: reader.lines == [b"1"])


def test_when_a_loop_has_ended_the_thread_that_waits_reads_on(client: Client) -> None:
    """After the engine failed."""
    source = client_input(client.handle)
    lines: list[bytes | LineTooLong] = []

    async def read() -> None:
        reader = Reader(source)
        client.write(b"1\n2")
        await until(lambda: reader.lines == [b"1"])
        reader.detach()
        lines.extend(reader.lines)

    asyncio.run(read())
    client.write(b"2\n3\n")
    client.close()

    assert lines + read_to_end(source) == [b"1", b"22", b"3"]


def test_what_comes_while_a_loop_ends_that_nobody_detached_is_not_lost() -> None:
    """The loop may break; the thread notices that it cannot be called any more."""
    reading, writing = os.pipe()
    source = ThreadedInput(reading, MAX_LINE_BYTES)

    async def begin() -> None:
        Reader(source)

    asyncio.run(begin())
    os.write(writing, b"1\n")
    os.close(writing)

    assert read_to_end(source) == [b"1"]
    os.close(reading)


async def test_a_file_is_read_by_a_loop(requests: tuple[Path, list[bytes]]) -> None:
    path, lines = requests
    with open(path, "rb") as file:
        reader = Reader(client_input(file.fileno()))
        await until(lambda: reader.source.ended)

    assert reader.lines == lines


async def test_many_lines_from_many_writes_come_in_order(client: Client) -> None:
    source = client_input(client.handle)
    count = 2000

    def write() -> None:
        for number in range(count):
            client.write(b"%d\n" % number)
            if number % 100 == 0:
                time.sleep(0.001)
        client.close()

    reader = Reader(source)
    writing = threading.Thread(target=write)
    writing.start()
    await until(lambda: source.ended)
    writing.join()
    assert reader.lines == [b"%d" % number for number in range(count)]


def test_an_interrupt_is_handled_while_a_thread_reads() -> None:
    """Waiting for a lock is not ended by Ctrl+C on Windows, nor by this call elsewhere."""
    reading, writing = os.pipe()
    source = ThreadedInput(reading, MAX_LINE_BYTES)
    interrupt = threading.Timer(0.2, _thread.interrupt_main)
    interrupt.start()
    began = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        source.wait(PATIENCE_MS)

    assert time.monotonic() - began < PATIENCE_MS / 2000
    os.close(writing)


def test_poll_is_asked_for_closed_ends_only_where_it_tells_of_them() -> None:
    assert [tells_closed(platform) for platform in ("linux", "darwin", "win32")] == [True, False, False]
