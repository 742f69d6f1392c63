"""When two spellings name the same file, by the rules that all launchers of the DevServer share.

The rules are pure: the platform is a parameter, so that each system's are tested on every system.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Windows drives as WSL shows them: their file systems ignore case although Linux does not.
WSL_DRIVES = "/mnt/"


def absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError:  # the current folder was removed; whoever opens the path will say so
        return path


def path_key(path: str, platform: str = sys.platform) -> str:
    """Equal for absolute paths that count as the same file. macOS counts as case-sensitive, as for all launchers."""
    key = path.replace("\\", "/").rstrip("/") or "/"
    ignores_case = platform == "win32" or key.lower().startswith(WSL_DRIVES)
    return key.lower() if ignores_case else key


def same_path(one: str, other: str) -> bool:
    return path_key(one) == path_key(other)


def upwards(directory: str) -> Iterator[str]:
    """The directory, then each folder above it up to the root."""
    while True:
        yield directory
        above = os.path.dirname(directory)
        if above == directory:
            return
        directory = above
