"""Finds the source files of a package, by its kind: add-ins, or the kind that the files in its root indicate.

The packages of the same repository that it uses count too, each by the rules of its own kind; `hotReload.watch` names
all files instead. Files that `hotReload.include` matches are added, those that `hotReload.exclude` matches are left
out. Nothing raises: what cannot be read becomes a sentence in `problems`, as does the end of the budget of the look.
"""

from __future__ import annotations

import os
import posixpath
from enum import Enum

from ...system.folders import relative_path
from ...workspace.config import PROJECTS
from ...workspace.devtools_folder import ADDINS_FOLDER
from ...workspace.dotnet_project import project_in, projects_in
from ...workspace.dotnet_query import question_verb
from ...workspace.npm_packages import (
    OUTPUT_FOLDERS,
    PACKAGE_JSON,
    TSCONFIGS,
    has_program,
    read_manifest,
    used_packages,
)
from ...workspace.repository import MANIFESTS, MAX_PACKAGES, BudgetSpent, ReadBudget, is_inside, repository_of
from . import dotnet, go, other, python
from .globs import Globs
from .source_tree import SourcePackage, SourceTree, hidden_and_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from ...workspace.repository import Repository
    from ..watched_package import WatchedPackage
    from .source_tree import Sources

JAVASCRIPT_EXTENSIONS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts")  # Node runs TypeScript too
JAVASCRIPT_ENDINGS = frozenset(
    {*JAVASCRIPT_EXTENSIONS, ".json"}
)  # .json: package.json decides which folders are output
_MANIFESTS = (*TSCONFIGS, *MANIFESTS)
# What a build of TypeScript writes, and what its users import in place of the sources.
_WRITTEN = (".d.ts", ".d.mts", ".d.cts", ".js", ".mjs", ".cjs", ".jsx")


class PackageKind(Enum):
    TYPESCRIPT = "TypeScript"
    JAVASCRIPT = "JavaScript"
    PYTHON = "Python"
    ADDINS = "Python add-ins"
    DOTNET = ".NET"
    GO = "Go"
    OTHER = "other"


def find_sources(
    package: WatchedPackage, cache: dict[str, Any] | None = None, budget: ReadBudget | None = None
) -> Sources:
    """The source files of a package; a `cache` that is passed again for the same package makes the next call faster."""
    exclude = Globs(package.exclude, "hotReload.exclude", lambda _start: "")
    tree = SourceTree(package.root, exclude, budget or ReadBudget())
    tree.problems += exclude.problems
    if not os.path.isdir(package.root):
        tree.problems.append(f"The folder {package.root} does not exist, so there is no code to watch.")
    kind = kind_of(package)
    used: dict[str, SourceTree] = {}
    endings: frozenset[str] | None = None
    try:
        if package.watch:
            endings = _add_named(tree, package, package.watch, "hotReload.watch")
        elif kind is PackageKind.ADDINS:
            endings = _add_addins(tree)
        else:
            endings = _add_packages(tree, package, used, {} if cache is None else cache)
        if package.include:
            endings = _either(endings, _add_named(tree, package, package.include, "hotReload.include"))
        endings = None if endings is None else endings.union(PROJECTS)
        return tree.sources(endings, tuple(_source_packages(tree, kind, used)))
    except BudgetSpent as spent:
        rest = "the rest"
        if tree.budget.is_late:  # the next look would find other files, which must not seem to be an edit
            rest = "its code"
            tree.files.clear()
        tree.problems.append(
            f"The look at {package.root} was ended, because {spent}; {rest} is not watched. "
            "Leave folders out with hotReload.exclude, or name the files with hotReload.watch."
        )
        return tree.sources(None, (SourcePackage(tree.root, kind.value, len(tree.files)),))


def kind_of(package: WatchedPackage) -> PackageKind:
    if package.addins:
        return PackageKind.ADDINS
    return _kind_in(package.root, starts_python=any(path.endswith(".py") for path in package.started))


def evaluation_of(package: WatchedPackage) -> str:
    """For people: the command that is run to find the code of a .NET package; empty if none is run."""
    is_evaluated = kind_of(package) is PackageKind.DOTNET and not package.watch
    project = project_in(package.root, _names(package.root), package.project) if is_evaluated else None
    return f"dotnet {question_verb(project)} {project} -getItem" if project else ""


