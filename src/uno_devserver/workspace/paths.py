"""Comparison of paths. There are two rules:

- `same_path`, `is_below` and `path_key` compare spellings, by the rules that all launchers of the DevServer share. They
  do not read the disk. The platform is a parameter, so that the rules of each system are tested on every system.
- `same_place` and `is_inside` find out whether two paths lead to the same place, even through links or with another
  case. They are for paths that other programs have written.
"""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WSL_DRIVES = "/mnt/"  # the drives of Windows in WSL, whose file systems ignore case
UNDECODABLE = "[\ud800-\udfff]"  # compiled on first use, which few workspaces need


def absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError:  # the current folder was removed, and opening the path will fail later
        return path


def path_key(path: str, platform: str = sys.platform) -> str:
    """A key, equal for absolute paths of the same file. macOS is treated as case-sensitive, as by all launchers."""
    key = path.replace("\\", "/").rstrip("/") or "/"
    ignores_case = platform == "win32" or key.lower().startswith(WSL_DRIVES)
    return key.lower() if ignores_case else key


def same_path(one: str, other: str) -> bool:
    return path_key(one) == path_key(other)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is that of a file or folder below the folder, as it is spelt."""
    return path_key(path).startswith(path_key(folder) + "/")


def upwards(directory: str) -> Iterator[str]:
    """The directory, then each folder above it up to the root."""
    while True:
        yield directory
        above = os.path.dirname(directory)
        if above == directory:
            return
        directory = above


def same_place(one: str | None, other: str | None) -> bool:
    return any(_are_one(mine, theirs) for mine in _spellings(one) for theirs in _spellings(other))


def is_inside(path: str, directory: str) -> bool:
    """Whether the path is below the directory, at any depth."""
    return any(
        inner[len(outer) : len(outer) + 1] == os.sep and _are_one(inner[: len(outer)], outer)
        for inner in _spellings(path)
        for outer in (spelling.rstrip(os.sep) for spelling in _spellings(directory))
    )


def _spellings(path: str | None) -> set[str]:
    if not path:
        return set()
    try:
        spellings = {os.path.normpath(path), os.path.realpath(path)}
    except (OSError, ValueError):  # this cannot be a path: it contains a NUL, or is too long
        spellings = {os.path.normpath(path)}
    # The registry has U+FFFD instead of undecodable bytes, so both sides of a comparison get it.
    return {re.sub(UNDECODABLE, "\ufffd", spelling) for spelling in spellings}


def _are_one(path: str, other: str) -> bool:
    if path == other or path.lower() != other.lower():
        return path == other
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of them does not exist
        return True
