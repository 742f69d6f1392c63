"""Resolves a directory to its workspace, which is the same one for every directory inside it.

Solutions in the directory and below it decide first. Otherwise the nearest folder above decides that has `.devtools`,
or a solution that belongs to the same `global.json` with Uno as the directory; the directory then has the workspace of
that folder, with its solution. Resolving never raises: a `Workspace` has the chosen solution, the candidates, and the
issues that prevented a choice.
"""

from __future__ import annotations

import os
from enum import Enum

from ..issues import Issue, Severity, fatal, listed, warning
from ..system.values import Value
from .devtools_folder import ADDINS_FOLDER as ADDINS
from .devtools_folder import config_in, misnamed_in
from .global_json import GLOBAL_JSON, GlobalJson, find_global_json, read_global_json
from .paths import absolute, same_path, upwards
from .solution_finder import LEVELS_BELOW, find_candidates, twins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SOLUTIONS = (".sln", ".slnx", ".slnf")


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
    working_directory: str  # the effective directory, else the folder of the global.json with Uno, else the requested
    effective_directory: str | None
    solution: str | None
    global_json: str | None
    kind: ResolutionKind
    source: SelectionSource
    candidates: tuple[str, ...]
    config: str | None
    issues: tuple[Issue, ...]

    def to_json(self) -> dict[str, object]:
        """The members that `disco` and `health` share; names and order are those of the .NET tool."""
        return {
            "requestedWorkingDirectory": self.requested_directory,
            "workingDirectory": self.working_directory,
            "effectiveWorkspaceDirectory": self.effective_directory,
            "selectedSolutionPath": self.solution,
            "selectedGlobalJsonPath": self.global_json,
            "resolutionKind": self.kind.value,
            "selectionSource": self.source.value,
        }

    @property
    def resolved(self) -> bool:
        return self.kind in (ResolutionKind.CurrentDirectory, ResolutionKind.AutoDiscovered)

    @property
    def undecided(self) -> bool:
        """Whether several solutions fit equally well, and none is chosen."""
        return self.solution is None and any(issue.code == "WorkspaceAmbiguous" for issue in self.issues)

    @property
    def own_directory(self) -> str:
        """The real folder to which writing is confined: the working directory, unless a link led out to that."""
        asked, found = os.path.realpath(self.requested_directory), os.path.realpath(self.working_directory)
        nested = any(upper in upwards(lower) for upper, lower in ((asked, found), (found, asked)))
        return found if nested else asked


def resolve(directory: str, *, explicit: bool = False, solution: str | None = None) -> Workspace:
    """The workspace of `directory`, which is `explicit` if the user named it (--solution-dir).

    `solution` is the path of the solution that the user named; one in another folder says which workspace is meant.
    """
    source = SelectionSource.UserSelected if explicit else SelectionSource.Automatic
    directory = absolute(directory)
    try:
        if not os.path.isabs(directory):  # the current folder was removed
            raise FileNotFoundError
        os.scandir(directory).close()
    except (OSError, ValueError) as error:
        return _unusable(directory, error).replace(source=source)
    found = _nearest(directory, explicit=explicit)
    target = os.path.realpath(directory)
    if not found.resolved and target != directory:  # a link into a workspace, which is above its target
        of_target = _nearest(target, explicit=explicit)
        found = of_target if of_target.resolved else found
    kind = _kind(directory, found.working_directory) if found.resolved else found.kind
    misnamed, known = tuple(_misnamed(directory, found)), found.issues
    is_why = found.kind is ResolutionKind.NoCandidates  # then it is probably why there is no workspace
    issues = (*misnamed, *known) if is_why else (*known, *misnamed)
    workspace = found.replace(requested_directory=directory, kind=kind, source=source, issues=issues)
    return workspace if solution is None else _with_solution(workspace, solution)


def select_solution(workspace: Workspace, solution: str) -> Workspace:
    """The workspace with the solution that the user chose, or an unresolved workspace with the reason."""
    selected = _select(workspace, os.path.normpath(os.path.join(workspace.requested_directory, solution)))
    return selected.replace(source=SelectionSource.UserSelected, candidates=workspace.candidates)


