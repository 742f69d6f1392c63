"""Backups: copies of files before our changes, readable by their owner only, and limited in number."""

from __future__ import annotations

import os

from ..system.files import FileProblem, names_in, remove_file, sweep
from ..system.log import utc_now
from ..system.state_files import read_own, write_own
from ..system.values import Value
from .change_records import FOLDER, record_of, stem
from .config_file import MAX_BYTES

BACKUPS = "backups"
MAX_BACKUPS = 10  # the limit per file, because configurations may contain secrets


class Backup(Value):
    path: str
    content: bytes

    @property
    def time(self) -> str:
        """The time at which the file was copied, before a change."""
        stamp, _, number = self.path.rpartition(".")[2].rpartition("-")
        day, clock = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}", f"{stamp[9:11]}:{stamp[11:13]}:{stamp[13:15]}"
        return f"{day}T{clock}Z" + (
            f" ({int(number)})" if int(number) > 1 else ""
        )  # several in one second are numbered


def backups_of(folder: str, path: str) -> list[Backup]:
    """The readable backups of a file in our state folder, the newest first."""
    into = os.path.join(folder, FOLDER, BACKUPS)
    record = record_of(folder, path)  # its backup may have a name of an earlier version, which other files share
    names = _names(into, f"{os.path.basename(stem(folder, path))}.")
    paths = [os.path.join(into, name) for name in reversed(names)]
    if record is not None and record.backup is not None and record.backup not in paths:
        paths.append(record.backup)
    found = []
    for backup in paths:
        try:
            found.append(Backup(backup, read_own(backup, MAX_BYTES)))
        except (OSError, FileProblem):
            continue
    return found


def keep_backup(folder: str, path: str, content: bytes) -> str:
    """Write a backup of a file into our state folder and return its path; raises OSError."""
    name = os.path.basename(stem(folder, path))
    into = os.path.join(folder, FOLDER, BACKUPS)
    now = utc_now().replace(":", "").replace("-", "")
    # Names sort by age, also within one second.
    taken = [int(one.rpartition("-")[2]) for one in _names(into, f"{name}.{now}-")]
    backup = os.path.join(into, f"{name}.{now}-{max(taken, default=0) + 1:04}")
    sweep(into)  # partial backups of killed runs may contain secrets
    write_own(backup, content)
    _clear(into, f"{name}.")
    return backup


def _clear(folder: str, beginning: str) -> None:
    for name in _names(folder, beginning)[:-MAX_BACKUPS]:
        try:
            remove_file(os.path.join(folder, name))
        except OSError:
            pass  # the old backup stays, one more than the limit


def _names(folder: str, beginning: str) -> list[str]:
    """The names of the backups, the oldest first, without temporary files."""
    return [name for name in names_in(folder) if name.startswith(beginning) and name.rpartition("-")[2].isdigit()]
