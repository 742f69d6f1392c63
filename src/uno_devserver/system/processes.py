"""Processes of this machine: whether one is alive, since when, its name, ancestors and ports; and stopping one.

The system may give the id of a process that has ended to another process. Therefore `stop_process` also takes the
creation time, and never stops another process. Every wait is bounded. Of a process that is just ending, Windows gives
errors that psutil passes on as they are; they count as those of psutil.
"""

from __future__ import annotations

import os
import sys

from . import proc
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import psutil

MAX_PID = 2**31 - 1  # the largest possible id; a file may contain any number
CHAIN_LIMIT = 8  # further ancestors belong to the desktop session, which is of no interest
# Creation times are counted in ticks since the boot, and the time of the boot is known only to the second.
START_SLACK_SECONDS = 2.0
GRACE_SECONDS = 5.0  # a Host that closes its connections needs about 60 ms
KILL_SECONDS = 2.0  # a killed process ends at once, except while the kernel waits for a disk
MAX_COMPUTER_NAME = 15  # characters of a NetBIOS name
POLL_SECONDS = 0.01  # polling is needed because only a parent is notified of the end of a process


class Process(Value):
    pid: int
    name: str | None  # None if it has ended, or is hidden


class StopOutcome(Value):
    """The process has ended, or `problem` says why not."""

    problem: str | None = None
    killed: bool = False  # whether it had to be killed, because it did not end when asked to

    @property
    def gone(self) -> bool:
        return self.problem is None


def is_alive(pid: int) -> bool:
    """Whether the process runs; False for a zombie, and True for a process that the system hides."""
    if not 0 < pid <= MAX_PID:
        return False
    if proc.AVAILABLE:
        return proc.is_alive(pid)
    import psutil

    try:
        return not _is_dead(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OSError):  # the system hides processes of other users
        return True


def process_started(pid: int) -> float | None:
    """When the process was created, in seconds since 1970; None if it has ended, or is hidden."""
    if not 0 < pid <= MAX_PID:
        return None
    if proc.AVAILABLE:
        return proc.created(pid)
    import psutil

    try:
        process = psutil.Process(pid)
        return None if _is_dead(process) else process.create_time()
    except (psutil.Error, OSError):
        return None


def identity(pid: int) -> object:
    """What a process has for all its life, and another with its id has not; None if it has ended, or is hidden.

    The time of its creation is not that: where psutil or the kernel count it from the boot, it moves with the clock.
    """
    if not 0 < pid <= MAX_PID:
        return None
    if proc.AVAILABLE:
        return proc.ticks(pid)
    import psutil

    try:
        process = psutil.Process(pid)
        return None if _is_dead(process) else process  # compared by a time that no clock moves
    except (psutil.Error, OSError):
        return None


def listens_on(pid: int, port: int) -> bool:
    """Whether the process accepts TCP connections on that port; False if the system hides that."""
    if proc.AVAILABLE:
        return proc.listens_on(pid, port)
    import psutil

    try:
        process = psutil.Process(pid)
        sockets = process.net_connections("tcp") if hasattr(process, "net_connections") else process.connections("tcp")
    except (psutil.Error, OSError):
        return False
    return any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in sockets)


def working_directory(pid: int) -> str | None:
    import psutil

    try:
        return psutil.Process(pid).cwd() or None
    except (psutil.Error, OSError):
        return None


def command_line(pid: int) -> tuple[str, ...]:
    """The command line of the process; empty if it has ended, or is hidden."""
    if proc.AVAILABLE:
        try:
            return proc.command_line(pid)
        except OSError:
            return ()
    import psutil

    try:
        return tuple(psutil.Process(pid).cmdline())
    except (psutil.Error, OSError):
        return ()


def chain(pid: int, registered_parent: int) -> tuple[Process, ...]:
    """The process, the parent that it was registered with (else its real parent), and further ancestors."""
    links: list[Process] = []
    following = pid
    while following > 0 and len(links) < CHAIN_LIMIT and all(link.pid != following for link in links):
        name, parent = _name_and_parent(following)
        links.append(Process(following, name))
        following = registered_parent if len(links) == 1 and registered_parent > 0 else parent
    return tuple(links)