def _with_solution(workspace: Workspace, solution: str) -> Workspace:
    path = os.path.normpath(os.path.join(workspace.requested_directory, solution))
    if workspace.solution is not None and same_path(workspace.solution, path):
        return workspace
    selected = select_solution(workspace, path)
    if selected.resolved or not os.path.isfile(path) or path in workspace.candidates:
        return selected
    there = resolve(os.path.dirname(path), explicit=True)
    chosen = select_solution(there, path)
    if not chosen.resolved and there.resolved and path.lower().endswith(SOLUTIONS):  # git may ignore it, for example
        return there.replace(solution=path)
    return chosen


def _nearest(directory: str, *, explicit: bool) -> Workspace:
    """The workspace of the directory itself, or the nearest one above that it is in."""
    candidates = find_candidates(directory)
    here = _choose(directory, candidates).replace(candidates=candidates) if candidates else None
    if here is not None and here.resolved:
        return here
    home = _home(directory)
    top = os.path.dirname(home.path) if home and home.uno_sdk else None
    for folder in upwards(directory):
        by_devtools = config_in(folder) is not None or os.path.isdir(os.path.join(folder, ADDINS))
        is_ambiguous = here is not None and here.kind is ResolutionKind.Ambiguous
        # A choice between several solutions is due, unless a folder with .devtools says which workspace it is.
        of_the_same_home = top is not None and len(folder) >= len(top) and not is_ambiguous
        if folder != directory and (by_devtools or of_the_same_home):
            candidates = find_candidates(folder)
            above = _choose(folder, candidates).replace(candidates=candidates) if candidates else None
            if above is not None and not above.resolved:
                here = above
            elif above is not None and above.working_directory in upwards(directory):
                return above
        if by_devtools:
            return _by_config(folder, here)
    if here is None:
        here = _without_solution(directory, home, explicit=explicit)
    return here if here.resolved or top is None else here.replace(working_directory=top)


def _misnamed(directory: str, found: Workspace) -> Iterator[Issue]:
    """Warnings of files that are not read because of their names, where the workspace's own are looked for."""
    top = found.working_directory if found.resolved else None
    for folder in upwards(directory):
        misnamed, more = misnamed_in(folder)
        for path, right in misnamed:
            message = f"{path} is not read: its name is not {os.path.basename(right)}."
            yield warning("FileMisnamed", message, f"Rename it to {right}.")
        if more:
            message = f"{more} more in {os.path.join(folder, '.devtools')} are not read because of their names."
            yield warning("FileMisnamed", message)
        if top is not None and same_path(folder, top):
            return


def _home(directory: str) -> GlobalJson | None:
    path = find_global_json(directory)
    return read_global_json(path) if path else None


def _uno_above(home: GlobalJson) -> str | None:
    """The next global.json above this one that names an Uno SDK."""
    above: GlobalJson | None = home
    while above and not above.uno_sdk:
        folder = os.path.dirname(above.path)
        above = _home(os.path.dirname(folder)) if os.path.dirname(folder) != folder else None
    return above.path if above else None


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
        message = f"{len(winners)} solutions in {directory} fit equally well: {listed(winners)}."
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


def _without_solution(directory: str, home: GlobalJson | None, *, explicit: bool) -> Workspace:
    """The workspace of a directory without solutions; `home` is the global.json that counts for it.

    If the user named the directory, a global.json with Uno is enough.
    """
    if explicit and home and home.uno_sdk:
        return _resolved(directory, None, home.path)
    if explicit and home and _is_at(directory, home.path):
        message = f"{directory} has no solution, and it is not an Uno workspace by itself: {_why_not(home)}."
        issues = _not_resolved(message, _causes({directory: home}))
        return _unresolved(directory, ResolutionKind.NoValidWorkspace, issues)
    message = f"There is no .sln or .slnx file in {directory} or in the {LEVELS_BELOW} levels of folders below it"
    remedy = ""
    if home and home.uno_sdk and not _is_at(directory, home.path):
        message += f", nor near {home.path} above it, which names {home.uno_sdk.package}"
    elif home and (farther := _uno_above(home)):
        message += f". {farther} above it names an Uno SDK, but {home.path} is nearer"
        remedy = f"Run from {os.path.dirname(farther)}, or name that SDK under msbuild-sdks in the nearer file, too."
    missing = warning("NoSolutionFound", f"{message}.", remedy)
    causes = [cause.replace(remediation=missing.remediation) for cause in _causes({directory: home})]
    return _unresolved(directory, ResolutionKind.NoCandidates, (missing, *_as_warnings(causes)))


