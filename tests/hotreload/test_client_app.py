"""The client process: seen to be ready, started again, left closed, and never waited for without a bound."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.hosts import is_running
from support.waiting import until, wait_for
from uno_devserver.hotreload.client_app import ClientApp, ClientLimits
from uno_devserver.workspace.config import ClientCommand

HURRY = ClientLimits(ready_seconds=10.0, alive_seconds=0.05, look_seconds=0.01)
# Notes each start, says that it is ready, and ends when it is told to.
OBEDIENT = (
    "import os, signal, sys\n"
    "open('starts', 'a').write(f'{os.getpid()}\\n')\n"
    "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))\n"
    "print('Window', 'is ready', flush=True)\n"
    "while True: signal.pause()\n"
)


@asynccontextmanager
async def client(
    folder: Path,
    code: str,
    pattern: str | None = "is ready$",
    limits: ClientLimits = HURRY,
    status_changed: Callable[[], None] = lambda: None,
) -> AsyncIterator[ClientApp]:
    command = ClientCommand(sys.executable, ("-ISc", code), ready_pattern=pattern)
    process = ClientApp(command, str(folder), os.environ, str(folder / "state"), status_changed, limits)
    try:
        yield process
    finally:
        await process.stop()


def starts(folder: Path) -> list[int]:
    path = folder / "starts"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


async def test_it_is_ready_when_a_line_of_its_output_matches(tmp_path: Path) -> None:
    # given a client that says it in two pieces, after other lines, once it is let
    code = (
        "import os, signal, time\nos.write(1, b'starting, is ready soon\\nWindow is re')\n"
        "while not os.path.exists('go'): time.sleep(0.01)\nos.write(2, b'ady\\r\\nmore\\n')\nsignal.pause()\n"
    )
    async with client(tmp_path, code, "^Window is ready$") as process:
        # when it is started
        starting = asyncio.ensure_future(process.start())
        await until(lambda: process.running and b"re" in Path(process.log_file).read_bytes())
        waited = not starting.done()
        (tmp_path / "go").touch()

        # then it is ready as soon as the line is there
        assert waited
        assert await starting
        assert process.status()["ready"] is True
        assert process.problem == ""


async def test_one_that_floods_its_log_is_ready_all_the_same_and_does_not_fill_the_disk(tmp_path: Path) -> None:
    code = (
        "import os, signal\nfor _ in range(300): os.write(1, b'y' * 99_999 + b'\\n')\n"
        "os.write(1, b'Window is ready\\n')\nsignal.pause()\n"
    )
    async with client(tmp_path, code, limits=HURRY.replace(ready_seconds=20)) as process:
        assert await process.start()
        assert os.path.getsize(process.log_file) < 20_000_000


@pytest.mark.parametrize("pattern", [None, "("], ids=["without a pattern", "with a pattern that is none"])
async def test_it_is_ready_when_it_lives(tmp_path: Path, pattern: str | None) -> None:
    async with client(tmp_path, OBEDIENT, pattern) as process:
        assert await process.start()


@pytest.mark.parametrize(
    ("code", "pattern", "limits", "problem"),
    [
        ("print('no display'); raise SystemExit(3)", "never", {}, "ended with exit code 3; it printed:\nno display"),
        ("print('no display'); raise SystemExit(3)", None, {"alive_seconds": 10.0}, "exit code 3; it printed:\nno d"),
        ("pass", "never", {}, "ended with exit code 0; it printed nothing."),
    ],
)
async def test_one_that_ends_at_once_has_a_problem_with_what_it_printed(
    tmp_path: Path, code: str, pattern: str | None, limits: dict[str, float], problem: str
) -> None:
    async with client(tmp_path, code, pattern, HURRY.replace(**limits)) as process:
        assert not await process.start()

        assert problem in process.problem
        ended = {"running": False, "ready": False, "processId": None}
        assert process.status() == {**ended, "logFile": process.log_file, "problem": process.problem}


async def test_one_that_never_gets_ready_is_given_up_and_left_running(tmp_path: Path) -> None:
    async with client(tmp_path, OBEDIENT, "^something else$", HURRY.replace(ready_seconds=0.1)) as process:
        assert not await process.start()

        assert process.running
        assert "client.readyPattern within 0.1 s" in process.problem


async def test_a_program_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    process = ClientApp(ClientCommand("no-such-editor"), str(tmp_path), {"PATH": "/bin"}, str(tmp_path), lambda: None)

    assert not await process.start()

    assert "no-such-editor is not a program in the folders of PATH" in process.problem


async def test_a_second_start_leaves_the_one_that_runs(tmp_path: Path) -> None:
    async with client(tmp_path, OBEDIENT) as process:
        assert [await process.start(), await process.start()] == [True, True]

        assert len(starts(tmp_path)) == 1


async def test_a_restart_ends_the_old_one_before_the_new_one_starts(tmp_path: Path) -> None:
    async with client(tmp_path, OBEDIENT) as process:
        await process.start()

        assert await process.restart()

        first, second = starts(tmp_path)
        assert (is_running(first), is_running(second)) == (False, True)


async def test_what_a_person_has_closed_stays_closed_until_it_is_asked_for(tmp_path: Path) -> None:
    async with client(tmp_path, OBEDIENT) as process:
        await process.start()
        os.kill(starts(tmp_path)[0], signal.SIGUSR1)
        await until(lambda: process.closed)

        assert not await process.restart()
        assert len(starts(tmp_path)) == 1
        assert await process.start()
        assert len(starts(tmp_path)) == 2


async def test_one_that_crashed_is_started_again(tmp_path: Path) -> None:
    async with client(tmp_path, OBEDIENT) as process:
        await process.start()
        os.kill(starts(tmp_path)[0], signal.SIGKILL)
        await until(lambda: not process.running)

        assert await process.restart()


async def test_a_restart_does_not_wait_until_the_start_before_it_is_given_up(tmp_path: Path) -> None:
    # given a client that takes an hour until its extension is mended
    code = OBEDIENT.replace("print('Window'", "if os.path.exists('mended'): print('Window'")
    async with client(tmp_path, code, limits=HURRY.replace(ready_seconds=3600.0)) as process:
        starting = asyncio.ensure_future(process.start())
        await until(lambda: len(starts(tmp_path)) == 1)
        (tmp_path / "mended").touch()

        # when it is started again
        begun = time.monotonic()
        assert await process.restart()

        # then that happens now
        assert time.monotonic() - begun < 30
        await starting
        assert len(starts(tmp_path)) == 2


async def test_it_runs_where_the_home_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    async with client(tmp_path, OBEDIENT) as process:
        assert await process.start()


async def test_two_proxies_with_the_same_client_hear_each_its_own(tmp_path: Path) -> None:
    # given a second client of the workspace, whose output has taken the usual name
    mute, patient = OBEDIENT.replace("ready", "mute"), HURRY.replace(ready_seconds=3600.0)
    async with client(tmp_path, OBEDIENT) as first, client(tmp_path, mute, limits=patient) as second:
        await first.start()
        starting = asyncio.ensure_future(second.start())
        await until(lambda: second.running and Path(second.log_file).read_bytes() == b"Window is mute\n")

        # when the first one is started again
        # then what it prints is heard, and by nobody else
        assert await first.restart()
        assert not starting.done()
        await second.stop()
        assert not await starting


async def test_stopping_leaves_no_file_open(tmp_path: Path) -> None:
    async with client(tmp_path, OBEDIENT) as process:
        await process.start()
        await process.stop()

        opened = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
        assert process.log_file not in opened
        assert await process.start()


async def test_one_that_died_by_itself_is_told_without_anybody_asking(tmp_path: Path) -> None:
    told: list[bool] = []
    process: ClientApp
    async with client(tmp_path, OBEDIENT, status_changed=lambda: told.append(process.status()["running"])) as process:
        await process.start()

        os.kill(starts(tmp_path)[0], signal.SIGKILL)

        await until(lambda: told == [True, False])
        assert process.problem.endswith("ended by itself, with exit code -9.")
        assert process.status()["ready"] is False


async def test_what_is_told_of_the_process_is_the_client_itself(tmp_path: Path) -> None:
    code = "import os, signal, sys\nopen('starts', 'a').write(str(os.getpid()))\nsys.exit(os.read(0, 9) != b'' or 7)\n"
    async with client(tmp_path, OBEDIENT) as process:
        await process.start()
        assert [process.status()["processId"]] == starts(tmp_path)
    async with client(tmp_path, code, "never") as process:
        await process.start()
        assert "ended with exit code 7" in process.problem, "its input is empty"


@pytest.mark.parametrize("habit", ["pass", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_it_ends_with_a_proxy_that_is_killed(tmp_path: Path, habit: str) -> None:
    # given a client with a child of its own, both perhaps stubborn, and a process that has started it
    code = (
        f"import os, signal\n{habit}\nos.fork()\nopen('starts', 'a').write(f'{{os.getpid()}}\\n')\n"
        "while True: signal.pause()\n"
    )
    owner = (
        "import asyncio, os, sys\nfrom uno_devserver.hotreload.client_app import ClientApp\n"
        "from uno_devserver.workspace.config import ClientCommand\n"
        f"command = ClientCommand(sys.executable, ('-ISc', {code!r}), ready_pattern=None)\n"
        "asyncio.run(ClientApp(command, '.', os.environ, 'state', lambda: None).start())\n"
        "print('started', flush=True)\ninput()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", owner], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        wait_for(lambda: len(starts(tmp_path)) == 2)

        # when that is killed
        process.kill()

    # then nothing is left
    wait_for(lambda: not any(is_running(pid) for pid in starts(tmp_path)))
