"""When a Host ends: real signals, real parents, and an IDE that stays away."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from support.signals import SIGHUP, SIGQUIT
from uno_devserver.host.lifetime import CTRL_C, IDE_GONE, PARENT_GONE, SIGNALLED, EndReason, Lifetime, LifetimeLimits
from uno_devserver.system import proc

BOUND = 10.0  # seconds; every wait here takes milliseconds


def ended(prepare: Callable[[Lifetime], Awaitable[None] | None], limits: LifetimeLimits | None = None) -> EndReason:
    async def run() -> EndReason:
        lifetime = Lifetime(limits)
        waiting = prepare(lifetime)
        if waiting is not None:
            await waiting
        return await asyncio.wait_for(lifetime.ended(), BOUND)

    return asyncio.run(run())


def short_lived() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, SIGQUIT, SIGHUP])
def test_a_signal_ends_it_gracefully(number: signal.Signals) -> None:
    def prepare(lifetime: Lifetime) -> None:
        lifetime.handle_signals()
        os.kill(os.getpid(), number)

    assert ended(prepare) == SIGNALLED


def test_the_end_of_the_parent_is_noticed_at_once_and_while_it_is_not_reaped() -> None:
    parent = short_lived()

    def prepare(lifetime: Lifetime) -> None:
        lifetime.follow_parent(parent.pid)
        assert parent.stdin
        parent.stdin.close()  # it ends, and stays a zombie until we wait for it

    try:
        assert ended(prepare, LifetimeLimits(parent_poll_seconds=3600)) == PARENT_GONE
    finally:
        parent.wait(BOUND)


def test_where_the_system_does_not_tell_the_parent_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "pidfd", lambda pid: None)
    parent = short_lived()

    async def prepare(lifetime: Lifetime) -> None:
        lifetime.follow_parent(parent.pid)
        await asyncio.to_thread(parent.communicate, b"\n", BOUND)

    assert ended(prepare, LifetimeLimits(parent_poll_seconds=0.01)) == PARENT_GONE


def test_a_parent_that_was_gone_before_ends_it_at_once() -> None:
    parent = short_lived()
    parent.communicate(b"\n", BOUND)

    assert ended(lambda lifetime: lifetime.follow_parent(parent.pid)) == PARENT_GONE


def test_a_parent_that_was_a_zombie_before_is_gone_too() -> None:
    parent = short_lived()
    assert parent.stdin
    parent.stdin.close()
    os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked how

    try:
        assert ended(lambda lifetime: lifetime.follow_parent(parent.pid)) == PARENT_GONE
    finally:
        parent.wait(BOUND)


def test_a_parent_that_lives_as_long_as_we_do_ends_nothing() -> None:
    async def prepare(lifetime: Lifetime) -> None:
        for pid in (1, os.getpid()):
            lifetime.follow_parent(pid)
        await asyncio.sleep(0.05)
        lifetime.end(SIGNALLED)

    assert ended(prepare, LifetimeLimits(parent_poll_seconds=0.01)) == SIGNALLED


def test_an_ide_that_stays_away_ends_it() -> None:
    asked: list[float] = []

    async def stayed_away(seconds: float) -> None:
        asked.append(seconds)

    assert ended(lambda lifetime: lifetime.follow_ide(stayed_away), LifetimeLimits(ide_grace_seconds=0.5)) == IDE_GONE
    assert asked == [0.5]


def test_the_first_reason_counts() -> None:
    def prepare(lifetime: Lifetime) -> None:
        lifetime.end(PARENT_GONE)
        lifetime.end(SIGNALLED)

    assert ended(prepare) == PARENT_GONE


async def test_when_it_ends_nobody_is_watched_any_more(capsys: pytest.CaptureFixture[str]) -> None:
    parent = short_lived()

    lifetime = Lifetime()
    lifetime.follow_parent(parent.pid)
    lifetime.end(SIGNALLED)
    await lifetime.ended()
    await asyncio.to_thread(parent.communicate, b"\n", BOUND)
    await asyncio.sleep(0.05)

    assert "not found" not in capsys.readouterr().err


CHILD = """
import asyncio
from uno_devserver.host.lifetime import Lifetime

async def main():
    lifetime = Lifetime()
    lifetime.handle_signals()
    print("ready", flush=True)
    print((await lifetime.ended()).text, flush=True)

asyncio.run(main())
"""
UNTIL_IT_ENDS = 0.3  # seconds in which a Host that should live must not end


@contextmanager
def child(before: str = "", after: str = "", stdin: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends as a Host does, started by a shell with these words before and after the command."""
    command = ["sh", "-c", f"{before} exec '{sys.executable}' -c \"$0\" {after}", CHILD]
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process
        assert process.wait(BOUND) == 0


def assert_lives(process: subprocess.Popen[bytes]) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(UNTIL_IT_ENDS)


def test_ctrl_c_as_a_byte_on_a_pipe_ends_it_and_other_bytes_do_not() -> None:
    with child(stdin=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(b"noise\n")
        process.stdin.flush()
        assert_lives(process)
        output, _ = process.communicate(CTRL_C, BOUND)

    assert SIGNALLED.text.encode() in output


def test_ctrl_c_is_heard_on_a_socket_too() -> None:
    """Which is what Node gives its children for a pipe."""
    ours, theirs = socket.socketpair()
    with ours, theirs, child(stdin=theirs.fileno()):
        ours.sendall(CTRL_C)


def test_signals_that_are_ignored_stay_ignored() -> None:
    """As under nohup, and for background jobs of a script."""
    with child(before="trap '' HUP INT;") as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        assert_lives(process)
        process.terminate()


def test_without_any_input_it_lives() -> None:
    with child(after="<&-") as process:
        process.terminate()


def test_the_end_of_the_input_means_nothing() -> None:
    with child(stdin=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.close()
        assert_lives(process)
        process.terminate()


def test_a_process_that_does_not_come_to_an_end_is_ended() -> None:
    program = (
        "import threading\n"
        "from uno_devserver.host.lifetime import force_exit_after\n"
        "force_exit_after(0.05, 4)\n"
        "threading.Event().wait()\n"
    )

    assert subprocess.run([sys.executable, "-c", program], timeout=BOUND).returncode == 4
