"""A server as a child of ours: spawned apart from us, watched, stopped, and its output read.

It never gets our input, terminal or process group, so neither a key nor our end reaches it by accident. What it prints
goes into a file and not into a pipe: a Host outlives the command that started it. A server that is spoken to over its
input and output has pipes there, and prints on stderr. Stopping is bounded.
"""

from __future__ import annotations

import _thread
import errno
import os
import re
import signal
import subprocess
import sys
import time

from ..system.files import decode, make_folders
from ..system.processes import GRACE_SECONDS, KILL_SECONDS, POLL_SECONDS
from ..system.run import stop_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

SPAWN_SECONDS = 0.1  # for one that is just being spawned; a busy machine takes 20 ms
TAIL_BYTES = 16 * 1024
TAIL_LINES = 30  # a .NET stack trace with what led to it
# The box in which a Host says who it is, when it starts: nothing of it tells how it ended.
_BANNER = re.compile(r"^\+=+\+\r?\n\|\s*Uno Platform DevServer\s*\|\r?\n(?:[+|].*\n)*?\+=+\+\r?\n?", re.MULTILINE)


class Output:
    """The file that takes what Hosts print. The first Host of a start begins it anew, a second attempt continues it.

    What the Host before printed stays beside it, in `<name>.previous.log`: it tells how that one ended.
    """

    def __init__(self, path: str) -> None:
        """OSError: there cannot be such a file."""
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
        """The last lines of what was printed behind `start`; of everything, if somebody has emptied the file."""
        size = self.size()
        start = max(start if start <= size else 0, size - TAIL_BYTES)
        os.lseek(self.handle, start, os.SEEK_SET)  # writing goes to the end all the same
        return "\n".join(last_lines(os.read(self.handle, TAIL_BYTES)))


def last_lines(printed: bytes) -> tuple[str, ...]:
    """What is worth telling of the end of an output."""
    return tuple(_BANNER.sub("", decode(printed)).splitlines()[-TAIL_LINES:])


def previous_path(path: str) -> str:
    """Where the output that was at this path is kept from the next start on."""
    name, ending = os.path.splitext(path)
    return f"{name}.previous{ending}"


def _keep_previous(path: str) -> None:
    try:
        os.replace(path, previous_path(path))
    except OSError:
        pass  # there is none, or it cannot be moved: a start does not fail for that


_spawned: set[Child] = set()  # those that may still run; several threads may spawn
_spawning = _thread.allocate_lock()  # held while a child comes into being, which has to be known before all are ended
_may_spawn = True


def end_all_children() -> None:
    """End every child at once, by force, and whatever else we run: for a process that has no time left."""
    global _may_spawn
    _may_spawn = False
    held = _spawning.acquire(timeout=SPAWN_SECONDS)
    for child in tuple(_spawned):
        if child.exit_code() is None:
            child.end_the_rest()
    if held:
        _spawning.release()
    stop_all()


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
        """Its output to read from, and its input to write to, if it was spawned to be spoken to."""
        process = self._process
        return (process.stdout, process.stdin) if process.stdout and process.stdin else None

    def exit_code(self) -> int | None:
        """None while it runs; negative is the signal that ended it."""
        return self._process.poll()

    def wait(self) -> int:
        """Its exit code, whenever that comes."""
        return self._process.wait()

    def printed(self) -> str:
        """The end of what it printed so far."""
        return self._output.tail(self._start)

    def release(self) -> None:
        """It is not ended with us, whatever happens."""
        _spawned.discard(self)

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ask it to end, with all that it started; after a while end them."""
        if self.exit_code() is None:
            self._signal("SIGTERM")
            if not self._all_end_within(grace_seconds):
                self.end_the_rest()
                self._all_end_within(KILL_SECONDS)

    def end_the_rest(self) -> None:
        """End at once what it started and left behind, to be called when it has just ended: its number comes again."""
        self._signal("SIGKILL")

    def _all_end_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.exit_code() is None or _group_exists(self.pid):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _signal(self, name: str) -> None:
        """To the whole group: a script that is asked to end does not pass that on."""
        try:
            if sys.platform == "win32":
                self._process.terminate()  # by force, and the child alone: there is nothing else
            else:
                import signal

                os.killpg(self.pid, signal.Signals[name])
        except OSError:
            pass  # all of them have gone


def spawn(
    line: Sequence[str],
    *,
    folder: str,
    environ: Mapping[str, str],
    output: Output,
    spoken_to: bool = False,
    reads: int = subprocess.DEVNULL,
) -> Child:
    """Start a program in a folder; OSError when that is not possible. `spoken_to`: with pipes (`Child.pipes`); else it
    `reads` from that handle.
    """
    start = output.size()
    with _spawning:
        if not _may_spawn:
            raise OSError(errno.ECANCELED, "this process ends")
        process = _popen(spoken_to)(
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
        child = Child(process, output, start)
        _spawned.difference_update([one for one in tuple(_spawned) if one.exit_code() is not None])
        _spawned.add(child)
    return child


def _popen(spoken_to: bool) -> type[subprocess.Popen[bytes]]:
    if sys.platform == "win32" and spoken_to:
        from asyncio.windows_utils import Popen  # an event loop cannot wait for pipes of another kind there

        return Popen
    return subprocess.Popen


def _group_exists(leader: int) -> bool:
    """Whether anything of the group runs, apart from a leader that has ended."""
    if sys.platform == "win32":
        return False
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except OSError:  # those that are left run as another user
        return True
    return not (sys.platform == "linux" and _all_ended(leader))


def _all_ended(group: int) -> bool:
    """What has ended belongs to its group until its parent has asked how, which the first process of a container,
    that inherits the children of a dead parent, does when it likes.
    """
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:
                    state, _parent, of_group = stream.read().rpartition(b")")[2].split()[:3]
            except OSError:
                continue  # it went meanwhile
            if int(of_group) == group and state not in (b"Z", b"X"):
                return False
    return True


GUARD_POLL_SECONDS = 0.2  # only where the system cannot wake us
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def guard(child: Child, interrupted: Callable[[], bool]) -> int:
    """The Host's exit code, when it has ended; `interrupted`: a signal came before we could look."""
    # What was ignored stays ignored: nohup and background jobs rely on it.
    ending = [number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    if hasattr(signal, "pthread_sigmask"):
        # The system drops this signal where nobody handles it, and then nobody would wake us.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, (*ending, signal.SIGCHLD))
    while child.exit_code() is None:
        if interrupted() or _ending_asked_for(ending):
            child.stop()
    return child.wait()


def _ending_asked_for(ending: Sequence[int]) -> bool:
    """Sleep until something happens; whether it is a signal that asks us to end."""
    if hasattr(signal, "pthread_sigmask"):
        return signal.sigwait((*ending, signal.SIGCHLD)) != signal.SIGCHLD
    try:
        time.sleep(GUARD_POLL_SECONDS)
    except KeyboardInterrupt:
        return True
    return False
