"""Finds the package that a typed command belongs to, by the script or folder that the command names.

The package is looked for from there upwards, and only inside the repository of the working folder. Nothing is run.
"""

from __future__ import annotations

import os

from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from .dotnet_project import projects_in
from .git import repository
from .paths import is_inside, same_place, upwards
from .trust import check_owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_BYTES = 1024 * 1024  # a package.json has a few KB
PACKAGE = "package.json"
MANIFESTS = (PACKAGE, "pyproject.toml", "setup.py", "go.mod", "Cargo.toml")
SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".cs", ".go", ".dll")
INSTALLED = "node_modules"


def package_of(command: Sequence[str], directory: str) -> str:
    """The folder of the package; if there is no package, that of the script, else the working folder.

    Raises ForeignCode if it belongs to another user, who could have put it above the working folder.
    """
    directory = os.path.realpath(directory)
    top = repository(directory) or directory
    start = next(_named_folders(command, directory, top), None)
    scripts = (os.path.realpath(os.path.join(directory, word)) for word in command[1:] or command)
    if start is None and any(_is_script(path) and not is_inside(path, top) for path in scripts):
        raise OutsideRepository(f"the command's script is not in {top}")
    start = start or directory
    inside = [folder for folder in upwards(start) if same_place(folder, top) or is_inside(folder, top)]
    root = next((folder for folder in inside if _is_package(folder)), start)
    check_owners((os.path.join(top, ".git"), root, *(os.path.join(root, name) for name in _manifests(root))))
    return root


class OutsideRepository(Exception):
    """The code of a command is not in the repository of the working folder, whose package it does not belong to."""


def _is_script(path: str) -> bool:
    return os.path.isfile(path) and (path.endswith(SCRIPTS) or os.access(path, os.X_OK))


def _named_folders(command: Sequence[str], directory: str, top: str) -> Iterator[str]:
    """The folders inside `top` that the words of the command lead to, those of scripts first."""
    words = [word for word in command if not word.startswith("-")]
    scripts = [word for word in words if word.endswith(SCRIPTS)]
    for word in (*scripts, *(word for word in words if "/" in word or os.sep in word)):
        path = os.path.realpath(os.path.join(directory, word))
        # What is to be built does not exist yet; a name that is no path leads to the working folder.
        folder = next(folder for folder in upwards(path) if os.path.isdir(folder))
        inside = same_place(folder, top) or is_inside(folder, top)
        if inside and not any(_is_installed(part) for part in os.path.relpath(folder, top).split(os.sep)):
            yield folder


def _is_installed(part: str) -> bool:
    """Whether a folder of this name has the code of others: installed packages and environments."""
    return part == INSTALLED or (part.startswith(".") and part != ".")


def _is_package(folder: str) -> bool:
    return any(name != PACKAGE or _describes_package(os.path.join(folder, name)) for name in _manifests(folder))


def _manifests(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [*projects_in(folder, names), *(name for name in names if name in MANIFESTS)]


def _describes_package(path: str) -> bool:
    """Whether this is the manifest of a package: builds write others, with a 'type' only, into their output."""
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return True
    return not isinstance(document, dict) or any(key in document for key in ("name", "scripts", "dependencies"))
