"""A folder for the files of an input, in memory where the system offers that; the same files again for each input."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

MEMORY = "/dev/shm"


VARIABLE = "UNO_FUZZ_FOLDER"  # where the folders of a run are: libFuzzer ends a process without saying goodbye


def base() -> str | None:
    """Where folders are made; None: where the system makes its temporary ones."""
    return os.environ.get(VARIABLE) or (MEMORY if os.access(MEMORY, os.W_OK) else None)


@cache
def folder() -> Path:
    """Of this process."""
    made = tempfile.mkdtemp(prefix="uno-fuzz-", dir=base())
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def put(name: str, data: bytes) -> str:
    """The path of a file with this content."""
    path = folder() / name
    try:
        path.write_bytes(data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(path)
