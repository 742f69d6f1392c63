"""The packages of the same repository that a package of npm, pnpm, yarn or bun uses, and which of them must be built.

A dependency belongs to the code if it is a link in `node_modules` that leads into the repository, as workspaces, `npm
link`, `link:` and `file:` write it. A copy in `node_modules` does not: an edit of its original changes nothing. Yarn
can do without `node_modules`; then its lockfile names the workspaces.
"""

from __future__ import annotations

import os
import re
from functools import partial

from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from .config import can_be_given
from .repository import MAX_PACKAGES, belongs_to_us, limited, repository_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from .repository import ReadBudget, Repository

PACKAGE_JSON = "package.json"
TSCONFIGS = ("tsconfig.build.json", "tsconfig.json")  # of a package, in the order of preference
YARN_LOCK = "yarn.lock"
LOCKFILES = {
    "pnpm-lock.yaml": "pnpm",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
    YARN_LOCK: "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
MANAGERS = frozenset(LOCKFILES.values())
OUTPUT_FOLDERS = frozenset({"dist", "build", "out", "coverage"})
MAX_MANIFEST_BYTES = 4 * 1024 * 1024  # a package.json has a few KB
MAX_LOCK_BYTES = 16 * 1024 * 1024  # the lockfile of a large repository has 2 MB
_DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_JAVASCRIPT = ("", ".js", ".mjs", ".cjs")
_COMPLETIONS = ("", ".js", "/index.js")  # what Node tries for `main`
_IN_PLACE = ("link:", "portal:")  # paths of which yarn makes no copy
_WORKSPACE = re.compile(rb'^  resolution: "(@?[^@"\n]+)@workspace:([^"\n]+)"', re.MULTILINE)


def used_packages(folder: str, repository: Repository, deciding: set[str], problems: list[str]) -> list[str]:
    """The folders of the packages that the package in `folder` uses; `deciding` gets the paths that decide it."""
    manifest = os.path.join(folder, PACKAGE_JSON)
    deciding.add(manifest)
    found: list[str] = []
    workspaces: dict[str, str] | None = None
    installed = [os.path.join(above, "node_modules") for above in repository.upwards(folder)]
    deciding.update(modules for modules in installed if not os.path.isdir(modules))
    installed = [modules for modules in installed if modules not in deciding]
    declared = _dependencies(read_manifest(folder, repository.budget.read))
    for name, version in limited(declared, manifest, problems):
        place = _linked(name, installed, repository, deciding)
        if place is None and version.startswith(_IN_PLACE):
            place = version.partition(":")[2]
        if place is None:
            if workspaces is None:
                workspaces = _yarn_workspaces(folder, repository, deciding)
            place = workspaces.get(name)
        if place:
            found.append(place)
    return repository.packages(folder, found)


def packages_to_build(root: str, workspace: str, budget: ReadBudget | None = None) -> list[str]:
    """The packages that the one in `root` uses and that must be built before it, each after those that it uses.

    Raises BudgetSpent.
    """
    repository = repository_of(root, workspace, budget=budget)
    order: list[str] = []
    seen = {repository.root}

    def visit(folder: str) -> None:
        for used in used_packages(folder, repository, set(), []):
            if used not in seen and len(seen) <= MAX_PACKAGES:
                seen.add(used)
                visit(used)
                order.append(used)

    visit(repository.root)
    return [folder for folder in order if _runs_output(folder, repository)]


def read_manifest(folder: str, read: Callable[[str, int], bytes] = read_bytes) -> dict[str, Any]:
    """The content of `package.json`; empty if it cannot be used, which the package manager reports."""
    try:
        document = parse(read(os.path.join(folder, PACKAGE_JSON), MAX_MANIFEST_BYTES))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return {}
    return document if isinstance(document, dict) else {}


def has_program(folder: str) -> bool:
    """Whether the package has a program or code for others, and not only tools."""
    document = read_manifest(folder)
    scripts = document.get("scripts")
    has_script = isinstance(scripts, dict) and any(name in scripts for name in ("start", "build"))
    return has_script or any(key in document for key in ("main", "bin", "exports"))


def missing_outputs(folder: str) -> list[str]:
    """The files that the package offers to others and that do not exist, relative to it."""
    entries = (entry for entry in _entries(read_manifest(folder)) if "*" not in "".join(entry))
    return [entry[0] for entry in entries if not _exists(folder, entry)]


def offered_files(folder: str) -> list[str]:
    """The paths of the existing JavaScript files that the package offers to others."""
    paths = (os.path.join(folder, path) for entry in _entries(read_manifest(folder)) for path in entry)
    return [path for path in paths if os.path.isfile(path)]


def _dependencies(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in _DEPENDENCIES:
        table = document.get(key)
        for name, version in table.items() if isinstance(table, dict) else ():
            if can_be_given(name) and ".." not in name.split("/") and isinstance(version, str):
                yield name, version


def _linked(name: str, installed: Sequence[str], repository: Repository, deciding: set[str]) -> str | None:
    """The real folder of a dependency that is a link, empty for a copy, None if it is not installed."""
    missing = []
    for modules in installed:
        place = os.path.join(modules, *name.split("/"))
        repository.budget.path(place)
        if os.path.isdir(place):
            real = os.path.realpath(place)
            if "node_modules" in real.split(os.sep):
                return ""
            deciding.add(place)
            return real
        missing.append(place)
    deciding.update(missing)
    return None


def _yarn_workspaces(folder: str, repository: Repository, deciding: set[str]) -> dict[str, str]:
    """The folders of the workspaces, by name, of a yarn that does without `node_modules`."""
    for above in repository.upwards(folder):
        lock = os.path.join(above, YARN_LOCK)
        if os.path.isfile(lock):
            deciding.add(lock)
            return repository.budget.once(lock, partial(_read_lock, lock, repository.budget))
    return {}


def _read_lock(lock: str, budget: ReadBudget) -> dict[str, str]:
    try:
        content = budget.read(lock, MAX_LOCK_BYTES)
    except (FileNotFoundError, FileProblem):
        return {}
    folder, places = os.path.dirname(lock), dict[str, str]()
    for found in _WORKSPACE.finditer(content):
        budget.check()
        name, place = (group.decode("utf-8", "replace") for group in found.groups())
        places[name] = os.path.join(folder, place)
    return places


def _runs_output(folder: str, repository: Repository) -> bool:
    """Whether the package has a build script of ours, and offers to others a file that the build writes."""
    document = read_manifest(folder, repository.budget.read)
    scripts = document.get("scripts")
    if not isinstance(scripts, dict) or not isinstance(scripts.get("build"), str):
        return False
    if not belongs_to_us(os.path.join(folder, PACKAGE_JSON)):
        return False
    compiled = _is_compiled(folder)
    return any(
        compiled or any(path.split("/")[0] in OUTPUT_FOLDERS for path in entry) or not _exists(folder, entry)
        for entry in _entries(document)
    )


def _is_compiled(folder: str) -> bool:
    """Whether JavaScript is only the output of TypeScript there."""
    for name in TSCONFIGS:
        try:
            text = read_bytes(os.path.join(folder, name), MAX_MANIFEST_BYTES)
        except (FileNotFoundError, FileProblem):
            continue
        return b'"allowJs"' not in text and b'"checkJs"' not in text
    return False


def _entries(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The JavaScript files that others load, relative to the package: for each the paths of which one suffices.

    A path may contain a `*`. A package without JavaScript for others offers its types and programs.
    """
    exports, main, programs = document.get("exports"), document.get("main"), document.get("bin")
    if exports:
        found = _targets(exports)
    elif isinstance(main, str):
        found = [[f"{main}{rest}" for rest in _COMPLETIONS]] if _is_code(main) else []
    else:
        named = [document.get("types"), document.get("typings")]
        named += programs.values() if isinstance(programs, dict) else [programs]
        offered = [[path] for path in named if isinstance(path, str) and "\0" not in path]
        return [(_normal(path),) for (path,) in offered] or [("index.js",)]
    entries = (tuple(_normal(path) for path in entry if _is_code(path)) for entry in found)
    return [entry for entry in entries if entry]


def _normal(path: str) -> str:
    return os.path.normpath(path).replace(os.sep, "/")


def _is_code(path: str) -> bool:
    return "\0" not in path and os.path.splitext(path)[1] in _JAVASCRIPT


def _exists(folder: str, entry: Iterable[str]) -> bool:
    return any(os.path.isfile(os.path.join(folder, path)) for path in entry)


def _targets(value: object) -> list[list[str]]:
    """The paths in `exports`, for all conditions but `types`; those of an array are alternatives."""
    found: list[list[str]] = []
    waiting: list[tuple[object, list[str] | None]] = [(value, None)]  # with the array that contains it
    while waiting:
        each, alternatives = waiting.pop()
        if isinstance(each, str):
            if alternatives is None:
                found.append([each])
            else:
                alternatives.append(each)
        elif isinstance(each, list):
            if alternatives is None:
                found.append(alternatives := [])
            waiting += [(inner, alternatives) for inner in reversed(each)]
        elif isinstance(each, dict):
            waiting += [(inner, alternatives) for condition, inner in each.items() if condition != "types"]
    return found
