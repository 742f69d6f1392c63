"""Read files that other programs wrote, and replace files that other programs read.

Reading is bounded, and every failure except a missing file is a `FileProblem` that names the file. Writing is all or
nothing: a reader sees the old content or the new, even after a crash.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO, TypeVar

    T = TypeVar("T")

# More than the largest file that is read: the project.assets.json of 2,000 packages has 20 MB.
MAX_BYTES = 256 * 1024 * 1024

# The longest first, because that of UTF-32 begins with that of UTF-16.
_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)

FOREIGN, SHARED = "it belongs to another user", "other users may write it"
NO_FILE = "it is not a regular file"
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # a flag for opening a file, but not the target of a link; Windows has none
# Opening a FIFO or a device would block without O_NONBLOCK.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

TEMPORARY = ".uno-devserver.tmp"  # ends the names of our temporary files, which are removed when their writer is gone

# On Windows, how long steps are repeated that other programs may exclude: a reader needs some milliseconds, a virus
# scanner some hundred, several writers a second. Reading ends earlier: the user may simply not be allowed to read.
READ_SECONDS, WRITE_SECONDS = 0.5, 3.0

_ACL = "system.posix_acl_access"
# Attributes that are valid for the old content only; the kernel drops or renews them when a file is written in place.
_OF_THE_CONTENT = ("security.capability", "security.ima", "security.evm")


class FileProblem(Exception):
    """A file could not be used. The message, which is for users, names the file and the reason."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class ChangedMeanwhile(FileProblem):
    """Another program changed the file after it was read and before it was written."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "another program changed it at the same moment")


def read_bytes(path: str, limit: int = MAX_BYTES, *, own: bool = False) -> bytes:
    """The whole content of a regular file of at most `limit` bytes; raises FileProblem or FileNotFoundError.

    With `own`, links and files of other users are refused.
    """
    handle = _open(path, NO_LINKS if own else 0)
    try:
        size = _size(handle, path, own)
        if size > limit:
            raise FileProblem(path, f"it has {size:,} bytes; the limit is {limit:,}")
        data = os.read(handle, (size or 65535) + 1)  # files of /proc have the size 0
        if len(data) == size:
            return data
        chunks = [data]  # its size is not told, or is just changing
        room = limit + 1 - len(data)
        while room > 0 and (chunk := os.read(handle, min(room, max(size + 1, 65536)))):
            chunks.append(chunk)
            room -= len(chunk)
        if room <= 0:
            raise FileProblem(path, f"it grew over the limit of {limit:,} bytes")
        return b"".join(chunks)
    except OSError as error:
        raise FileProblem(path, _reason(error)) from error
    finally:
        os.close(handle)


def open_regular(path: str) -> BinaryIO:
    """Open a regular file of any size, to read parts of it; raises FileProblem or FileNotFoundError."""
    handle = _open(path)
    try:
        _size(handle, path)
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_head(path: str, count: int) -> bytes:
    """The first `count` bytes of a regular file of any size; raises FileProblem or FileNotFoundError."""
    handle = _open(path)
    try:
        _size(handle, path)
        return os.read(handle, count)
    except OSError as error:
        raise FileProblem(path, _reason(error)) from error
    finally:
        os.close(handle)


def _open(path: str, flags: int = 0) -> int:
    try:
        return when_free(lambda: _open_to_read(path, _READ | flags), path, READ_SECONDS)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError) and os.path.isdir(path):  # as Windows refuses to open a folder
            raise FileProblem(path, NO_FILE) from None
        raise FileProblem(path, _reason(error)) from error


def _open_to_read(path: str, flags: int) -> int:
    if sys.platform == "win32":
        from .file_sharing import open_to_read

        return open_to_read(path, flags)
    return os.open(path, flags)


def _size(handle: int, path: str, own: bool = False) -> int:
    status = os.fstat(handle)
    if (status.st_mode & 0o170000) != 0o100000:
        raise FileProblem(path, NO_FILE)
    if own and is_foreign(status):
        raise FileProblem(path, FOREIGN)
    if own and os.name != "nt" and status.st_mode & 0o002:
        raise FileProblem(path, SHARED)
    return status.st_size


def is_foreign(status: os.stat_result) -> bool:
    """Whether a file belongs neither to this user nor to root, who may change every file. Windows does not tell."""
    return os.name != "nt" and status.st_uid not in (os.geteuid(), 0)


def decode(data: bytes) -> str:
    """The text, decoded by its byte order mark or as UTF-8; undecodable bytes become U+FFFD, as in .NET."""
    bom, encoding = encoding_of(data)
    return data[len(bom) :].decode(encoding, "replace")


def encoding_of(data: bytes) -> tuple[bytes, str]:
    """The byte order mark, which may be empty, and the name of the encoding."""
    return next((known for known in _BOMS if data.startswith(known[0])), (b"", "utf-8"))


def names_in(folder: str) -> list[str]:
    """The sorted names in a folder; none if it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_text(path: str) -> str:
    return decode(read_bytes(path))


