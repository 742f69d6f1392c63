"""The Python add-ins of a workspace: every Python file and package in `.devtools/addins/`."""

from __future__ import annotations

import os
from binascii import crc32

ADDINS_FOLDER = os.path.join(".devtools", "addins")
# Of a folder of add-ins; it may hold a whole environment.
MAX_SOURCES = 256
MAX_SOURCE_BYTES = 1024 * 1024


def workspace_addins(workspace: str) -> list[str]:
    """Absolute paths, in the order of loading; names that begin with `_` or `.` are left to the add-ins."""
    folder = os.path.join(os.path.abspath(workspace), ADDINS_FOLDER)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if name[0] not in "_." and _is_addin(folder, name)]


def addin_sources(workspace: str) -> list[str]:
    """Every Python file below the folder of add-ins: the add-ins, and the modules that they may import."""
    found: list[str] = []
    for folder, below, names in os.walk(os.path.join(os.path.abspath(workspace), ADDINS_FOLDER)):
        below[:] = sorted(name for name in below if name != "__pycache__" and not name.startswith("."))
        found += [os.path.join(folder, name) for name in sorted(names) if name.endswith(".py")]
        if len(found) > MAX_SOURCES:
            break
    return found[:MAX_SOURCES]


def sources_key(workspace: str) -> int:
    """A checksum of the sources of the add-ins."""
    key = 0
    for path in addin_sources(workspace):
        try:
            with open(path, "rb") as stream:
                content = stream.read(MAX_SOURCE_BYTES)
        except OSError:  # just removed, or not readable
            continue
        key = crc32(content, crc32(os.fsencode(path), key))
    return key


def _is_addin(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    if os.path.isdir(path):
        return os.path.isfile(os.path.join(path, "__init__.py"))
    return name.endswith(".py")
