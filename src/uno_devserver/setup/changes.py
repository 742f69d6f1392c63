"""What is to become of one configuration file: planned whole, shown whole, and written at once."""

from __future__ import annotations

from ..system.values import Value
from .operations import Operation
from .profiles import Scope


class FileChange(Value):
    path: str  # as the client names it; where it is a link, what it leads to is changed
    scope: Scope
    before: bytes | None  # None: there is no file
    after: bytes | None  # None: there will be none
    operations: tuple[Operation, ...]  # what that does, server by server
    closes: bool = False  # afterwards the file counts as never changed by us


Plan = tuple[FileChange | Operation, ...]
