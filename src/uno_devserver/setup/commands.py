"""What an entry's command is, by the rules of all systems, since files travel; and whether it is there."""

from __future__ import annotations

import os

from ..system.programs import candidates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_ENDINGS = (".exe", ".cmd", ".bat")


def base_name(command: str) -> str:
    """The program's name, without its folder and Windows' endings: `C:\\tools\\uvx.exe` is `uvx`."""
    name = command.replace("\\", "/").rpartition("/")[2]
    ending = name[-4:].lower()
    return name[:-4] if ending in _ENDINGS else name


def is_absolute(command: str) -> bool:
    return command.startswith(("/", "\\\\")) or command[1:3] in (":\\", ":/")


def on_path(name: str, environ: Mapping[str, str], platform: str) -> bool:
    return any(os.path.isfile(path) and os.access(path, os.X_OK) for path in candidates(name, "", environ, platform))


def missing(command: str, environ: Mapping[str, str], platform: str) -> str:
    """Why it cannot be started, as a sentence's end; "" where it can, or where that cannot be known from here."""
    if is_absolute(command):
        return "" if os.path.exists(command) else f"'{command}' does not exist"
    if any(sign in command for sign in "/\\$~%"):
        return ""  # from a folder, or with a variable, that only the client knows
    return "" if on_path(command, environ, platform) else f"'{command}' is not on PATH"
