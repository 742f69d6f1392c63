"""On Windows a child ends with all that it has started, and with this process, unless it is meant to outlive it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.waiting import wait_for
from uno_devserver.system.processes import is_alive
from uno_devserver.system.run import kill_group, run, start_process

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="only Windows has job objects")

# Writes its process id into a file, and stays.
STAYS = "import os, sys, time; open(sys.argv[1], 'x').write(str(os.getpid())); time.sleep(600)"
# Starts that one, and says so by its own end or by staying.
STARTS = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {STAYS!r}, sys.argv[1]])"
# Starts it by our own means, and stays.
LAUNCHES = f"""
import subprocess, sys, time
from uno_devserver.system.run import start_process
line = [sys.executable, "-c", {STAYS!r}, sys.argv[1]]
process = start_process(line, outlives=sys.argv[2] == "outlives", stdin=subprocess.DEVNULL)
time.sleep(600)
"""


def pid_in(path: Path) -> int:
    wait_for(lambda: path.exists() and path.read_text(), "the process id of the other process", seconds=60)
    return int(path.read_text())


def end(pid: int) -> None:
    os.kill(pid, 9)


def wait_for_end(pid: int) -> None:
    wait_for(lambda: not is_alive(pid), f"the end of process {pid}", seconds=30)


def batch(tmp_path: Path) -> str:
    """A batch file as npm makes it: it starts an interpreter, and waits for it."""
    (tmp_path / "stays.py").write_text(STAYS)
    script = tmp_path / "stays.cmd"
    script.write_text(f'@"{sys.executable}" "%~dp0stays.py" %*\n')
    return str(script)


def test_the_program_that_a_batch_file_runs_ends_at_the_time_limit(tmp_path: Path) -> None:
    told = tmp_path / "pid"

    outcome = run([batch(tmp_path), str(told)], cwd=str(tmp_path), environ=os.environ, seconds=15, keep_bytes=1000)

    assert outcome.exit_code is None
    wait_for_end(pid_in(told))


def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    wait = f"import os\nwhile not os.path.exists({str(told)!r}): pass"

    line = [sys.executable, "-c", f"{STARTS}\n{wait}", str(told)]
    outcome = run(line, cwd=str(tmp_path), environ=os.environ, seconds=60, keep_bytes=1000)

    assert outcome.exit_code == 0, outcome
    wait_for_end(pid_in(told))


def test_helpers_that_are_to_be_spared_go_on(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    wait = f"import os\nwhile not os.path.exists({str(told)!r}): pass"
    line = [sys.executable, "-c", f"{STARTS}\n{wait}", str(told)]

    run(line, cwd=str(tmp_path), environ=os.environ, seconds=60, keep_bytes=1000, spares_helpers=True)

    assert is_alive(pid_in(told))
    end(pid_in(told))


def test_a_killed_process_takes_its_children_along(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHES, str(told), "ends"])
    pid = pid_in(told)
    assert is_alive(pid)

    launcher.kill()

    wait_for_end(pid)


def test_a_child_that_outlives_it_goes_on_even_if_the_job_of_its_launcher_ends(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    line = [sys.executable, "-c", LAUNCHES, str(told), "outlives"]
    launcher = start_process(line, stdin=subprocess.DEVNULL)
    pid = pid_in(told)

    kill_group(launcher)

    wait_for_end(launcher.pid)
    assert is_alive(pid)
    end(pid)


def test_nothing_is_left_of_a_child_that_cannot_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = importlib.import_module("uno_devserver.system.jobs")  # only Windows can
    monkeypatch.setattr(jobs, "_resume_process", lambda _handle: -1)
    started: list[subprocess.Popen[bytes]] = []

    def popen(line: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(line, **options))
        return started[0]

    with pytest.raises(OSError, match="cannot be resumed"):
        jobs.start_in_job(popen, [sys.executable, "-c", ""], {"stdout": subprocess.PIPE}, outlives=False)

    (process,) = started
    assert process.returncode is not None
    assert process.stdout is not None
    assert process.stdout.closed
