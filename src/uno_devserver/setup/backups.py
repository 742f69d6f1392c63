"""Copies of files as they were before we changed them: readable by their owner only, and not without end."""

from __future__ import annotations

import os
import time

from ..system.files import write_atomic
from .records import FOLDER, stem

BACKUPS = "backups"
MAX_BACKUPS = 10  # per file: nobody goes back further than that, and configurations may hold secrets


def keep_backup(folder: str, path: str, content: bytes) -> str:
    """Keep this content of a file, in the folder of our state; where it is now. OSError."""
    name = os.path.basename(stem(folder, path))
    into = os.path.join(folder, FOLDER, BACKUPS)
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 0
    while os.path.lexists(backup := os.path.join(into, f"{name}.{now}-{number:02}")):
        number += 1
    write_atomic(backup, content)
    _clear(into, f"{name}.")
    return backup


def _clear(folder: str, beginning: str) -> None:
    names = sorted(name for name in os.listdir(folder) if name.startswith(beginning) and not name.endswith(".tmp"))
    for name in names[:-MAX_BACKUPS]:
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass  # one more than wanted
