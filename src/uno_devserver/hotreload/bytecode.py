"""Python's compiled copies of sources that have changed, which it might take for the new ones.

Python tells whether a copy is current by the source's length and the second in which it was saved. An edit that changes
neither, as an agent makes them, would leave the old code running.
"""

from __future__ import annotations

import os

from ..system.log import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = "__pycache__"


def forget_bytecode(root: str, changed: Iterable[str]) -> None:
    """Remove the compiled copies of these files, which are named from the root; Python makes them anew."""
    for path in changed:
        if path.endswith(".py"):
            folder, name = os.path.split(os.path.join(root, path))
            _remove(os.path.join(folder, FOLDER), name[:-2])


def _remove(folder: str, stem: str) -> None:
    """All versions of Python have their own: `module.cpython-311.pyc`, `module.cpython-311.opt-1.pyc`."""
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
