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

    Python takes a copy for current if its source has the same length and second of saving as before, which can be true
    of a quick edit.
    """
    for path in changed:
        if path.endswith(".py"):
            folder, name = os.path.split(os.path.join(root, path))
            _remove_compiled(os.path.join(folder, PYCACHE), name[:-2])


def _remove_compiled(folder: str, stem: str) -> None:
    """Of all versions of Python: `module.cpython-311.pyc`, `module.cpython-311.opt-1.pyc`."""
    try:
        names = os.listdir(folder)
    except OSError:  # there are none
        return
    for name in names:
        if name.startswith(stem) and name.endswith(".pyc"):
            try:
                os.remove(os.path.join(folder, name))
            except OSError as error:
                log.debug(f"the compiled copy {name} in {folder} stays: {error}")
