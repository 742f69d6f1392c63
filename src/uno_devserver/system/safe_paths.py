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


def path_inside(root: str, path: str, *, windows: bool = os.name == "nt") -> str:
    """The real path of `path` (absolute, or relative to `root`), which must be below `root` but need not exist."""
    problem = odd_name(path, windows=windows)
    if problem is not None:
        raise PathEscape(problem)
    try:
        real = os.path.realpath(os.path.join(root, path))
        if _is_below(real, os.stat(root)):
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


def _is_below(path: str, root: os.stat_result) -> bool:
    while True:
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
        try:
            if os.path.samestat(os.stat(path), root):
                return True
        except FileNotFoundError:  # the folder does not exist yet
            pass