def _kind_in(folder: str, *, starts_python: bool = False) -> PackageKind:
    names = _names(folder)
    manifests = names.intersection(MANIFESTS)
    project = project_in(folder, names)
    if names.intersection(TSCONFIGS):
        return PackageKind.TYPESCRIPT
    # Beside other code, package.json may only name tools, like a formatter.
    others = project or starts_python or manifests - {PACKAGE_JSON}
    if PACKAGE_JSON in names and (not others or has_program(folder)):
        return PackageKind.JAVASCRIPT
    if python.MANIFEST in names:
        return PackageKind.PYTHON
    if project:
        return PackageKind.DOTNET
    if go.MANIFEST in names:
        return PackageKind.GO
    if manifests - python.SIGNS - {PACKAGE_JSON}:
        return PackageKind.OTHER
    if names.intersection(python.SIGNS):
        return PackageKind.PYTHON
    below = (os.path.join(folder, name) for name in names.difference(hidden_and_foreign(names)))
    has_python = _has_python(names) or any(_has_python(_names(each)) for each in below if os.path.isdir(each))
    return PackageKind.PYTHON if has_python else PackageKind.OTHER


def _has_python(names: Collection[str]) -> bool:
    return any(name.endswith(".py") for name in names) and python.ENVIRONMENT_MARK not in names


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _add_named(
    tree: SourceTree, package: WatchedPackage, patterns: tuple[str, ...], setting: str
) -> frozenset[str] | None:
    """Add the files that patterns of the config name; return the endings of the names that may match, None: any."""
    workspace = os.path.realpath(package.workspace or package.root)
    root = os.path.realpath(package.root)

    def outside(start: str) -> str:
        leads_to = os.path.normpath(os.path.join(root, start))
        return "" if is_inside(leads_to, workspace) else f"leads out of the workspace folder {workspace}"

    globs = Globs(patterns, setting, outside)
    tree.problems += globs.problems
    tree.add_matching(globs, repository_of(package.root, workspace).tops)
    return globs.endings()


def _either(one: frozenset[str] | None, more: frozenset[str] | None) -> frozenset[str] | None:
    return None if one is None or more is None else one | more


# The package, and those of the same repository that it uses.


def _add_packages(
    tree: SourceTree, package: WatchedPackage, found: dict[str, SourceTree], cache: dict[str, Any]
) -> frozenset[str] | None:
    """Add the files of a package and of those that it uses; return the endings. `found` gets the latter by folder."""
    repository = repository_of(package.root, package.workspace, package.environment, tree.budget)
    endings: frozenset[str] | None = frozenset()
    waiting = [repository.root]
    while waiting:
        folder = waiting.pop(0)
        if folder in found:
            continue
        if len(found) > MAX_PACKAGES:
            tree.problems.append(
                f"{package.root} uses more than {MAX_PACKAGES} packages; edits in {folder} and others "
                "are not noticed. Name their files in hotReload.include."
            )
            break
        base = os.path.relpath(folder, repository.root).replace(os.sep, "/")
        part = found[folder] = (
            tree if folder == repository.root else SourceTree(folder, tree.exclude, tree.budget, base)
        )
        kind = kind_of(package) if folder == repository.root else _kind_in(folder)
        part.folders.add(part.root)
        part.deciding.update(part.path(name) for name in _MANIFESTS)  # these decide the kind
        project_name = package.project if folder == repository.root else ""
        endings = _either(endings, _add(part, kind, repository, cache, project_name))
        waiting += _used(kind, folder, repository, part)
    _drop_outputs(found)
    del found[repository.root]
    for part in found.values():
        _merge(tree, part, repository.root)
    return endings


def _used(kind: PackageKind, folder: str, repository: Repository, part: SourceTree) -> list[str]:
    """The folders of the packages that a package uses."""
    if kind in (PackageKind.TYPESCRIPT, PackageKind.JAVASCRIPT):
        declared = used_packages(folder, repository, part.deciding, part.problems)
        return declared + repository.packages(folder, _written_elsewhere(part))
    if kind is PackageKind.PYTHON:
        from .python_dependencies import used_projects

        return used_projects(folder, repository, part)
    return go.used_modules(folder, repository, part) if kind is PackageKind.GO else []


def _written_elsewhere(part: SourceTree) -> Iterator[str]:
    """The packages of which a TypeScript program reads what their builds write, declared as dependencies or not."""
    written = {posixpath.dirname(name) for name in part.files if name.startswith("../") and name.endswith(_WRITTEN)}
    for name in sorted(written):
        folder = part.path(name)
        while folder != os.path.dirname(folder):
            if read_manifest(folder, part.budget.read).get("name"):
                yield folder
                break
            folder = os.path.dirname(folder)


