"""Runs a program that ends with the process that started it, even if that is killed: `die_with_parent.py <program> …`.

Standard input is a pipe to which nothing is written; its end is the signal. The program replaces this process and keeps
its process id and output; a second process of the same group waits for the end of the pipe. This module is run
as a script, and imports only the standard library. Windows needs no such process: it has jobs (`system/jobs.py`).
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

GRACE_SECONDS = 2.0
POLL_SECONDS = 0.05
NEEDED = sys.platform != "win32"


def main(line: list[str]) -> int:
    import signal

    leader = os.getpid()
    first = os.fork()
    if not first:
        # The watcher is a grandchild whose parent has ended, so that the program has no child that it did not start.
        if not os.fork():
            _watch(leader)
        os._exit(0)
    os.waitpid(first, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these, and programs would inherit that
        signal.signal(signal.Signals[name], signal.SIG_DFL)
    try:
        os.execv(line[0], line)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{line[0]} cannot be started: {error.strerror}\n")
    return 127  # the exit code of a shell


def _watch(leader: int) -> None:
    """Wait for the end of the input, then end the group; its id stays valid, because this process belongs to it."""
    import signal
    import time

    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    while os.read(0, 1024):
        pass
    if not _exists(leader):  # the program ended by itself, and its children may continue
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(leader, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while _exists(leader) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    os.killpg(leader, signal.SIGKILL)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the program runs as another user now
        pass
    return True


def guarded(line: Sequence[str]) -> tuple[str, ...]:
    """The command line for a program that ends, with its group, at the end of its input, which must be a pipe."""
    return (sys.executable, "-IS", os.path.abspath(__file__), *line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
