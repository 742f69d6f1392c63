"""The packages whose code is watched. Cheap to import, because every launch imports it."""

from __future__ import annotations

from enum import Enum

from ..system.values import Value


class Role(Enum):
    SERVER = "server"
    EXTENSION = "extension"

    @property
    def script(self) -> str:
        """The script in `package.json` that builds a package of this role."""
        return "build" if self is Role.SERVER else "compile"


class WatchedPackage(Value):
    role: Role
    root: str  # absolute
    include: tuple[str, ...] = ()  # hotReload.include: globs, relative to the root, for additional files
    exclude: tuple[str, ...] = ()  # hotReload.exclude: globs for files that are never sources
    addins: bool = False  # the root is a workspace, and its Python add-ins are the code
    workspace: str = ""  # the workspace folder, which include and watch may not lead out of; empty: the root
    environment: str = ""  # the virtual environment of Python that the config names; empty: the nearest one
    # Which of several .NET projects or programs in the root the command names (empty: the first), or which package of
    # the Go module in the root it runs (empty: any).
    project: str = ""
    watch: tuple[str, ...] = ()  # hotReload.watch: globs for the code, instead of what the kind of package finds
    build: tuple[str, ...] | None = None  # mcpServer.build: None for the build of its kind, empty for none
    started: tuple[str, ...] = ()  # the paths of the files that the server's command starts, as far as they are known
    node: str = ""  # the Node that runs the first of these, by its name or path; empty if another program does
