"""The name of a control channel: decided before the upstream is launched, so that whoever finds that finds the channel.

Cheap to import: the first start waits for it.
"""

from __future__ import annotations

import os
import re
import sys

from ...system.pipes import UNIX_PREFIX, PipeProblem, pipe_path, remove_if_left

RANDOM_BYTES = 12  # nobody guesses it, and with it a socket still fits into the long temp folders of macOS
_OURS = re.compile(rf"{UNIX_PREFIX}uno-[0-9a-f]{{{2 * RANDOM_BYTES}}}")
SHORT_FOLDER = "/tmp/"  # noqa: S108  # for where the user's own temp folder has too long a path for a socket


def channel_name() -> str:
    """Another one at each call; `pipe_path` tells where that is."""
    name = f"uno-{os.urandom(RANDOM_BYTES).hex()}"
    try:
        pipe_path(name)
    except PipeProblem:
        return f"{SHORT_FOLDER}{UNIX_PREFIX}{name}"
    return name


def remove_left_channels() -> list[str]:
    """Remove the sockets of this user's proxies that were killed, and cannot have done so; which these were."""
    if sys.platform == "win32":
        return []  # a pipe goes with its process there
    folder = os.path.dirname(pipe_path(channel_name()))
    try:
        names = sorted(name for name in os.listdir(folder) if _OURS.fullmatch(name))
    except OSError:
        return []
    return [path for name in names if remove_if_left(path := os.path.join(folder, name))]
