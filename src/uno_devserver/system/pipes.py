"""Named pipes as .NET uses them: their paths, and listening on them.

A pipe is open to this user alone, is never taken from a process that is alive, and leaves no file when it is closed.
Every failure is a `PipeProblem` that names the pipe and the next step. Imported before a launch, so it imports asyncio
only inside functions.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable, Mapping
    from typing import Protocol

    class _Server(Protocol):
        def close(self) -> object: ...

    OnConnection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]

UNIX_PREFIX = "CoreFxPipe_"
WINDOWS_FOLDER = "\\\\.\\pipe\\"
# The longest path of a socket in bytes, without the zero at its end.
MAX_LINUX_PATH = 107
MAX_OTHER_UNIX_PATH = 103
MAX_WINDOWS_PATH = 256
RESERVED = "anonymous"  # .NET refuses this name in servers and clients

# Turns of the event loop before closing, to accept waiting clients: asyncio drops those that it is still accepting.
ACCEPT_TURNS = 3
LOCK_SECONDS = 1.0  # another process holds the lock for far less than a millisecond
LOCK_POLL_SECONDS = 0.01


class PipeProblem(Exception):
    """A pipe cannot be used. The message says which one, why, and what to do."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"The pipe '{name}' {reason}")
        self.name = name


class PipeTaken(PipeProblem):
    """Another process listens on the pipe."""


class Listener:
    """A pipe on which this process listens. Its connections stay open after `close`."""

    def __init__(self, path: str, servers: list[_Server], identity: tuple[int, int] | None) -> None:
        self.path = path
        self._servers = servers
        self._identity = identity

    @property
    def reachable(self) -> bool:
        """Whether clients can connect: a cleanup of the temp folder may have removed the socket."""
        return sys.platform == "win32" or (self._identity is not None and self._identity == _identity(self.path))

    async def close(self) -> None:
        """Stop listening. Clients that are connecting at this moment are still accepted."""
        import asyncio

        try:
            if sys.platform != "win32" and self.reachable:
                os.unlink(self.path)
        except OSError:
            pass  # the socket was removed, or the folder is read-only now; the pipe is closed nevertheless
        try:
            for _ in range(ACCEPT_TURNS):
                await asyncio.sleep(0)
        finally:
            for server in self._servers:
                server.close()


async def listen(name: str, on_connection: OnConnection) -> Listener:
    """Listen on the pipe of that name; `on_connection` gets the streams of each client."""
    import asyncio

    path = pipe_path(name)
    loop = asyncio.get_running_loop()

    def protocol() -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), on_connection)

    try:
        if sys.platform == "win32":
            assert isinstance(loop, asyncio.ProactorEventLoop)  # the default on Windows
            return Listener(path, [*await loop.start_serving_pipe(protocol, path)], None)
        listening = await _claim(name, path)
        server = await loop.create_unix_server(protocol, sock=listening, start_serving=False)
        listener = Listener(path, [server], _identity(path))
        try:
            await server.start_serving()
        except BaseException:  # including cancellation
            await listener.close()
            raise
        return listener
    except OSError as error:
        if sys.platform == "win32" and isinstance(error, PermissionError):
            raise _taken(name, path) from error  # how Windows reports that another process has the first instance
        raise _failure(name, path, error) from error


def pipe_path(name: str, platform: str = sys.platform, environ: Mapping[str, str] | None = None) -> str:
    """The path at which .NET programs look for the pipe: in the temp folder, or in the pipe folder of Windows."""
    rooted = platform != "win32" and name.startswith("/")
    if not name:
        raise PipeProblem(name, "has no name. Give it one, as a rule a GUID.")
    if "\0" in name or ("/" in name and not rooted) or not _is_text(name):
        raise PipeProblem(name, "has a character that a name cannot have. Use letters, digits and hyphens.")
    if name.lower() == RESERVED:
        raise PipeProblem(name, "has a name that .NET reserves. Use another one.")
    if platform == "win32":
        path = WINDOWS_FOLDER + name
        length, limit = len(path), MAX_WINDOWS_PATH
    else:
        path = name if rooted else temp_folder(os.environ if environ is None else environ) + UNIX_PREFIX + name
        length = len(os.fsencode(path))
        limit = MAX_LINUX_PATH if platform == "linux" else MAX_OTHER_UNIX_PATH
    if length > limit:
        shorten = "Use a shorter name." if platform == "win32" else "Use a shorter name, or a shorter folder in TMPDIR."
        raise PipeProblem(name, f"would be {path}, which has {length} bytes; the limit is {limit}. {shorten}")
    return path


def temp_folder(environ: Mapping[str, str]) -> str:
    """The same as .NET's Path.GetTempPath on Unix: the only variable that it uses is TMPDIR."""
    folder = environ.get("TMPDIR") or "/tmp/"  # noqa: S108  # .NET's default, where .NET programs look
    return folder if folder.endswith("/") else folder + "/"


def _is_text(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:  # a lone surrogate, which JSON can contain
        return False
    return True


async def _claim(name: str, path: str) -> socket.socket:
    """Return a socket that listens at the path; a socket that a dead process has left there is removed."""
    import socket

    # Without the lock, two processes could find the old socket, and the second would remove the first one's new socket.
    lock = await _lock_folder(os.path.dirname(path) or ".")
    try:
        _make_way(name, path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(path)
            os.chmod(path, 0o600)  # before `listen`: until then no client can connect
            listening.listen()
        except OSError:
            listening.close()
            raise
        return listening
    finally:
        if lock is not None:
            os.close(lock)


async def _lock_folder(folder: str) -> int | None:
    """A handle that locks the folder against other claims; None, or a handle without the lock, if that fails."""
    import asyncio
    import fcntl
    import time

    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None  # binding reports what is wrong with the folder
    deadline = time.monotonic() + LOCK_SECONDS
    try:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                await asyncio.sleep(LOCK_POLL_SECONDS)
    except BaseException:  # cancelled
        os.close(handle)
        raise
    return handle


def _make_way(name: str, path: str) -> None:
    import stat

    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise PipeProblem(name, f"cannot be opened: {path} exists and is not a socket. Remove it, or use another name.")
    if _is_listened_on(path):
        raise _taken(name, path)
    os.unlink(path)


def remove_if_left(path: str) -> bool:
    """Remove a socket of this user if no process listens on it any more; returns whether it was removed."""
    import fcntl
    import stat

    try:
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)  # another process may be about to listen
        status = os.lstat(path)
        if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid() or _is_listened_on(path):
            return False
        os.unlink(path)
    except OSError:  # the socket was removed, or cannot be checked
        return False
    finally:
        os.close(folder)
    return True


def _is_listened_on(path: str) -> bool:
    """Whether a process listens; asks the kernel first, because a .NET server stops listening after any connection."""
    import socket

    if path in _listening_sockets():
        return True
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return False
        except BlockingIOError:
            pass  # a process listens, and its queue is full
    return True


def _listening_sockets() -> set[str]:
    """The paths of the sockets on which processes listen; empty on systems other than Linux."""
    listens = "00010000"  # the value in the column of flags
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as table:
            rows = [line.rstrip("\n").split(None, 7) for line in table]
    except OSError:
        return set()
    return {row[7] for row in rows if len(row) == 8 and row[3] == listens}


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _taken(name: str, path: str) -> PipeTaken:
    return PipeTaken(name, f"is taken: another process listens on {path}. Stop that one, or use another name.")


def _failure(name: str, path: str, error: OSError) -> PipeProblem:
    folder = os.path.dirname(path)
    return PipeProblem(name, f"cannot be opened at {path}: {error.strerror}. Check the folder {folder}.")
