"""Writes planned changes: under a lock, with a record and a backup, one atomic replacement per file.

The record that undoes a change is on the disk before the change. An error in one file does not prevent the changes of
others. If another program changes a file at the same moment, its change is planned again, once.
"""

from __future__ import annotations

import errno
import os

from ..issues import UserError
from ..system.files import FileProblem, is_write_protected, remove_file, rewrite, sweep, write_atomic
from ..system.locks import FileLock
from ..system.log import log
from ..system.values import Value
from .backups import backups_of, keep_backup
from .change_diff import change_diff
from .change_records import Original, continued_record, forget_record, keep_record, record_of
from .config_file import LINK_STEP, content_of, way_out
from .plan.changes import Action, FileChange
from .profiles import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from .change_records import ChangeRecord
    from .plan.changes import ChangePlan, Operation

    T = TypeVar("T")

LOCK = "registration.lock"
WAIT_SECONDS = 10.0  # a run takes a tenth of a second; one that holds the lock longer waits for a network drive
READ_ONLY = "File is read-only"
MOUNTED = "It is mounted as a single file, which cannot be replaced"
CLASH = "Another program keeps changing it; nothing was written. Run this again"
WORKSPACE_MODE = 0o644  # before the umask: such files are shared through the repository
USER_MODE = 0o600  # clients store tokens in their configurations


class WriteOptions(Value):
    folder: str  # the folder for records and backups
    backup: bool = True  # whether to keep a copy of the whole file
    dry_run: bool = False


class ClashError(Exception):
    """The file has changed since the change was planned."""


def exclusively(folder: str, work: Callable[[], T], *, required: bool) -> T:
    """Do the work while holding a lock in that folder; raises UserError if another run holds it too long.

    If the lock cannot be used and is not `required`, the work is done without it.
    """
    lock = FileLock(os.path.join(folder, LOCK))
    try:
        if not lock.acquire(WAIT_SECONDS, lambda holder: log.debug(f"waiting for {_named(holder)}")):
            message = f"{_named(lock.holder())} has been changing configuration files for {WAIT_SECONDS:g} s."
            raise UserError("Busy", message, "Wait until it has ended, or end it; then run this again.")
    except OSError as error:
        if required:
            raise _unusable(folder, error) from error
        log.warn(f"other runs at the same time cannot be prevented: {error}")
        return work()
    try:
        return work()
    finally:
        lock.release()


def _unusable(folder: str, error: OSError) -> UserError:
    message = f"The folder '{folder}', for backups and records of changes, cannot be used: {error.strerror}."
    next_step = "Make it writable; install and uninstall can do without it: --no-backup."
    return UserError("StateNotWritable", message, next_step)


def _named(holder: int | None) -> str:
    return "Another run" if holder is None else f"Another run (process {holder})"


def apply_plan(plan: Callable[[], ChangePlan], options: WriteOptions) -> tuple[Operation, ...]:
    """Call `plan`, apply the result, and return the operations that were done or failed."""
    done: list[Operation] = []
    clashed: list[FileChange] = []
    for item in plan():
        try:
            done += _apply(item, options) if isinstance(item, FileChange) else (item,)
        except ClashError:
            assert isinstance(item, FileChange)
            clashed.append(item)
    if clashed:
        done += _apply_again(plan(), clashed, done, options)
    return tuple(done)


def _apply_again(
    plan: ChangePlan, clashed: list[FileChange], reported: list[Operation], options: WriteOptions
) -> list[Operation]:
    """Apply the part of the new plan that concerns the clashed files, or servers without a reported operation."""
    paths = {change.path for change in clashed}
    servers = {one.server for change in clashed for one in change.operations} - {one.server for one in reported}
    done: list[Operation] = []
    for item in plan:
        if isinstance(item, FileChange):
            if item.path in paths:
                try:
                    done += _apply(item, options)
                except ClashError:
                    done += _failed(item, CLASH)
        elif item not in reported and (item.path in paths or item.server in servers):
            done.append(item)
    return done


def _apply(change: FileChange, options: WriteOptions) -> tuple[Operation, ...]:
    if change.before == change.after:
        return change.operations
    if obstacle := _obstacle(change):
        return _failed(change, *obstacle)
    change = change.replace(operations=_with_note_on_hard_links(change))
    if options.dry_run:
        return (change.operations[0].replace(diff=change_diff(change)), *change.operations[1:])
    try:
        return _write_recorded(change, options)
    except FileProblem as problem:
        return _failed(change, f"Could not be written: {problem.reason}")
    except OSError as error:
        return _failed(change, _reason(error, change.path))


def _obstacle(change: FileChange) -> tuple[str, str] | None:
    """Why the file cannot be written, as far as that can be seen before, and the next step."""
    if out := way_out(change.path, change.within):  # the plan was made before
        return f"Not written: {out}", LINK_STEP
    real = os.path.realpath(change.path)
    if is_write_protected(real):
        return READ_ONLY, _make_writable(real)
    if _is_mount_point(real):
        return MOUNTED, f"Mount the folder '{os.path.dirname(real)}' instead of the file, or run this outside."
    folder = _existing_folder(real)
    return None if os.access(folder, os.W_OK | os.X_OK) else (_unwritable(folder), _make_writable(folder))


def _make_writable(path: str) -> str:
    return f"Make '{path}' writable, and run this again."


