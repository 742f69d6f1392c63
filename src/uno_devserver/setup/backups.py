"""Copies of files as they were before we changed them: readable by their owner only, and not without end."""

from __future__ import annotations

import os
import time

from ..system.files import FileProblem, read_bytes, sweep, write_atomic
from ..system.values import Value
from .change_records import FOLDER, stem
from .config_file import MAX_BYTES

BACKUPS = "backups"
MAX_BACKUPS = 10  # per file: nobody goes back further than that, and configurations may hold secrets


class Backup(Value):
    path: str
    content: bytes

    @property
    def time(self) -> str:
        """Until when the file was like that."""
        stamp, _, number = self.path.rpartition(".")[2].rpartition("-")
        day, clock = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}", f"{stamp[9:11]}:{stamp[11:13]}:{stamp[13:15]}"
        return f"{day}T{clock}Z" + (f" ({int(number)})" if int(number) > 1 else "")  # of several in one second


def backups_of(folder: str, path: str) -> list[Backup]:
    """What is kept of a file, the newest first, in the folder of our state; one that cannot be read is none."""
    into = os.path.join(folder, FOLDER, BACKUPS)
    found = []
    for name in reversed(_names(into, f"{os.path.basename(stem(folder, path))}.")):
        backup = os.path.join(into, name)
        try:
            found.append(Backup(backup, read_bytes(backup, MAX_BYTES)))
        except (OSError, FileProblem):
            continue
    return found


def keep_backup(folder: str, path: str, content: bytes) -> str:
    """Keep this content of a file, in the folder of our state; where it is now. OSError."""
    name = os.path.basename(stem(folder, path))
    into = os.path.join(folder, FOLDER, BACKUPS)
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    # The newest has the greatest name, also among those of one second.
    taken = [int(one.rpartition("-")[2]) for one in _names(into, f"{name}.{now}-")]
    backup = os.path.join(into, f"{name}.{now}-{max(taken, default=0) + 1:04}")
    sweep(into)  # half a backup of a killed run is of use to nobody, and may hold secrets
    write_atomic(backup, content)
    _clear(into, f"{name}.")
    return backup


def _clear(folder: str, beginning: str) -> None:
    for name in _names(folder, beginning)[:-MAX_BACKUPS]:
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass  # one more than wanted


def _names(folder: str, beginning: str) -> list[str]:
    """The oldest first; temporary files are not among them."""
    try:
        found = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in found if name.startswith(beginning) and name.rpartition("-")[2].isdigit())
