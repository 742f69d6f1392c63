"""Finds the files that a command starts, and the package that a typed command belongs to. Nothing is run.

`npm start` and its like are followed to the command of the script. The package is looked for from the script or folder
that the command names upwards, and only inside the repository of the working folder.
"""

from __future__ import annotations

import os
import sys
from itertools import islice, pairwise

from ..system.files import names_in
from ..system.folders import relative_path
from .config import split_command
from .dotnet_project import projects_in
from .git import repository
from .npm_packages import MANAGERS, PACKAGE_JSON, read_manifest
from .paths import is_inside, same_place, upwards
from .repository import MANIFESTS
from .trust import check_owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".cs", ".go", ".dll", ".jar")
INSTALLED = "node_modules"
WATCHERS = frozenset({"nodemon", "ts-node-dev", "tsnd", "node-dev"})  # programs that do nothing else
MAX_SCRIPTS = 5  # of package.json that call each other
MAX_FOLDERS = 2000  # that are searched for a package by its name; large repositories have some hundred packages
MAX_DEPTH = 3  # of these folders
_RUN = frozenset({"run", "run-script"})
_EXECUTE = frozenset({"exec", "x", "dlx"})  # followed by a program instead of a script
# Options of the package managers whose value is a package or its folder.
_PACKAGE_OPTIONS = frozenset({"-w", "--workspace", "--filter", "-F", "--prefix", "-C", "--dir", "--cwd"})
_FOLDER_OPTIONS = frozenset({"--project", "--directory"})  # of dotnet and uv; the first may also be a file
_SHELL = frozenset("&;|<>$`()*?#~")  # what a shell would interpret
_LOADERS = ("-r", "--require", "--import", "--loader", "--experimental-loader")  # options of Node
_VALUED = frozenset({"-r", "--require", "--import", "--loader", "--env-file", "-C", "--conditions"})  # of Node


class OutsideRepository(Exception):
    """The command's script lies outside the repository of the working folder."""


def started_files(line: Sequence[str], folder: str) -> tuple[str, ...]:
    """The paths of the files that a command starts, whether or not they exist: its script, then its program.

    Programs found on PATH are not included. Empty if the files are not known.
    """
    line, folder, _ = _followed(line, folder)
    words = (_script(line), line[0] if line and os.path.dirname(line[0]) else None)
    return tuple(_file(os.path.normpath(os.path.join(folder, word))) for word in words if word is not None)


def node_of(line: Sequence[str], folder: str, environ: Mapping[str, str]) -> str:
    """The name or path of the Node that runs the script of a command; empty if other programs may change the code."""
    is_bun = _program(line) == "bun"
    line, folder, _ = _followed(line, folder)
    script = _script(line)
    if script is None or is_bun or _program(line) != "node" or environ.get("NODE_OPTIONS"):
        return ""
    if any(word.startswith(_LOADERS) for word in line[1 : list(line).index(script)]):
        return ""
    return os.path.normpath(os.path.join(folder, line[0])) if os.path.dirname(line[0]) else line[0]


def package_of(command: Sequence[str], directory: str) -> str:
    """The folder of the package; if there is no package, that of the script, else the working folder.

    Raises ForeignCode if it belongs to another user, who could have put it above the working folder.
    """
    directory = os.path.realpath(directory)
    top = repository(directory) or directory
    followed, place, _ = _followed(command, directory)
    if _is_within(place, top):
        command, directory = followed, place
    start = _uv_project(command, directory) or next(_named_folders(command, directory, top), None)
    paths = (os.path.realpath(os.path.join(directory, word)) for word in command[1:] or command)
    if start is None and any(_is_script(path) and not is_inside(path, top) for path in paths):
        raise OutsideRepository(f"the command's script is not in {top}")
    start = start or directory
    inside = [folder for folder in upwards(start) if _is_within(folder, top)]
    root = next((folder for folder in inside if is_package(folder)), start)
    check_owners((os.path.join(top, ".git"), root, *(os.path.join(root, name) for name in _manifests(root))))
    return root


def followed_manifests(line: Sequence[str], folder: str) -> tuple[str, ...]:
    """The files whose scripts a command runs, like `npm start`: an edit there may start something else."""
    return _followed(line, folder)[2]


def _script(line: Sequence[str]) -> str | None:
    # Node may be given a folder. What another program, named by its path, is given may be data.
    takes_folders = bool(line) and (not os.path.dirname(line[0]) or _program(line) == "node")
    for before, word in pairwise(line):
        if word in ("-m", "-c", "-e", "--eval", "--"):
            return None
        if word.startswith("-") or before in _VALUED:
            continue
        if word.endswith(SCRIPTS) or (takes_folders and _is_path(word)):
            return word
        takes_folders = False  # only the first word may be one
    return None


def _program(line: Sequence[str]) -> str:
    return os.path.basename(line[0]).removesuffix(".cmd").removesuffix(".exe") if line else ""


def _is_path(word: str) -> bool:
    return bool(os.path.dirname(word)) or word == "."


def _file(path: str) -> str:
    """The file that Node runs if it is given this path; other programs are not given folders."""
    if not os.path.isdir(path):
        return path
    main = read_manifest(path).get("main")
    return os.path.normpath(os.path.join(path, main if isinstance(main, str) and main else "index.js"))


