"""A server as a child process: spawned, watched, stopped, and its output read.

The server has neither the input, the terminal nor the process group of this process, so that no key and no end of this
process affects it by accident. Its output goes to a file instead of a pipe, because a Host outlives the command that
started it; that of other children is bounded (`bounded_output.py`). A server that speaks MCP over its input and output
has pipes there, and only its stderr goes to the file. Stopping is bounded.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

from ..system import text
from ..system.files import replace_file
from ..system.processes import GRACE_SECONDS, KILL_SECONDS, POLL_SECONDS
from ..system.run import forget_process, group_exists, kill_group, start_process
from ..system.state_files import open_own, secure_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

TAIL_BYTES = 16 * 1024
TAIL_LINES = 30  # a .NET stack trace with the lines before it
GUARD_POLL_SECONDS = 0.2  # used only on systems that cannot wait for a signal
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
# The boxes that a Host and a FastMCP server print at their start, which do not help to understand how they ended. Boxes
# with tracebacks and errors have a title in their first line.
_BANNER = re.compile(
    r"^\+=+\+\r?\n\|\s*Uno Platform DevServer\s*\|\r?\n(?:[+|].*\n)*?\+=+\+\r?\n?"
    r"|^[ \t]*╭─+╮[ \t]*\r?\n(?:[ \t]*│.*\n)*?[ \t]*╰─+╯[ \t]*\r?\n?",
    re.MULTILINE,
)


class Output:
    """The file for the output of a workspace's Hosts. Each start empties it; the second attempt of a start appends.

    The output of the Host before is kept in `<name>.previous.log` next to it, because it shows how that Host ended.
    """

    def __init__(self, path: str) -> None:
        """Create or empty the file; raises OSError if that is not possible."""
        self.path = path
        secure_folder(os.path.dirname(path))
        _keep_previous(path)
        self.handle = open_own(path, os.O_APPEND)
        os.ftruncate(self.handle, 0)

    def sink(self) -> int:
        """A handle for a child to print to; the caller closes it."""
        if sys.platform == "win32":
            from ..system.file_sharing import open_to_append

            return open_to_append(self.path)
        return os.dup(self.handle)

    def close(self) -> None:
        os.close(self.handle)

    def size(self) -> int:
        return os.fstat(self.handle).st_size

    def tail(self, start: int) -> str:
        """The last lines that were printed after the position `start`, or in the whole file if it was emptied since."""
        size = self.size()
        start = max(start if start <= size else 0, size - TAIL_BYTES)
        return "\n".join(last_lines(self.read(start, TAIL_BYTES)))

    def read(self, start: int, count: int) -> bytes:
        """At most `count` bytes of what was printed, from the position `start` on."""
        os.lseek(self.handle, start, os.SEEK_SET)  # has no effect on writing, which always appends
        return os.read(self.handle, count)


def last_lines(printed: bytes) -> tuple[str, ...]:
    """The last lines of a server's output, without the box that it prints at its start."""
    return tuple(text.last_lines(_BANNER.sub("", text.decode_output(printed)), TAIL_LINES))


def previous_path(path: str) -> str:
    """The file to which the next start moves the output at this path."""
    name, ending = os.path.splitext(path)
    return f"{name}.previous{ending}"


def _keep_previous(path: str) -> None:
    try:
        replace_file(path, previous_path(path))
    except OSError:
        pass  # there is no file, or it cannot be moved, which must not prevent a start


class Child:
    def __init__(self, process: subprocess.Popen[bytes], output: Output, start: int) -> None:
        self._process = process
        self._output = output
        self._start = start

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes]] | None:
        """The child's output and input, if it was spawned with pipes; else None."""
        process = self._process
        return (process.stdout, process.stdin) if process.stdout and process.stdin else None

    def exit_code(self) -> int | None:
        """The exit code, or the negative number of the signal that ended the child; None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait until the child has ended, and return its exit code."""
        return self._process.wait()

    def printed(self) -> str:
        """The last lines of its output so far."""
        return self._output.tail(self._start)

    def release(self) -> None:
        """Let the child outlive this process, even if `stop_all` is called."""
        forget_process(self._process)

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """If the child runs, ask its group to end, and kill the processes that do not within `grace_seconds`."""
        if self.exit_code() is None:
            self._terminate()
            if not self._all_end_within(grace_seconds):
                self.end_the_rest()
                self._all_end_within(KILL_SECONDS)

    def end_the_rest(self) -> None:
        """Kill the rest of the child's group. Call it right after its end, before another process can get its id."""
        kill_group(self._process)

    def _all_end_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        try:
            self._process.wait(seconds)  # most end within a millisecond or two, and it asks that often at first
        except subprocess.TimeoutExpired:
            return False
        while group_exists(self._process):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _terminate(self) -> None:
        """Ask the whole group to end, because a script does not pass the signal on. Windows can only kill."""
        if sys.platform == "win32":
            kill_group(self._process)
            return
        try:
            os.killpg(self.pid, signal.SIGTERM)
        except OSError:
            pass  # all processes of the group have ended


def spawn(
    line: Sequence[str],
    *,
    folder: str,
    environ: Mapping[str, str],
    output: Output,
    spoken_to: bool = False,
    reads: int = subprocess.DEVNULL,
    outlives: bool = False,
) -> Child:
    """Start a program in a folder; raises OSError if that is not possible.

    With `spoken_to` its input and output are pipes (`Child.pipes`); otherwise its input is the handle `reads`. With
    `outlives` it goes on when this process ends.
    """
    start = output.size()
    sink = output.sink()
    try:
        process = start_process(
            line,
            popen=_popen(spoken_to),
            outlives=outlives,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.PIPE if spoken_to else reads,
            stdout=subprocess.PIPE if spoken_to else sink,
            stderr=sink,
            bufsize=0,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0)
            | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
    finally:
        os.close(sink)
    return Child(process, output, start)


def _popen(spoken_to: bool) -> type[subprocess.Popen[bytes]]:
    if sys.platform == "win32" and spoken_to:
        from asyncio.windows_utils import Popen  # an event loop can wait for the pipes of this class

        return Popen
    return subprocess.Popen


def guard(child: Child, interrupted: Callable[[], bool]) -> int:
    """Wait until the child has ended, and stop it at a signal, even an earlier one (`interrupted`); its exit code."""
    # Ignored signals stay ignored: nohup and background jobs rely on it.
    ending = [number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    if hasattr(signal, "pthread_sigmask"):
        # Without a handler the system drops SIGCHLD, and sigwait would never return.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, (*ending, signal.SIGCHLD))
    while child.exit_code() is None:
        if interrupted() or _ending_asked_for(ending):
            child.stop()
    return child.wait()


def _ending_asked_for(ending: Sequence[int]) -> bool:
    """Wait for a signal, on Windows only for a moment; returns whether one asks this process to end."""
    if hasattr(signal, "pthread_sigmask"):
        return signal.sigwait((*ending, signal.SIGCHLD)) != signal.SIGCHLD
    try:
        time.sleep(GUARD_POLL_SECONDS)
    except KeyboardInterrupt:
        return True
    return False
