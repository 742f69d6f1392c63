"""Putting a client's files back as they were before our first change; what is written is planned here.

What others have done to a file since is only given up when the user insists, and kept as a backup even then.
"""

from __future__ import annotations

import os

from ..system.files import FileProblem, read_bytes
from .changes import FileChange
from .operations import Action, Operation
from .reading import MAX_BYTES
from .records import Original, record_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .changes import Plan
    from .profiles import Place
    from .records import Record
    from .task import Files, Task

NOTHING = "Nothing to put back: no file of it was changed by us, or all of that was undone"


def plan_restore(task: Task, files: Files, folder: str, *, force: bool) -> Plan:
    """`folder`: of our state. What a dry run has put back for one client is done for the others that read it."""
    places = [place for place in task.profile.places if not files.is_planned(place.path)]
    by_file = {os.path.realpath(place.path): place for place in reversed(places)}
    planned = [_of_file(task, place, folder, force=force) for place in reversed(by_file.values())]
    found = tuple(one for one in planned if one is not None)
    return found or (Operation(None, task.profile.id, Action.NOT_FOUND, None, NOTHING),)


def _of_file(task: Task, place: Place, folder: str, *, force: bool) -> FileChange | Operation | None:
    record = record_of(folder, place.path)
    if record is None:
        return None
    error = Operation(None, task.profile.id, Action.ERROR, place.path, "")
    try:
        content = _content(place.path)
        original = record.original(content)
        if original is None and not force:
            return error.replace(reason=_changed_since(record, content))
        if original is None:
            original = _from_backup(record)
    except FileProblem as problem:
        return error.replace(reason=f"Could not read '{problem.path}': {problem.reason}")
    if original.content == content:
        return None
    others = ", ".join(task.also_read_by(place))
    notes = (f"{place.path} is read by other clients, too: {others}.",) if others else ()
    operation = Operation(None, task.profile.id, Action.RESTORED, place.path, _done(record), notes)
    return FileChange(place.path, place.scope, content, original.content, (operation,), closes=True)


def _content(path: str) -> bytes | None:
    try:
        return read_bytes(path, MAX_BYTES)
    except FileNotFoundError:
        return None


def _changed_since(record: Record, content: bytes | None) -> str:
    what = "It was removed" if content is None else "It was changed by others"
    return f"{what} since; --force puts it back as it was at {record.time}, and keeps what is there now as a backup"


def _from_backup(record: Record) -> Original:
    if not record.existed:
        return Original(None)
    if record.backup is None:
        raise FileProblem(record.path, "others have changed it since, and no backup was kept (--no-backup)")
    try:
        return Original(read_bytes(record.backup, MAX_BYTES))
    except FileNotFoundError as error:
        raise FileProblem(record.backup, "the backup is gone") from error


def _done(record: Record) -> str:
    return f"Put back as it was at {record.time}" if record.existed else "Removed: it did not exist before"
