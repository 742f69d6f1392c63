"""Which Host a process is, by its command line: the launcher of a Host may be anybody, so its entry does not tell."""

from __future__ import annotations

_DOTNET_HOST = "Uno.UI.RemoteControl.Host"
_BUNDLED_HOST = "uno_devserver.host"


def host_kind(arguments: tuple[str, ...]) -> str | None:
    """`bundled`, `dotnet`, or None where the process does not tell."""
    if any(argument.replace("\\", "/").rpartition("/")[2].startswith(_DOTNET_HOST) for argument in arguments[:3]):
        return "dotnet"
    # `python -P -m uno_devserver.host`, or the program's own `host` command
    ours = any("uno_devserver" in argument or "uno-devserver" in argument for argument in arguments[:4])
    return "bundled" if _BUNDLED_HOST in arguments or (ours and "host" in arguments) else None
