"""The name of a control channel, and the removal of channels of killed proxies. Cheap to import for every start.

The name is chosen before the upstream is launched, because the registry entry of the upstream contains it.
"""

from __future__ import annotations

import os
import re
import sys

from ...system.pipes import UNIX_PREFIX, PipeProblem, pipe_path, remove_if_left

RANDOM_BYTES = 12  # hard to guess, yet short enough for a socket path in the temp folders of macOS
_OURS = re.compile(rf"{UNIX_PREFIX}uno-[0-9a-f]{{{2 * RANDOM_BYTES}}}")
SHORT_FOLDER = "/tmp/"  # noqa: S108  # if the path of the user's own temp folder is too long for a socket


def channel_name() -> str:
    """A new name; `pipe_path` returns its path."""
    name = f"uno-{os.urandom(RANDOM_BYTES).hex()}"
    try:
        pipe_path(name)
    except PipeProblem:
        return f"{SHORT_FOLDER}{UNIX_PREFIX}{name}"
    return name


def remove_left_channels() -> list[str]:
    """Remove the sockets of killed proxies of this user; returns their paths."""
    if sys.platform == "win32":
        return []  # on Windows a pipe ends with its process
    folder = os.path.dirname(pipe_path(channel_name()))
    try:
        names = sorted(name for name in os.listdir(folder) if _OURS.fullmatch(name))
    except OSError:
        return []
    return [path for name in names if remove_if_left(path := os.path.join(folder, name))]