def _existing_folder(path: str) -> str:
    """The folder of a path, or the innermost folder above it that exists."""
    return os.path.dirname((*missing_folders(path), path)[0])


def _is_mount_point(path: str) -> bool:
    """Whether something is mounted there, as containers do with single files; only Linux can tell."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            points = [line.split()[4] for line in mounts]
    except OSError:
        return False
    escaped = path.translate({ord(one): f"\\{ord(one):03o}" for one in "\\ \t\n"})
    return escaped in points


def _with_note_on_hard_links(change: FileChange) -> tuple[Operation, ...]:
    try:
        names = os.stat(change.path).st_nlink if change.after is not None else 1
    except OSError:
        return change.operations  # there is no file yet
    if names < 2:
        return change.operations
    note = f"'{change.path}' is a hard link: files of the same content elsewhere ({names - 1}) do not change with it."
    return tuple(one.replace(notes=(*one.notes, note)) for one in change.operations)


def _failed(change: FileChange, reason: str, next_step: str = "") -> tuple[Operation, ...]:
    return tuple(one.failed(reason, next_step) for one in change.operations)


def _reason(error: OSError, path: str) -> str:
    refused = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    if refused and isinstance(error.filename, str) and error.filename != os.path.realpath(path):
        return _unwritable(os.path.dirname(error.filename))
    return f"Could not be written: {error.strerror or error}"


def _unwritable(folder: str) -> str:
    return f"Could not be written: '{folder}' is a folder that may not be changed"


def _write_recorded(change: FileChange, options: WriteOptions) -> tuple[Operation, ...]:
    earlier = record_of(options.folder, change.path)
    missing = missing_folders(change.path) if change.before is None else ()
    record, original = continued_record(earlier, change.path, change.before, change.after, missing)
    undoes = earlier is not None and earlier.original(change.before) == Original(change.after)
    ends = change.closes or undoes
    try:
        if not ends:
            record = _keep(record, original, options)
            kept = record.backup
        else:
            kept = None if undoes else _keep_present(change, options.folder)
    except OSError as error:
        if options.backup:
            problem = _unusable(options.folder, error)
            return _failed(change, f"{problem.message} {problem.next_step}")
        log.warn(f"{change.path} cannot be put back later: {error}")
        kept = None
    try:
        write(change, (earlier or record).folders)
    except BaseException:
        if not ends:
            _take_back(options.folder, record, earlier)
        raise
    if ends and earlier is not None:
        forget_record(options.folder, earlier, keep_backup=not undoes)
    return tuple(one if one.action is Action.ERROR else one.replace(backup=kept) for one in change.operations)


def _keep(record: ChangeRecord, original: Original, options: WriteOptions) -> ChangeRecord:
    """Store the record, with a backup of the original if there is none yet; returns the record."""
    if options.backup and record.backup is None and original.content is not None:
        record = record.replace(backup=keep_backup(options.folder, record.path, original.content))
    keep_record(options.folder, record)
    return record


def _keep_present(change: FileChange, folder: str) -> str | None:
    """The path of a backup of the content that is replaced; it is created unless there is one."""
    if change.before is None:
        return None
    same = (one.path for one in backups_of(folder, change.path) if one.content == change.before)
    return next(same, None) or keep_backup(folder, change.path, change.before)


def _take_back(folder: str, record: ChangeRecord, earlier: ChangeRecord | None) -> None:
    """Restore the earlier record after a change that failed."""
    try:
        if earlier is not None:
            keep_record(folder, earlier)
        else:
            forget_record(folder, record)
    except OSError as error:
        log.debug(f"the record of {record.path} is not taken back, and is valid for both contents: {error}")


def write(change: FileChange, folders: tuple[str, ...]) -> None:
    """Create, replace or remove the file; `folders` were created for it, and are removed with it.

    Raises ClashError, FileProblem, OSError.
    """
    if change.after is None:
        assert change.before is not None
        _remove(change, change.before, folders)
        return
    folder, name = os.path.split(os.path.realpath(change.path))
    sweep(folder, name)
    if change.before is None:
        _create(change, change.after)
        return
    try:
        rewrite(change.path, change.after, was=change.before)
    except (FileProblem, FileNotFoundError) as error:
        if _content(change.path, change.within) != change.before:
            raise ClashError from error
        raise


def missing_folders(path: str) -> tuple[str, ...]:
    """The folders that must be created for a file, the outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:  # the drive itself may be missing
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return tuple(missing)


def _create(change: FileChange, data: bytes) -> None:
    made = missing_folders(change.path)
    try:
        os.makedirs(os.path.dirname(change.path), exist_ok=True)  # with the usual mode
        try:
            write_atomic(change.path, data, WORKSPACE_MODE if change.scope is Scope.WORKSPACE else USER_MODE, new=True)
        except FileExistsError as error:
            raise ClashError from error
    except BaseException:
        _remove_empty(made)
        raise


def _remove(change: FileChange, was: bytes, folders: tuple[str, ...]) -> None:
    if _content(change.path, change.within) != was:
        raise ClashError
    remove_file(os.path.realpath(change.path))
    _remove_empty(folders)


def _content(path: str, within: str | None) -> bytes | None:
    try:
        return content_of(path, within)
    except FileProblem:
        return None


def _remove_empty(folders: tuple[str, ...]) -> None:
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            return  # the folder is not empty, or does not exist
