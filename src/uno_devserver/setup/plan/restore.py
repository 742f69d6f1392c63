"""Putting a client's files back as they were before our changes; what is written is planned here.

Our own changes are undone as long as nobody else has changed the file after them. What is kept of it from before that
is put back only when the user insists, since it undoes what others did, and the present content is kept then, too.
Each further time it is the next older content, and after the oldest the newest: nothing that is kept is out of reach.
"""

from __future__ import annotations

import os

from ...system.files import FileProblem, read_bytes
from ..backups import backups_of
from ..change_records import record_of
from ..config_file import MAX_BYTES
from ..profiles import Scope, Use
from .changes import Action, FileChange, Operation
from .request import OMIT_SCOPE, listed, no_such_scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..backups import Backup
    from ..change_records import ChangeRecord
    from ..profiles import Place
    from .changes import ChangePlan
    from .request import ChangeRequest

NOTHING = "Nothing to put back: each file of it is as it was before our changes, or was never changed by us"
ALL_SCOPES = "--all-scopes puts it back, too"
NOT_THERE = "Removed: it did not exist before"


def plan_restore(
    task: ChangeRequest, places: tuple[Place, ...], folder: str, *, force: bool, put_back: frozenset[str] = frozenset()
) -> ChangePlan:
    """`places`: whose files are meant; `folder`: of our state; `put_back`: by this run, for whatever client."""
    profile = task.profile
    told = Operation(None, profile.id, Action.NOT_FOUND, None, NOTHING)
    known = {place.scope for place in profile.places}
    if task.scope is not None and task.scope not in known:
        return (told.failed(no_such_scope(profile, task.scope, known), OMIT_SCOPE),)
    by_file = {os.path.realpath(place.path): place for place in reversed(places)}
    planned = [_of_file(task, place, folder, force=force) for place in reversed(by_file.values())]
    beyond = [
        told.replace(path=place.path, reason=f"Shared with {listed(task.also_read_by(place))}; {ALL_SCOPES}")
        for place in profile.places
        if place.use is Use.SHARED and task.scope in (None, place.scope)
        if place not in places and place.path not in put_back
        if isinstance(_of_file(task, place, folder, force=force), FileChange)
    ]
    found = (*(one for one in planned if one is not None), *beyond)
    return found or (told,)


def _of_file(task: ChangeRequest, place: Place, folder: str, *, force: bool) -> FileChange | Operation | None:
    record = record_of(folder, place.path)
    told = Operation(None, task.profile.id, Action.ERROR, place.path, "")
    try:
        content = _content(place.path)
    except FileProblem as problem:
        return told.replace(reason=f"Could not read '{problem.path}': {problem.reason}") if record is not None else None
    original = record.original(content) if record is not None else None
    if record is not None and original is not None and original.content != content:
        reason = f"Put back as it was at {record.time}, before our changes" if record.existed else NOT_THERE
        return _change(task, place, content, original.content, told.replace(reason=reason))
    kept = backups_of(folder, place.path)
    if record is not None and original is None:
        return _changed_by_others(task, place, record, content, kept, told, force=force)
    older = _next_older(kept, content)
    if older is None:
        return None
    if force:
        return _older(task, place, content, older, kept, told)
    instead = ", and keeps what is there now" if content is not None else ""
    reason = f"No change of ours is left to undo. What it was at {older.time} is kept; --force puts that back{instead}"
    return told.replace(action=Action.NOT_FOUND, reason=reason, notes=_listed(kept))


def _content(path: str) -> bytes | None:
    try:
        return read_bytes(path, MAX_BYTES)
    except FileNotFoundError:
        return None


def _changed_by_others(
    task: ChangeRequest,
    place: Place,
    record: ChangeRecord,
    content: bytes | None,
    kept: list[Backup],
    told: Operation,
    *,
    force: bool,
) -> FileChange | Operation:
    """They did so after our last change, so there is no way back without undoing theirs."""
    changed = "It was removed" if content is None else "It was changed by others"
    if not record.existed:
        if force:
            notes = (_again(task),)
            return _change(task, place, content, None, told.replace(reason=NOT_THERE, notes=notes))
        what = "--force removes it, since it did not exist before, and keeps what is there now"
        return told.replace(reason=f"{changed} since; {what}")
    older = _next_older(kept, content)
    if older is None:
        lost = f"its backup '{record.backup}' is gone" if record.backup else "no backup was kept (--no-backup)"
        return told.replace(reason=f"{changed} since, and {lost}")
    if force:
        return _older(task, place, content, older, kept, told)
    reason = f"{changed} since. What it was at {older.time} is kept{_by_force(content)}"
    return told.replace(reason=reason, notes=_listed(kept))


def _by_force(content: bytes | None) -> str:
    if content is None:
        return "; --force puts that back"
    return "; --force puts that back, which undoes what others have changed since, and keeps what is there now"


def _next_older(kept: list[Backup], content: bytes | None) -> Backup | None:
    """The one behind the present content; after the oldest, and for a content that is not kept, the newest."""
    at = next((number for number, one in enumerate(kept) if one.content == content), -1)
    others = (*kept[at + 1 :], *kept[: at + 1])
    return next((one for one in others if one.content != content), None)


def _older(
    task: ChangeRequest, place: Place, content: bytes | None, older: Backup, kept: list[Backup], told: Operation
) -> FileChange:
    notes = (_again(task),) if content is not None or len(kept) > 1 else ()
    operation = told.replace(reason=f"Put back as it was at {older.time}", notes=notes)
    return _change(task, place, content, older.content, operation)


def _change(
    task: ChangeRequest, place: Place, content: bytes | None, original: bytes | None, operation: Operation
) -> FileChange:
    notes = (*task.note_on_others(place), *_of_the_user(task, place), *operation.notes)
    operation = operation.replace(action=Action.RESTORED, notes=notes)
    return FileChange(place.path, place.scope, content, original, (operation,), closes=True)


def _of_the_user(task: ChangeRequest, place: Place) -> tuple[str, ...]:
    if task.profile.holder(place) is not Scope.USER:
        return ()
    return (f"'{place.path}' is your own configuration: other workspaces use it, too.",)


def _again(task: ChangeRequest) -> str:
    return (
        f"What is given up here is kept. 'uno-devserver mcp restore {task.profile.id} --force' puts back the next "
        "older content each time, and after the oldest the newest again."
    )


def _listed(kept: list[Backup]) -> tuple[str, ...]:
    return tuple(f"Kept from {one.time}: '{one.path}'" for one in kept)
