"""Which entries are taken out of a client's files; nothing is written here.

A file that only we have changed becomes what it was before, to the byte, or goes away where there was none. In any
other the entries are taken out, and the rest stays as it is.
"""

from __future__ import annotations

import os

from ...system.values import Value
from ..change_records import record_of
from ..config_file import decode_text, encode_text
from ..edits.document import EditProblem, open_document
from ..edits.equivalence import means_the_same
from ..profiles import Scope
from .changes import Action, FileChange
from .request import OMIT_SCOPE, left_alone, listed, no_such_scope, not_changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..config_file import ConfigFile
    from ..entry_match import Match
    from ..profiles import Place
    from ..servers import ServerDefinition
    from .changes import ChangePlan, Operation
    from .request import ChangeRequest, PlannedFiles

NOT_FOUND = "Not found in any config file"
ONLY_SHARED = "Only in a file that other clients share"


def plan_uninstall(
    task: ChangeRequest, files: PlannedFiles, folder: str, *, all_scopes: bool, cleaned: frozenset[str] = frozenset()
) -> ChangePlan:
    """`folder`: of our state, which knows what the files were; `cleaned`: the files that the same run takes the
    servers out of, for whatever client."""
    places = [place for place in task.profile.places if task.scope in (None, place.scope)]
    if task.scope is not None and not places:
        known = {place.scope for place in task.profile.places}
        return task.errors(no_such_scope(task.profile, task.scope, known), OMIT_SCOPE)
    readings = [files.read(place, task.definitions.servers) for place in places]
    reach = task.reach(all_scopes=all_scopes)
    reached = [one for one in readings if one.place in reach]
    beyond = [one for one in readings if one.place not in reach]
    staying = [one for one in beyond if one.place.path not in cleaned]
    removals = [_removal(task, one, staying) for one in reached if _ours(task, one)]
    told = {operation.server for one in removals for operation in one.operations}
    problems = [
        task.broken(server, one.place.path, one.problem) for server in task.servers for one in reached if one.problem
    ]
    missing = [
        task.operation(server, Action.NOT_FOUND, None, ONLY_SHARED if _is_in(server, beyond) else NOT_FOUND).replace(
            notes=_still(task, server, reached, staying)
        )
        for server in task.servers
        if server.name not in told and not problems
    ]
    return (*_gathered(removals, folder), *problems, *missing)


class _Removal(Value):
    """All that is taken out of one place."""

    reading: ConfigFile
    indexes: tuple[int, ...]
    operations: tuple[Operation, ...]


def _ours(task: ChangeRequest, reading: ConfigFile) -> list[ServerDefinition]:
    names = {match.server.name for match in reading.matches if match.certain}
    return [server for server in task.servers if server.name in names]


def _removal(task: ChangeRequest, reading: ConfigFile, beyond: list[ConfigFile]) -> _Removal:
    place = reading.place
    servers = _ours(task, reading)
    names = {server.name for server in servers}
    indexes = tuple(one.index for one in reading.matches if one.certain and one.server.name in names)
    reason = f"Removed from {place.scope.value} config"
    operations = tuple(
        task.operation(server, Action.REMOVED, place.path, reason).replace(
            keys=tuple(dict.fromkeys(one.entry.name for one in _certain(reading, server))),
            notes=_consequences(task, place) + _still(task, server, [reading], beyond),
        )
        for server in servers
    )
    return _Removal(reading, indexes, operations)


def _consequences(task: ChangeRequest, place: Place) -> tuple[str, ...]:
    others = task.also_read_by(place)
    lose = "it loses" if len(others) == 1 else "they lose"
    notes = [f"'{place.path}' is read by {listed(others)}, too: {lose} the server as well."] if others else []
    if place.scope is Scope.USER:
        notes.append(f"'{place.path}' is your own configuration: other workspaces lose the server, too.")
    return tuple(notes)


def _still(
    task: ChangeRequest, server: ServerDefinition, reached: list[ConfigFile], beyond: list[ConfigFile]
) -> tuple[str, ...]:
    """What is left of a server, and why."""
    shared = [
        f"Still reachable through '{one.place.path}', shared with {listed(task.also_read_by(one.place))}; "
        "--all-scopes takes it out there, too."
        for one in beyond
        if _certain(one, server)
    ]
    return (*left_alone(server, reached), *shared)


def _is_in(server: ServerDefinition, readings: list[ConfigFile]) -> bool:
    return any(_certain(one, server) for one in readings)


def _certain(reading: ConfigFile, server: ServerDefinition) -> list[Match]:
    return [one for one in reading.matches if one.server.name == server.name and one.certain]


def _gathered(removals: list[_Removal], folder: str) -> tuple[FileChange, ...]:
    by_file: dict[str, list[_Removal]] = {}
    for one in removals:
        by_file.setdefault(os.path.realpath(one.reading.place.path), []).append(one)
    return tuple(_file_change(some, folder) for some in by_file.values())


def _file_change(removals: list[_Removal], folder: str) -> FileChange:
    place, before = removals[0].reading.place, removals[0].reading.content
    assert before is not None
    text, bom, encoding = decode_text(before)
    operations: list[Operation] = []
    for one in removals:
        its = one.reading.place
        try:
            text = open_document(text, its.format, its.root, its.dialect.name_key).remove(one.indexes)
            operations += one.operations
        except EditProblem as problem:
            operations += (not_changed(each, its.path, problem) for each in one.operations)
    nothing_done = all(one.action is Action.ERROR for one in operations)
    after = before if nothing_done else _as_before(folder, place, before, text, encode_text(text, bom, encoding))
    return FileChange(place.path, place.scope, before, after, tuple(operations))


def _as_before(folder: str, place: Place, before: bytes, removed: str, data: bytes) -> bytes | None:
    """The original, where it says what the text without the entries says; else that text."""
    record = record_of(folder, place.path)
    original = record.original(before) if record is not None else None
    if original is None:
        return data
    text = decode_text(original.content)[0] if original.content is not None else place.new_text
    return original.content if means_the_same(text, removed, place.format) else data
