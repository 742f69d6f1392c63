"""Output that nobody reads: real processes, with real pipes, files and a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BOUND = 20.0  # seconds; every wait here takes milliseconds
READ, UNREAD = 7, 8  # exit codes: whether the end had to wait for the reader
LINES = 20_000  # far more than a pipe holds, and than is kept
PROGRAM = f"""
import os, sys, time
from uno_devserver.system.nonblocking_output import LAST_SECONDS, nonblocking_output

with nonblocking_output():
    print("first")
    for number in range({LINES} if "much" in sys.argv else 3):
        print(f"line {{number}} {{'é' * 50}}", file=sys.stderr if "error" in sys.argv else sys.stdout)
    sys.stdout.buffer.write(b"bytes\\n")
    if "wait" in sys.argv:
        print("waiting", file=sys.stderr)
        input()
    print("last")
    began = time.monotonic()
os._exit({READ} if time.monotonic() - began < LAST_SECONDS else {UNREAD})
"""


def start(*words: str, output: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.PIPE)


def test_what_is_read_arrives_complete_and_in_order() -> None:
    with start() as program:
        output, errors = program.communicate(timeout=BOUND)

    assert [line[:8] for line in output.decode().splitlines()] == [
        "first", "line 0 é", "line 1 é", "line 2 é", "bytes", "last",
    ]  # fmt: skip
    assert (program.returncode, errors) == (READ, b"")


@pytest.mark.parametrize("stream", ["output", "error"])
def test_a_reader_that_does_not_read_holds_nobody_up(stream: str) -> None:
    with start("much", stream) as program:
        assert program.wait(BOUND) == UNREAD


def test_who_reads_again_is_told_that_something_is_missing() -> None:
    with start("much", "wait") as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stderr.readline() == b"waiting\n"  # everything is said, and nobody has read it
        read = b""
        while b"dropped" not in read:
            chunk = os.read(program.stdout.fileno(), 65536)
            assert chunk, read[-100:]
            read += chunk
        rest, errors = program.communicate(b"\n", timeout=BOUND)

    lines = (read + rest).decode().splitlines()
    assert lines[0] == "first"
    assert lines[1].startswith("line 0")
    assert len(lines) < LINES
    assert lines[-1] == "last"
    assert errors == b""


def test_a_reader_that_has_gone_is_no_error() -> None:
    with start("wait") as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"first\n"
        program.stdout.close()
        program.stdout = None
        _, errors = program.communicate(b"\n", timeout=BOUND)

    assert (program.returncode, errors) == (READ, b"waiting\n")


def test_a_pipe_that_somebody_made_non_blocking_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.write(writing, b"x" * 65536)  # full
    with start("wait", output=writing) as program, os.fdopen(reading, "rb") as pipe:
        os.close(writing)
        assert program.stderr
        assert program.stderr.readline() == b"waiting\n"  # it has tried
        assert pipe.read(65536) == b"x" * 65536
        assert pipe.readline() == b"first\n"
        program.communicate(b"\n", timeout=BOUND)
        assert pipe.read().endswith(b"last\n")


def test_a_terminal_stays_one() -> None:
    leader, follower = os.openpty()
    program = (
        "import sys\nfrom uno_devserver.system.nonblocking_output import nonblocking_output\nbefore = sys.stdout\n"
    )
    program += "with nonblocking_output():\n    print(sys.stdout.isatty(), sys.stdout.fileno(), sys.stdout is before)\n"
    with subprocess.Popen([sys.executable, "-c", program], stdout=follower) as done:
        os.close(follower)
        said = os.read(leader, 1000)
        done.wait(BOUND)
    os.close(leader)

    assert said == b"True 1 False\r\n"


def test_files_are_written_directly(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom uno_devserver.system.nonblocking_output import nonblocking_output\nbefore = sys.stdout\n"
    )
    program += "with nonblocking_output():\n    assert sys.stdout is before\n"
    with (tmp_path / "out").open("wb") as file:
        done = subprocess.run([sys.executable, "-c", program], stdout=file, stderr=subprocess.PIPE, timeout=BOUND)

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_process_without_output_has_none() -> None:
    program = "import sys\nfrom uno_devserver.system.nonblocking_output import nonblocking_output\n"
    program += "with nonblocking_output():\n    assert sys.stdout is None\n"
    command = f'exec "{sys.executable}" -c "$0" >&-'

    assert subprocess.run(["sh", "-c", command, program], timeout=BOUND).returncode == 0
