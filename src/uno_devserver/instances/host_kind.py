"""The kinds of Hosts, and which of them a process is, by its command line. Cheap to import.

The launcher of a Host may be any program, so its registry entry does not tell.
"""

from __future__ import annotations

from enum import Enum

_DOTNET_HOST = "Uno.UI.RemoteControl.Host"
_BUNDLED_HOST = "uno_devserver.host"
_PROGRAMS = ("uno_devserver", "uno-devserver", "uno.devserver")  # the package, and both names of the command


class HostKind(Enum):
    DOTNET = "dotnet"
    BUNDLED = "bundled"
    COMMAND = "command"  # another MCP server, behind a proxy


def kind_by_command_line(arguments: tuple[str, ...]) -> str | None:
    """`bundled`, `dotnet`, or None where the process does not tell."""
    if any(argument.replace("\\", "/").rpartition("/")[2].startswith(_DOTNET_HOST) for argument in arguments[:3]):
        return "dotnet"
    # `python -P -m uno_devserver.host`, or the program's own `host` command
    ours = any(name in argument for argument in arguments[:4] for name in _PROGRAMS)
    return "bundled" if _BUNDLED_HOST in arguments or (ours and "host" in arguments) else None
