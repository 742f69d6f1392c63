"""Planned changes, written: each file all or nothing, with a way back, and none of them stops the others.

What undoes a change is on the disk before the change is. A file that somebody else changes at the same moment is
planned again, once.
"""

from __future__ import annotations

import errno
import os

from ..system.files import FileProblem, is_write_protected
from ..system.log import log
from ..system.values import Value
from .backups import backups_of, keep_backup
from .changes import FileChange
from .exclusion import unusable
from .operations import Action
from .records import Original, continued, forget, keep, record_of
from .writing import ClashError, missing_folders, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .changes import Plan
    from .operations import Operation
    from .records import Record

READ_ONLY = "File is read-only"
CLASH = "Another program keeps changing it; nothing was written. Run this again"


class Ways(Value):
    """How changes are made."""

    folder: str  # of our state
    backup: bool = True  # keep the whole file as it was, too
    dry_run: bool = False


def carry_out(plan: Callable[[], Plan], ways: Ways) -> tuple[Operation, ...]:
    """Plan and apply, and say what was done."""
    done: list[Operation] = []
    clashed: list[FileChange] = []
    for item in plan():
        try:
            done += _apply(item, ways) if isinstance(item, FileChange) else (item,)
        except ClashError:
            assert isinstance(item, FileChange)
            clashed.append(item)
    if clashed:
        done += _once_more(plan(), clashed, done, ways)
    return tuple(done)


def _once_more(plan: Plan, clashed: list[FileChange], told: list[Operation], ways: Ways) -> list[Operation]:
    """What the new plan says about these files, and about servers of which nothing was told yet."""
    paths = {change.path for change in clashed}
    servers = {one.server for change in clashed for one in change.operations} - {one.server for one in told}
    done: list[Operation] = []
    for item in plan:
        if isinstance(item, FileChange):
            if item.path in paths:
                try:
                    done += _apply(item, ways)
                except ClashError:
                    done += _failed(item, CLASH)
        elif item not in told and (item.path in paths or item.server in servers):
            done.append(item)
    return done


def _apply(change: FileChange, ways: Ways) -> tuple[Operation, ...]:
    if change.before == change.after:
        return change.operations
    if is_write_protected(change.path):
        return _failed(change, READ_ONLY, f"Make '{change.path}' writable, and run this again.")
    if ways.dry_run:
        from .diffs import unified_diff

        diff = unified_diff(change.path, change.before, change.after)
        return (change.operations[0].replace(diff=diff), *change.operations[1:])
    try:
        return _write_recorded(change, ways)
    except FileProblem as problem:
        return _failed(change, f"Could not be written: {problem.reason}")
    except OSError as error:
        return _failed(change, _reason(error, change.path))


def _failed(change: FileChange, reason: str, next_step: str = "") -> tuple[Operation, ...]:
    return tuple(one.failed(reason, next_step) for one in change.operations)


def _reason(error: OSError, path: str) -> str:
    refused = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    if refused and isinstance(error.filename, str) and error.filename != os.path.realpath(path):
        return f"Could not be written: '{os.path.dirname(error.filename)}' is a folder that may not be changed"
    return f"Could not be written: {error.strerror or error}"


def _write_recorded(change: FileChange, ways: Ways) -> tuple[Operation, ...]:
    earlier = record_of(ways.folder, change.path)
    missing = missing_folders(change.path) if change.before is None else ()
    record, original = continued(earlier, change.path, change.before, change.after, missing)
    undoes = earlier is not None and earlier.original(change.before) == Original(change.after)
    ends = change.closes or undoes
    try:
        if not ends:
            record = _keep(record, original, ways)
            kept = record.backup
        else:
            kept = None if undoes else _keep_present(change, ways.folder)
    except OSError as error:
        if ways.backup:
            problem = unusable(ways.folder, error)
            return _failed(change, f"{problem.message} {problem.next_step}")
        log.warn(f"{change.path} cannot be put back later: {error}")
        kept = None
    try:
        write(change, (earlier or record).folders)
    except BaseException:
        if not ends:
            _take_back(ways.folder, record, earlier)
        raise
    if ends and earlier is not None:
        forget(ways.folder, earlier, keep_backup=not undoes)
    return tuple(one if one.action is Action.ERROR else one.replace(backup=kept) for one in change.operations)


def _keep(record: Record, original: Original, ways: Ways) -> Record:
    """What undoes the change, and the whole original before the first."""
    if ways.backup and record.backup is None and original.content is not None:
        record = record.replace(backup=keep_backup(ways.folder, record.path, original.content))
    keep(ways.folder, record)
    return record


def _keep_present(change: FileChange, folder: str) -> str | None:
    """The content that is given up for an older one, unless it is kept already."""
    if change.before is None:
        return None
    same = (one.path for one in backups_of(folder, change.path) if one.content == change.before)
    return next(same, None) or keep_backup(folder, change.path, change.before)


def _take_back(folder: str, record: Record, earlier: Record | None) -> None:
    """The change did not happen, so there is nothing more to undo than before."""
    try:
        if earlier is not None:
            keep(folder, earlier)
        else:
            forget(folder, record)
    except OSError as error:
        log.debug(f"the record of {record.path} stays as it is, and holds for both contents: {error}")
