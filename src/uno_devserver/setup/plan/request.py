"""The request of a registration command for one client, and the files as its planner sees them."""

from __future__ import annotations

import os

from ...system.values import Value
from ..config_file import ConfigFile, parse_place, read_place, repair, way_out
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
        return tuple(place for place in self.profile.places if place.path == path)

    def also_read_by(self, place: Place) -> tuple[str, ...]:
        """The names of the other clients that read the servers at this place."""
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
    """The files on the disk, overlaid with the changes that a dry run has planned so far."""

    def __init__(self) -> None:
        self._planned: dict[str, bytes | None] = {}

    def planned(self, change: FileChange) -> None:
        self._planned[os.path.realpath(change.path)] = change.after

    def read(self, place: Place, servers: tuple[ServerDefinition, ...]) -> ConfigFile:
        real = os.path.realpath(place.path)
        if real not in self._planned or way_out(place.path, place.within):
            return read_place(place, servers)
        content = self._planned[real]
        return ConfigFile(place) if content is None else parse_place(place, content, servers)


def left_alone(server: ServerDefinition, configs: Iterable[ConfigFile]) -> tuple[str, ...]:
    """Notes on entries that may belong to another program."""
    return tuple(
        f"The entry '{match.entry.name}' in '{config.place.path}' stays as it is: its address may be another program's."
        for config in configs
        for match in config.entries_of(server, certain=False)
    )


def not_changed(operation: Operation, path: str, problem: EditProblem) -> Operation:
    return operation.failed(f"Could not change config file '{path}': {problem}", repair(path))


def own_configuration(place: Place, consequence: str) -> str:
    return f"'{place.path}' is your own configuration: other workspaces {consequence}, too."


def listed(names: tuple[str, ...]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names) or "other clients"


def scope_problem(profile: Profile, scope: Scope, known: set[Scope]) -> tuple[str, str]:
    """The error for a scope that a client does not have, and the next step."""
    has = " and ".join(f"--scope {one.value}" for one in Scope if one in known)
    reason = f"{profile.name} has no {scope.value} configuration" + (f"; it has: {has}" if has else "")
    return reason, "Take a scope that it has, or leave --scope out."
