"""How a Host is called: which program it is, and the exact list of arguments that reaches it.

An argument list is never joined into one string: a path may hold blanks, quotes and semicolons.
"""

from __future__ import annotations

import os
import sys
from enum import Enum

from ..issues import UserError
from ..system.run import find_program
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Says "no add-ins": .NET launchers that build one string lose an empty value, and the Host then asks MSBuild.
NO_ADDINS = ";"

# Lets a Host that was built for an older .NET run on the next major version.
ROLL_FORWARD = ("DOTNET_ROLL_FORWARD", "Major")


class ProgramKind(Enum):
    BUNDLED = "bundled"
    DOTNET = "dotnet"
    PATH = "path"  # a program that the user named


class HostProgram(Value):
    kind: ProgramKind
    command: tuple[str, ...]  # everything before the Host's own arguments; the program by its full path
    environment: tuple[tuple[str, str], ...] = ()  # in addition to ours


class HostArguments(Value):
    """What a Host is told. None: it is not told."""

    port: int
    workspace: str
    parent: int | None = None
    solution: str | None = None
    ide_channel: str | None = None
    addins: str | None = None  # the value of the flag; None lets the Host discover them itself
    forwarded: tuple[str, ...] = ()


def bundled_host() -> HostProgram:
    # -P: a module in the workspace, which is the current folder, must not be taken for one of ours.
    return HostProgram(ProgramKind.BUNDLED, (sys.executable, "-P", "-m", "uno_devserver.host"))


def dotnet_host(path: str, environ: Mapping[str, str], *, roll_forward: bool) -> HostProgram:
    extra = (ROLL_FORWARD,) if roll_forward else ()
    return HostProgram(ProgramKind.DOTNET, _run_by(path, environ), extra)


def host_at(path: str, environ: Mapping[str, str]) -> HostProgram:
    """The Host that the user named."""
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        next_step = "Name a Host that exists, or use --host bundled or --host dotnet."
        raise UserError("HostBinaryNotFound", f"There is no Host at {path}.", next_step)
    return HostProgram(ProgramKind.PATH, _run_by(path, environ))


def _run_by(path: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    if not path.lower().endswith(".dll"):
        return (path,)
    dotnet = find_program("dotnet", environ)
    if dotnet is None:
        message = f"{path} needs .NET to run, and no 'dotnet' was found in the folders of PATH."
        next_step = "Install the .NET SDK, or use --host bundled."
        raise UserError("DotNetNotFound", message, next_step)
    return (dotnet, path)


def command_line(program: HostProgram, arguments: HostArguments) -> list[str]:
    """The words that start the Host, in the order in which all launchers give them."""
    line = [*program.command, "--httpPort", str(arguments.port)]
    named = (
        ("--ppid", None if arguments.parent is None else str(arguments.parent)),
        ("--solution", arguments.solution),
        ("--ideChannel", arguments.ide_channel),
        ("--addins", arguments.addins),
        ("--workingDir", arguments.workspace if program.kind is ProgramKind.BUNDLED else None),
    )
    for flag, value in named:
        line += [] if value is None else [flag, value]
    return [*line, *arguments.forwarded]


def addins_value(paths: Sequence[str], workspace: str) -> tuple[str, tuple[str, ...]]:
    """The value of --addins, and the paths that it cannot hold.

    The flag has no way to write a path with a semicolon. The Host runs in the workspace's folder, so inside a
    workspace with such a name the relative path does it.
    """
    spellings = {path: _spelling(path, workspace) for path in paths}
    written = [spelling for spelling in spellings.values() if spelling is not None]
    return ";".join(written) or NO_ADDINS, tuple(path for path, spelling in spellings.items() if spelling is None)


def _spelling(path: str, workspace: str) -> str | None:
    if ";" not in path:
        return path
    try:
        relative = os.path.relpath(path, workspace)
    except ValueError:  # on another drive
        return None
    return None if ";" in relative else relative


def addin_paths(value: str | None) -> tuple[str, ...]:
    """The paths in a value of --addins, as a Host reads it."""
    return tuple(path.strip() for path in (value or "").split(";") if path.strip())
