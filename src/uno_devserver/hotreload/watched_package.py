"""The packages whose code is watched. Cheap to import: a launch waits for it."""

from __future__ import annotations

from enum import Enum

from ..system.values import Value


class Role(Enum):
    SERVER = "server"
    EXTENSION = "extension"

    @property
    def script(self) -> str:
        """The script of `package.json` that builds it."""
        return "build" if self is Role.SERVER else "compile"


class WatchedPackage(Value):
    role: Role
    root: str  # absolute
    include: tuple[str, ...] = ()  # hotReload.include: globs from the root, of more files that count
    exclude: tuple[str, ...] = ()  # hotReload.exclude: of files that never count
    addins: bool = False  # the root is a workspace, and its Python add-ins are the code
