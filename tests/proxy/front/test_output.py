"""The way to the client: whole lines in order, and nobody waits for a client that does not read."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from support.waiting import wait_for
from uno_devserver.protocol.jsonrpc import notification_message, request_message, result_message
from uno_devserver.proxy.front.output import CROWDED_BYTES, ClientOutput

if sys.platform != "win32":
    import fcntl

PATIENCE = 60.0
LARGE = b"x" * 1_000_000  # more than any pipe takes at once


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for handle in (reading, writing):
        try:
            os.close(handle)
        except OSError:
            pass  # the test has closed it


@pytest.fixture
def output(pipe: tuple[int, int]) -> ClientOutput:
    return ClientOutput(pipe[1])


def read_lines(handle: int, count: int) -> list[bytes]:
    with os.fdopen(os.dup(handle), "rb") as file:
        return [file.readline().removesuffix(b"\n") for _ in range(count)]


def read_all(handle: int) -> list[bytes]:
    with os.fdopen(os.dup(handle), "rb") as file:
        return file.read().splitlines()


def read_bytes(handle: int, count: int) -> None:
    while count:
        count -= len(os.read(handle, min(count, 65_536)))


@pytest.mark.parametrize("message", [b'{ "id": 1}', b'{\n"id": 1}\n'], ids=["plain", "with line breaks"])
def test_a_message_is_there_as_one_line_when_writing_it_returns(
    pipe: tuple[int, int], output: ClientOutput, message: bytes
) -> None:
    os.set_blocking(pipe[0], False)

    output.write(message)

    assert os.read(pipe[0], 100) == b'{ "id": 1}\n'


@pytest.mark.parametrize("way", ["pipe", "socket", "non-blocking"])
def test_lines_of_all_sizes_from_many_threads_come_whole_and_in_the_order_of_each(way: str) -> None:
    if way == "socket":  # what Node gives to its children
        ends = socket.socketpair()
        reading, writing = ends[0].detach(), ends[1].detach()
    else:
        reading, writing = os.pipe()
        os.set_blocking(writing, way != "non-blocking")
    output = ClientOutput(writing)
    sizes = (1, 5000, 4095, 200_000, 10)

    def write(thread: int) -> None:
        for number in range(50):
            output.write(b"%d %d " % (thread, number) + b"x" * sizes[number % len(sizes)])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    lines = [line.split(b" ") for line in read_lines(reading, 200)]
    for thread in threads:
        thread.join()

    for writer in range(4):
        own = [(int(number), len(rest)) for name, number, rest in lines if int(name) == writer]
        assert own == [(number, sizes[number % len(sizes)]) for number in range(50)]
    os.close(reading)
    os.close(writing)


def test_nobody_waits_for_a_client_that_does_not_read(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = ClientOutput(writing, full_bytes=2_500_000)
    full = []
    for line in (LARGE, LARGE, LARGE, b"last"):
        output.write(line)
        full.append(output.full)

    assert not output.wait(0)
    assert read_lines(reading, 4) == [LARGE, LARGE, LARGE, b"last"]
    assert output.wait(PATIENCE)
    assert [*full, output.full] == [False, False, True, True, False]


def test_after_a_jam_lines_are_written_at_once_again(pipe: tuple[int, int], output: ClientOutput) -> None:
    reading, _ = pipe
    output.write(LARGE)
    read_lines(reading, 1)
    assert output.wait(PATIENCE)
    os.set_blocking(reading, False)

    output.write(b"small")

    assert os.read(reading, 100) == b"small\n"


def test_a_client_that_has_closed_its_end_is_gone(pipe: tuple[int, int], output: ClientOutput) -> None:
    reading, _ = pipe
    os.close(reading)

    output.write(b"anybody?")

    assert output.wait(PATIENCE)
    assert output.gone
    output.write(b"still?")  # no matter
    assert output.wait(0)


def test_a_client_that_goes_while_lines_wait_for_it_is_gone(pipe: tuple[int, int], output: ClientOutput) -> None:
    reading, _ = pipe
    output.write(LARGE)

    os.close(reading)

    assert output.wait(PATIENCE)
    wait_for(lambda: output.gone)
    assert not output.full


def test_a_client_that_leaves_everything_unread_is_taken_for_gone(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    output = ClientOutput(pipe[1], full_bytes=1_000_000, give_up_bytes=2_500_000)
    gone = []

    for _ in range(3):
        output.write(LARGE)
        gone.append(output.gone)

    assert gone == [False, False, True]
    assert "unread" in capsys.readouterr().err


def test_a_flood_of_log_messages_is_dropped_while_a_client_does_not_read_and_nothing_else_is(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    output = ClientOutput(pipe[1], give_up_bytes=20_000_000)
    logged = notification_message("notifications/message", {"level": "info", "data": "x" * 1_000_000})
    others = [
        notification_message("notifications/progress", {"progressToken": 1, "progress": 1}),
        result_message(1, {"content": []}),
        request_message(2, "ping", {}),
    ]

    for _ in range(100):
        output.write(logged)
    for line in others:
        output.write(line)

    assert not output.gone
    kept = CROWDED_BYTES // len(logged) + 1
    lines = read_lines(pipe[0], kept + len(others))
    assert lines[-len(others) :] == others
    assert lines[:kept] == [logged] * kept
    assert output.wait(PATIENCE)
    wait_for(lambda: f"{100 - kept} log messages" in capsys.readouterr().err)
    output.write(logged[:100])
    assert read_lines(pipe[0], 1) == [logged[:100]]


def test_what_is_being_written_when_a_client_is_given_up_does_not_hold_up_the_end(pipe: tuple[int, int]) -> None:
    output = ClientOutput(pipe[1], give_up_bytes=1_500_000)
    output.write(LARGE)
    read_bytes(pipe[0], 200_000)  # more than a pipe holds: the thread is writing

    output.write(LARGE)

    assert output.gone
    read_bytes(pipe[0], len(LARGE) + 1 - 200_000)
    assert output.wait(PATIENCE)


def test_the_descriptor_stays_blocking(pipe: tuple[int, int], output: ClientOutput) -> None:
    reading, writing = pipe

    output.write(LARGE)

    assert not fcntl.fcntl(writing, fcntl.F_GETFL) & os.O_NONBLOCK
    read_lines(reading, 1)


def test_queued_lines_are_written_together_by_the_next_flush_and_not_before(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(reading, False)
    output = ClientOutput(writing)

    output.queue(b"1")
    output.queue(b'{\n"two": 2}\n')
    with pytest.raises(BlockingIOError):
        os.read(reading, 100)
    output.flush()

    assert os.read(reading, 100) == b'1\n{ "two": 2}\n'
    output.flush()
    with pytest.raises(BlockingIOError):
        os.read(reading, 100)


def _write_in_a_thread(output: ClientOutput) -> None:
    other = threading.Thread(target=output.write, args=(b"2",))
    other.start()
    other.join(PATIENCE)


@pytest.mark.parametrize(
    ("act", "written"),
    [
        (lambda output: output.write(b"2"), b"1\n2\n"),
        (_write_in_a_thread, b"1\n2\n"),
        (lambda output: output.wait(PATIENCE), b"1\n"),
    ],
    ids=["write", "write in another thread", "wait"],
)
def test_queued_lines_are_written_before_anything_else(
    pipe: tuple[int, int], output: ClientOutput, act: Callable[[ClientOutput], None], written: bytes
) -> None:
    output.queue(b"1")

    act(output)

    assert os.read(pipe[0], 100) == written


def test_lines_that_are_queued_behind_a_jam_come_after_it(pipe: tuple[int, int], output: ClientOutput) -> None:
    reading, _ = pipe
    output.write(LARGE)

    output.queue(b"1")
    output.queue(b"2")
    output.flush()

    assert read_lines(reading, 3) == [LARGE, b"1", b"2"]
    assert output.wait(PATIENCE)


def test_no_line_is_lost_between_threads_that_queue_and_threads_that_flush(
    pipe: tuple[int, int], output: ClientOutput
) -> None:
    reading, writing = pipe
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    over = threading.Event()

    def queue(thread: int) -> None:
        for number in range(5000):
            output.queue(b"%d %d" % (thread, number))
        output.flush()

    def flush() -> None:
        while not over.is_set():
            output.flush()

    threads = [threading.Thread(target=queue, args=(number,)) for number in range(3)]
    threads.append(threading.Thread(target=flush))
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.extend(read_all(reading)))
    try:
        for thread in (*threads, reader):
            thread.start()
        for thread in threads[:3]:
            thread.join()
        over.set()
        threads[3].join()
        assert output.wait(PATIENCE)
    finally:
        sys.setswitchinterval(before)
        os.close(writing)
        reader.join()

    for writer in range(3):
        own = [int(line.split(b" ")[1]) for line in found if line.startswith(b"%d " % writer)]
        assert own == list(range(5000))
