"""What was done, or would be done, to one server in one file: the unit that all registration commands report."""

from __future__ import annotations

from enum import Enum

from ...system.values import Value
from ..profiles import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..profiles import Scope


class Action(Enum):
    CREATED = "created"
    UPDATED = "updated"
    SKIPPED = "skipped"
    REMOVED = "removed"
    RESTORED = "restored"
    NOT_FOUND = "not_found"
    ERROR = "error"


class Operation(Value):
    server: str | None  # None: the whole file
    ide: str
    action: Action
    path: str | None
    reason: str
    notes: tuple[str, ...] = ()  # what else the user should know: shared files, other workspaces, left entries
    backup: str | None = None  # where the file's content before the change is kept
    scope: Scope | None = None  # of an entry: a file may hold those of both
    keys: tuple[str, ...] = ()  # the entries' names, where there are, or were, any
    next_step: str = ""  # after an error: what to do about it
    diff: str = ""  # of a dry run, the first operation on a file has all of it

    def failed(self, reason: str, next_step: str = "") -> Operation:
        """What was meant to be done and could not."""
        return self.replace(action=Action.ERROR, reason=reason, next_step=next_step, notes=(), keys=())


def failed(operations: tuple[Operation, ...]) -> bool:
    """Nothing useful was done."""
    return bool(operations) and all(one.action in (Action.ERROR, Action.NOT_FOUND) for one in operations)


class FileChange(Value):
    path: str  # as the client names it; where it is a link, what it leads to is changed
    scope: Scope
    before: bytes | None  # None: there is no file
    after: bytes | None  # None: there will be none
    operations: tuple[Operation, ...]  # what that does, server by server
    closes: bool = False  # afterwards the file counts as never changed by us


ChangePlan = tuple[FileChange | Operation, ...]
