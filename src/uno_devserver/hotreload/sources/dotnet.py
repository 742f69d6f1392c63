"""The source files of a .NET project: the SDK's default globs, changed by the Compile items of the project.

Conditions are not evaluated: all items are used. The project file is a source too.
"""

from __future__ import annotations

import os

from ...msbuild.xml import XmlProblem, parse_xml
from ...system.files import FileProblem, read_bytes
from .globs import Globs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ...msbuild.xml import Element
    from .source_tree import SourceTree

PROJECTS = (".csproj", ".fsproj")
MAX_PROJECT_BYTES = 4 * 1024 * 1024  # a project that lists 20,000 files by name has 2 MB
_OUTPUT = frozenset({"bin", "obj"})  # output folders next to the project file; deeper ones are ordinary folders
_SWITCHES = ("enabledefaultitems", "enabledefaultcompileitems")


def project_in(names: Collection[str]) -> str | None:
    """The project file among the names in a folder; the first by name, if there are several."""
    return min((name for name in names if name.lower().endswith(PROJECTS)), default=None)


def find_dotnet(tree: SourceTree, project: str) -> frozenset[str] | None:
    """Add the files of the project in the root; return the endings of all names that may be sources, None for any."""
    tree.add(project)
    compiled = _Compiled(tree, project)
    endings = (*((".cs",) if compiled.by_default else ()), ".resx")
    included, removed = compiled.included, compiled.removed

    def wanted(path: str) -> bool:
        lower = path.lower()
        if lower.endswith(".cs") and removed.match(path):
            return False
        return lower.endswith(endings) or included.match(path)

    tree.walk("", wanted, _skipped)
    for path in compiled.outside:
        tree.add(path)
    named = included.endings() if included.patterns else frozenset[str]()
    return None if named is None else frozenset({*endings, *PROJECTS, *named})


class _Compiled:
    """The statements of a project about the files that it compiles."""

    def __init__(self, tree: SourceTree, project: str) -> None:
        self.by_default = not project.lower().endswith(".fsproj")  # F# projects list each file, because order matters
        self.outside: list[str] = []
        include: list[str] = []
        remove: list[str] = []
        path = tree.path(project)
        try:
            root = parse_xml(read_bytes(path, MAX_PROJECT_BYTES))
        except FileNotFoundError:  # removed meanwhile: the next call finds another kind of package
            root = None
        except (FileProblem, XmlProblem) as problem:
            tree.problems.append(f"{path} cannot be read: {problem.reason}. The default files of a project are used.")
            root = None
        for element in _below(root) if root is not None else ():
            name = element.name.lower()
            if (
                name in _SWITCHES
                and "".join(child for child in element.children if isinstance(child, str)).strip().lower() == "false"
            ):
                self.by_default = False
            elif name == "compile":
                for attribute, patterns in (("include", include), ("remove", remove)):
                    patterns += self._patterns(element, attribute, path, tree)
        self.included = Globs(include, f"{path}: Compile Include")
        self.removed = Globs(remove, f"{path}: Compile Remove")
        tree.problems += [*self.included.problems, *self.removed.problems]

    def _patterns(self, element: Element, attribute: str, path: str, tree: SourceTree) -> Iterator[str]:
        value = next((text for name, text in element.attributes.items() if name.lower() == attribute), "")
        for pattern in filter(None, (part.strip().replace("\\", "/") for part in value.split(";"))):
            if "$(" in pattern or "@(" in pattern or "%" in pattern:
                tree.problems.append(
                    f'{path}, line {element.line}: Compile "{pattern}" needs MSBuild, and does not count. '
                    "Name such files in hotReload.include."
                )
            elif pattern.startswith("../") and "*" not in pattern and "?" not in pattern:
                self.outside.append(os.path.normpath(pattern).replace(os.sep, "/"))
            else:
                yield pattern


def _skipped(folder: str, names: Collection[str]) -> Collection[str]:
    """The folders that are skipped: hidden ones, as by the SDK, and node_modules, as by the Web SDK."""
    skipped = {name for name in names if name[0] == "." or name == "node_modules"}
    return skipped if folder else skipped | {name for name in names if name.lower() in _OUTPUT}


def _below(root: Element) -> Iterator[Element]:
    waiting = [root]
    while waiting:
        element = waiting.pop()
        yield element
        waiting += element.elements