def _by_config(folder: str, here: Workspace | None) -> Workspace:
    """The workspace of a folder with a config or add-ins; `here` has the solutions that decided nothing."""
    home = _home(folder)
    known = here.issues if here else ()
    useful = [issue for issue in known if issue.code in ("WorkspaceAmbiguous", "GlobalJsonInvalid")]
    if home and home.document is None and home.issue and home.issue not in useful:
        useful.append(home.issue)
    workspace = here or _unresolved(folder, ResolutionKind.NoCandidates, ())
    return workspace.replace(
        working_directory=folder,
        effective_directory=folder,
        global_json=home.path if home and home.uno_sdk and _is_at(folder, home.path) else None,
        kind=_kind(folder, folder),
        config=config_in(folder),
        issues=_as_warnings(useful),
    )


def _select(workspace: Workspace, path: str) -> Workspace:
    directory = workspace.requested_directory
    same = [candidate for candidate in workspace.candidates if same_path(candidate, path)]
    if not same and not any(twins(candidate, path) for candidate in workspace.candidates):
        choice = f"Choose one of: {listed(workspace.candidates)}." if workspace.candidates else ""
        message = f"There is no solution {path}."
        if os.path.isfile(path):
            is_solution = path.lower().endswith(SOLUTIONS)
            what = f"is not among the solutions of {directory}" if is_solution else "is no .sln, .slnx or .slnf file"
            message = f"{path} {what}."
        issue = fatal("WorkspaceNotResolved", message, choice)
        return _unresolved(directory, ResolutionKind.NoCandidates, (issue,))
    solution = same[0] if same else path
    if not os.path.isfile(solution):
        issue = fatal("WorkspaceNotResolved", f"{solution} does not exist.", "Choose a solution that exists.")
        return _unresolved(directory, ResolutionKind.NoCandidates, (issue,))
    home = _home(os.path.dirname(solution))
    if home and home.uno_sdk:
        return _resolved(directory, solution, home.path)
    if workspace.resolved and workspace.global_json is None:  # a workspace for any server, not for Uno
        return workspace.replace(solution=solution)
    return _no_uno(directory, {solution: home})


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
        FileNotFoundError: f"There is no folder {directory}.",
        NotADirectoryError: f"{directory} is not a folder.",
        PermissionError: f"The folder {directory} cannot be read: permission denied.",
    }
    message = known.get(type(error), f"The folder {directory} cannot be read: {error}.")
    issue = fatal("WorkspaceNotResolved", message, "Name a folder that exists and that you may read.")
    return _unresolved(directory, ResolutionKind.NoCandidates, (issue,))


def _no_uno(directory: str, homes: Mapping[str, GlobalJson | None]) -> Workspace:
    reasons = [f"{solution} ({_why_not(home)})" for solution, home in homes.items()]
    message = f"No solution in {directory} belongs to an Uno workspace: {listed(reasons)}."
    folders = {os.path.dirname(solution): home for solution, home in homes.items()}
    return _unresolved(directory, ResolutionKind.NoValidWorkspace, _not_resolved(message, _causes(folders)))


def _not_resolved(message: str, causes: tuple[Issue, ...]) -> tuple[Issue, ...]:
    """The issue with the next step of its first cause, then the causes."""
    return (fatal("WorkspaceNotResolved", message, causes[0].remediation), *causes)


def _causes(homes: Mapping[str, GlobalJson | None]) -> tuple[Issue, ...]:
    """Why these folders, each with the global.json that counts for it, belong to no Uno workspace; each cause once."""
    causes = [
        home.issue if home else fatal("GlobalJsonNotFound", f"There is no global.json in {folder} or above it.")
        for folder, home in homes.items()
    ]
    return tuple(dict.fromkeys(issue for issue in causes if issue))


def _why_not(home: GlobalJson | None) -> str:
    if home is None:
        return f"no {GLOBAL_JSON} beside it or above it"
    if home.document is None:
        return f"{home.path} cannot be read"
    return f"{home.path} names no version of an Uno SDK"


def _malformed(homes: Mapping[str, GlobalJson | None]) -> list[Issue]:
    issues = [home.issue for home in homes.values() if home and home.issue and home.issue.code == "GlobalJsonInvalid"]
    return list(dict.fromkeys(issues))  # several solutions may share one file


def _as_warnings(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    return tuple(issue.replace(severity=Severity.WARNING) for issue in issues)
