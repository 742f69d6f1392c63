"""The Python add-ins of a workspace: every Python file and package in `.devtools/addins/`."""

from __future__ import annotations

import os
from binascii import crc32

from ..system.files import FileProblem, names_in, read_head
from .devtools_folder import ADDINS_FOLDER

# Limits for reading a folder of add-ins, which may contain a whole virtual environment.
MAX_SOURCES = 256
MAX_SOURCE_BYTES = 1024 * 1024


def workspace_addins(workspace: str) -> list[str]:
    """The absolute paths of the add-ins, in the order of loading, without names that begin with `_` or `.`."""
    folder = os.path.join(os.path.abspath(workspace), ADDINS_FOLDER)
    return [os.path.join(folder, name) for name in names_in(folder) if name[0] not in "_." and _is_addin(folder, name)]


def addin_sources(workspace: str) -> list[str]:
    """The Python files below the folder of add-ins, at most MAX_SOURCES: add-ins, and modules that they may import."""
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
            content = read_head(path, MAX_SOURCE_BYTES)
        except (FileNotFoundError, FileProblem):  # it was just removed, is not readable, or is not a file
            continue
        key = crc32(content, crc32(os.fsencode(path), key))
    return key


def _is_addin(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    if os.path.isdir(path):
        return os.path.isfile(os.path.join(path, "__init__.py"))
    return name.endswith(".py")
