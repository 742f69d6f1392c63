"""The project files of a workspace: its solution's, or, without a usable solution, those that lie below it."""

from __future__ import annotations

from ..system.values import Value
from .finder import find_files
from .solutions import read_solution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..issues import Issue
    from .resolver import Workspace

EXTENSIONS = (".csproj", ".fsproj", ".vbproj")


class ProjectFiles(Value):
    paths: tuple[str, ...]
    issues: tuple[Issue, ...]


def project_files(workspace: Workspace) -> ProjectFiles:
    """Each project once, in the order of the solution; when several solutions compete, the projects of all."""
    paths: dict[str, None] = {}
    issues: list[Issue] = []
    for path in (workspace.solution,) if workspace.solution else workspace.candidates:
        solution = read_solution(path)
        paths.update(dict.fromkeys(solution.projects))
        issues += [solution.issue] if solution.issue else []
    if not paths:
        paths = dict.fromkeys(find_files(workspace.working_directory, EXTENSIONS))
    return ProjectFiles(tuple(path for path in paths if path.lower().endswith(EXTENSIONS)), tuple(issues))
