"""Removes compiled copies (.pyc) of changed Python sources, so that a restarted server cannot run old code."""

from __future__ import annotations

import os

from ..system.log import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


PYCACHE = "__pycache__"


def remove_bytecode(root: str, changed: Iterable[str]) -> None:
    """Remove the compiled copies of these files below the root.

    Python uses a copy if the length and the modification time (in seconds) of its source are unchanged, which can be
    so after a quick edit.
    """
    for path in changed:
        if path.endswith(".py"):
            folder, name = os.path.split(os.path.join(root, path))
            _remove_compiled(os.path.join(folder, PYCACHE), name[:-2])


def _remove_compiled(folder: str, stem: str) -> None:
    """Remove the copies made by any version of Python: `module.cpython-311.pyc`, `module.cpython-311.opt-1.pyc`."""
    try:
        names = os.listdir(folder)
    except OSError:  # there is no such folder
        return
    for name in names:
        if name.startswith(stem) and name.endswith(".pyc"):
            try:
                os.remove(os.path.join(folder, name))
            except OSError as error:
                log.debug(f"the compiled copy {name} in {folder} stays: {error}")