def write_atomic(
    path: str,
    data: bytes,
    mode: int = 0o600,
    *,
    like: os.stat_result | None = None,
    was: bytes | None = None,
    new: bool = False,
    durable: bool = True,
) -> None:
    """Replace the content of `path` by `data`, creating its folder; on any failure the old content stays.

    With `like` the new file gets that owner and mode, and the attributes of the file that it replaces. Raises
    ChangedMeanwhile if `was` is given and is no longer the content, and FileExistsError if the file must be `new` but
    exists. With `durable` the content survives a crash of the machine, too.
    """
    folder = os.path.dirname(path) or "."
    make_folders(folder)
    temporary, handle = _create_beside(path, mode)
    try:
        with open(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            if like is not None and os.name != "nt":
                _make_alike(stream.fileno(), like, path)
            if durable:
                os.fsync(stream.fileno())
        if was is not None and read_bytes(path) != was:
            raise ChangedMeanwhile(path)
        if new:
            _put_where_nothing_is(temporary, path)
        else:
            replace_file(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise


def when_free(step: Callable[[], T], path: str, seconds: float = WRITE_SECONDS) -> T:
    """Take a step with a file; on Windows, where programs exclude each other from files, for a limited time."""
    if sys.platform == "win32":
        from .file_sharing import repeated

        return repeated(step, path, seconds)
    return step()


def replace_file(source: str, target: str) -> None:
    """Rename a file to `target`, in the place of the file there, even if that is just being read; raises OSError."""
    when_free(lambda: os.replace(source, target), target)


def remove_file(path: str) -> None:
    """Remove a file, even if it is just being read; raises OSError."""
    when_free(lambda: os.unlink(path), path)


def make_folders(path: str) -> None:
    """Create the folder and its missing parents. Unlike with `makedirs`, only this user can access any of them."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    if above and above != path:
        make_folders(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):  # otherwise another process was faster
            raise NotADirectoryError(20, "Not a directory", path) from None


def _put_where_nothing_is(temporary: str, path: str) -> None:
    """Rename `temporary` to `path` by a link, which fails if another program has just created a file there."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: check as late as possible
        if os.path.lexists(path):
            raise FileExistsError(17, "it is there already", path) from None
        replace_file(temporary, path)
    else:
        remove_file(temporary)


def _make_alike(handle: int, like: os.stat_result, path: str) -> None:
    new = os.fstat(handle)
    if (new.st_uid, new.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(handle, like.st_uid, like.st_gid)  # allowed to root; the group also to its members
        except PermissionError as error:
            raise PermissionError(13, "it is another user's or group's, and could not stay that", path) from error
    os.fchmod(handle, like.st_mode & 0o7777)
    if hasattr(os, "listxattr"):
        _copy_attributes(path, handle)  # after the mode, whose group bits have another meaning with an ACL


def _copy_attributes(path: str, handle: int) -> None:
    """Copy the extended attributes; raises PermissionError if the access control list cannot be kept."""
    names = _attributes(path)
    for name in names:
        if name in _OF_THE_CONTENT:
            continue
        try:
            os.setxattr(handle, name, os.getxattr(path, name))
        except OSError as error:
            if name == _ACL:
                raise PermissionError(13, "its access control list (ACL) could not be kept", path) from error
            if not _is_no_attribute(error):
                raise
    if _ACL not in names and _ACL in _attributes(handle):
        os.removexattr(handle, _ACL)  # it comes from the folder's default for new files, and the old file had none


def _attributes(file: str | int) -> list[str]:
    try:
        return os.listxattr(file)
    except OSError as error:
        if _is_no_attribute(error):
            return []
        raise


def _is_no_attribute(error: OSError) -> bool:
    """Whether the file system has no attributes, this one may not be set, or it has just been removed."""
    import errno  # here, because commands that only read files import this module, too

    none = (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENOSYS, getattr(errno, "ENODATA", errno.ENOTSUP))
    return error.errno in none


def rewrite(path: str, data: bytes, was: bytes | None = None) -> None:
    """Replace the content of an existing file by `data`, all or nothing; raises ChangedMeanwhile if it is not `was`.

    Mode, owner, group, access control list and extended attributes stay. If `path` is a link, its target is written.
    A write-protected file raises PermissionError, although replacing it would work: its owner does not want that.
    """
    path = os.path.realpath(path)
    status = os.stat(path)
    if is_write_protected(path):
        raise PermissionError(13, "it is write-protected", path)
    write_atomic(path, data, like=status, was=was)


def is_write_protected(path: str) -> bool:
    try:
        return not os.stat(path).st_mode & 0o222 or not os.access(path, os.W_OK)
    except OSError:
        return False  # the file does not exist, or writing it reports the problem


def _create_beside(path: str, mode: int) -> tuple[str, int]:
    """Create a temporary file next to `path`, with a name that no other writer uses; return its path and handle."""
    number = 0
    while True:
        temporary = f"{path}.{os.getpid()}-{number}{TEMPORARY}"
        try:
            return temporary, os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode
            )
        except FileExistsError:
            number += 1  # the file belongs to another thread, or a killed process with the same id has left it


def sweep(folder: str, name: str | None = None) -> None:
    """Remove temporary files that killed writers have left in a folder: those of one file, or all."""
    found = [one for one in names_in(folder) if one.endswith(TEMPORARY)]
    if not found:
        return
    import re

    from .log import log
    from .processes import is_alive

    left = re.compile(
        (".+" if name is None else re.escape(name)) + r"\.([0-9]{1,9})-[0-9]+" + re.escape(TEMPORARY), re.DOTALL
    )
    for one in found:
        match = left.fullmatch(one)
        if match and not is_alive(int(match[1])):
            try:
                os.unlink(os.path.join(folder, one))
            except OSError as error:
                log.debug(f"{one} stays: {error}")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)
