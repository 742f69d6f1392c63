"""Resolves a directory to its workspace.

Resolving never raises: a `Workspace` has the chosen solution, the candidates, and the issues that prevented a choice.
"""

from __future__ import annotations

import os
from enum import Enum

from ..issues import Issue, Severity, fatal, warning
from ..system.values import Value
from .addins import ADDINS_FOLDER as ADDINS
from .config_file import config_in
from .global_json import GLOBAL_JSON, GlobalJson, find_global_json, read_global_json
from .paths import absolute, same_path, upwards
from .solution_finder import LEVELS_BELOW, find_candidates, twins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NAMED_PATHS = 10  # the most paths that one message names


class ResolutionKind(Enum):
    CurrentDirectory = "CurrentDirectory"
    AutoDiscovered = "AutoDiscovered"
    Ambiguous = "Ambiguous"
    NoValidWorkspace = "NoValidWorkspace"
    NoCandidates = "NoCandidates"


class SelectionSource(Enum):
    Automatic = "Automatic"
    RootsConfirmed = "RootsConfirmed"
    UserSelected = "UserSelected"


class Workspace(Value):
    requested_directory: str
    working_directory: str  # the effective directory, else the requested one
    effective_directory: str | None
    solution: str | None
    global_json: str | None
    kind: ResolutionKind
    source: SelectionSource
    candidates: tuple[str, ...]
    config: str | None
    issues: tuple[Issue, ...]

    @property
    def resolved(self) -> bool:
        return self.kind in (ResolutionKind.CurrentDirectory, ResolutionKind.AutoDiscovered)

    @property
    def own_directory(self) -> str:
        """The real folder to which writing is confined: the working directory, unless a link led out to that."""
        asked, found = os.path.realpath(self.requested_directory), os.path.realpath(self.working_directory)
        nested = any(upper in upwards(lower) for upper, lower in ((asked, found), (found, asked)))
        return found if nested else asked


def resolve(directory: str, *, explicit: bool = False) -> Workspace:
    """The workspace of `directory`, which is `explicit` if the user named it (--solution-dir)."""
    source = SelectionSource.UserSelected if explicit else SelectionSource.Automatic
    directory = absolute(directory)
    try:
        os.scandir(directory).close()
    except (OSError, ValueError) as error:
        return _unusable(directory, error).replace(source=source)
    candidates = find_candidates(directory)
    if candidates:
        workspace = _choose(directory, candidates)
    elif explicit:
        workspace = _without_solution(directory)
    else:
        workspace = _nothing_found(directory)
    if not workspace.resolved:
        workspace = _by_config(workspace)
    return workspace.replace(source=source, candidates=candidates)


def select_solution(workspace: Workspace, solution: str) -> Workspace:
    """The workspace with the solution that the user chose, or an unresolved workspace with the reason."""
    selected = _select(workspace, os.path.normpath(os.path.join(workspace.requested_directory, solution)))
    return selected.replace(source=SelectionSource.UserSelected, candidates=workspace.candidates)


def _choose(directory: str, candidates: tuple[str, ...]) -> Workspace:
    """The workspace of the solution that is nearest to its global.json, among those whose global.json names Uno."""
    homes = _homes(candidates)
    uno = {solution: home.path for solution, home in homes.items() if home and home.uno_sdk}
    if not uno:
        return _no_uno(directory, homes)
    issues = _as_warnings(_malformed(homes))
    distances = {solution: _distance(solution, path) for solution, path in uno.items()}
    nearest = [solution for solution in uno if distances[solution] == min(distances.values())]
    # The solution of a submodule with its own global.json does not compete with the one of the directory itself.
    here = [solution for solution in nearest if _is_at(directory, solution) or _is_at(directory, uno[solution])]
    winners = here if len(here) == 1 else nearest
    if len(winners) > 1:
        message = f"{len(winners)} solutions in {directory} fit equally well: {_listed(winners)}."
        issues = (warning("WorkspaceAmbiguous", message), *issues)
        return _unresolved(directory, ResolutionKind.Ambiguous, issues)
    return _resolved(directory, winners[0], uno[winners[0]]).replace(issues=issues)


def _homes(solutions: Iterable[str]) -> dict[str, GlobalJson | None]:
    """The nearest global.json of each solution; each file is read once."""
    read: dict[str | None, GlobalJson | None] = {None: None}
    homes = {}
    for solution in solutions:
        path = find_global_json(os.path.dirname(solution))
        if path and path not in read:
            read[path] = read_global_json(path)
        homes[solution] = read[path]
    return homes


def _distance(solution: str, global_json: str) -> int:
    return list(upwards(os.path.dirname(solution))).index(os.path.dirname(global_json))


def _is_at(directory: str, path: str) -> bool:
    return same_path(os.path.dirname(path), directory)


