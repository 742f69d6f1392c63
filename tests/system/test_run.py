"""Running another program: its outcome, and that neither time, output nor children get out of bounds."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from uno_devserver.system.programs import find_program, program_candidates
from uno_devserver.system.run import POLL_SECONDS, RunOutcome, _running, forget_process, run

NEVER = 60.0  # longer than any test may take
# Starts a child that outlives it, and tells the id of that child in a file.
LEAVE_CHILD = "import os, signal\nif not (pid := os.fork()): signal.pause()\nopen({file!r}, 'w').write(str(pid))\n"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path)


def run_python(
    code: str, cwd: str = "/", seconds: float = NEVER, keep: int = 10_000, data: bytes = b"", errors: bool = True
) -> RunOutcome:
    arguments = [sys.executable, "-ISc", "import sys; sys.stdout.reconfigure(newline='\\n')\n" + code]
    return run(arguments, cwd=cwd, environ={}, seconds=seconds, keep_bytes=keep, input_bytes=data, with_errors=errors)


def ended(pid: int, seconds: float = 10) -> bool:
    """Whether the process has ended, waiting a little for it; a zombie has."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


# --- outcomes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 155, 255])
def test_the_exit_code_is_the_programs_own(code: int) -> None:
    outcome = run_python(f"print('said'); raise SystemExit({code})")

    assert outcome == RunOutcome(code, b"said\n")
    assert outcome.succeeded == (code == 0)


def test_nothing_is_remembered_of_programs_that_have_ended() -> None:
    run_python("pass")

    assert not _running


def test_a_program_killed_by_a_signal_has_a_negative_code() -> None:
    outcome = run_python("import os; os.kill(os.getpid(), 15)")

    assert (outcome.exit_code, outcome.succeeded) == (-signal.SIGTERM, False)


@pytest.mark.parametrize(("errors", "output"), [(True, b"out\nerr\n"), (False, b"out\n")])
def test_standard_error_is_part_of_the_output_if_asked_for(errors: bool, output: bytes) -> None:
    code = "import os; os.write(1, b'out\\n'); os.write(2, b'err\\n')"

    assert run_python(code, errors=errors).output == output


def test_folder_and_environment_are_those_given(folder: str) -> None:
    code = "import os; print(os.getcwd(), sorted(set(os.environ) - {'LC_CTYPE'}))"

    outcome = run(
        [sys.executable, "-ISc", code], cwd=folder, environ={"ONE": "1", "TWO": "ž"}, seconds=NEVER, keep_bytes=10_000
    )

    assert outcome.output.decode() == f"{folder} ['ONE', 'TWO']\n"


@pytest.mark.parametrize(
    "program",
    ["/nowhere/program", "{folder}", "{folder}/text", "{folder}/nul\0byte"],
    ids=["missing", "folder", "not executable", "NUL"],
)
def test_a_program_that_cannot_be_started_says_why(folder: str, program: str) -> None:
    Path(folder, "text").write_text("no program")

    outcome = run([program.format(folder=folder)], cwd="/", environ={}, seconds=NEVER, keep_bytes=10)

    assert (outcome.exit_code, outcome.output, outcome.succeeded) == (None, b"", False)
    assert outcome.problem.startswith("could not be started: ")


def test_a_missing_working_folder_says_so(folder: str) -> None:
    outcome = run_python("", cwd=folder + "/missing")

    assert outcome.exit_code is None
    assert folder + "/missing" in outcome.problem


# --- output -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 1, 65_536, 100_000, 999_999, 1_000_000, 2_000_000])
def test_output_is_cut_at_the_limit_and_the_program_goes_on(keep: int) -> None:
    outcome = run_python("import sys; sys.stdout.write('x' * 1_000_000); sys.exit(5)", keep=keep)

    assert outcome.exit_code == 5
    assert outcome.output == b"x" * min(keep, 1_000_000)


def test_output_without_end_stops_at_the_time_limit() -> None:
    outcome = run_python("while True: print('x' * 1000)", seconds=2, keep=5000)

    assert outcome.exit_code is None
    assert len(outcome.output) == 5000


def test_a_program_that_closes_its_output_early_is_waited_for() -> None:
    outcome = run_python("import os, select; os.close(1); os.close(2); select.select([], [], [], 0.1); os._exit(7)")

    assert outcome == RunOutcome(7, b"")


def test_the_end_is_noticed_without_waiting_for_the_next_poll() -> None:
    """Between the end of the output and the end of the process there is always a moment."""
    deadline = time.perf_counter() + NEVER
    took = POLL_SECONDS
    while took >= POLL_SECONDS:  # a busy machine
        started = time.perf_counter()
        assert started < deadline
        run(["/bin/sh", "-c", "exec >&- 2>&-"], cwd="/", environ={}, seconds=NEVER, keep_bytes=1)  # it starts at once
        took = time.perf_counter() - started


