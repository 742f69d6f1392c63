"""The kinds of servers that a workspace can have. This module is cheap to import."""

from __future__ import annotations

from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_DOTNET_HOST = "Uno.UI.RemoteControl.Host"
_BUNDLED_HOST = "uno_devserver.host"
_PROGRAMS = ("uno_devserver", "uno-devserver", "uno.devserver")  # the package, and both names of the command


class HostKind(Enum):
    """The kind of a server; its value is used in `--host` and in the JSON output."""

    BUNDLED = "bundled"
    DOTNET = "dotnet"
    COMMAND = "command"  # any other MCP server behind a proxy: a command or a URL

    @classmethod
    def named(cls, text: object) -> HostKind | None:
        """The kind with this value, ignoring case; None for any other text or object."""
        return next((kind for kind in cls if isinstance(text, str) and text.lower() == kind.value), None)

    @classmethod
    def of_command_line(cls, arguments: Sequence[str]) -> HostKind | None:
        """The kind of the Host with this command line; None if the command line does not show it.

        A registry entry does not name the kind, because any program may have launched the Host.
        """
        if any(argument.replace("\\", "/").rpartition("/")[2].startswith(_DOTNET_HOST) for argument in arguments[:3]):
            return cls.DOTNET
        # `python -P -m uno_devserver.host`, or the program's own `host` command
        ours = any(name in argument for argument in arguments[:4] for name in _PROGRAMS)
        return cls.BUNDLED if _BUNDLED_HOST in arguments or (ours and "host" in arguments) else None
