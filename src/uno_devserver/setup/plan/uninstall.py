"""Plans `mcp uninstall`: which entries are removed from a client's files.

A file that only we have changed gets its original bytes back, or is removed if it did not exist. From any other file
the entries are removed, and the rest stays as it is.
"""

from __future__ import annotations

from ...system.values import Value
from ..change_records import record_of
from ..config_file import decode_text, encode_text
from ..edits.document import EditProblem, open_document
from ..edits.equivalence import means_the_same
from ..profiles import Scope
from .changes import Action, FileChange, by_file
from .request import left_alone, listed, not_changed, own_configuration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..config_file import ConfigFile
    from ..profiles import Place
    from ..servers import ServerDefinition
    from .changes import ChangePlan, Operation
    from .request import ChangeRequest, PlannedFiles

NOT_FOUND = "Not found in any config file"
ONLY_SHARED = "Only in a file that other clients share"


def plan_uninstall(
    request: ChangeRequest,
    files: PlannedFiles,
    folder: str,
    *,
    all_scopes: bool,
    cleaned: frozenset[str] = frozenset(),
) -> ChangePlan:
    """Plan to remove entries. `folder` has our records; `cleaned` are all files from which this run removes entries."""
    places = [place for place in request.profile.places if request.scope in (None, place.scope)]
    if request.scope is not None and not places:
        return request.no_such_scope(request.scope, {place.scope for place in request.profile.places})
    configs = [files.read(place, request.definitions.servers) for place in places]
    reach = request.reach(all_scopes=all_scopes)
    reached = [one for one in configs if one.place in reach]
    beyond = [one for one in configs if one.place not in reach]
    staying = [one for one in beyond if one.place.path not in cleaned]
    removals = [one for config in reached if (one := _removal(request, config, staying)).indexes]
    found = {operation.server for one in removals for operation in one.operations}
    problems = [request.broken(server, one) for server in request.servers for one in reached if one.problem]
    missing = [
        request.operation(server, Action.NOT_FOUND, None, ONLY_SHARED if _is_in(server, beyond) else NOT_FOUND).replace(
            notes=_remaining(request, server, reached, staying)
        )
        for server in request.servers
        if server.name not in found and not problems
    ]
    changes = (_file_change(request, some, folder) for some in by_file(removals))
    return (*changes, *problems, *missing)


class _Removal(Value):
    """The entries to remove from one place."""

    config: ConfigFile
    indexes: tuple[int, ...]
    operations: tuple[Operation, ...]


def _removal(request: ChangeRequest, config: ConfigFile, staying: list[ConfigFile]) -> _Removal:
    place = config.place
    reason = f"Removed from {place.scope.value} config"
    indexes: list[int] = []
    operations: list[Operation] = []
    for server in request.servers:
        entries = config.entries_of(server)
        if entries:
            indexes += (one.index for one in entries)
            keys = tuple(dict.fromkeys(one.entry.name for one in entries))
            notes = _consequences(request, place) + _remaining(request, server, [config], staying)
            operation = request.operation(server, Action.REMOVED, place.path, reason)
            operations.append(operation.replace(keys=keys, notes=notes))
    return _Removal(config, tuple(sorted(indexes)), tuple(operations))


def _consequences(request: ChangeRequest, place: Place) -> tuple[str, ...]:
    others = request.also_read_by(place)
    lose = "it loses" if len(others) == 1 else "they lose"
    notes = [f"'{place.path}' is read by {listed(others)}, too: {lose} the server as well."] if others else []
    if place.scope is Scope.USER:
        notes.append(own_configuration(place, "lose the server"))
    return tuple(notes)


def _remaining(
    request: ChangeRequest, server: ServerDefinition, reached: list[ConfigFile], staying: list[ConfigFile]
) -> tuple[str, ...]:
    """Notes on entries of the server that are not removed, and why."""
    shared = [
        f"Still reachable through '{one.place.path}', shared with {listed(request.also_read_by(one.place))}; "
        "--all-scopes removes it from there, too."
        for one in staying
        if one.entries_of(server)
    ]
    return (*left_alone(server, reached), *shared)


def _is_in(server: ServerDefinition, configs: list[ConfigFile]) -> bool:
    return any(one.entries_of(server) for one in configs)


def _file_change(request: ChangeRequest, removals: list[_Removal], folder: str) -> FileChange:
    place, before = removals[0].config.place, removals[0].config.content
    assert before is not None
    text, bom, encoding = decode_text(before)
    operations: list[Operation] = []
    for one in removals:
        its = one.config.place
        try:
            text = open_document(text, its.format, its.root, its.dialect.name_key).remove(one.indexes)
            operations += one.operations
        except EditProblem as problem:
            operations += (not_changed(each, its.path, problem) for each in one.operations)
    failed = all(one.action is Action.ERROR for one in operations)
    after = before if failed else _as_before(folder, place, before, text, encode_text(text, bom, encoding))
    shown = request.places_at(place.path), request.definitions.servers
    return FileChange(place.path, place.scope, before, after, tuple(operations), place.within, *shown)


def _as_before(folder: str, place: Place, before: bytes, removed: str, data: bytes) -> bytes | None:
    """The original content if it means the same as the text without the entries; else `data`, the encoded text."""
    record = record_of(folder, place.path)
    original = record.original(before) if record is not None else None
    if original is None:
        return data
    text = decode_text(original.content)[0] if original.content is not None else place.new_text
    return original.content if means_the_same(text, removed, place.format) else data