def _without_solution(directory: str) -> Workspace:
    """The workspace of a directory that the user named, which may be one because of its global.json alone."""
    path = os.path.join(directory, GLOBAL_JSON)
    if not os.path.isfile(path):
        return _nothing_found(directory)
    home = read_global_json(path)
    if home.uno_sdk:
        return _resolved(directory, None, path)
    message = f"{directory} has no solution, and it is not an Uno workspace by itself: {_why_not(home)}."
    causes = (home.issue,) if home.issue else ()
    return _unresolved(directory, ResolutionKind.NoValidWorkspace, (fatal("WorkspaceNotResolved", message), *causes))


def _by_config(workspace: Workspace) -> Workspace:
    """The workspace of the nearest config or folder of add-ins, with issues as warnings; unchanged if there is none."""
    for folder in upwards(workspace.requested_directory):
        config = config_in(folder)
        if config is not None or os.path.isdir(os.path.join(folder, ADDINS)):
            useful = [issue for issue in workspace.issues if issue.code in ("WorkspaceAmbiguous", "GlobalJsonInvalid")]
            return workspace.replace(
                working_directory=folder,
                effective_directory=folder,
                kind=_kind(workspace.requested_directory, folder),
                config=config,
                issues=_as_warnings(useful),
            )
    return workspace


def _select(workspace: Workspace, path: str) -> Workspace:
    directory = workspace.requested_directory
    same = [candidate for candidate in workspace.candidates if same_path(candidate, path)]
    if not same and not any(twins(candidate, path) for candidate in workspace.candidates):
        choice = f"Choose one of: {_listed(workspace.candidates)}." if workspace.candidates else ""
        issue = fatal("WorkspaceNotResolved", f"{path} is not among the solutions found in {directory}.", choice)
        return _unresolved(directory, ResolutionKind.NoCandidates, (issue,))
    solution = same[0] if same else path
    if not os.path.isfile(solution):
        issue = fatal("WorkspaceNotResolved", f"{solution} does not exist.", "Choose a solution that exists.")
        return _unresolved(directory, ResolutionKind.NoCandidates, (issue,))
    homes = _homes([solution])
    home = homes[solution]
    if home and home.uno_sdk:
        return _resolved(directory, solution, home.path)
    if workspace.resolved and workspace.global_json is None:  # a workspace for any server, not for Uno
        return workspace.replace(solution=solution)
    return _no_uno(directory, homes)


# The outcomes.


def _resolved(directory: str, solution: str | None, global_json: str) -> Workspace:
    effective = os.path.dirname(global_json)
    return Workspace(
        requested_directory=directory,
        working_directory=effective,
        effective_directory=effective,
        solution=solution,
        global_json=global_json,
        kind=_kind(directory, effective),
        source=SelectionSource.Automatic,
        candidates=(),
        config=config_in(effective),
        issues=(),
    )


def _kind(directory: str, effective: str) -> ResolutionKind:
    here = same_path(directory, effective)
    return ResolutionKind.CurrentDirectory if here else ResolutionKind.AutoDiscovered


def _unresolved(directory: str, kind: ResolutionKind, issues: tuple[Issue, ...]) -> Workspace:
    return Workspace(directory, directory, None, None, None, kind, SelectionSource.Automatic, (), None, issues)


def _unusable(directory: str, error: Exception) -> Workspace:
    known: dict[type[Exception], str] = {
        FileNotFoundError: "it does not exist",
        NotADirectoryError: "it is not a folder",
        PermissionError: "permission denied",
    }
    message = f"Nothing can be looked for in '{directory}': {known.get(type(error), str(error))}."
    issue = fatal("WorkspaceNotResolved", message, "Use a folder that exists and that you may read.")
    return _unresolved(directory, ResolutionKind.NoCandidates, (issue,))


def _nothing_found(directory: str) -> Workspace:
    message = f"There is no .sln or .slnx file in {directory} or in the {LEVELS_BELOW} levels of folders below it."
    return _unresolved(directory, ResolutionKind.NoCandidates, (warning("NoSolutionFound", message),))


def _no_uno(directory: str, homes: Mapping[str, GlobalJson | None]) -> Workspace:
    reasons = [f"{solution} ({_why_not(home)})" for solution, home in homes.items()]
    message = f"No solution in {directory} belongs to an Uno workspace: {_listed(reasons)}."
    issues = (fatal("WorkspaceNotResolved", message), *_malformed(homes))
    return _unresolved(directory, ResolutionKind.NoValidWorkspace, issues)


def _why_not(home: GlobalJson | None) -> str:
    if home is None:
        return f"no {GLOBAL_JSON} beside it or above it"
    if home.document is None:
        return f"{home.path} cannot be read"
    return f"{home.path} names no Uno SDK"


def _malformed(homes: Mapping[str, GlobalJson | None]) -> list[Issue]:
    issues = [home.issue for home in homes.values() if home and home.issue and home.issue.code == "GlobalJsonInvalid"]
    return list(dict.fromkeys(issues))  # several solutions may share one file


def _as_warnings(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    return tuple(issue.replace(severity=Severity.WARNING) for issue in issues)


def _listed(paths: Sequence[str]) -> str:
    more = len(paths) - NAMED_PATHS
    return ", ".join(paths[:NAMED_PATHS]) + (f" and {more} more" if more > 0 else "")
