"""What an entry's command is: a path or a name, by the rules of all systems, for files go from one to another; pure."""

from __future__ import annotations

_ENDINGS = (".exe", ".cmd", ".bat")


def base_name(command: str) -> str:
    """The program's name, without its folder and Windows' endings: `C:\\tools\\uvx.exe` is `uvx`."""
    name = command.replace("\\", "/").rpartition("/")[2]
    ending = name[-4:].lower()
    return name[:-4] if ending in _ENDINGS else name


def is_absolute(command: str) -> bool:
    return command.startswith(("/", "\\\\")) or command[1:3] in (":\\", ":/")
