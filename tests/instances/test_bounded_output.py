"""What children print into a file that stays small and safe to show, whatever they print."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.waiting import wait_for
from uno_devserver.instances import bounded_output
from uno_devserver.instances.bounded_output import BoundedOutput
from uno_devserver.instances.child_process import Child, spawn

if sys.platform != "win32":
    import fcntl

MEGABYTE = 1_000_000


@pytest.fixture
def output(tmp_path: Path) -> Iterator[BoundedOutput]:
    output = BoundedOutput(str(tmp_path / "logs" / "server.log"))
    yield output
    output.close()


def _run(output: BoundedOutput, program: str) -> Child:
    return spawn([sys.executable, "-c", program], folder="/", environ=os.environ, output=output)


def _text(output: BoundedOutput) -> str:
    return Path(output.path).read_text("utf-8")


def test_of_a_flood_little_is_written_and_nobody_waits(output: BoundedOutput) -> None:
    # when a child prints 60 MB
    began = time.monotonic()
    child = _run(output, "import os\nfor _ in range(600): os.write(1, b'y' * 99_999 + b'\\n')\nprint('the end')")
    child.wait()
    took = time.monotonic() - began
    output.wait(10)

    # then some of them per second are in the file, with the count of the others, and its last lines
    text = _text(output)
    assert len(text) < (took + 2) * 2 * MEGABYTE
    assert "bytes left out …]\n" in text
    assert child.printed().splitlines()[-1] == "the end"
    assert took < 20


def test_a_file_that_is_full_keeps_its_beginning_and_its_end(
    output: BoundedOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_output, "FILE_BYTES", 10_000)
    monkeypatch.setattr(bounded_output, "LAST_BYTES", 1000)

    for number in range(2000):
        output.add(f"line {number}\n".encode())
        assert output.size() <= 10_000

    lines = _text(output).splitlines()
    assert lines[0] == "line 0"
    assert lines[-50:] == [f"line {number}" for number in range(1950, 2000)]
    assert sum("bytes left out" in line for line in lines) == 1


def test_it_is_known_when_what_is_in_the_file_came_within_bounds(
    output: BoundedOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_output, "FILE_BYTES", 100)
    clock = [1.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])

    output.add(b"one\n")
    output.add(b"at the same time\n")
    clock[0] = 2.0
    output.add(b"two\n")
    known = output.arrivals()
    for later_by in range(2 * bounded_output.MOST_ARRIVALS):
        clock[0] = 3.0 + later_by
        output.add(b"more\n")
    later = output.arrivals()

    assert known == [(0, 1.0), (21, 2.0)]
    assert len(later) <= bounded_output.MOST_ARRIVALS
    assert later == sorted(later), "an emptied file begins again"


def test_what_follows_a_flood_is_written_although_nothing_more_is_printed(output: BoundedOutput) -> None:
    while output.add(b"y" * 100_000):
        pass
    output.add(b"\nit hangs here\n")

    def flushed() -> bool:
        output.flush()
        return _text(output).endswith("\nit hangs here\n")

    wait_for(flushed, "the last line")


def test_what_a_terminal_would_obey_is_in_it_as_text(output: BoundedOutput) -> None:
    program = r"import os; os.write(2, '\x1b]0;title\x07\x1b[31mred\x1b[0m\tr\u00e9d\x9b2J\u202e\rover\r\n'.encode())"

    _run(output, program).wait()
    output.wait(10)

    assert _text(output) == "\\x1b]0;title\\x07red\tréd\\x9b2J\\u202e\nover\n"


def test_a_character_that_comes_in_pieces_is_one(output: BoundedOutput) -> None:
    for byte in "é\r\n漢\n".encode():
        output.add(bytes((byte,)))

    assert _text(output) == "é\n漢\n"


def test_a_process_that_keeps_the_pipe_open_holds_up_nobody_and_is_still_heard(
    output: BoundedOutput, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    later = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\nprint('later')"
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {later!r}]); print('now')"
    child = _run(output, program)
    assert child.wait() == 0

    wait_for(lambda: child.printed() == "now", "its own output")
    began = time.monotonic()
    output.wait(0.1)
    assert time.monotonic() - began < 5

    gate.touch()
    wait_for(lambda: child.printed() == "now\nlater", "the output of the other process")


def test_nothing_is_written_after_its_end_into_a_file_that_has_its_number(
    output: BoundedOutput, tmp_path: Path
) -> None:
    other = BoundedOutput(str(tmp_path / "other.log"))
    child = _run(other, "import signal; signal.signal(10, lambda *_: None); signal.pause(); print('late')")
    number = other.handle
    other.close()
    handle = os.open(tmp_path / "important", os.O_CREAT | os.O_WRONLY)
    if handle != number:  # a thread of an earlier test has freed a lower one
        handle = fcntl.fcntl(handle, fcntl.F_DUPFD, number)
    assert handle == number

    while child.exit_code() is None:
        os.kill(child.pid, 10)
        time.sleep(0.01)
    other.wait(10)

    os.close(handle)
    assert (tmp_path / "important").read_bytes() == b""


def test_a_full_disk_does_not_stop_the_child(tmp_path: Path) -> None:
    output = BoundedOutput(str(tmp_path / "server.log"))
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, output.handle)
    os.close(full)

    child = _run(output, "print('y' * 1_000_000)")

    assert child.wait() == 0
    output.wait(10)
    output.close()


def test_a_child_that_is_started_while_the_one_before_is_waited_for_keeps_its_own_end(output: BoundedOutput) -> None:
    sinks: list[int] = []

    class EndOfTheFirst:
        """The next child is started while this end is waited for."""

        released = False

        def acquire(self, timeout: float) -> bool:
            sinks.append(output.sink())
            return timeout > 0

        def release(self) -> None:
            self.released = True

    first = EndOfTheFirst()
    output._drained = first  # type: ignore[assignment]

    output.wait(1)
    still_open = output._drained.locked()
    os.close(sinks[0])
    output.wait(10)

    assert first.released
    assert still_open
