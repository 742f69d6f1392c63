"""Plans `mcp restore`: which of a client's files become what they were before our changes.

Our changes are undone if no other program has changed the file after them. Otherwise a backup is restored, but only
with `force`, because that also undoes the changes of others; the present content is kept as a backup. Repeated runs go
to the next older backup each time, and after the oldest to the newest, so that every backup can be reached.
"""

from __future__ import annotations

import os

from ...system.files import FileProblem
from ...system.values import Value
from ..backups import backups_of
from ..change_records import record_of
from ..config_file import LINK_STEP, content_of, way_out
from ..profiles import Scope, Use
from .changes import Action, FileChange, Operation
from .request import listed, own_configuration, scope_problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..backups import Backup
    from ..change_records import ChangeRecord
    from ..profiles import Place
    from .changes import ChangePlan
    from .request import ChangeRequest

NOTHING = "Nothing to put back: this program has changed none of its files, or each is as it was before"
ALL_SCOPES = "--all-scopes puts it back, too"
DID_NOT_EXIST = "Removed: it did not exist before"


def plan_restore(
    request: ChangeRequest,
    places: tuple[Place, ...],
    folder: str,
    *,
    force: bool,
    put_back: frozenset[str] = frozenset(),
) -> ChangePlan:
    """Plan to restore the files of `places`. `folder` has our records; `put_back` are the real paths of this run."""
    profile = request.profile
    nothing = Operation(None, profile.id, Action.NOT_FOUND, None, NOTHING)
    known = {place.scope for place in profile.places}
    if request.scope is not None and request.scope not in known:
        return (nothing.failed(*scope_problem(profile, request.scope, known)),)
    outside = [(place, out) for place in places if (out := way_out(place.path, place.within))]
    refused = [nothing.replace(path=place.path).failed(f"Not put back: {out}", LINK_STEP) for place, out in outside]
    places = tuple(place for place in places if all(place is not one for one, _ in outside))
    by_file = {os.path.realpath(place.path): place for place in reversed(places)}
    planned = [_plan_file(request, place, folder, force=force) for place in reversed(by_file.values())]
    beyond = [
        nothing.replace(path=place.path, reason=f"Shared with {listed(request.also_read_by(place))}; {ALL_SCOPES}")
        for place in profile.places
        if place.use is Use.SHARED and request.scope in (None, place.scope)
        if place not in places and os.path.realpath(place.path) not in put_back
        if not way_out(place.path, place.within)
        if isinstance(_plan_file(request, place, folder, force=force), FileChange)
    ]
    found = (*(one for one in planned if one is not None), *refused, *beyond)
    return found or (nothing,)


def _plan_file(request: ChangeRequest, place: Place, folder: str, *, force: bool) -> FileChange | Operation | None:
    record = record_of(folder, place.path)
    try:
        content = content_of(place.path, place.within)
    except FileProblem as problem:
        reason = f"Could not read '{problem.path}': {problem.reason}"
        return Operation(None, request.profile.id, Action.ERROR, place.path, reason) if record is not None else None
    file = _File(request, place, content)
    original = record.original(content) if record is not None else None
    if record is not None and original is not None and original.content != content:
        reason = f"Put back as it was at {record.time}, before our changes" if record.existed else DID_NOT_EXIST
        return file.change(original.content, reason)
    file = file.replace(backups=tuple(backups_of(folder, place.path)))
    if record is not None and original is None:
        return _changed_by_others(file, record, force=force)
    older = file.next_older
    if older is None:
        return None
    if force:
        return file.to_backup(older)
    instead = ", and keeps the present content" if content is not None else ""
    reason = f"No change of ours is left to undo. What it was at {older.time} is kept; --force puts that back{instead}"
    return file.refused(Action.NOT_FOUND, reason)


def _changed_by_others(file: _File, record: ChangeRecord, *, force: bool) -> FileChange | Operation:
    """The change or error for a file that others have changed after us: restoring it undoes their change, too."""
    changed = "It was removed" if file.content is None else "It was changed by others"
    if not record.existed:
        if force:
            return file.change(None, DID_NOT_EXIST, file.note_on_repeating)
        what = "--force removes it, since it did not exist before, and keeps the present content"
        return file.operation(Action.ERROR, f"{changed} since; {what}")
    older = file.next_older
    if older is None:
        lost = f"its backup '{record.backup}' is gone" if record.backup else "no backup was kept (--no-backup)"
        return file.operation(Action.ERROR, f"{changed} since, and {lost}")
    if force:
        return file.to_backup(older)
    undoes = (
        ", which undoes what others have changed since, and keeps the present content"
        if file.content is not None
        else ""
    )
    reason = f"{changed} since. What it was at {older.time} is kept; --force puts that back{undoes}"
    return file.refused(Action.ERROR, reason)


class _File(Value):
    """A file to restore."""

    request: ChangeRequest
    place: Place
    content: bytes | None
    backups: tuple[Backup, ...] = ()  # the newest first

    @property
    def next_older(self) -> Backup | None:
        """The backup before that of the present content; the newest if there is none, None if no content differs."""
        at = next((number for number, one in enumerate(self.backups) if one.content == self.content), -1)
        others = (*self.backups[at + 1 :], *self.backups[: at + 1])
        return next((one for one in others if one.content != self.content), None)

    @property
    def note_on_repeating(self) -> str:
        return (
            f"What is given up here is kept. 'uno-devserver mcp restore {self.request.profile.id} --force' puts back "
            "the next older content each time, and after the oldest the newest again."
        )

    def operation(self, action: Action, reason: str) -> Operation:
        return Operation(None, self.request.profile.id, action, self.place.path, reason)

    def refused(self, action: Action, reason: str) -> Operation:
        listing = tuple(f"Kept from {one.time}: '{one.path}'" for one in self.backups)
        return self.operation(action, reason).replace(notes=listing)

    def to_backup(self, backup: Backup) -> FileChange:
        notes = (self.note_on_repeating,) if self.content is not None or len(self.backups) > 1 else ()
        return self.change(backup.content, f"Put back as it was at {backup.time}", *notes)

    def change(self, content: bytes | None, reason: str, *notes: str) -> FileChange:
        request, place = self.request, self.place
        users = (own_configuration(place, "use it"),) if request.profile.holder(place) is Scope.USER else ()
        operation = self.operation(Action.RESTORED, reason)
        operation = operation.replace(notes=(*request.note_on_others(place), *users, *notes))
        places, servers = request.places_at(place.path), request.definitions.servers
        return FileChange(
            place.path, place.scope, self.content, content, (operation,), place.within, places, servers, closes=True
        )