def _drop_outputs(found: dict[str, SourceTree]) -> None:
    """Drop files that another package's build writes; that package's sources count instead."""
    if len(found) < 2:
        return
    sources = {folder: set(part.files.values()) for folder, part in found.items()}
    for folder, part in found.items():
        for name, path in list(part.files.items()):
            part.budget.check()
            owner = _owner(path, found) if path.endswith(_WRITTEN) else None
            if owner is not None and owner != folder and sources[owner] and path not in sources[owner]:
                del part.files[name]


def _owner(path: str, folders: Collection[str]) -> str | None:
    return max((folder for folder in folders if is_inside(path, folder)), key=len, default=None)


def _merge(tree: SourceTree, part: SourceTree, root: str) -> None:
    for path in part.files.values():
        tree.files.setdefault(relative_path(path, root).replace(os.sep, "/"), path)
    tree.folders |= part.folders
    tree.deciding |= part.deciding
    tree.problems += part.problems


def _source_packages(tree: SourceTree, kind: PackageKind, used: dict[str, SourceTree]) -> Iterator[SourcePackage]:
    """The packages to which the files belong, the package itself first."""
    root = os.path.realpath(tree.root)
    counts = {root: 0, **dict.fromkeys(used, 0)}
    owners: dict[str, str] = {}
    for name, path in tree.files.items():
        folder = os.path.dirname(path)
        if folder not in owners:
            tree.budget.check()
            owners[folder] = _owner(folder, used) or (_package_around(folder, root) if name.startswith("../") else root)
        counts[owners[folder]] = counts.get(owners[folder], 0) + 1
    for folder, count in counts.items():
        yield SourcePackage(
            tree.root if folder == root else folder, (kind if folder == root else _kind_in(folder)).value, count
        )


def _package_around(folder: str, root: str) -> str:
    """The folder of the package that a file outside of the root belongs to; the root, if there is none."""
    while not is_inside(root, folder):
        names = _names(folder)
        if names.intersection(_MANIFESTS) or any(name.lower().endswith(PROJECTS) for name in names):
            return folder
        folder = os.path.dirname(folder)
    return root


# The rules of each kind.


def _add(
    part: SourceTree, kind: PackageKind, repository: Repository, cache: dict[str, Any], project_name: str
) -> frozenset[str] | None:
    """Add the files of one package; return the endings of all names that may be sources, None: any.

    `project_name`: which of several .NET projects in its folder counts, if that is known.
    """
    if kind is PackageKind.TYPESCRIPT:
        from .typescript.program import find_typescript

        return find_typescript(part, cache.setdefault(part.root, {}))
    if kind is PackageKind.JAVASCRIPT:
        return _add_javascript(part)
    if kind is PackageKind.PYTHON:
        return _add_python(part)
    if kind is PackageKind.GO:
        return go.find_go(part)
    if kind is PackageKind.OTHER:
        other.find_other(part)
    elif project := project_in(
        part.root, _names(part.root), project_name
    ):  # else removed meanwhile: the next call notices it
        if len(several := projects_in(part.root, _names(part.root))) > 1 and project != project_name:
            part.problems.append(
                f"{part.root} has several programs: {', '.join(several[:10])}. Only the code of {project} is watched, "
                "because no command names one. Name it in mcpServer.args, or give each its own folder."
            )
        # The user has agreed to the questions about the package itself.
        may_ask = os.path.realpath(part.root) == repository.root
        dotnet.find_dotnet(part, project, repository, cache.get(dotnet.QUESTIONS) if may_ask else None)
    return None


def _add_javascript(tree: SourceTree) -> frozenset[str]:
    """Add all JavaScript and TypeScript below the root, except in foreign, hidden and output folders."""

    def skipped(_folder: str, names: Collection[str]) -> Collection[str]:
        # Builds write next to a manifest; a folder `src/build` is code.
        foreign = hidden_and_foreign(names)
        return foreign | OUTPUT_FOLDERS if PACKAGE_JSON in names else foreign

    tree.walk("", lambda path: path.endswith(JAVASCRIPT_EXTENSIONS), skipped, deciding=(PACKAGE_JSON,))
    return JAVASCRIPT_ENDINGS


def _add_python(tree: SourceTree) -> frozenset[str]:
    if os.path.isfile(tree.path(python.MANIFEST)):
        python.find_python(tree)
    else:
        python.add_python_below(tree, "")
    return python.ENDINGS


def _add_addins(tree: SourceTree) -> frozenset[str]:
    """Add all files that the Host loads from the folder of add-ins, and those that these may import."""
    python.add_python_below(tree, ADDINS_FOLDER.replace(os.sep, "/"))
    return python.ENDINGS
