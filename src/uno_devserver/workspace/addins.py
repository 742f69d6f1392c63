"""The add-ins that lie in a workspace: every Python file and package in `.devtools/addins/`, by name."""

from __future__ import annotations

import os

FOLDER = os.path.join(".devtools", "addins")


def workspace_addins(workspace: str) -> list[str]:
    """Absolute paths, in the order they are loaded. Names that begin with `_` or `.` are the add-ins' own business."""
    folder = os.path.join(os.path.abspath(workspace), FOLDER)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if name[0] not in "_." and _is_addin(folder, name)]


def _is_addin(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    if os.path.isdir(path):
        return os.path.isfile(os.path.join(path, "__init__.py"))
    return name.endswith(".py")
