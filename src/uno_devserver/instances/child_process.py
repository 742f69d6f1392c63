"""A server as a child process: spawned, watched, stopped, and its output read.

It never gets this process's input, terminal or process group, so neither a key nor the end of this process reaches it
by accident. What it prints goes into a file and not into a pipe, because a Host outlives the command that started it. A
server that speaks MCP over its input and output has pipes there, and only its stderr goes into the file. Stopping is
bounded.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

from ..system import proc
from ..system.files import decode, make_folders
from ..system.processes import GRACE_SECONDS, KILL_SECONDS, POLL_SECONDS
from ..system.run import forget_process, kill_group, start_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

TAIL_BYTES = 16 * 1024
TAIL_LINES = 30  # a .NET stack trace with the lines before it
GUARD_POLL_SECONDS = 0.2  # only where the system cannot wake us
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
# The box in which a Host introduces itself at its start: it does not help to understand how it ended.
_BANNER = re.compile(r"^\+=+\+\r?\n\|\s*Uno Platform DevServer\s*\|\r?\n(?:[+|].*\n)*?\+=+\+\r?\n?", re.MULTILINE)


class Output:
    """The file for what Hosts print. A start begins it again, and its second attempt continues it.

    The output of the Host before is kept beside it, in `<name>.previous.log`, because it shows how that one ended.
    """

    def __init__(self, path: str) -> None:
        """OSError if the file cannot be made."""
        make_folders(os.path.dirname(path))
        self.path = path
        _keep_previous(path)
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
        os.ftruncate(self.handle, 0)

    def close(self) -> None:
        os.close(self.handle)

    def size(self) -> int:
        return os.fstat(self.handle).st_size

    def tail(self, start: int) -> str:
        """The last lines that were printed behind `start`; of the whole file, if it was emptied since."""
        size = self.size()
        start = max(start if start <= size else 0, size - TAIL_BYTES)
        os.lseek(self.handle, start, os.SEEK_SET)  # does not matter to writing, which appends
        return "\n".join(last_lines(os.read(self.handle, TAIL_BYTES)))


def last_lines(printed: bytes) -> tuple[str, ...]:
    """The last lines of an output, without the box of its Host."""
    return tuple(_BANNER.sub("", decode(printed)).splitlines()[-TAIL_LINES:])


def previous_path(path: str) -> str:
    """The file to which the next start moves the output at this path."""
    name, ending = os.path.splitext(path)
    return f"{name}.previous{ending}"


def _keep_previous(path: str) -> None:
    try:
        os.replace(path, previous_path(path))
    except OSError:
        pass  # there is none, or it cannot be moved, which must not prevent a start


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
        """Its output and its input, if it was spawned with pipes."""
        process = self._process
        return (process.stdout, process.stdin) if process.stdout and process.stdin else None

    def exit_code(self) -> int | None:
        """None while it runs; negative is the signal that ended it."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait for its end; its exit code."""
        return self._process.wait()

    def printed(self) -> str:
        """The end of what it printed so far."""
        return self._output.tail(self._start)

    def release(self) -> None:
        """Let it outlive this process in any case."""
        forget_process(self._process)

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ask it and its whole group to end, and kill those that do not within `grace_seconds`."""
        if self.exit_code() is None:
            self._terminate()
            if not self._all_end_within(grace_seconds):
                self.end_the_rest()
                self._all_end_within(KILL_SECONDS)

    def end_the_rest(self) -> None:
        """Kill what is left of its group. To be called right after its end: its id may be given to another process."""
        kill_group(self._process)

    def _all_end_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.exit_code() is None or _group_exists(self.pid):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _terminate(self) -> None:
        """Ask the whole group: a script does not pass the signal on."""
        try:
            if sys.platform == "win32":
                self._process.terminate()  # kills the child alone; Windows has no other way
            else:
                os.killpg(self.pid, signal.SIGTERM)
        except OSError:
            pass  # all of them are gone


def spawn(
    line: Sequence[str],
    *,
    folder: str,
    environ: Mapping[str, str],
    output: Output,
    spoken_to: bool = False,
    reads: int = subprocess.DEVNULL,
) -> Child:
    """Start a program in a folder; OSError if that is not possible.

    `spoken_to`: with pipes (`Child.pipes`); otherwise it `reads` from that handle.
    """
    start = output.size()
    process = start_process(
        lambda: _popen(spoken_to)(
            list(line),
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.PIPE if spoken_to else reads,
            stdout=subprocess.PIPE if spoken_to else output.handle,
            stderr=output.handle,
            bufsize=0,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0)
            | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
    )
    return Child(process, output, start)


def _popen(spoken_to: bool) -> type[subprocess.Popen[bytes]]:
    if sys.platform == "win32" and spoken_to:
        from asyncio.windows_utils import Popen  # whose pipes an event loop can wait for

        return Popen
    return subprocess.Popen


def _group_exists(leader: int) -> bool:
    """Whether a process of the group runs; one that has ended and was not waited for does not count."""
    if sys.platform == "win32":
        return False
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the rest of the group runs as another user
        return True
    # A dead process stays in its group until its parent waits for it, and the first process of a container, which
    # inherits orphans, may never do that.
    return not proc.AVAILABLE or proc.is_group_alive(leader)


def guard(child: Child, interrupted: Callable[[], bool]) -> int:
    """Wait for the child's end, and stop it at a signal; its exit code. `interrupted`: a signal came before this."""
    # Ignored signals stay ignored: nohup and background jobs rely on it.
    ending = [number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    if hasattr(signal, "pthread_sigmask"):
        # Without a handler the system drops this signal, and sigwait would never return.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, (*ending, signal.SIGCHLD))
    while child.exit_code() is None:
        if interrupted() or _ending_asked_for(ending):
            child.stop()
    return child.wait()


def _ending_asked_for(ending: Sequence[int]) -> bool:
    """Sleep until a signal comes, or for a moment; whether it asks this process to end."""
    if hasattr(signal, "pthread_sigmask"):
        return signal.sigwait((*ending, signal.SIGCHLD)) != signal.SIGCHLD
    try:
        time.sleep(GUARD_POLL_SECONDS)
    except KeyboardInterrupt:
        return True
    return False
