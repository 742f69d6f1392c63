"""The source files of a TypeScript package: what the compiler itself would list, without running it.

The list is that of `tsc --listFilesOnly` for `tsconfig.build.json`, else `tsconfig.json`, and for every project that it
references, without `node_modules` and the compiler's own library. Left out as well is what a referenced project builds:
the compiler reads those declarations in place of the project's sources, but the sources are what somebody edits, and a
build must not look like an edit. Nothing raises; what is broken or missing is in the problems.
"""

from __future__ import annotations

import os

from .sources import Sources
from .ts_disk import Disk
from .ts_options import NEWEST, read_options
from .ts_paths import JAVASCRIPT, folder_of, native, slashed
from .ts_program import Project, Scans, open_project, program_files
from .tsconfig import read_tsconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .ts_imports import Imports

CONFIG_NAMES = ("tsconfig.build.json", "tsconfig.json")
# .json for tsconfig.json and package.json as well, which may appear where none was.
TYPESCRIPT_ENDINGS = (".ts", ".tsx", ".mts", ".cts", ".json")
MAX_PROJECTS = 1000  # a large workspace has a hundred; this bounds what a strange one costs


def find_typescript(root: str, cache: dict[str, Imports]) -> Sources:
    """The sources of the package in `root`; `cache` is kept by the caller between calls."""
    folder = slashed(os.path.abspath(root))
    disk = Disk(case_sensitive=not _ignores_case(folder))
    name = next((name for name in CONFIG_NAMES if disk.is_file(f"{folder}/{name}")), None)
    if name is None:
        disk.say(f"{folder} has neither a {CONFIG_NAMES[0]} nor a {CONFIG_NAMES[1]}; it has no TypeScript sources.")
        return _sources(root, folder, [], disk, (".json",))
    projects = _open_projects(f"{folder}/{name}", _compiler_version(folder, disk), disk)
    scans = Scans(cache, disk)
    found: dict[str, None] = {}
    for path, project in projects.items():
        found.update(dict.fromkeys(program_files(project, _referenced(path, projects), scans, disk)))
    scans.forget_others()
    endings = {*TYPESCRIPT_ENDINGS, *(JAVASCRIPT if any(each.options.allow_js for each in projects.values()) else ())}
    return _sources(root, folder, sorted(found), disk, endings)


def _ignores_case(folder: str) -> bool:
    other = folder.swapcase()
    return other != folder and os.path.exists(native(other))


def _compiler_version(folder: str, disk: Disk) -> int:
    """The major version of the TypeScript that the package would be built with."""
    while True:
        package = disk.package(f"{folder.rstrip('/')}/node_modules/typescript")
        if package is not None:
            major = str(package.get("version")).split(".", 1)[0]
            return int(major) if major.isdecimal() else NEWEST
        above = folder_of(folder)
        if above == folder:
            return NEWEST
        folder = above


def _open_projects(first: str, version: int, disk: Disk) -> dict[str, Project]:
    """The project and all that it references, by the path of each configuration."""
    projects: dict[str, Project] = {}
    waiting = [first]
    while waiting:
        path = waiting.pop()
        if path in projects:
            continue
        if len(projects) >= MAX_PROJECTS:
            disk.say(f"{first} references more than {MAX_PROJECTS} projects; the rest of them does not count.")
            break
        config = read_tsconfig(path, disk)
        projects[path] = open_project(config, read_options(config, version), disk)
        for reference in config.references:
            target = _config_of(reference)
            if disk.is_file(target):
                waiting.append(target)
            else:
                disk.say(f"{path} references {target}, which is not there; it does not count.")
    return projects


def _config_of(reference: str) -> str:
    return reference if reference.endswith(".json") else f"{reference.rstrip('/')}/tsconfig.json"


def _referenced(path: str, projects: dict[str, Project]) -> list[Project]:
    """All that a project references, also through others; not itself, though it may be part of a circle."""
    seen = {path}
    waiting = [path]
    while waiting:
        for reference in projects[waiting.pop()].config.references:
            target = _config_of(reference)
            if target in projects and target not in seen:
                seen.add(target)
                waiting.append(target)
    return [projects[each] for each in seen if each != path]


def _sources(root: str, folder: str, files: list[str], disk: Disk, endings: Iterable[str]) -> Sources:
    prefix = folder if folder.endswith("/") else f"{folder}/"
    keys = {}
    for path in files:
        key = path[len(prefix) :] if path.startswith(prefix) else os.path.relpath(native(path), native(folder))
        keys[slashed(key)] = native(path)
    return Sources(
        os.path.abspath(root),
        keys,
        frozenset(map(native, disk.folders)),
        frozenset(map(native, disk.deciding)),
        tuple(disk.problems),
        frozenset(endings),
    )