def _name_and_parent(pid: int) -> tuple[str | None, int]:
    import psutil

    try:
        process = psutil.Process(pid)
        return process.name(), process.ppid()
    except (psutil.Error, OSError):
        return None, 0


def stop_process(
    pid: int, started: float, *, grace_seconds: float = GRACE_SECONDS, kill_seconds: float = KILL_SECONDS
) -> StopOutcome:
    """End the process that was created at `started` (see `process_started`), by asking, then by force.

    Force also ends its descendants, since no other program would do that. Windows has no way to ask. If it has already
    ended, or another process has its id by now, nothing is done. Returns after `grace_seconds + kill_seconds` at the
    latest.
    """
    import psutil

    if pid == os.getpid() or pid <= 1:
        return StopOutcome(f"process {pid} is not one to stop")
    try:
        process = psutil.Process(pid)
        if not _is_still(process, started):
            return StopOutcome()
        can_ask = sys.platform != "win32"
        if can_ask:
            process.terminate()
            if _wait_until_gone([process], grace_seconds):
                return StopOutcome()
        family = [process, *process.children(recursive=True)]
        for member in family:
            _kill(member)
        if _wait_until_gone(family, kill_seconds) or _is_dead(process):
            return StopOutcome(killed=can_ask)
        return StopOutcome(f"process {pid} is still there {grace_seconds + kill_seconds:g} s after it was told to end")
    except psutil.NoSuchProcess:
        return StopOutcome()
    except (psutil.AccessDenied, OSError):
        return StopOutcome(f"the system does not allow us to end process {pid}")


def _is_dead(process: psutil.Process) -> bool:
    import psutil

    try:
        # The status alone could be that of another process, which has been given the id since.
        return not process.is_running() or process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True


def _is_still(process: psutil.Process, started: float) -> bool:
    return not _is_dead(process) and abs(process.create_time() - started) <= START_SLACK_SECONDS


def _wait_until_gone(processes: list[psutil.Process], seconds: float) -> bool:
    import time

    deadline = time.monotonic() + seconds
    while not all(_is_dead(process) for process in processes):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _kill(process: psutil.Process) -> None:
    import psutil

    try:
        process.kill()
    except (psutil.Error, OSError):  # the process has ended, or is a child that runs as another user
        pass


def machine_name() -> str:
    """The same as .NET's Environment.MachineName: on Unix the host name up to its first dot."""
    if sys.platform == "win32":
        import ctypes  # imported late: only those who read the registry need it
        from ctypes import wintypes

        length = wintypes.DWORD(MAX_COMPUTER_NAME + 1)
        name = ctypes.create_unicode_buffer(length.value)
        known = ctypes.WinDLL("kernel32").GetComputerNameW(name, ctypes.byref(length))
        return name.value if known else ""
    return os.uname().nodename.partition(".")[0]


def user_name() -> str:
    """The same as .NET's Environment.UserName; may be empty.

    On Unix it is the name of the passwd entry, on Windows that of the session. Variables such as $USER may be set
    otherwise, and AI clients start servers without them.
    """
    if sys.platform == "win32":
        try:
            return os.getlogin()
        except OSError:
            return ""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # the user has no passwd entry, as in some containers
        return ""


def listener_in_family(pid: int, port: int) -> int | None:
    """The id of the process or of its descendant that listens on the port; None if none of them does."""
    if listens_on(pid, port):
        return pid
    import psutil

    try:
        descendants = [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except (psutil.Error, OSError):
        return None
    return next((descendant for descendant in descendants if listens_on(descendant, port)), None)


def listener(port: int) -> Process | None:
    """The process that listens on the port; None if there is none, or it is hidden."""
    import psutil

    try:
        connections = psutil.net_connections("tcp")
    except psutil.Error:  # macOS shows connections only to root
        return None
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
        if listens and connection.pid:
            return Process(connection.pid, _name_and_parent(connection.pid)[0])
    return None


def how_it_ended(exit_code: int | None, subject: str = "it") -> str:
    """A clause without a full stop that says how a process ended; a negative code is the number of a signal."""
    if exit_code is None:
        return f"{subject} ended"
    signalled = exit_code < 0
    return f"{subject} was ended by signal {-exit_code}" if signalled else f"{subject} ended with exit code {exit_code}"
