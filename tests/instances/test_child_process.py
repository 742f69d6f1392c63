"""Programs as children of ours: apart from us, their output kept, and ended within a bound."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.hosts import is_running
from support.machine import WINDOWS
from support.waiting import wait_for
from uno_devserver.host.banner import banner
from uno_devserver.instances.child_process import TAIL_LINES, Child, Output, last_lines, spawn
from uno_devserver.system.processes import GRACE_SECONDS
from uno_devserver.system.run import ENDING, RunOutcome, run, stop_all

PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Output]:
    output = Output(str(tmp_path / "logs" / "host.log"))
    yield output
    output.close()


def _run(output: Output, program: str) -> Child:
    return spawn([sys.executable, "-c", program], folder="/", environ=os.environ, output=output)


def test_the_last_lines_of_what_it_printed_are_known(output: Output) -> None:
    child = _run(output, "import sys; print(*range(1000), sep='\\n'); sys.stdout.flush(); sys.exit('the end')")

    assert child.wait() == 1
    lines = child.printed().splitlines()
    assert lines[-2:] == ["999", "the end"]
    assert len(lines) == TAIL_LINES


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_banner_of_a_host_is_none_of_the_last_lines_but_any_other_table_is(ending: str) -> None:
    box = banner((("Version", "1"), ("HTTP Port", "5000")))
    table = "+====+\n| it |\n+----+\n| x  |\n+====+"

    told = last_lines("\n".join(("before", box, "after", table)).replace("\n", ending).encode())

    assert told == ("before", "after", *table.splitlines())


def test_the_banner_of_fastmcp_is_none_of_the_last_lines_but_a_traceback_in_a_box_is() -> None:
    box = "╭────────╮\n│ ▄▀▀▀▀▄ │\n│ Server │\n╰────────╯"
    traceback = "╭─ Traceback (most recent call last) ─╮\n│ in main:7 │\n╰─────────────────────────────────────╯"

    told = last_lines(f"before\n\n  {box.replace(chr(10), f'  {chr(10)}  ')}\n{traceback}\nafter\n".encode())

    assert told == ("before", "", *traceback.splitlines(), "after")


def test_a_second_attempt_adds_to_the_output_and_is_told_apart_from_the_first(output: Output) -> None:
    _run(output, "print('first')").wait()

    second = _run(output, "print('second')")

    second.wait()
    assert second.printed() == "second"
    assert Path(output.path).read_text() == "first\nsecond\n"


def test_no_line_is_lost_while_the_last_ones_are_read_and_another_child_prints(output: Output) -> None:
    code = "import os\nfor number in range(1500): os.write(1, b'{} %d\\n' % number)"
    children = [_run(output, code.format(name)) for name in ("one", "two")]

    while any(child.exit_code() is None for child in children):
        children[0].printed()

    lines = Path(output.path).read_text().splitlines()
    for name in ("one", "two"):
        assert [line for line in lines if line.startswith(name)] == [f"{name} {number}" for number in range(1500)]


def test_the_output_of_one_that_still_runs_is_kept_beside_the_new_one(output: Output, tmp_path: Path) -> None:
    wait = f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)"
    child = _run(output, f"import os, time\nprint('old', flush=True)\n{wait}\nprint('end')")
    wait_for(child.printed, "the first line")

    new = Output(output.path)
    _run(new, "print('new')").wait()
    (tmp_path / "go").touch()
    child.wait()
    new.close()

    assert Path(output.path).read_text().splitlines() == ["new"]
    assert (tmp_path / "logs" / "host.previous.log").read_text().splitlines() == ["old", "end"]


def test_an_output_that_somebody_empties_goes_on_at_its_beginning(output: Output) -> None:
    _run(output, "print('from a start before')").wait()
    wait = "signal.signal(10, lambda *_: None); print('old', flush=True); signal.pause()"
    child = _run(output, f"import signal; {wait}; print('new')")
    wait_for(child.printed, "the start")

    os.truncate(output.path, 0)
    os.kill(child.pid, 10)

    child.wait()
    assert Path(output.path).read_text() == "new\n"
    assert child.printed() == "new"


def test_a_new_output_begins_anew_and_keeps_the_one_before_beside_it(output: Output) -> None:
    _run(output, "print('old')").wait()

    again = Output(output.path)

    again.close()
    assert Path(output.path).read_text() == ""
    assert Path(output.path).with_name("host.previous.log").read_text() == "old\n"


def test_bytes_that_are_no_text_can_be_shown(output: Output) -> None:
    child = _run(output, r"import sys; sys.stdout.buffer.write(b'caf\xe9 \xf0\x9f')")

    child.wait()

    # Windows has a code page for what is no UTF-8.
    assert child.printed().startswith("caf\xe9" if WINDOWS else "caf\ufffd")


def test_it_has_a_session_of_its_own_and_no_input(output: Output) -> None:
    child = _run(output, "import os, sys; print(os.getsid(0) == os.getpid(), sys.stdin.read() == '')")

    child.wait()

    assert child.printed() == "True True"


def test_one_that_ends_when_asked_is_not_killed(output: Output) -> None:
    child = _run(output, "import signal; print('here', flush=True); signal.pause()")
    wait_for(child.printed, "the start")

    child.stop()

    assert child.exit_code() == -15


def test_one_that_does_not_end_when_asked_is_killed_with_all_that_it_started(output: Output) -> None:
    child = _run(
        output,
        """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid, flush=True)
