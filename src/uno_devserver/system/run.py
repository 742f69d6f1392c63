"""Running another program to its end, within bounds.

It gets no terminal and no input but what is given, a process group of its own, a time limit after which the whole
group is killed, and a limit on the output that is kept. Whatever happens, this returns; nothing is left running
that belongs to the group.
"""

from __future__ import annotations

import _thread
import os
import sys

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    import threading
    from collections.abc import Callable, Mapping, Sequence

POLL_SECONDS = 0.05  # the end of the output is noticed at once; this only counts where something holds it open
BEGIN_SECONDS = 0.1  # for a program that is just being started; a busy machine takes 20 ms
KILL_SECONDS = 0.5  # a killed process goes at once, except while the kernel waits for a disk
ENDING = "was given up, because this process is ending"
GIVEN_UP = "was given up"

_beginning = _thread.allocate_lock()  # held while a program is started: it has to be known before all are ended
_running: set[subprocess.Popen[bytes]] = set()
_may_run = True


class RunOutcome(Value):
    exit_code: int | None  # None: it was not started, or killed by us
    output: bytes  # standard output, and standard error if that was asked for
    problem: str = ""  # why there is no exit code, as a sentence's end: "gave no answer within 2 s"

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0


def run(
    arguments: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    seconds: float,
    keep_bytes: int,
    input_bytes: bytes = b"",
    with_errors: bool = True,
    hear: Callable[[bytes], None] | None = None,
    go_on: Callable[[], bool] = lambda: True,
    input_stays: bool = False,
) -> RunOutcome:
    """Run `arguments` (the program by its full path) and return what it printed, cut at `keep_bytes`.

    `hear` is told all of it while it runs, on another thread. When `go_on` says no, the program is stopped.
    `input_stays`: nothing comes on its input, whose end is that of this process.
    """
    import subprocess
    import threading
    import time

    deadline = time.monotonic() + seconds
    process = None
    output = bytearray()
    interrupts = _Interrupts()
    try:
        try:
            with _beginning:
                if _ending():
                    return RunOutcome(None, b"", ENDING)
                process = subprocess.Popen(
                    list(arguments),
                    cwd=cwd,
                    env=dict(environ),
                    stdin=subprocess.PIPE if input_bytes or input_stays else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if with_errors else subprocess.DEVNULL,
                    bufsize=0,
                    start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                )
                _running.add(process)
        except (OSError, ValueError) as error:
            return RunOutcome(None, b"", f"could not be started: {error}")
        finally:
            interrupts.release()
        # On threads, because something that the program left running could hold a pipe open for ever.
        reader = threading.Thread(target=_read, args=(process, output, keep_bytes, hear), daemon=True)
        reader.start()
        if input_bytes:
            threading.Thread(target=_write, args=(process, input_bytes), daemon=True).start()
        in_time = not _ending() and _wait(process, reader, deadline, go_on)
    finally:  # also when we are interrupted, and for what the program itself left running
        if process is not None:
            _kill(process)
            _running.discard(process)
            if input_stays and process.stdin:
                process.stdin.close()
    if _ending():  # meanwhile
        return RunOutcome(None, bytes(output), ENDING)
    if not in_time:
        reader.join(KILL_SECONDS)  # nothing that it printed before is lost
        if not go_on():
            return RunOutcome(None, bytes(output), GIVEN_UP)
        return RunOutcome(None, bytes(output), f"gave no answer within {seconds:g} s and was stopped")
    reader.join(KILL_SECONDS)
    return RunOutcome(process.returncode, bytes(output))


class _Interrupts:
    """Ctrl+C waits until `release`: between the birth of a process and the line that remembers it, it would be lost."""

    def __init__(self) -> None:
        import signal

        self._came = False
        self._before = signal.getsignal(signal.SIGINT)
        self._held = callable(self._before)  # what is ignored stays ignored
        try:
            if self._held:
                signal.signal(signal.SIGINT, self._remember)
        except ValueError:  # other threads are never interrupted; `threading` may take one of them for the main thread
            self._held = False

    def release(self) -> None:
        import signal

        if self._held:
            signal.signal(signal.SIGINT, self._before)
        if self._came:
            raise KeyboardInterrupt

    def _remember(self, _number: int, _frame: object) -> None:
        self._came = True


def stop_all() -> None:
    """End what threads of this process are running, and let nothing more begin: for a process that ends."""
    global _may_run
    _may_run = False
    held = _beginning.acquire(timeout=BEGIN_SECONDS)
    for process in tuple(_running):
        _kill(process)
    if held:
        _beginning.release()


def _ending() -> bool:
    return not _may_run


def _read(
    process: subprocess.Popen[bytes], output: bytearray, keep_bytes: int, hear: Callable[[bytes], None] | None
) -> None:
    assert process.stdout
    with process.stdout as stream:
        while chunk := stream.read(65536):
            output += chunk[: keep_bytes - len(output)]
            if hear is not None:
                hear(chunk)


def _write(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin
    try:
        with process.stdin as stream:
            stream.write(data)
    except OSError:
        pass  # it ended without reading


def _wait(
    process: subprocess.Popen[bytes], reader: threading.Thread, deadline: float, go_on: Callable[[], bool]
) -> bool:
    """Whether the program ended in time. The end of its output tells it at once, as a rule."""
    import time

    while process.poll() is None:
        if time.monotonic() >= deadline or not go_on():
            return False
        if reader.is_alive():
            reader.join(POLL_SECONDS)
        else:  # it closed its output, and works on; or ends at this moment
            _wait_a_little(process)
    return True


def _wait_a_little(process: subprocess.Popen[bytes]) -> None:
    import subprocess

    try:
        process.wait(POLL_SECONDS)
    except subprocess.TimeoutExpired:
        pass


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Stop the whole group, if any of it still runs."""
    import subprocess

    try:
        if sys.platform == "win32":
            process.kill()
        else:
            import signal

            os.killpg(process.pid, signal.SIGKILL)
        process.wait(KILL_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        pass