# --- input --------------------------------------------------------------------------------------------------------


def test_input_of_any_size_arrives_whole() -> None:
    data = os.urandom(300_000)

    outcome = run_python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())", keep=1_000_000, data=data)

    assert outcome == RunOutcome(0, data)


def test_a_program_that_does_not_read_its_input_ends_as_usual() -> None:
    assert run_python("print('done')", data=b"x" * 1_000_000) == RunOutcome(0, b"done\n")


def test_our_own_standard_input_is_not_inherited() -> None:
    """A child that reads the proxy's stdin would swallow messages of its client."""
    code = (
        "import os, sys\nfrom uno_devserver.system.run import run\n"
        "outcome = run([sys.executable, '-ISc', 'import sys; print(repr(sys.stdin.read()))'],"
        " cwd='/', environ={}, seconds=20, keep_bytes=100)\n"
        "print(outcome.output, sys.stdin.read())"
    )

    result = subprocess.run([sys.executable, "-c", code], input="message", capture_output=True, text=True, timeout=30)

    assert result.stdout == repr(b"''\n") + " message\n"


# --- time and children --------------------------------------------------------------------------------------------


def test_the_program_runs_in_a_session_of_its_own() -> None:
    session = int(run_python("import os; print(os.getsid(0))").output)

    assert session != os.getsid(0)


def test_the_time_limit_stops_the_program_and_its_children(folder: str) -> None:
    file = folder + "/pid"
    code = LEAVE_CHILD.format(file=file) + "print('started', os.getpid(), flush=True)\nsignal.pause()"

    outcome = run_python(code, seconds=2)

    assert outcome.exit_code is None
    assert outcome.problem == "gave no answer within 2 s and was stopped"
    word, pid = outcome.output.split()
    assert word == b"started"
    assert ended(int(pid))
    assert ended(int(Path(file).read_text()))


def test_a_program_that_ignores_signals_is_stopped_too() -> None:
    started = time.monotonic()

    outcome = run_python(
        "import signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: signal.pause()", seconds=0.2
    )

    assert outcome.exit_code is None
    assert time.monotonic() - started < 10


def test_a_child_that_the_program_leaves_behind_delays_nothing_and_is_stopped(folder: str) -> None:
    """It holds the output open, as a build server does that `dotnet build` starts."""
    file = folder + "/pid"
    started = time.monotonic()

    outcome = run_python(LEAVE_CHILD.format(file=file) + "print('done')")

    assert outcome == RunOutcome(0, b"done\n")
    assert time.monotonic() - started < 10
    assert ended(int(Path(file).read_text()))


def test_an_interrupt_does_not_leave_the_program_running(folder: str) -> None:
    """Ctrl+C reaches only us: the program has a session of its own."""
    fifo = folder + "/pid"
    os.mkfifo(fifo)
    child = f"import os, signal\nopen({fifo!r}, 'w').write(str(os.getpid()))\nsignal.pause()"
    code = (
        "import signal, sys\nfrom uno_devserver.system.run import run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where tests run in the background
        f"run([sys.executable, '-ISc', {child!r}], cwd='/', environ={{}}, seconds=60, keep_bytes=0)"
    )

    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as caller:
        pid = int(Path(fifo).read_text())
        caller.send_signal(signal.SIGINT)
        caller.wait(20)

    assert ended(pid)


# --- finding programs ---------------------------------------------------------------------------------------------


def test_a_program_may_be_run_by_a_thread_that_python_takes_for_the_main_one(tmp_path: Path) -> None:
    """`threading` takes whoever imports it first for the main thread: in a proxy that is not the one that is."""
    code = (
        "import _thread, sys\n"
        "from uno_devserver.system.run import run\n"
        "done = _thread.allocate_lock()\n"
        "done.acquire()\n"
        "def work():\n"
        "    outcome = run([sys.executable, '-c', ''], cwd='.', environ={}, seconds=30, keep_bytes=1)\n"
        "    print(outcome.exit_code, outcome.problem)\n"
        "    done.release()\n"
        "_thread.start_new_thread(work, ())\n"
        "done.acquire()\n"
    )
    line = [sys.executable, "-S", "-c", code]
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(line, cwd=tmp_path, env=environ, capture_output=True, timeout=60)

    assert done.stdout.split() == [b"0"], done.stderr