signal.pause()
""",
    )
    wait_for(child.printed, "the start")

    child.stop(grace_seconds=0.1)

    assert child.exit_code() == -9
    wait_for(lambda: not is_running(int(child.printed())), "the end of the grandchild")


# A script that starts something else, as one that prepares the environment of a Host does.
SCRIPT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {child!r}])
print(child.pid, flush=True)
{then}
"""
PAUSE = "import signal; signal.pause()"


def test_what_a_script_started_is_asked_to_end_too(output: Output, tmp_path: Path) -> None:
    left = tmp_path / "left in order"
    leave = f"lambda *_: (time.sleep(0.3), sys.exit(pathlib.Path({str(left)!r}).touch()))"  # it has things to close
    obedient = f"import signal, sys, time, pathlib; signal.signal(15, {leave})"
    child = _run(
        output, SCRIPT.format(child=f"{obedient}; print('here', flush=True); signal.pause()", then="child.wait()")
    )
    wait_for(lambda: "here" in child.printed(), "the start")

    child.stop()

    assert child.exit_code() == -15
    assert left.exists()
    assert not is_running(int(child.printed().split()[0]))


def test_what_a_script_left_behind_can_be_ended(output: Output) -> None:
    child = _run(output, SCRIPT.format(child=PAUSE, then="sys.exit(3)"))
    assert child.wait() == 3

    child.stop()
    assert is_running(int(child.printed()))  # it is not known how long ago it ended
    child.end_the_rest()

    wait_for(lambda: not is_running(int(child.printed())), "the end of what was left")


def test_what_has_ended_and_is_not_buried_holds_up_no_stop(output: Output) -> None:
    """In a container, the process that inherits the children of a dead parent may take its time to ask for them."""
    heir = ctypes.CDLL(None).prctl
    heir(PR_SET_CHILD_SUBREAPER, 1)
    try:
        child = _run(output, SCRIPT.format(child=PAUSE, then="__import__('signal').pause()"))  # and bury nobody
        wait_for(child.printed, "the start")

        began = time.monotonic()
        child.stop()

        assert time.monotonic() - began < GRACE_SECONDS
        assert os.waitpid(int(child.printed()), 0)[1] == signal.SIGTERM
    finally:
        heir(PR_SET_CHILD_SUBREAPER, 0)


def test_one_that_is_spoken_to_has_pipes_and_prints_on_stderr_only(output: Output) -> None:
    program = "import sys; print('said'); print('printed', file=sys.stderr); print(sys.stdin.read())"
    child = spawn([sys.executable, "-c", program], folder="/", environ=os.environ, output=output, spoken_to=True)
    assert child.pipes
    source, sink = child.pipes

    with source, sink:
        sink.write(b"heard")
        sink.close()
        assert source.read() == b"said\nheard\n"

    child.wait()
    assert child.printed() == "printed"
    assert _run(output, "").pipes is None


def test_the_output_of_another_user_makes_room(tmp_path: Path) -> None:
    """After one start with sudo it would be in the way for ever."""
    path = tmp_path / "logs" / "host.log"
    path.parent.mkdir()
    path.write_text("root's")
    roots = path.stat().st_ino
    keeper = open(path)  # noqa: SIM115  # so that the number of the file is not given to the new one

    Output(str(path)).close()

    keeper.close()
    assert path.stat().st_ino != roots
    assert path.read_text() == ""


def test_at_the_end_all_that_still_run_are_ended_whichever_thread_has_spawned_them(output: Output) -> None:
    together = threading.Barrier(8)

    def spawn_one(_: int) -> Child:
        together.wait()
        return _run(output, "import time; time.sleep(60)")

    with ThreadPoolExecutor(8) as threads:
        children = list(threads.map(spawn_one, range(8)))

    stop_all()

    assert [child.wait() for child in children] == [-signal.SIGKILL] * 8


def test_at_the_end_a_program_that_is_run_to_its_own_end_is_ended_too() -> None:
    heard = threading.Event()
    code = "import signal; print('here', flush=True); signal.pause()"

    def build() -> RunOutcome:
        line = [sys.executable, "-ISc", code]
        return run(line, cwd="/", environ={}, seconds=60, keep_bytes=0, hear=lambda _: heard.set())

    with ThreadPoolExecutor() as threads:
        running = threads.submit(build)
        assert heard.wait(30)

        stop_all()

        assert running.result(30) == RunOutcome(None, b"", ENDING)
