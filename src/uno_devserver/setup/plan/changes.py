"""The results of planning: an `Operation` for one server in one file, and a `FileChange` with a file's new bytes."""

from __future__ import annotations

import os
from enum import Enum

from ...system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol, TypeVar

    from ..config_file import ConfigFile
    from ..profiles import Place, Scope
    from ..server_definition import ServerDefinition

    class Edit(Protocol):
        @property
        def config(self) -> ConfigFile: ...

    E = TypeVar("E", bound=Edit)


class Action(Enum):
    CREATED = "created"
    UPDATED = "updated"
    SKIPPED = "skipped"
    REMOVED = "removed"
    RESTORED = "restored"
    NOT_FOUND = "not_found"
    ERROR = "error"


class Operation(Value):
    server: str | None  # None for an operation on the whole file
    ide: str
    action: Action
    path: str | None
    reason: str
    notes: tuple[str, ...] = ()  # consequences for the user: shared files, other workspaces, remaining entries
    backup: str | None = None  # the path of a backup of the content before the change
    scope: Scope | None = None  # the scope of the entry; a file may contain entries of both scopes
    keys: tuple[str, ...] = ()  # the names of the entries
    next_step: str = ""  # the next step after an error
    diff: str = ""  # the diff of a dry run; the first operation on a file has all of it

    def failed(self, reason: str, next_step: str = "") -> Operation:
        """This operation as an error."""
        return self.replace(action=Action.ERROR, reason=reason, next_step=next_step, notes=(), keys=())


def nothing_done(operations: tuple[Operation, ...]) -> bool:
    """Whether all operations failed or found nothing."""
    return bool(operations) and all(one.action in (Action.ERROR, Action.NOT_FOUND) for one in operations)


class FileChange(Value):
    path: str  # the path that the client uses; if it is a link, its target is changed, unless it is not `within`
    scope: Scope
    before: bytes | None  # None if there is no file
    after: bytes | None  # None to remove the file
    operations: tuple[Operation, ...]  # the operations on single servers
    within: str | None = None  # the folder out of which no link may lead
    places: tuple[Place, ...] = ()  # the places in this file, and ...
    servers: tuple[ServerDefinition, ...] = ()  # ... the servers whose entries a dry run shows
    closes: bool = False  # whether the record of our changes is removed afterwards


ChangePlan = tuple[FileChange | Operation, ...]


def by_file(edits: Iterable[E]) -> list[list[E]]:
    """Group edits by file, so that all edits of a file are one write, one backup and one diff."""
    groups: dict[str, list[E]] = {}
    for edit in edits:
        groups.setdefault(os.path.realpath(edit.config.place.path), []).append(edit)
    return list(groups.values())