def test_the_first_executable_file_on_the_path_is_the_program(tmp_path: Path) -> None:
    for name, mode in (("a", None), ("b", 0o644), ("c", 0o755), ("d", 0o755)):
        program = tmp_path / name / "tool"
        if mode is None:
            program.mkdir(parents=True)
        else:
            program.parent.mkdir()
            program.touch()
            program.chmod(mode)
    path = ":".join(str(tmp_path / name) for name in "abcd")

    assert find_program("tool", {"PATH": f"/nowhere:{path}"}) == str(tmp_path / "c" / "tool")
    assert find_program("other", {"PATH": path}) is None


def test_a_process_that_ends_takes_along_what_its_threads_run(tmp_path: Path) -> None:
    started = tmp_path / "started"
    child = f"import os, signal; open({str(started)!r}, 'a').write(f'{{os.getpid()}}\\n'); signal.pause()"
    program = f"""
import os, sys, threading, time
from uno_devserver.system.run import run, stop_all

def work():
    child = [sys.executable, "-ISc", {child!r}]
    for _ in range(2):
        outcome = run(child, cwd="/", environ={{}}, seconds={NEVER}, keep_bytes=100)
        print(outcome.exit_code, outcome.problem, flush=True)

thread = threading.Thread(target=work)
thread.start()
while not (os.path.exists({str(started)!r}) and open({str(started)!r}).read().endswith("\\n")):
    time.sleep(0.005)
stop_all()
thread.join()
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=NEVER)

    assert ended(int(started.read_text()))
    assert done.stdout.splitlines() == ["None was given up, because this process is ending"] * 2
    assert started.read_text().count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize("path", ["", ".", ":", "bin:./bin:../bin", "~/bin"])
def test_a_program_of_the_current_folder_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for place in ("tool", "bin/tool", "~/bin/tool"):
        program = tmp_path / place
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch(0o755)
    monkeypatch.chdir(tmp_path)

    assert find_program("tool", {"PATH": path}) is None
    assert find_program("tool", {}) is None


def test_candidates_on_linux() -> None:
    assert program_candidates("git", {"PATH": "/usr/bin:/opt/x/::rel"}, "linux") == ["/usr/bin/git", "/opt/x/git"]


def test_candidates_on_windows() -> None:
    environment = {"PATH": 'C:\\Git\\;"D:\\With Space";\\\\server\\tools;rel;.;;\\rooted', "PATHEXT": ".EXE;.CMD"}

    assert program_candidates("git", environment, "win32") == [
        "C:\\Git\\git.exe",
        "C:\\Git\\git.cmd",
        "D:\\With Space\\git.exe",
        "D:\\With Space\\git.cmd",
        "\\\\server\\tools\\git.exe",
        "\\\\server\\tools\\git.cmd",
    ]
    assert program_candidates("git", {"PATH": "C:\\x"}, "win32")[:2] == ["C:\\x\\git.com", "C:\\x\\git.exe"]


# --- while it runs ------------------------------------------------------------------------------------------------


def test_what_it_prints_is_heard_while_it_runs_and_it_can_be_given_up(folder: str) -> None:
    # given a program that says something, leaves a child, and never ends
    heard = bytearray()
    child = Path(folder, "child")
    code = LEAVE_CHILD.format(file=str(child)) + "os.write(1, b'here')\nsignal.pause()\n"

    # when it is given up once it was heard
    begun = time.monotonic()
    outcome = run(
        [sys.executable, "-ISc", code],
        cwd=folder,
        environ={},
        seconds=NEVER,
        keep_bytes=0,
        hear=heard.extend,
        go_on=lambda: not heard,
    )

    # then it ends with all that it started
    assert (bytes(heard), outcome) == (b"here", RunOutcome(None, b"", "was given up"))
    assert ended(int(child.read_text()))
    assert time.monotonic() - begun < NEVER / 2


def test_a_program_that_closed_its_output_can_still_be_given_up(folder: str) -> None:
    deadline = time.monotonic() + 3 * POLL_SECONDS

    outcome = run(
        [sys.executable, "-ISc", "import os, signal; os.close(1); os.close(2); signal.pause()"],
        cwd=folder,
        environ={},
        seconds=NEVER,
        keep_bytes=0,
        go_on=lambda: time.monotonic() < deadline,
    )

    assert outcome.problem == "was given up"
    assert time.monotonic() - deadline < NEVER / 2


def test_a_process_that_another_thread_forgets_meanwhile_does_not_disturb_a_start() -> None:
    class Ended:
        def poll(self) -> int:
            forget_process(cast("subprocess.Popen[bytes]", other))  # as a run that ends in another thread does
            return 0

    ended, other = Ended(), Ended()
    _running.update(cast("set[subprocess.Popen[bytes]]", {ended, other}))

    assert run_python("print('done')").output == b"done\n"
    assert not _running
