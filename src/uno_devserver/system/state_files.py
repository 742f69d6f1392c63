"""The files in this program's own folders: their names, and reading and writing them for this user alone.

A file or folder of another user is not used, nor is a link in the place of a file, nor a file that others may write:
another user could have put it there, or changed it, while the folder had wider permissions. Folders that others may
enter lose these permissions before they are used.
"""

from __future__ import annotations

import os
import sys
from binascii import crc32

from .files import FOREIGN, NO_LINKS, SHARED, FileProblem, is_foreign, make_folders, read_bytes, write_atomic
from .folders import PRODUCT, REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SHOWN_CHARACTERS = 40  # the length of the readable part of a file name
OWN_ROOTS = (PRODUCT, REGISTRY)  # the folders above these are shared with other programs, and stay as they are

_told: set[str] = set()  # the paths about which the log has warned


def name_for(path: str, shown: str = "") -> str:
    """A file name `<name>-<key>`. All spellings of a path have the same key, and without `shown` the same name."""
    # Links are followed and case is ignored, as by all launchers of Hosts.
    place = os.path.realpath(path).lower()
    name = shown or os.path.basename(place)
    readable = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)[:SHOWN_CHARACTERS]
    # Two paths may have the same key (a collision, or they differ only in case), so a file that must not be confused
    # with another contains its path. Importing hashlib for a better key would take 3 ms.
    key = crc32(place.encode("utf-8", "surrogatepass"))
    return f"{readable or 'root'}-{key:08x}"


def read_state(path: str, limit: int = 64 * 1024) -> dict[str, object]:
    """The members of a JSON document of at most `limit` bytes; none if it is missing, unreadable or not an object."""
    from .jsonc import JsonProblem, parse

    try:
        kept = parse(read_own(path, limit))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return {}
    return kept if isinstance(kept, dict) else {}


def write_state(path: str, members: Mapping[str, object]) -> None:
    """Replace the document atomically; raises OSError."""
    import json

    write_own(path, json.dumps(members).encode("ascii"))


def read_own(path: str, limit: int) -> bytes:
    """The content of a file in one of our folders; raises FileProblem or FileNotFoundError."""
    try:
        secure_folder(os.path.dirname(path))
    except OSError as error:
        raise FileProblem(str(error.filename), error.strerror or str(error)) from error
    try:
        return read_bytes(path, limit, own=True)
    except FileProblem as problem:
        if problem.reason in (FOREIGN, SHARED):
            _tell(path, problem.reason)
        raise


def write_own(path: str, data: bytes, *, new: bool = False, durable: bool = True) -> None:
    """Replace a file in one of our folders atomically; raises OSError, and FileExistsError if it must be `new`."""
    secure_folder(os.path.dirname(path))
    write_atomic(path, data, new=new, durable=durable)


def open_own(path: str, flags: int = 0) -> int:
    """Open a file in one of our folders to read and write it, and create it if it is missing; raises OSError."""
    make_own_folder(os.path.dirname(path))
    handle = _open(path, flags)
    try:
        status = os.fstat(handle)
        if is_foreign(status):
            raise _foreign(path)
        _close_to_others(handle, status, 0o600)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _open(path: str, flags: int) -> int:
    if sys.platform == "win32":
        from .file_sharing import open_shared

        return open_shared(path, flags)
    return os.open(path, os.O_RDWR | os.O_CREAT | NO_LINKS | flags, 0o600)


def secure_folder(folder: str) -> None:
    """Remove the permissions of other users from one of our folders, and from those above it that are ours too.

    Missing folders are ignored. Raises PermissionError if one belongs to another user.
    """
    if os.name == "nt":
        return  # a user's folders inherit an access control list that excludes other users
    for one in _own_folders(folder):
        try:
            link = os.lstat(one)
            status = os.stat(one) if (link.st_mode & 0o170000) == 0o120000 else link
        except FileNotFoundError:
            return
        if is_foreign(link) or is_foreign(status):
            raise _foreign(one)
        if status.st_mode & 0o077 and status.st_uid == os.geteuid():
            _secure(one)


def make_own_folder(folder: str) -> None:
    """Create one of our folders, or secure it if it exists; raises OSError."""
    secure_folder(folder)  # first, so that nothing is created in a folder of another user
    make_folders(folder)


def _own_folders(folder: str) -> list[str]:
    """The folder and those above it up to the nearest of OWN_ROOTS, outermost first; itself alone without one."""
    found = [folder]
    while os.path.basename(found[0]) not in OWN_ROOTS:
        above = os.path.dirname(found[0])
        if above == found[0]:
            return [folder]
        found.insert(0, above)
    return found


def _secure(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        status = os.fstat(handle)
        if is_foreign(status):  # it was replaced meanwhile
            raise _foreign(folder)
        _close_to_others(handle, status, 0o700)
    finally:
        os.close(handle)


def _close_to_others(handle: int, status: os.stat_result, mode: int) -> None:
    if os.name != "nt" and status.st_mode & 0o077 and status.st_uid == os.geteuid():
        try:
            os.fchmod(handle, mode)
        except OSError as error:  # the file system is read-only, or has no modes
            from .log import log

            log.debug(f"the permissions of other users could not be removed: {error}")


def _foreign(path: str) -> PermissionError:
    _tell(path)
    return PermissionError(13, FOREIGN, path)


def _tell(path: str, why: str = FOREIGN) -> None:
    if path not in _told:
        from .log import log

        _told.add(path)
        log.warn(f"{path} is not used: {why}. Remove it, or make it yours alone (chown, chmod).")


def sha256(data: bytes) -> str:
    """The digest as 64 hexadecimal digits, without the 3 ms that importing hashlib takes."""
    return str(_hasher()(data).hexdigest())


def _hasher() -> Any:
    try:
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # this Python is not CPython
        import hashlib

        return hashlib.sha256