def _followed(line: Sequence[str], folder: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """The command that package managers run in the end, its folder, and the manifests whose scripts lead to it.

    The command is empty if it is not known.
    """
    manifests: tuple[str, ...] = ()
    for _ in range(MAX_SCRIPTS):
        if _program(line) not in MANAGERS:
            break
        line, folder = _managed_command(line, folder)
        manifests += (os.path.join(folder, PACKAGE_JSON),)
    return tuple(line), folder, manifests


def _managed_command(line: Sequence[str], folder: str) -> tuple[tuple[str, ...], str]:
    """The command that a package manager is told to run, by a script or by itself, and the folder of its package."""
    named, words, rest = "", list[str](), list(line[1:])
    executed: list[str] = []  # the first word and what follows it
    while rest and rest[0] != "--" and not (words and words[0] in _EXECUTE and not rest[0].startswith("-")):
        option, _, value = rest[0].partition("=")
        if option in _PACKAGE_OPTIONS and (value or rest[1:]):
            named = value or rest.pop(1)
        elif option == "workspace" and not words and rest[1:]:  # of yarn
            named = rest.pop(1)
        elif not option.startswith("-") and (option not in _RUN or words):
            executed = executed or list(rest)
            words.append(option)
        del rest[0]
    place = _package_named(named, folder) if named else folder
    if place is None or not words:
        return (), place or folder
    if words[0] in _EXECUTE:
        return tuple(rest[rest[:1] == ["--"] :]), place
    found = read_manifest(place).get("scripts")
    scripts = found if isinstance(found, dict) else {}
    script = scripts.get(words[0])
    manager = _program(line)
    if script is None and manager == "bun" and (words[0].endswith(SCRIPTS) or _is_path(words[0])):
        return ("node", *executed), place  # it runs files as Node does
    if script is None and manager != "npm":
        return tuple(executed), place  # a program, like `yarn node x.js`
    # The effect of a pre-script or of a shell is unknown.
    if not isinstance(script, str) or f"pre{words[0]}" in scripts or _SHELL.intersection(script):
        return (), place
    try:
        command = list(split_command(script, sys.platform))
    except ValueError:
        return (), place
    while command and (command[0] in ("exec", "env", "cross-env") or "=" in command[0]):
        del command[0]
    return (*command, *words[1:], *rest[1:]), place


def _package_named(named: str, folder: str) -> str | None:
    """The folder of a package that is named by its path or by its name in package.json; None if there is none."""
    if os.path.isfile(os.path.join(folder, named, PACKAGE_JSON)):
        return os.path.normpath(os.path.join(folder, named))
    for place, names, files in islice(os.walk(folder), MAX_FOLDERS):
        depth = len(os.path.relpath(place, folder).split(os.sep))
        names[:] = [] if depth >= MAX_DEPTH else [name for name in sorted(names) if not _is_installed(name)]
        if PACKAGE_JSON in files and read_manifest(place).get("name") == named:
            return place
    return None


def _uv_project(command: Sequence[str], directory: str) -> str | None:
    """The folder of the member of a uv workspace that `uv run --package` names; None if there is none."""
    if os.path.basename(command[0] if command else "").removesuffix(".exe") != "uv":
        return None
    words = [part for word in command for part in word.split("=", 1)]
    named = next((name for option, name in pairwise(words) if option == "--package"), None)
    if named is None:
        return None
    from .server_command import project_name

    for place, folders, files in islice(os.walk(directory), MAX_FOLDERS):
        depth = len(os.path.relpath(place, directory).split(os.sep))
        folders[:] = [] if depth >= MAX_DEPTH else [name for name in sorted(folders) if not _is_installed(name)]
        if "pyproject.toml" in files and _normal(project_name(place)) == _normal(named):
            return place
    return None


def _is_script(path: str) -> bool:
    return os.path.isfile(path) and (path.endswith(SCRIPTS) or os.access(path, os.X_OK))


def _is_within(path: str, top: str) -> bool:
    return same_place(path, top) or is_inside(path, top)


def _named_folders(command: Sequence[str], directory: str, top: str) -> Iterator[str]:
    """The folders inside `top` that the words of the command lead to, those of scripts first."""
    parts = [part for word in command for part in (word.split("=", 1) if word.startswith("-") else (word,))]
    words = [word for word in parts if not word.startswith("-")]
    scripts = [word for word in words if word.endswith(SCRIPTS)]
    named = [word for option, word in pairwise(parts) if option in _FOLDER_OPTIONS]
    for word in (*scripts, *named, *(word for word in words if "/" in word or os.sep in word)):
        path = os.path.realpath(os.path.join(directory, word))
        # What is to be built does not exist yet; a name that is no path leads to the working folder.
        folder = next(folder for folder in upwards(path) if os.path.isdir(folder))
        installed = any(map(_is_installed, relative_path(folder, top).split(os.sep)))
        if _is_within(folder, top) and not installed:
            yield folder


def _is_installed(part: str) -> bool:
    """Whether a folder of this name has the code of others: installed packages and environments."""
    return part == INSTALLED or (part.startswith(".") and part != ".")


def is_package(folder: str) -> bool:
    """Whether the folder has the manifest of a package."""
    return any(name != PACKAGE_JSON or _describes_package(folder) for name in _manifests(folder))


def _manifests(folder: str) -> list[str]:
    names = names_in(folder)
    return [*projects_in(folder, names), *(name for name in names if name in MANIFESTS)]


def _describes_package(folder: str) -> bool:
    """Whether package.json is that of a package: builds write others, with a 'type' only, into their output."""
    document = read_manifest(folder)
    return not document or any(key in document for key in ("name", "scripts", "dependencies"))


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def script_watcher(line: Sequence[str], folder: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The command of a watcher that the line runs by a script of package.json, and the command without the watcher.

    The second one is empty if it is not known. None if no script runs a watcher.
    """
    from .server_command import without_own_reload

    command = _followed(line, folder)[0]
    if not command or command == tuple(line):
        return None
    if os.path.basename(command[0]) in WATCHERS:
        return command, ()
    alone = without_own_reload(command)
    if alone == command:
        return None
    return command, alone if alone[0] in ("node", "bun", "deno", "npx") else ("npx", *alone)
