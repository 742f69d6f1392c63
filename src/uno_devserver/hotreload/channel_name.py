"""The name of a control channel: decided before the upstream is launched, so that whoever finds that finds the channel.

Cheap to import: the first start waits for it.
"""

from __future__ import annotations

import os

from ..system.pipes import UNIX_PREFIX, PipeProblem, pipe_path

RANDOM_BYTES = 12  # nobody guesses it, and with it a socket still fits into the long temp folders of macOS
SHORT_FOLDER = "/tmp/"  # noqa: S108  # for where the user's own temp folder has too long a path for a socket


def channel_name() -> str:
    """Another one at each call; `pipe_path` tells where that is."""
    name = f"uno-{os.urandom(RANDOM_BYTES).hex()}"
    try:
        pipe_path(name)
    except PipeProblem:
        return f"{SHORT_FOLDER}{UNIX_PREFIX}{name}"
    return name
