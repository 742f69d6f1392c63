"""Reads and validates project files, each once, however often it is evaluated."""

from __future__ import annotations

import os

from ..system.files import FileProblem, read_bytes
from .expressions import SharedWork
from .paths import split_extension, without_root
from .problems import EvaluationProblem
from .validation import is_valid_name, validate
from .xml import CData, Comment, Element, XmlProblem, inner_text, inner_xml, parse_xml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The largest files of the .NET SDK have 300 KB, a project that lists 20,000 files by name has 2 MB.
MAX_BYTES = 4 * 1024 * 1024


class ProjectFile:
    """A valid project file: its elements, the names that it can define, and its $(MSBuildThisFile...) values."""

    __slots__ = ("folder", "items", "path", "properties", "root", "values")

    def __init__(self, path: str, root: Element) -> None:
        names = validate(root)
        self.path = path
        self.root = root
        self.properties = names.properties
        self.items = names.items
        self.folder, name = os.path.split(path)
        stem, extension = split_extension(name)
        directory = self.folder if self.folder.endswith(os.sep) else self.folder + os.sep
        self.values = {
            "msbuildthisfile": name,
            "msbuildthisfiledirectory": directory,
            "msbuildthisfiledirectorynoroot": without_root(directory),
            "msbuildthisfileextension": extension,
            "msbuildthisfilefullpath": path,
            "msbuildthisfilename": stem,
        }


class ProjectFileCache:
    """A cache of project files, and of the problems of files that cannot be used.

    The evaluations that share it share `work`, so that many packages together are limited, too.
    """

    def __init__(self) -> None:
        self.work = SharedWork()
        self._known: dict[str, ProjectFile | tuple[str, str]] = {}
        self._nearest: dict[tuple[str, str], tuple[str, ...]] = {}
        self._environment: tuple[Mapping[str, str], dict[str, str]] = {}, {}  # the last one, with its properties

    def load(self, path: str) -> ProjectFile:
        """The file at an absolute path; raises EvaluationProblem."""
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = _read(path)
        if isinstance(known, tuple):
            code, message = known
            raise EvaluationProblem(code, message, path)
        return known

    def environment_properties(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """The variables that are properties, because their names are valid ones, by their names in lower case."""
        if self._environment[0] is not environment:
            found = {name.lower(): value for name, value in environment.items() if is_valid_name(name)}
            self._environment = environment, found
        return self._environment[1]

    def nearest(self, folder: str, name: str) -> tuple[str, ...]:
        """The file with this name in the folder or the nearest one above it; nothing if there is none."""
        known = self._nearest.get((folder, name))
        if known is None:
            path, above = os.path.join(folder, name), os.path.dirname(folder)
            if os.path.isfile(path):
                known = (path,)
            else:
                known = () if above == folder else self.nearest(above, name)
            self._nearest[folder, name] = known
        return known


def _read(path: str) -> ProjectFile | tuple[str, str]:
    try:
        return ProjectFile(path, parse_xml(read_bytes(path, MAX_BYTES)))
    except FileNotFoundError:
        return "MSB4019", "the file does not exist"
    except FileProblem as problem:
        return "MSB4024", f"the file cannot be read: {problem.reason}"
    except XmlProblem as problem:
        return "MSB4024", f"the file is not XML: {problem}"
    except EvaluationProblem as problem:
        return problem.code, problem.message


def value_of(element: Element) -> str:
    """The content of a property or metadata: text without comments, or XML if it contains elements."""
    children = element.children
    if not children:
        return ""
    first = children[0]
    if len(children) == 1 and type(first) is str:
        return first

    only_text = all(type(child) is str or type(child) is Comment for child in children)
    return inner_text(element) if only_text or type(first) is CData else inner_xml(element)
