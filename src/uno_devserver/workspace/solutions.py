"""Reads the projects of a solution file: .sln, .slnx, and .slnf (a selection of the projects of another solution).

Reading never raises. If a solution is damaged in one place, the other projects are still read, with an issue that names
the file and the first error; .NET's own reader returns none of them.
"""

from __future__ import annotations

import os

from ..issues import Issue, warning
from ..msbuild.xml import XmlProblem, parse_xml
from ..system.files import FileProblem, decode, read_bytes, read_head
from ..system.jsonc import JsonProblem
from ..system.jsonc import parse as parse_json
from ..system.values import Value
from .paths import absolute, path_key
from .solution_finder import find_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .resolver import Workspace

MAX_PROJECT_BYTES = 64 * 1024  # the SDK is named at the beginning
MAX_BYTES = 32 * 1024 * 1024  # a thousand projects with all their configurations have 4 MB
SHOWN_CHARACTERS = 80  # how much of a bad path is quoted
PROJECT_EXTENSIONS = (".csproj", ".fsproj", ".vbproj")
_UNO_SDK, _LIBRARY = b"Uno.Sdk", b"<OutputType>Library<"
_HEADER = "Microsoft Visual Studio Solution File"
_SOLUTION_FOLDER = "{2150e333-8fdc-42a3-9474-1a3956d46de8}"


class Solution(Value):
    path: str
    projects: tuple[str, ...]  # absolute and normalised; they need not exist
    issue: Issue | None


def read_solution(path: str) -> Solution:
    path = absolute(path)
    listing = _Listing(os.path.dirname(path))
    try:
        _read(path, listing)
    except FileNotFoundError:
        listing.complain("it does not exist")
    except FileProblem as problem:
        listing.complain(problem.reason)
    except (XmlProblem, JsonProblem) as problem:
        listing.complain(str(problem))
    issue = warning("SolutionUnreadable", f"{path}: {listing.complaint}.") if listing.complaint else None
    return Solution(path, tuple(listing.projects.values()), issue)


def uno_projects_outside(workspace: Workspace) -> list[str]:
    """The C# projects of the workspace that use Uno, are no libraries, and are not in its solution."""
    if workspace.solution is None:
        return []
    listed = {path_key(path) for path in read_solution(workspace.solution).projects}
    found = find_files(workspace.working_directory, (".csproj",))
    heads = {path: _head(path) for path in found if path_key(path) not in listed}
    return [path for path, head in heads.items() if _UNO_SDK in head and _LIBRARY not in b"".join(head.split())]


def uses_uno(project: str) -> bool:
    """Whether a C# project names an SDK of Uno, as a project of an app does."""
    return project.lower().endswith(".csproj") and _UNO_SDK in _head(project)


def _head(project: str) -> bytes:
    try:
        return read_head(project, MAX_PROJECT_BYTES)
    except (OSError, ValueError, FileProblem):
        return b""


class _Listing:
    """The projects read so far, and the first error."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.projects: dict[str, str] = {}
        self.complaint = ""

    def add(self, written: str) -> None:
        if not written.strip():
            self.complain("it has a project without a path")
        elif not _can_be_a_path(written):
            self.complain(f"it has a project whose path cannot be one: {_shown(written)}")
        elif not _is_address(written):
            path = self.locate(written)
            self.projects.setdefault(path_key(path), path)

    def locate(self, written: str) -> str:
        return os.path.normpath(os.path.join(self.folder, written.replace("\\", "/")))

    def complain(self, what: str) -> None:
        self.complaint = self.complaint or what


def _can_be_a_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _is_address(text: str) -> bool:
    """Whether this is the address of a web site, not a project file; a drive has one letter before its colon."""
    return text.find("://") > 1


def _shown(written: object) -> str:
    return repr(str(written).replace("\\", "/")[:SHOWN_CHARACTERS])  # `repr` escapes control characters


def _read(path: str, listing: _Listing) -> None:
    extension = os.path.splitext(path)[1].lower()
    if extension == ".sln":
        _read_classic(decode(read_bytes(path, MAX_BYTES)), listing)
    elif extension == ".slnx":
        _read_xml(read_bytes(path, MAX_BYTES), listing)
    elif extension == ".slnf":
        _read_filter(read_bytes(path, MAX_BYTES), listing)
    else:
        listing.complain("its name ends neither in .sln nor in .slnx or .slnf")


def _read_classic(text: str, listing: _Listing) -> None:
    if _HEADER not in text:
        listing.complain(f"it does not begin with '{_HEADER}'")
    inside = False
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, start=1):
        keyword = line.partition("(")[0].strip().lower()
        if keyword == "endproject":
            inside = False
        elif keyword == "project":
            inside = True
            # Project("type") = "name", "path", "id": split at the quotes, the type is at 1 and the path at 5.
            parts = line.split('"', 6)
            if len(parts) < 7 or parts[4].strip() != ",":
                listing.complain(f"line {number} is not a complete Project line")
            elif parts[1].lower() != _SOLUTION_FOLDER:
                listing.add(parts[5])
    if inside:
        listing.complain("it ends inside a Project")


def _read_xml(data: bytes, listing: _Listing) -> None:
    root = parse_xml(data)
    if root.name.lower() != "solution":
        listing.complain(f"its root element is <{root.name}>, not <Solution>")
        return
    parents = [root]
    for parent in parents:  # grows during the loop: folders may be nested
        for element in parent.elements:
            name = element.name.lower()  # .slnx ignores the case of element names, but not of attribute names
            if name == "project":
                listing.add(element.attributes.get("Path", "").strip())
            elif name == "folder":
                parents.append(element)


def _read_filter(data: bytes, listing: _Listing) -> None:
    document = parse_json(data)
    section = document.get("solution") if isinstance(document, dict) else None
    section = section if isinstance(section, dict) else {}
    path, projects = section.get("path"), section.get("projects")
    if not isinstance(path, str) or not isinstance(projects, list) or not _can_be_a_path(path):
        listing.complain("it lacks 'solution' with a 'path' and a list of 'projects'")
        return
    path = listing.locate(path)
    if os.path.splitext(path)[1].lower() not in (".sln", ".slnx"):
        listing.complain(f"it selects from {path}, which is not a solution")
        return
    whole = read_solution(path)
    if whole.issue:
        listing.complain(whole.issue.message.rstrip("."))
    listing.folder = os.path.dirname(path)
    known = {path_key(project) for project in whole.projects}
    for project in projects:
        # If the solution is damaged, all projects of the filter are kept.
        if not isinstance(project, str) or (not whole.issue and path_key(listing.locate(project)) not in known):
            listing.complain(f"it selects {_shown(project)}, which is not in {path}")
        else:
            listing.add(project)


class WorkspaceProjects(Value):
    paths: tuple[str, ...]
    issues: tuple[Issue, ...]


def project_files(workspace: Workspace) -> WorkspaceProjects:
    """Each project once, in the order of the solution; if no solution is chosen, the projects of all candidates."""
    paths: dict[str, None] = {}
    issues: list[Issue] = []
    for path in (workspace.solution,) if workspace.solution else workspace.candidates:
        solution = read_solution(path)
        paths.update(dict.fromkeys(solution.projects))
        issues += [solution.issue] if solution.issue else []
    if not paths:
        paths = dict.fromkeys(find_files(workspace.working_directory, PROJECT_EXTENSIONS))
    return WorkspaceProjects(tuple(path for path in paths if path.lower().endswith(PROJECT_EXTENSIONS)), tuple(issues))
