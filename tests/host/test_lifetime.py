"""When a Host ends: real signals, real parents, and an IDE that stays away."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from uno_devserver.host.lifetime import CTRL_C, IDE_GONE, PARENT_GONE, SIGNALLED, EndReason, Lifetime, LifetimeLimits
from uno_devserver.system import proc

BOUND = 10.0  # seconds; every wait here takes milliseconds


def ended(prepare: Callable[[Lifetime], Awaitable[None] | None], policy: LifetimeLimits | None = None) -> EndReason:
    async def run() -> EndReason:
        lifetime = Lifetime(policy)
        waiting = prepare(lifetime)
        if waiting is not None:
            await waiting
        return await asyncio.wait_for(lifetime.ended(), BOUND)

    return asyncio.run(run())


def short_lived() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
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


def test_ctrl_c_as_a_byte_on_a_pipe_ends_it_and_other_bytes_do_not() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        assert child.stdout.readline() == b"ready\n"
        child.stdin.write(b"noise\n")
        child.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
        output, _ = child.communicate(CTRL_C, BOUND)

    assert SIGNALLED.text.encode() in output
    assert child.returncode == 0


def test_ctrl_c_is_heard_on_a_socket_too() -> None:
    """Which is what Node gives its children for a pipe."""
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        subprocess.Popen([sys.executable, "-c", CHILD], stdin=theirs.fileno(), stdout=subprocess.PIPE) as child,
    ):
        assert child.stdout
        assert child.stdout.readline() == b"ready\n"
        ours.sendall(CTRL_C)

        assert child.wait(BOUND) == 0


def test_signals_that_are_ignored_stay_ignored() -> None:
    """As under nohup, and for background jobs of a script."""
    command = f"trap '' HUP INT; exec '{sys.executable}' -c \"$0\""
    with subprocess.Popen(["sh", "-c", command, CHILD], stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
        child.terminate()

        assert child.wait(BOUND) == 0


def test_without_any_input_it_lives() -> None:
    command = f"exec '{sys.executable}' -c \"$0\" <&-"
    with subprocess.Popen(["sh", "-c", command, CHILD], stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdout.readline() == b"ready\n"
        child.terminate()

        assert child.wait(BOUND) == 0


def test_the_end_of_the_input_means_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.close()
        assert child.stdout.readline() == b"ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
        child.send_signal(signal.SIGTERM)
        assert child.wait(BOUND) == 0


def test_a_process_that_does_not_come_to_an_end_is_ended() -> None:
    program = (
        "import threading\n"
        "from uno_devserver.host.lifetime import force_exit_after\n"
        "force_exit_after(0.05, 4)\n"
        "threading.Event().wait()\n"
    )

    assert subprocess.run([sys.executable, "-c", program], timeout=BOUND).returncode == 4
