"""Plans `mcp uninstall`: which entries are removed from a client's files. Which are ours, `entry_match.py` decides.

A file that only we have changed gets its original bytes back, or is removed if it did not exist. From any other file
the entries are removed, and the rest stays as it is.
"""

from __future__ import annotations

import os

from ...system.values import Value
from ..config_file import decode_text, encode_text, parse_place
from ..edits.document import EditProblem, open_document
from ..edits.equivalence import means_the_same
from ..entry_match import served_folder
from ..profiles import Scope
from .changes import Action, by_file
from .request import current_index, left_alone, listed, not_changed, own_configuration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..change_records import Original
    from ..config_file import ConfigFile
    from ..entry_match import Match
    from ..profiles import Place
    from ..server_definition import ServerDefinition
    from .changes import ChangePlan, FileChange, Operation
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
    """Plan to remove entries. `folder` has our records; `cleaned` are the real paths of all files of this run."""
    places = [place for place in request.profile.places if request.scope in (None, place.scope)]
    if request.scope is not None and not places:
        return request.no_such_scope(request.scope, {place.scope for place in request.profile.places})
    configs = [files.read(place, request.definitions.servers) for place in places]
    reach = request.reach(all_scopes=all_scopes)
    reached = [one for one in configs if one.place in reach]
    beyond = [one for one in configs if one.place not in reach]
    staying = [one for one in beyond if os.path.realpath(one.place.path) not in cleaned]
    removals = [one for config in reached if (one := _removal(request, config, staying)).matches]
    found = {operation.server for one in removals for operation in one.operations}
    problems = [request.broken(server, one) for server in request.servers for one in reached if one.problem]
    missing = [
        request.operation(server, Action.NOT_FOUND, None, ONLY_SHARED if _is_in(server, beyond) else NOT_FOUND).replace(
            notes=_remaining(request, server, reached, staying)
        )
        for server in {one.name: one for one in request.servers}.values()
        if server.name not in found and not problems
    ]
    changes = (_file_change(request, configs, some, files, folder) for some in by_file(removals))
    return (*changes, *problems, *missing)


class _Removal(Value):
    """The entries to remove from one place."""

    config: ConfigFile
    matches: tuple[Match, ...]
    operations: tuple[Operation, ...]


def _removal(request: ChangeRequest, config: ConfigFile, staying: list[ConfigFile]) -> _Removal:
    place = config.place
    reason = f"Removed from {place.scope.value} config"
    matches: list[Match] = []
    operations: list[Operation] = []
    for server in request.servers:
        entries = config.entries_of(server)
        if entries:
            matches += entries
            keys = tuple(dict.fromkeys(one.entry.name for one in entries))
            notes = _consequences(request, place, entries) + _remaining(request, server, [config], staying)
            operation = request.operation(server, Action.REMOVED, place.path, reason)
            operations.append(operation.replace(keys=keys, notes=notes))
    return _Removal(config, tuple(matches), tuple(operations))


def _consequences(request: ChangeRequest, place: Place, entries: tuple[Match, ...]) -> tuple[str, ...]:
    others = request.also_read_by(place)
    lose = "it loses" if len(others) == 1 else "they lose"
    notes = [f"'{place.path}' is read by {listed(others)}, too: {lose} the server as well."] if others else []
    if place.scope is Scope.USER and not all(served_folder(one.says) for one in entries):
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


def _file_change(
    request: ChangeRequest, configs: list[ConfigFile], removals: list[_Removal], files: PlannedFiles, folder: str
) -> FileChange:
    place, before = removals[0].config.place, removals[0].config.content
    assert before is not None
    text, bom, encoding = decode_text(before)
    original = files.original(place.path, before, folder)
    operations: list[Operation] = []
    for one in removals:
        its = one.config.place
        try:
            document = open_document(text, its.format, its.root, its.dialect.name_key)
            text = document.remove([current_index(match, document) for match in one.matches])
            for each in one.operations:
                notes = each.notes + _about_original(request, each, one, original)
                operations.append(each.replace(notes=notes))
        except EditProblem as problem:
            operations += (not_changed(each, its.path, problem) for each in one.operations)
    failed = all(one.action is Action.ERROR for one in operations)
    after = before if failed else _as_before(original, place, text, encode_text(text, bom, encoding))
    return request.file_change(configs, removals[0].config, after, operations)


def _about_original(
    request: ChangeRequest, operation: Operation, removal: _Removal, original: Original | None
) -> tuple[str, ...]:
    """A note if the file had entries of the same names before our changes, with other values."""
    content = original.content if original is not None else None
    was = parse_place(removal.config.place, content or b"", request.definitions.servers).document
    entries = {entry.name: entry for entry in was.entries} if was is not None else {}
    removed = [one.entry for one in removal.matches if one.server.name == operation.server]
    names = [f"'{one.name}'" for one in removed if one.name in entries and entries[one.name] != one]
    restore = f"'uno-devserver mcp restore {request.profile.id}' puts that back"
    return (f"{' and '.join(names)} had other values before our changes: {restore}.",) if names else ()


def _as_before(original: Original | None, place: Place, removed: str, data: bytes) -> bytes | None:
    """The original content if it means the same as the text without the entries; else `data`, the encoded text."""
    if original is None:
        return data
    text = decode_text(original.content)[0] if original.content is not None else place.new_text
    return original.content if means_the_same(text, removed, place.format) else data
