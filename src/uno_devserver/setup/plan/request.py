"""The request of a registration command for one client, and the files as its planner sees them."""

from __future__ import annotations

import os

from ...system.values import Value
from ..change_records import Original, record_of
from ..config_file import ConfigFile, parse_place, read_place, way_out
from ..edits.document import EditProblem, same_value
from ..profiles import Scope, Use
from .changes import Action, FileChange, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..definitions import Definitions
    from ..edits.document import Document, ServerEntry
    from ..entry_match import Match
    from ..profiles import Place, Profile
    from ..server_definition import ServerDefinition


class ChangeRequest(Value):
    profile: Profile
    servers: tuple[ServerDefinition, ...]  # the servers to change
    definitions: Definitions  # all known servers, so that an entry of another server is not taken for one of these
    scope: Scope | None = None  # None for the command's default

    def operation(self, server: ServerDefinition, action: Action, path: str | None, reason: str) -> Operation:
        return Operation(server.name, self.profile.id, action, path, reason)

    def errors(self, reason: str, next_step: str) -> tuple[Operation, ...]:
        return tuple(
            self.operation(server, Action.ERROR, None, reason).replace(next_step=next_step) for server in self.servers
        )

    def no_such_scope(self, scope: Scope, known: set[Scope]) -> tuple[Operation, ...]:
        return self.errors(*scope_problem(self.profile, scope, known))

    def broken(self, server: ServerDefinition, config: ConfigFile) -> Operation:
        """The error for a file that cannot be read."""
        failed = self.operation(server, Action.ERROR, config.place.path, config.problem)
        return failed.replace(next_step=config.next_step)

    def reach(self, *, all_scopes: bool) -> tuple[Place, ...]:
        """The places whose entries may be removed.

        A shared file may have been written for another client. It is included only with `all_scopes`, or if the client
        has no other file of the requested scope, so that `install` writes there.
        """
        targets = self.profile.targets(self.scope) if self.scope is not None else ()
        return tuple(
            place
            for place in self.profile.places
            if self.scope in (None, place.scope) and (all_scopes or place.use is not Use.SHARED or place in targets)
        )

    def places_at(self, path: str) -> tuple[Place, ...]:
        """The client's places in that file."""
        real = os.path.realpath(path)
        return tuple(place for place in self.profile.places if os.path.realpath(place.path) == real)

    def file_change(
        self, configs: Iterable[ConfigFile], config: ConfigFile, after: bytes | None, operations: Sequence[Operation]
    ) -> FileChange:
        """The change of the file of `config`; errors if it would change entries at any of the places `configs`.

        Every edit was compared with the text that it was made for. This compares the whole result with the file: all
        entries must be equal, except those of the requested servers.
        """
        place, before = config.place, config.content
        at = self.places_at(place.path)
        its = [one for one in configs if one.place in at and one.document is not None]
        now = [parse_place(one.place, after or b"", self.definitions.servers) for one in its]
        if not all(same_value(self._foreign(one), self._foreign(other)) for one, other in zip(its, now, strict=True)):
            problem = EditProblem("other entries would not stay as they are")
            after, operations = before, [not_changed(one, place.path, problem) for one in operations]
        shown = at, self.definitions.servers
        return FileChange(place.path, place.scope, before, after, tuple(operations), place.within, *shown)

    def _foreign(self, config: ConfigFile) -> list[object]:
        """The entries that are not of the requested servers; TOML has no order among them."""
        ours = {match.index for server in self.servers for match in config.entries_of(server)}
        entries = config.document.entries if config.document is not None else ()
        others = [one for index, one in enumerate(entries) if index not in ours]
        return [[one.name, one.settings] for one in sorted(others, key=lambda one: one.name)]

    def also_read_by(self, place: Place) -> tuple[str, ...]:
        """The names of the other clients that read the servers at this place, and can be installed here."""
        real = os.path.realpath(place.path)
        return tuple(
            other.name
            for other in self.definitions.profiles
            if other.id != self.profile.id
            and not other.hidden
            and other.installable
            and any(
                one.use is not Use.LEGACY and one.root == place.root and os.path.realpath(one.path) == real
                for one in other.places
            )
        )

    def note_on_others(self, place: Place) -> tuple[str, ...]:
        others = ", ".join(self.also_read_by(place))
        return (f"'{place.path}' is read by other clients, too: {others}.",) if others else ()


class PlannedFiles:
    """The files on the disk, overlaid with the changes that a dry run has planned so far."""

    def __init__(self) -> None:
        self._planned: dict[str, bytes | None] = {}
        self._originals: dict[str, Original | None] = {}

    def planned(self, change: FileChange, folder: str) -> None:
        """Take a change as made; `folder` has the records, which a dry run does not write."""
        real = os.path.realpath(change.path)
        original = self.original(change.path, change.before, folder) or Original(change.before)
        self._planned[real] = change.after
        self._originals[real] = original if change.after != original.content else None

    def original(self, path: str, content: bytes | None, folder: str) -> Original | None:
        """The content of a file before our first change; None if it is not known, or if the file is as it was."""
        real = os.path.realpath(path)
        if real in self._originals:
            return self._originals[real]
        record = record_of(folder, path)
        return record.original(content) if record is not None else None

    def read(self, place: Place, servers: tuple[ServerDefinition, ...]) -> ConfigFile:
        real = os.path.realpath(place.path)
        if real not in self._planned or way_out(place.path, place.within):
            return read_place(place, servers)
        content = self._planned[real]
        return ConfigFile(place) if content is None else parse_place(place, content, servers)


def current_index(match: Match, document: Document) -> int:
    """The index of an entry in the text that is edited now; raises EditProblem if the entry is not in it.

    Earlier edits of the same file may have moved entries of TOML, where names are unique.
    """
    same = [at for at, one in enumerate(document.entries) if _same_entry(one, match.entry)]
    if match.index not in same and len(same) != 1:
        raise EditProblem(f"the entry '{match.entry.name}' is not where it was")
    return match.index if match.index in same else same[0]


def _same_entry(one: ServerEntry, other: ServerEntry) -> bool:
    return one.name == other.name and same_value(one.settings, other.settings)


def left_alone(server: ServerDefinition, configs: Iterable[ConfigFile]) -> tuple[str, ...]:
    """Notes on entries that may belong to another program."""
    return tuple(
        f"The entry '{match.entry.name}' in '{config.place.path}' stays as it is: its address may be another program's."
        for config in configs
        for match in config.entries_of(server, certain=False)
    )


def not_changed(operation: Operation, path: str, problem: EditProblem) -> Operation:
    step = f"Change '{path}' by hand, or write that part of it in a simpler way, and run this again."
    return operation.failed(f"Could not change config file '{path}': {problem}", step)


def own_configuration(place: Place, consequence: str) -> str:
    return f"'{place.path}' is your own configuration: other workspaces {consequence}, too."


def listed(names: tuple[str, ...]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names) or "other clients"


def scope_problem(profile: Profile, scope: Scope, known: set[Scope]) -> tuple[str, str]:
    """The error for a scope that a client does not have, and the next step."""
    has = " and ".join(f"--scope {one.value}" for one in Scope if one in known)
    reason = f"{profile.name} has no {scope.value} configuration" + (f"; it has: {has}" if has else "")
    return reason, "Take a scope that it has, or leave --scope out."
