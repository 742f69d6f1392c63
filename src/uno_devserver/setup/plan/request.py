"""What a registration command is asked to do, the files as it sees them, and what all plans say of these."""

from __future__ import annotations

import os

from ...system.values import Value
from ..config_file import ConfigFile, parse_place, read_place, repair
from ..profiles import Scope, Use
from .changes import Action, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..definitions import Definitions
    from ..edits.document import EditProblem
    from ..profiles import Place, Profile
    from ..servers import ServerDefinition
    from .changes import FileChange


OMIT_SCOPE = "Take a scope that it has, or leave --scope out."


class ChangeRequest(Value):
    profile: Profile
    servers: tuple[ServerDefinition, ...]  # those that are meant
    definitions: Definitions  # all that are known: an entry of another server is not taken for one of these
    scope: Scope | None = None  # None: what the command does without being told

    def operation(self, server: ServerDefinition, action: Action, path: str | None, reason: str) -> Operation:
        return Operation(server.name, self.profile.id, action, path, reason)

    def errors(self, reason: str, next_step: str) -> tuple[Operation, ...]:
        return tuple(
            self.operation(server, Action.ERROR, None, reason).replace(next_step=next_step) for server in self.servers
        )

    def reach(self, *, all_scopes: bool) -> tuple[Place, ...]:
        """Whose content may be taken out. Nobody knows for whom a shared file was written, so it is meant only where
        all are, or where the client has no other of the scope that was named: `install` wrote there."""
        meant = self.profile.targets(self.scope) if self.scope is not None else ()
        return tuple(
            place
            for place in self.profile.places
            if self.scope in (None, place.scope) and (all_scopes or place.use is not Use.SHARED or place in meant)
        )

    def broken(self, server: ServerDefinition, path: str, problem: str) -> Operation:
        """A file of it is not what it should be."""
        return self.operation(server, Action.ERROR, path, problem).replace(next_step=repair(path))

    def also_read_by(self, place: Place) -> tuple[str, ...]:
        """The other clients that would notice a change there, by their names."""
        return tuple(
            other.name
            for other in self.definitions.profiles
            if other.id != self.profile.id
            and not other.hidden
            and any(
                one.use is not Use.LEGACY and (one.path, one.root) == (place.path, place.root) for one in other.places
            )
        )

    def note_on_others(self, place: Place) -> tuple[str, ...]:
        others = ", ".join(self.also_read_by(place))
        return (f"'{place.path}' is read by other clients, too: {others}.",) if others else ()


class PlannedFiles:
    """What is on the disk, and over it what a dry run has planned so far."""

    def __init__(self) -> None:
        self._planned: dict[str, bytes | None] = {}

    def planned(self, change: FileChange) -> None:
        self._planned[os.path.realpath(change.path)] = change.after

    def read(self, place: Place, servers: tuple[ServerDefinition, ...]) -> ConfigFile:
        real = os.path.realpath(place.path)
        if real not in self._planned:
            return read_place(place, servers)
        content = self._planned[real]
        return ConfigFile(place) if content is None else parse_place(place, content, servers)


def left_alone(server: ServerDefinition, readings: Iterable[ConfigFile]) -> tuple[str, ...]:
    """Of which entries nobody knows whether they are the server's."""
    return tuple(
        f"The entry '{match.entry.name}' in '{one.place.path}' stays as it is: its address may be another program's."
        for one in readings
        for match in one.matches
        if match.server.name == server.name and not match.certain
    )


def not_changed(operation: Operation, path: str, problem: EditProblem) -> Operation:
    return operation.failed(f"Could not change config file '{path}': {problem}", repair(path))


def listed(names: tuple[str, ...]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names) or "other clients"


def no_such_scope(profile: Profile, scope: Scope, known: set[Scope]) -> str:
    has = " and ".join(f"--scope {one.value}" for one in Scope if one in known)
    return f"{profile.name} has no {scope.value} configuration" + (f"; it has: {has}" if has else "")
