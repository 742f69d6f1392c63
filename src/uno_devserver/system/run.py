"""Run another program to its end within bounds, and end all started programs at once.

A program has no terminal, no input except the given one, a process group of its own (on Windows a job, `jobs.py`), a
time limit after which the whole group is killed, and a limit on the output that is kept. `run` always returns, and
leaves no process of the group running, unless the caller asks for it.
"""

from __future__ import annotations

import _thread
import errno
import os
import sys

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    import threading
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

POLL_SECONDS = 0.05  # for programs whose output is held open by another process; otherwise the end is noticed at once
BEGIN_SECONDS = 0.1  # how long to wait for a process that is just being started; a busy machine takes 20 ms
KILL_SECONDS = 0.5  # a killed process ends at once, except while the kernel waits for a disk
ENDING = "was given up, because this process is ending"
GIVEN_UP = "was given up"

_starting = _thread.allocate_lock()  # held while a process is started, so that `stop_all` does not miss it
_running: set[subprocess.Popen[bytes]] = set()  # the processes that may still run; several threads add to it
_JOB = "uno_devserver_job"  # the attribute of a process with its job, on Windows
_ending = False


class RunOutcome(Value):
    exit_code: int | None  # None if the program was not started, or was killed by us
    output: bytes  # standard output, and standard error if that was asked for
    problem: str = ""  # the end of a sentence: why there is no exit code, e.g. "gave no answer within 2 s"

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
    spares_helpers: bool = False,
) -> RunOutcome:
    """Run `arguments` (the program by its full path) and return its output, cut after `keep_bytes`.

    `hear` is called with all of the output while the program runs, in another thread. The program is stopped when
    `go_on` returns False. With `input_stays` its input stays open until the program or this process ends. With
    `spares_helpers` other processes of its group go on if it ends by itself.
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
            process = start_process(
                arguments,
                cwd=cwd,
                env=dict(environ),
                stdin=subprocess.PIPE if input_bytes or input_stays else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if with_errors else subprocess.DEVNULL,
                bufsize=0,
                # .NET finds its helpers by names that belong to a session.
                start_new_session=not spares_helpers,
                process_group=0 if spares_helpers else None,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except (OSError, ValueError) as error:
            return RunOutcome(None, b"", ENDING if _ending else f"could not be started: {error}")
        finally:
            interrupts.release()
        # In threads, because a process that the program left running could hold a pipe open forever.
        reader = threading.Thread(target=_read, args=(process, output, keep_bytes, hear), daemon=True)
        reader.start()
        if input_bytes:
            threading.Thread(target=_write, args=(process, input_bytes), daemon=True).start()
        in_time = not _ending and _wait(process, reader, deadline, go_on)
    finally:  # also after an interrupt, and for processes that the program itself left running
        if process is not None:
            if not spares_helpers or process.poll() is None:
                _kill(process)
            else:
                _spare(process)
            forget_process(process)
            if input_stays and process.stdin:
                process.stdin.close()
    if _ending:  # `stop_all` was called since the start
        return RunOutcome(None, bytes(output), ENDING)
    if not in_time:
        reader.join(KILL_SECONDS)  # so that no earlier output is lost
        if not go_on():
            return RunOutcome(None, bytes(output), GIVEN_UP)
        return RunOutcome(None, bytes(output), f"gave no answer within {seconds:g} s and was stopped")
    reader.join(KILL_SECONDS)
    return RunOutcome(process.returncode, bytes(output))


class _Interrupts:
    """Delays Ctrl+C until `release`, because a process would be lost between its start and the assignment."""

    def __init__(self) -> None:
        import signal

        self._came = False
        self._before = signal.getsignal(signal.SIGINT)
        self._held = callable(self._before)  # an ignored signal stays ignored
        try:
            if self._held:
                signal.signal(signal.SIGINT, self._remember)
        except ValueError:  # this is not the main thread, and only that one is interrupted
            self._held = False

    def release(self) -> None:
        import signal

        if self._held:
            signal.signal(signal.SIGINT, self._before)
        if self._came:
            raise KeyboardInterrupt

    def _remember(self, _number: int, _frame: object) -> None:
        self._came = True


def start_process(
    line: Sequence[str], *, popen: type[subprocess.Popen[bytes]] | None = None, outlives: bool = False, **options: Any
) -> subprocess.Popen[bytes]:
    """Start a process with these options of Popen; raises OSError.

    `stop_all` ends it, and the system does on Windows when this process ends, unless it `outlives` this one.
    """
    import subprocess

    with _starting:
        if _ending:
            raise OSError(errno.ECANCELED, "this process ends")
        process = _start(popen or subprocess.Popen, list(line), options, outlives)
        _running.add(process)
        # A copy: other threads forget their processes meanwhile.
        _running.difference_update([one for one in tuple(_running) if one.poll() is not None])
    return process


def _start(
    popen: type[subprocess.Popen[bytes]], line: list[str], options: dict[str, Any], outlives: bool
) -> subprocess.Popen[bytes]:
    if sys.platform == "win32":
        from .cmd_exe import batch_command, is_batch_file
        from .jobs import start_in_job

        command: list[str] | str = line
        if is_batch_file(line[0]):
            options["executable"], command = batch_command(line, os.environ)
        try:
            process, job = start_in_job(popen, command, options, outlives=outlives)
        except NotADirectoryError as error:  # which does not name the folder
            raise NotADirectoryError(error.errno, "there is no such folder", options.get("cwd")) from error
        setattr(process, _JOB, job)
        return process
    return popen(line, **options)


def forget_process(process: subprocess.Popen[bytes]) -> None:
    """Let a process outlive `stop_all`."""
    _running.discard(process)


def stop_all() -> None:
    """Kill the groups of all started processes, and let no more start; for use when this process must end at once."""
    global _ending
    _ending = True
    held = _starting.acquire(timeout=BEGIN_SECONDS)
    running = [process for process in tuple(_running) if process.poll() is None]
    for process in running:
        kill_group(process)
    if held:
        _starting.release()


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
        pass  # the program ended without reading its input


def _wait(
    process: subprocess.Popen[bytes], reader: threading.Thread, deadline: float, go_on: Callable[[], bool]
) -> bool:
    """Wait for the end of the program, which the end of its output usually shows; returns whether it came in time."""
    import time

    while process.poll() is None:
        if time.monotonic() >= deadline or not go_on():
            return False
        if reader.is_alive():
            reader.join(POLL_SECONDS)
        else:  # the program has closed its output and goes on, or is about to end
            _wait_for_exit(process, POLL_SECONDS)
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    kill_group(process)
    _wait_for_exit(process, KILL_SECONDS)


def _wait_for_exit(process: subprocess.Popen[bytes], seconds: float) -> None:
    import subprocess

    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass


def ask_module(module: str, request: Mapping[str, Any], seconds: float) -> Any:
    """Run a module of this program with a request as JSON, and return its answer, which is JSON, too. Blocks.

    The process may outlive this one, so that what it has begun is not lost. Raises TimeoutError, OSError or ValueError.
    """
    import json
    import subprocess

    try:
        ran = subprocess.run(
            [sys.executable, "-P", "-m", module],
            input=json.dumps(request).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"It did not answer within {seconds:g} s.") from None
    return json.loads(ran.stdout)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and all others of its group, or on Windows of its job.

    The process may have just ended, but not long ago: its id may be given to another group.
    """
    if sys.platform == "win32":
        _job(process).kill()
        return
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass  # all processes of the group have ended


def group_exists(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process of the group runs. A zombie does not run, but only Linux shows which processes are zombies."""
    if sys.platform == "win32":
        return bool(_job(process).has_processes())
    from . import proc

    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the rest of the group runs as another user
        return True
    # A zombie stays in its group until its parent waits for it. The first process of a container, which inherits
    # orphans, may never do that.
    return not proc.AVAILABLE or proc.is_group_alive(process.pid)


def _spare(process: subprocess.Popen[bytes]) -> None:
    """Let what the process has started go on; on Windows it would end with the job."""
    if sys.platform == "win32":
        _job(process).spare()


def _job(process: subprocess.Popen[bytes]) -> Any:
    """The Job of a process that `start_process` has started on Windows."""
    return getattr(process, _JOB)
