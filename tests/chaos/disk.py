"""A data folder that can be full: on a small file system of its own where we may mount one, else by a limit.

Without the right to mount, the processes may not make any file longer (RLIMIT_FSIZE), which looks to them as a quota
does. The limit needs no right, and ends with the fault.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

if sys.platform != "win32":
    import resource

SIZE = "24m"  # what the program keeps has less than one; logs of servers that flood have some
FILLER = "filler"


class Disk:
    def __init__(self, folder: Path, may_mount: bool) -> None:
        self._folder = folder
        self.mounted = may_mount and _mount(folder)

    @property
    def how(self) -> str:
        return "a small file system" if self.mounted else "RLIMIT_FSIZE"

    def fill(self, processes: Iterable[int]) -> None:
        if not self.mounted:
            _limit(processes, 0)
            return
        filler = os.open(self._folder / FILLER, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            for size in (1 << 20, 1 << 12, 1):
                _write_all(filler, b"f" * size)
        finally:
            os.close(filler)

    def empty(self, processes: Iterable[int]) -> None:
        if self.mounted:
            (self._folder / FILLER).unlink(missing_ok=True)
        else:
            _limit(processes, resource.RLIM_INFINITY)

    def release(self) -> None:
        if self.mounted:
            # Lazily: a process that still has a file open there does not keep the rest of the world.
            subprocess.run(["umount", "--lazy", str(self._folder)], check=False)


def _mount(folder: Path) -> bool:
    line = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", str(folder)]
    try:
        return subprocess.run(line, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _write_all(file: int, data: bytes) -> None:
    try:
        while True:
            os.write(file, data)
    except OSError:
        pass  # it is full


def _limit(processes: Iterable[int], size: int) -> None:
    for pid in processes:
        try:
            _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size if most == resource.RLIM_INFINITY else most, most))
        except ProcessLookupError:
            pass  # it was quicker
