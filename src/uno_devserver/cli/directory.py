"""Which folder a command is about."""

from __future__ import annotations

import os

from ..issues import UserError


def absolute(directory: str) -> str:
    try:
        return os.path.abspath(directory)
    except OSError as error:
        message = "The current folder does not exist any more."
        raise UserError(
            "NoCurrentFolder", message, "Change into a folder that exists, or use --solution-dir."
        ) from error
