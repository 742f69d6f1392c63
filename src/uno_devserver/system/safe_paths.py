"""Make sure that a path from another program stays inside a folder, the root.

The file system decides, not the spelling: symbolic links are followed first, then one of the folders above the result
must *be* the root. Therefore `..`, links that lead out, other spellings and similar names cannot escape, whether or not
the system ignores case.
"""

from __future__ import annotations

import os
import re

# Names that Windows opens as devices in every folder, with any text after the first dot or space.
_DEVICE = r"(?i)(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9¹²³])[ .]*([.:].*)?"


class PathEscape(Exception):
    """The path does not stay inside the folder; the message is the reason."""


def path_inside(root: str, path: str) -> str:
    """The real path of `path` (absolute, or relative to `root`), which must be below `root` but need not exist."""
    problem = odd_name(path, windows=os.name == "nt")
    if problem is not None:
        raise PathEscape(problem)
    try:
        real = os.path.realpath(os.path.join(root, path))
        if _steps_below(os.stat(root), real):
            return real
    except (OSError, ValueError) as error:  # a name is too long, or the root does not exist
        raise PathEscape(f"it cannot be looked up: {getattr(error, 'strerror', None) or error}") from error
    raise PathEscape("it leads out of the folder")


def odd_name(path: str, *, windows: bool) -> str | None:
    """Why no file should have this path, although the system may accept it; None if there is no reason."""
    if not path or "\0" in path:
        return "it is empty" if not path else "it holds a NUL character"
    if not windows:
        return None
    if re.match(r"[\\/]{2}[.?][\\/]", path):
        return "it names a device"
    for name in re.split(r"[\\/]", re.sub(r"^[A-Za-z]:", "", path)):
        if re.fullmatch(_DEVICE, name):
            return f"'{name}' is a device"
        if ":" in name:
            return f"'{name}' is a stream inside a file"
        if name.rstrip(" .") != name and name not in (".", ".."):
            return f"'{name}' ends with a dot or a space, which Windows drops"
    return None


def hidden_part(root: str, real: str) -> str | None:
    """The hidden name (with a leading dot) below `root` that leads to `real` or a folder above it; None if none does.

    `real` is a result of `path_inside`. Each name on the way counts, and each hidden name beside them that is another
    name for the same file: the target of a hidden link, or a hidden folder under its short name on Windows. Raises
    OSError.
    """
    steps = _steps_below(os.stat(root), real)
    for step in steps:
        if os.path.basename(step).startswith("."):
            return os.path.basename(step)
    existing = [found for step in steps if (found := _stat(step)) is not None]
    for folder in map(os.path.dirname, steps):
        if os.path.isdir(folder):  # else it does not exist yet
            for name in os.listdir(folder):
                if name.startswith(".") and _is_one_of(os.path.join(folder, name), existing):
                    return name
    return None


def _steps_below(root: os.stat_result, path: str) -> list[str]:
    """The path and the folders above it, up to the one that lies in the root; empty if it is not below the root."""
    steps = []
    while (above := os.path.dirname(path)) != path:
        steps.append(path)
        found = _stat(above)  # None if the folder does not exist yet
        if found is not None and os.path.samestat(found, root):
            return steps
        path = above
    return []


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_one_of(path: str, files: list[os.stat_result]) -> bool:
    try:
        found = os.stat(path)
    except OSError:  # a link that leads nowhere, or in a circle
        return False
    return any(os.path.samestat(found, each) for each in files)
