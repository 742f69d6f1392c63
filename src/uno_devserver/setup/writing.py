"""One planned change of a file, written: all of it or nothing, and never over what somebody else has written meanwhile.

A killed run leaves at most a temporary file beside the real one, which the next removes.
"""

from __future__ import annotations

import os

from ..system.files import FileProblem, read_bytes, rewrite, sweep, write_atomic
from .profiles import Scope
from .reading import MAX_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .changes import FileChange

WORKSPACE_MODE = 0o644  # before the umask: such files are shared through the repository
USER_MODE = 0o600  # configurations of clients hold tokens, sooner or later


class ClashError(Exception):
    """The file is no longer what the change was planned for."""


def write(change: FileChange, folders: tuple[str, ...]) -> None:
    """`folders`: that we made for the file; they go with it. Raises ClashError, FileProblem, OSError."""
    if change.after is None:
        assert change.before is not None
        _remove(change.path, change.before, folders)
        return
    folder, name = os.path.split(os.path.realpath(change.path))
    sweep(folder, name)
    if change.before is None:
        _create(change, change.after)
        return
    try:
        rewrite(change.path, change.after, was=change.before)
    except (FileProblem, FileNotFoundError) as error:
        if _content(change.path) != change.before:
            raise ClashError from error
        raise


def missing_folders(path: str) -> tuple[str, ...]:
    """Those that have to be made for a file, the outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:  # a drive may be missing, too
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return tuple(missing)


def _create(change: FileChange, data: bytes) -> None:
    made = missing_folders(change.path)
    try:
        os.makedirs(os.path.dirname(change.path), exist_ok=True)  # with the usual mode: it is not ours
        try:
            write_atomic(change.path, data, WORKSPACE_MODE if change.scope is Scope.WORKSPACE else USER_MODE, new=True)
        except FileExistsError as error:
            raise ClashError from error
    except BaseException:
        _remove_empty(made)
        raise


def _remove(path: str, was: bytes, folders: tuple[str, ...]) -> None:
    if _content(path) != was:
        raise ClashError
    os.unlink(os.path.realpath(path))
    _remove_empty(folders)


def _content(path: str) -> bytes | None:
    try:
        return read_bytes(path, MAX_BYTES)
    except (FileNotFoundError, FileProblem):
        return None


def _remove_empty(folders: tuple[str, ...]) -> None:
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            return  # somebody has put something there, or it is gone
