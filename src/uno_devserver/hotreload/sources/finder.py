"""Finds the source files of a package, by rules for its kind: add-ins, or what the files in its root show.

Files that `hotReload.include` matches are added; files that `hotReload.exclude` matches are left out. Nothing raises:
what cannot be read becomes a sentence in `problems`.
"""

from __future__ import annotations

import os
from enum import Enum

from ...workspace.addins import ADDINS_FOLDER
from . import dotnet, python
from .globs import Globs
from .source_tree import SourceTree, hidden_and_foreign
from .typescript import TSCONFIGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ..watched_package import WatchedPackage
    from .source_tree import Sources

PACKAGE_JSON = "package.json"
JAVASCRIPT_EXTENSIONS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts")  # Node runs TypeScript too
JAVASCRIPT_ENDINGS = frozenset(
    {*JAVASCRIPT_EXTENSIONS, ".json"}
)  # .json: package.json decides which folders are output
_JAVASCRIPT_OUTPUT = frozenset({"dist", "build", "out", "coverage"})
_MANIFESTS = (*TSCONFIGS, PACKAGE_JSON, python.MANIFEST)


class PackageKind(Enum):
    TYPESCRIPT = "TypeScript"
    JAVASCRIPT = "JavaScript"
    PYTHON = "Python"
    ADDINS = "Python add-ins"
    DOTNET = ".NET"


def find_sources(package: WatchedPackage, cache: dict[str, Any] | None = None) -> Sources:
    """The source files of a package; a `cache` that is passed again for the same package makes the next call faster."""
    include, exclude = Globs(package.include, "hotReload.include"), Globs(package.exclude, "hotReload.exclude")
    tree = SourceTree(package.root, exclude)
    tree.problems += [*include.problems, *exclude.problems]
    if not os.path.isdir(package.root):
        tree.problems.append(f"The folder {package.root} does not exist, so there is no code to watch.")
    kind = kind_of(package)
    if kind is not PackageKind.ADDINS:  # the manifests decide the kind
        tree.folders.add(package.root)
        tree.deciding.update(tree.path(name) for name in _MANIFESTS)
    endings = _ADD[kind](tree, {} if cache is None else cache)
    if include.patterns:
        _add_included(tree, include)
        more = include.endings()
        endings = None if endings is None or more is None else endings | more
    return tree.sources(None if endings is None else endings.union(dotnet.PROJECTS))


def kind_of(package: WatchedPackage) -> PackageKind:
    if package.addins:
        return PackageKind.ADDINS
    names = _names(package.root)
    if names.intersection(TSCONFIGS):
        return PackageKind.TYPESCRIPT
    if PACKAGE_JSON in names:
        return PackageKind.JAVASCRIPT
    if python.MANIFEST not in names and dotnet.project_in(names):
        return PackageKind.DOTNET
    return PackageKind.PYTHON


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


# Each function adds the files of its kind and returns the endings of all names that may be sources; None: any.


def _add_typescript(tree: SourceTree, cache: dict[str, Any]) -> frozenset[str]:
    from .typescript.program import find_typescript

    return find_typescript(tree, cache)


def _add_javascript(tree: SourceTree, _cache: dict[str, Any]) -> frozenset[str]:
    """Add all JavaScript and TypeScript below the root, except in foreign, hidden and output folders."""

    def skipped(_folder: str, names: Collection[str]) -> Collection[str]:
        # Builds write next to a manifest; a folder `src/build` is code.
        foreign = hidden_and_foreign(names)
        return foreign | _JAVASCRIPT_OUTPUT if PACKAGE_JSON in names else foreign

    tree.walk("", lambda path: path.endswith(JAVASCRIPT_EXTENSIONS), skipped, deciding=(PACKAGE_JSON,))
    return JAVASCRIPT_ENDINGS


def _add_python(tree: SourceTree, _cache: dict[str, Any]) -> frozenset[str]:
    if os.path.isfile(tree.path(python.MANIFEST)):
        python.find_python(tree)
    else:
        python.add_python_below(tree, "")
    return python.ENDINGS


def _add_addins(tree: SourceTree, _cache: dict[str, Any]) -> frozenset[str]:
    """Add all files that the Host loads from the folder of add-ins, and those that these may import."""
    python.add_python_below(tree, ADDINS_FOLDER.replace(os.sep, "/"))
    return python.ENDINGS


def _add_dotnet(tree: SourceTree, _cache: dict[str, Any]) -> frozenset[str] | None:
    project = dotnet.project_in(_names(tree.root))
    return dotnet.find_dotnet(tree, project) if project else frozenset()  # removed meanwhile: the next call notices it


_ADD = {
    PackageKind.TYPESCRIPT: _add_typescript,
    PackageKind.JAVASCRIPT: _add_javascript,
    PackageKind.PYTHON: _add_python,
    PackageKind.ADDINS: _add_addins,
    PackageKind.DOTNET: _add_dotnet,
}


def _add_included(tree: SourceTree, include: Globs) -> None:
    def skipped(_folder: str, names: Collection[str]) -> Collection[str]:
        return {name for name in hidden_and_foreign(names) if not include.name_folder(name)}

    for start in sorted(include.starts()):
        if os.path.isdir(tree.path(start)):
            tree.walk(start, include.match, skipped)
        else:
            tree.add(start)
