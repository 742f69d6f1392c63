"""Which files are the code of a package? What lies in its root tells the kind, and the kind tells the files.

To them come those that `hotReload.include` describes; what `hotReload.exclude` describes is none of it, whatever else
says so. Nothing here raises: what cannot be read is a sentence in `problems`.
"""

from __future__ import annotations

import os
from enum import Enum

from ...workspace.addins import ADDINS_FOLDER as ADDINS_FOLDER
from . import dotnet, javascript, python
from .globs import Globs
from .source_tree import SourceTree, hidden_and_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ..watched_package import WatchedPackage
    from .source_tree import Sources

TSCONFIGS = ("tsconfig.build.json", "tsconfig.json")
_MANIFESTS = (*TSCONFIGS, javascript.MANIFEST, python.MANIFEST)
_TYPESCRIPT_ENDINGS = frozenset({*javascript.ENDINGS, ".tsx"})


class PackageKind(Enum):
    TYPESCRIPT = "TypeScript"
    JAVASCRIPT = "JavaScript"
    PYTHON = "Python"
    ADDINS = "Python add-ins"
    DOTNET = ".NET"


def find_sources(package: WatchedPackage, cache: dict[str, Any] | None = None) -> Sources:
    """`cache`, if it is given again for the same package, makes the next time faster."""
    include, exclude = Globs(package.include, "hotReload.include"), Globs(package.exclude, "hotReload.exclude")
    tree = SourceTree(package.root, exclude)
    tree.problems += [*include.problems, *exclude.problems]
    if not os.path.isdir(package.root):
        tree.problems.append(f"The folder {package.root} does not exist, so there is no code to watch.")
    kind = kind_of(package)
    if kind is not PackageKind.ADDINS:  # these files decide the kind
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
    if javascript.MANIFEST in names:
        return PackageKind.JAVASCRIPT
    if python.MANIFEST not in names and dotnet.project_in(names):
        return PackageKind.DOTNET
    return PackageKind.PYTHON


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _add_typescript(tree: SourceTree, cache: dict[str, Any]) -> frozenset[str] | None:
    from .typescript.program import find_typescript

    found = find_typescript(tree.root, cache)
    tree.adopt(found)
    return _TYPESCRIPT_ENDINGS if found.endings is None else found.endings


def _add_javascript(tree: SourceTree, _cache: dict[str, Any]) -> frozenset[str]:
    javascript.find_javascript(tree)
    return javascript.ENDINGS


def _add_python(tree: SourceTree, _cache: dict[str, Any]) -> frozenset[str]:
    if os.path.isfile(tree.path(python.MANIFEST)):
        python.find_python(tree)
    else:
        python.add_python_below(tree, "")
    return python.ENDINGS


def _add_addins(tree: SourceTree, _cache: dict[str, Any]) -> frozenset[str]:
    """All that the Host loads from there, and what that may import, also through links."""
    python.add_python_below(tree, ADDINS_FOLDER.replace(os.sep, "/"))
    return python.ENDINGS


def _add_dotnet(tree: SourceTree, _cache: dict[str, Any]) -> frozenset[str] | None:
    project = dotnet.project_in(_names(tree.root))
    return dotnet.find_dotnet(tree, project) if project else frozenset()  # just removed: the next look sees it


_ADD = {
    PackageKind.TYPESCRIPT: _add_typescript,
    PackageKind.JAVASCRIPT: _add_javascript,
    PackageKind.PYTHON: _add_python,
    PackageKind.ADDINS: _add_addins,
    PackageKind.DOTNET: _add_dotnet,
}


def _add_included(tree: SourceTree, include: Globs) -> None:
    def passes(_folder: str, names: Collection[str]) -> Collection[str]:
        return {name for name in hidden_and_foreign(names) if not include.name_folder(name)}

    for start in sorted(include.starts()):
        if os.path.isdir(tree.path(start)):
            tree.walk(start, include.describe, passes)
        else:
            tree.add(start)
