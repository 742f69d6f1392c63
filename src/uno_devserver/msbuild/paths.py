"""Path rules of MSBuild, for Windows and other systems.

On Windows MSBuild keeps both kinds of slashes. Elsewhere it replaces backslashes, in plain text only if the result
looks like a path that could exist. `windows` selects the rules, so both can be tested on every system.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

WINDOWS = os.name == "nt"


def to_slashes(path: str, windows: bool = WINDOWS) -> str:
    """The path with this system's separators."""
    return path if windows else path.replace("\\", "/")


def adjust(value: str, is_folder: Callable[[str], bool], windows: bool = WINDOWS) -> str:
    """Replaces the backslashes of a text that may be a path, if its first folder exists.

    `is_folder` is called with absolute paths and with paths relative to the project folder.
    """
    if windows or "\\" not in value or value.startswith(("$(", "@(", "\\\\")):
        return value
    turned = value.replace("\\", "/")
    while "//" in turned:
        turned = turned.replace("//", "/")
    unquoted = turned[1:-1] if len(turned) > 2 and turned[0] == turned[-1] and turned[0] in "'\"" else turned
    first_slash = unquoted.find("/", 1)
    if first_slash > 0:
        looks_like_path = is_folder(unquoted[:first_slash])
    else:
        looks_like_path = unquoted.startswith("/") and is_folder(unquoted)
    return turned if looks_like_path else value


def full_path(path: str, folder: str, windows: bool = WINDOWS) -> str:
    """The absolute path without '.' and '..', which are resolved in the text, not on disk; keeps a trailing slash."""
    if windows:
        import ntpath

        full = ntpath.normpath(ntpath.join(folder, path))
        return full + "\\" if path.endswith(("/", "\\")) and not full.endswith("\\") else full
    path = path.replace("\\", "/")
    if not path.startswith("/"):
        path = f"{folder}/{path}"
    if "/." not in path and "//" not in path:
        return path
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if kept:
                kept.pop()
        elif part and part != ".":
            kept.append(part)
    full = "/" + "/".join(kept)
    return full + "/" if kept and path.endswith("/") else full


def is_rooted(path: str, windows: bool = WINDOWS) -> bool:
    if windows:
        return path.startswith(("/", "\\")) or path[1:2] == ":"
    return path.startswith("/")


def comparison_key(path: str, folder: str) -> str:
    """A key that is equal for all spellings of a path; MSBuild ignores case here on every system."""
    return ignoring_case(full_path(path, folder).rstrip("/\\"))


def ignoring_case(text: str) -> str:
    """The text in the form that .NET compares when it ignores case: each character in upper case."""
    if text.isascii():
        return text.upper()
    return "".join(upper if len(upper := character.upper()) == 1 else character for character in text)


def split_extension(name: str) -> tuple[str, str]:
    """Splits a file name as .NET does: '.config' is only an extension, 'a.' has none."""
    dot = name.rfind(".")
    if dot < 0:
        return name, ""
    return name[:dot], name[dot:] if dot < len(name) - 1 else ""


def without_root(folder: str) -> str:
    return os.path.splitdrive(folder)[1].lstrip("/\\")
