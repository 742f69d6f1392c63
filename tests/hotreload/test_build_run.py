"""Builds that run: what they print is kept and logged, within bounds, and nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.hosts import is_running
from support.waiting import until
from uno_devserver.hotreload import build_run
from uno_devserver.hotreload.build_command import BuildCommand, Restore, build_of
from uno_devserver.hotreload.build_run import BuildOutput, log_path, run_build
from uno_devserver.hotreload.watched_package import Role, WatchedPackage
from uno_devserver.system.log import DEBUG, log

from .projects import Project, program, real_npm

NEVER = 60.0


def python(code: str, folder: Path, **more: Any) -> BuildCommand:
    return BuildCommand("the build", (sys.executable, "-ISc", code), str(folder), **more)


async def run(build: BuildCommand, folder: Path, seconds: float = NEVER) -> str | None:
    return await run_build(build, os.environ, str(folder / "logs" / "build.log"), seconds)


async def test_a_build_by_npm_tells_what_it_printed_on_both_streams_if_it_fails(tmp_path: Path) -> None:
    project = Project(tmp_path / "server", real_npm(tmp_path / "bin"))
    build = build_of(WatchedPackage(Role.SERVER, str(project.root)), project.environ, "linux")
    assert build
    path = log_path(str(tmp_path), str(project.root))

    assert await run_build(build, project.environ, path, NEVER) is None
    assert (project.root / "dist" / "main.js").read_text() == "one"

    project.save("broken")
    error = await run_build(build, project.environ, path, NEVER)

    assert error
    assert "src/main.js: there is an error\nand one line on stderr" in error
    assert error.endswith("npm run build ended with exit code 2.")
    assert "there is an error" in Path(path).read_text()


@pytest.mark.parametrize("manager", ["pnpm", "yarn", "bun"])
async def test_other_managers_are_called_with_run_and_the_script(tmp_path: Path, manager: str) -> None:
    lockfile = {"pnpm": "pnpm-lock.yaml", "yarn": "yarn.lock", "bun": "bun.lock"}[manager]
    (tmp_path / lockfile).touch()
    (tmp_path / "package.json").write_text('{"scripts": {"build": "tsc"}}')
    program(tmp_path / manager, '#!/bin/sh\necho "$0 $*" > called\n')
    build = build_of(WatchedPackage(Role.SERVER, str(tmp_path)), {"PATH": str(tmp_path)}, "linux")
    assert build

    assert await run(build, tmp_path) is None

    assert (tmp_path / "called").read_text() == f"{tmp_path / manager} run build\n"


COLOURED = r"print('\x1b[91merror\x1b[0m \x1b]8;;http://x\x07TS1\x1b]8;;\x07: \x1b[7m1\x1b[0m'); raise SystemExit(1)"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (
            "print('tsc: not found'); raise SystemExit(127)",
            "tsc: not found\nthe build ended with exit code 127.\nInstall it.",
        ),
        (COLOURED, "error TS1: 1\nthe build ended with exit code 1.\nInstall it."),
    ],
    ids=["a hint comes last", "colours are not for agents"],
)
async def test_a_failed_build_is_told(tmp_path: Path, code: str, error: str) -> None:
    assert await run(python(code, tmp_path, hint="Install it."), tmp_path) == error


def with_a_child(folder: Path) -> str:
    """A program that leaves a child, says something, and never ends."""
    return (
        "import os, signal\nif not (pid := os.fork()): signal.pause()\nos.write(1, b'half way')\n"
        f"open({str(folder / 'part')!r}, 'w').write(f'{{os.getpid()}} {{pid}}')\n"
        f"os.rename({str(folder / 'part')!r}, {str(folder / 'pids')!r})\nsignal.pause()\n"
    )


def left_of_it(folder: Path) -> list[int]:
    return [pid for pid in map(int, (folder / "pids").read_text().split()) if is_running(pid)]


async def test_a_build_that_hangs_is_ended_with_all_that_it_started_and_what_it_printed_is_told(tmp_path: Path) -> None:
    error = await run(python(with_a_child(tmp_path), tmp_path), tmp_path, seconds=2)

    assert error == "half way\nthe build gave no answer within 2 s and was stopped."
    await until(lambda: not left_of_it(tmp_path))


async def test_cancelling_a_build_ends_all_of_it(tmp_path: Path) -> None:
    running = asyncio.ensure_future(run(python(with_a_child(tmp_path), tmp_path), tmp_path))
    await until((tmp_path / "pids").exists)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await until(lambda: not left_of_it(tmp_path))  # killed, but a busy machine takes a moment to end the child


async def test_a_build_ends_with_all_that_it_started_when_the_process_that_runs_it_is_killed(tmp_path: Path) -> None:
    builder = (
        "import asyncio, os, sys\n"
        "from uno_devserver.hotreload.build_run import run_build\n"
        "from uno_devserver.hotreload.build_command import BuildCommand\n"
        f"line = (sys.executable, '-ISc', {with_a_child(tmp_path)!r})\n"
        f"build = BuildCommand('the build', line, {str(tmp_path)!r})\n"
        f"asyncio.run(run_build(build, os.environ, {str(tmp_path / 'build.log')!r}, 60))\n"
    )
    with subprocess.Popen([sys.executable, "-c", builder]) as process:
        await until((tmp_path / "pids").exists)
        process.kill()

    await until(lambda: not left_of_it(tmp_path))


async def test_of_a_flood_the_beginning_and_the_end_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given small bounds
    monkeypatch.setattr(build_run, "KEPT_BYTES", 2000)
    monkeypatch.setattr(build_run, "LOGGED_BYTES", 5000)
    code = "print('first'); print('x' * 100_000); print('last'); raise SystemExit(1)"

    # when a build prints more
    error = await run(python(code, tmp_path), tmp_path)

    # then what is missing is counted, and it is said where there is more of it
    path = tmp_path / "logs" / "build.log"
    assert error
    assert error.startswith("first\nxxx")
    assert f"[… 98,012 bytes left out; see {path} …]" in error
    assert "xxx\nlast\nthe build ended with exit code 1." in error
    assert len(error) < 2200
    assert path.stat().st_size == 5000


async def test_a_flood_of_megabytes_takes_no_time(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(1000): os.write(1, b'y' * 99_999 + b'\\n')\nraise SystemExit(1)"

    error = await run(python(code, tmp_path), tmp_path, seconds=20)

    assert error
    assert len(error) < build_run.KEPT_BYTES + 1000
    assert (tmp_path / "logs" / "build.log").stat().st_size == build_run.LOGGED_BYTES


async def test_what_a_terminal_would_obey_is_in_the_log_file_as_text_and_within_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_run, "LOGGED_BYTES", 5000)
    code = r"import os; os.write(1, b'\x1b[91merror\x1b[0m \x1b]0;title\x07' + b'\x1b' * 4000)"

    await run(python(code, tmp_path), tmp_path)

    logged = (tmp_path / "logs" / "build.log").read_text()
    assert logged.startswith(r"error \x1b]0;title\x07\x1b\x1b")
    assert "\x1b" not in logged
    assert len(logged) == 5000


async def test_each_line_is_in_our_log_while_the_build_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "level", DEBUG)
    go = tmp_path / "go"
    code = (
        "import os, time\nos.write(1, b'one\\ntw')\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\nos.write(1, b'o\\nthree')"
    )
    said: list[str] = []

    def hears(line: str) -> bool:
        said.append(capsys.readouterr().err)
        return line in "".join(said)

    running = asyncio.ensure_future(run(python(code, tmp_path), tmp_path))
    await until(lambda: hears("build: one\n"))
    assert not running.done()
    go.touch()
    await running

    assert hears("build: two\n")
    assert hears("build: three\n")
    assert hears("the build is done after")


async def test_a_log_that_cannot_be_written_is_no_reason_not_to_build(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where a folder should be")

    assert await run(python("print('fine')", tmp_path), tmp_path) is None


async def test_a_build_whose_program_vanished_says_so(tmp_path: Path) -> None:
    error = await run(BuildCommand("the build", (str(tmp_path / "gone"), "run"), str(tmp_path)), tmp_path)

    assert error
    assert error.startswith("the build could not be started: ")


async def test_what_a_build_left_running_elsewhere_may_print_for_ever(tmp_path: Path) -> None:
    # given a build that leaves a process in a session of its own, which holds the output open and prints
    code = (
        "import os, time\n"
        "if not os.fork():\n"
        "    os.setsid()\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "    while True:\n        os.write(1, b'still here\\n'); time.sleep(0.01)\n"
        f"while not os.path.exists({str(tmp_path / 'pid')!r}): time.sleep(0.01)\n"
    )

    # when it is done
    error = await run(python(code, tmp_path), tmp_path)

    # then nobody waits for the rest
    os.kill(int((tmp_path / "pid").read_text()), 9)
    assert error is None


def test_what_is_printed_after_the_end_counts_no_more(tmp_path: Path) -> None:
    path = tmp_path / "build.log"
    printed = BuildOutput(str(path))
    printed.add(b"in time")
    printed.close()

    printed.add(b"late")

    assert (printed.text(), path.read_bytes()) == ("in time", b"in time")


async def test_a_build_without_a_restore_is_repeated_with_one_if_packages_are_missing(tmp_path: Path) -> None:
    whole = python("print('restored')", tmp_path)
    lacking = "print('x.csproj : error NETSDK1064: Package A was not found. [x.csproj]'); exit(1)"
    wrong = "print('a.cs(1,1): error CS0103: The name nope does not exist [x.csproj]'); exit(1)"

    assert await run(python(lacking, tmp_path, with_restore=whole), tmp_path) is None
    assert "CS0103" in str(await run(python(wrong, tmp_path, with_restore=whole), tmp_path))


async def test_a_good_build_records_its_restore_and_a_failed_one_does_not(tmp_path: Path) -> None:
    assets = tmp_path / "project.assets.json"
    assets.write_text("{}")
    restore = Restore(str(tmp_path / "uno-devserver" / "restore.json"), "digest", (str(assets),))

    await run(python("exit(1)", tmp_path, restore=restore), tmp_path)
    assert not restore.is_done()
    await run(python("", tmp_path, restore=restore), tmp_path)

    assert restore.is_done()
    assert not restore.replace(read="another").is_done()


@pytest.mark.parametrize("stays", [False, True])
async def test_a_helper_of_a_build_stays_only_if_the_build_says_so(tmp_path: Path, stays: bool) -> None:
    helper = (
        "import os, signal\nif not (pid := os.fork()):\n    os.closerange(0, 3)\n    signal.pause()\n"
        "open('pid', 'w').write(str(pid))"
    )

    await run(python(helper, tmp_path, leaves_helpers=stays), tmp_path)

    pid = int((tmp_path / "pid").read_text())
    if stays:
        assert is_running(pid)
        os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_running(pid))
