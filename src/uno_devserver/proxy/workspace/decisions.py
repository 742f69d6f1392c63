"""Decides which workspace the proxy serves, and whether its server is started, stopped or restarted.

Each operation reads the disk, so it is called in a thread; the controller carries out its decision. If an operation
names an unusable folder or solution, the workspace that is served is kept.
"""

from __future__ import annotations

import os
from enum import Enum

from ...issues import Issue, Severity, warning
from ...system.log import log
from ...system.values import Value
from ...workspace.global_json import read_global_json
from ...workspace.paths import absolute, path_key
from ...workspace.resolver import ResolutionKind, SelectionSource, Workspace, resolve, select_solution
from ..lists.merge import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...workspace.global_json import UnoSdk
    from ..options import ProxyOptions


CANDIDATES = "Call uno_app_select_solution with the absolute path of a candidate; uno_health lists them."
DETAILS = "Call uno_health for the details."


class Trigger(Enum):
    """The reason for a decision."""

    FILE_SYSTEM = "file system"
    ROOTS = "roots"
    USER = "user selection"


class Transition(Enum):
    REFRESH = "Refresh"  # the same workspace, whose files may have changed
    START = "Start"
    STOP = "Stop"  # the workspace is gone
    RESTART = "Restart"
    DIAGNOSE = "Diagnose"  # keep the running server, and report an issue


class WorkspaceIdentity(Value):
    """Workspaces with the same identity can use the same server; the SDK is a part of the identity."""

    directory: str
    solution: str | None
    global_json: str | None
    sdk: UnoSdk | None


def transition(
    previous: WorkspaceIdentity | None,
    new: WorkspaceIdentity | None,
    trigger: Trigger,
    *,
    started: bool,
    force_restart: bool = False,
) -> Transition:
    """The transition from one workspace to the next; None stands for a directory that is not a workspace (yet)."""
    by_files = trigger is Trigger.FILE_SYSTEM
    if new is None:
        if not by_files:
            return Transition.DIAGNOSE  # the user or the client named an unusable directory
        return Transition.STOP if previous else Transition.REFRESH
    if previous is None or (previous == new and not by_files and not started):
        return Transition.START
    if previous == new:
        return Transition.RESTART if force_restart and started else Transition.REFRESH
    if trigger is Trigger.ROOTS:
        return Transition.DIAGNOSE  # a client's roots must not stop a server that is in use
    return Transition.START if trigger is Trigger.USER and not started else Transition.RESTART


class Decision(Value):
    transition: Transition
    workspace: Workspace  # the one to serve and to watch from now on
    issues: tuple[Issue, ...] = ()  # in addition to the workspace's own
    result: dict[str, Any] | None = None  # for the tool that asked; None if it depends on the outcome of the start


class WorkspaceDecisions:
    """One operation runs at a time, in any thread; `workspace` may be read meanwhile."""

    def __init__(self, options: ProxyOptions) -> None:
        self.workspace = _unresolved(options.directory)
        self.named = not options.force_fallback  # False if an agent has to name the folder by uno_app_initialize
        self._explicit = options.explicit
        self._by_agent = False  # whether uno_app_initialize has named the folder
        self._chosen: str | None = None  # the solution that the user has selected
        self._identity: WorkspaceIdentity | None = None
        self._in_roots: Workspace | None = None  # the workspace in the client's roots, if another one is served

    def initial(self) -> Decision:
        """Decide for the folder that the proxy was started for."""
        if not self.named:
            return self._decision(Transition.REFRESH)
        self._serve(resolve(self.workspace.requested_directory, explicit=self._explicit))
        return self._decision(Transition.START if self.workspace.resolved else Transition.DIAGNOSE)

    def rescan(self, *, started: bool) -> Decision:
        """Decide after files have changed."""
        if not self.named:
            return self._decision(Transition.REFRESH)
        new = self._resolve(self.workspace.requested_directory, explicit=self._explicit)
        new = new.replace(source=self.workspace.source)
        due = self._due(new, Trigger.FILE_SYSTEM, started=started)
        self._serve(new)
        return self._decision(due)

    def roots(self, answer: object, *, started: bool) -> Decision:
        """Decide after the client has answered `roots/list`. A served workspace is kept, even if the roots differ."""
        new = self._workspace_of_roots(answer) if self.named else None
        if new is None:
            return self._decision(Transition.REFRESH)
        due = self._due(new, Trigger.ROOTS, started=started)
        if due is Transition.DIAGNOSE and self.workspace.resolved:
            self._in_roots = new
            return self._decision(due)
        self._in_roots = None
        if new is not self.workspace:
            self._explicit = False
            self._serve(new)
        elif self.workspace.source is SelectionSource.Automatic:
            self.workspace = self.workspace.replace(source=SelectionSource.RootsConfirmed)
        return self._decision(due)

    def initialize(self, directory: str, solution: str | None, *, started: bool) -> Decision:
        """Decide for uno_app_initialize. If a server is started, `initialized` makes the result later."""
        problem = _wrong_directory(directory) or (_not_absolute(solution, "the solution") if solution else None)
        if problem:
            return self._decision(Transition.REFRESH, initialization_rejected(directory, problem))
        new = resolve(directory, explicit=True)
        if solution:
            new = select_solution(new, solution)
        elif new.resolved or not (kept := self._resolve(directory, explicit=True)).resolved:
            new = new.replace(source=SelectionSource.RootsConfirmed)
        else:
            new = kept  # of several solutions in the folder, the one that was selected before
        if not new.resolved and (solution or self.workspace.resolved):
            return self._decision(Transition.REFRESH, initialization_rejected(directory, *new.issues))
        due = self._due(new, Trigger.USER, started=started)
        self._explicit = self.named = self._by_agent = True
        self._choose(new, new.solution if new.source is SelectionSource.UserSelected else None)
        failed = None if new.resolved else initialized(new, tool_count=0, connected=False, degraded=True)
        return self._decision(due, failed)

    def select(self, solution: str, *, started: bool, force_restart: bool = False) -> Decision:
        """Decide for uno_app_select_solution. While no workspace is known, the solution's path names it."""
        known = self.named and (
            self.workspace.resolved or bool(self.workspace.candidates) or self._in_roots is not None
        )
        problem = _not_absolute(solution, "the solution")
        if problem is None and not known and not os.path.isfile(solution):
            remedy = "Name a solution that exists, or call uno_app_initialize with the folder of the workspace."
            problem = _unusable(f"There is no solution {solution}.", remedy)
        if problem:
            return self._decision(Transition.REFRESH, selection_rejected(problem))
        # Search again, because the solution may have been created a moment ago.
        if known:
            new = select_solution(resolve(self.workspace.requested_directory, explicit=self._explicit), solution)
        else:
            new = resolve(os.path.dirname(solution), explicit=True, solution=solution)
        if not new.resolved and self._in_roots is not None:
            there = select_solution(self._in_roots, solution)
            new = there if there.resolved else new
        if not new.resolved:
            issues = [issue.replace(remediation=f"{issue.remediation} {CANDIDATES}") for issue in new.issues]
            return self._decision(Transition.REFRESH, selection_rejected(*issues))
        due = self._due(new, Trigger.USER, started=started, force_restart=force_restart)
        if not known:
            self._explicit = self.named = True
        self._choose(new, new.solution)
        return self._decision(due, selected(new, due))

    def _resolve(self, directory: str, *, explicit: bool) -> Workspace:
        """The workspace of a folder, with the solution that the user has selected if it exists."""
        found = resolve(directory, explicit=explicit)
        if self._chosen is None:
            return found
        chosen = select_solution(found, self._chosen)
        return chosen if chosen.resolved else found

    def _workspace_of_roots(self, answer: object) -> Workspace | None:
        """The served workspace if a root confirms it, else the first workspace in a root, else the first root."""
        from .client_roots import read_roots  # imported late: it would delay the first start

        paths, problems = read_roots(answer, absolute("."))
        missing = [path for path in paths if not os.path.isdir(path)]
        for problem in (*problems, *(f"The client's root {path} is not a folder on this machine." for path in missing)):
            log.warn(problem)
        found = [self._resolve(path, explicit=False) for path in paths if path not in missing]
        if any(self._confirms(workspace) for workspace in found):
            return self.workspace
        first = next((workspace for workspace in found if workspace.resolved), found[0] if found else None)
        return first and first.replace(source=SelectionSource.RootsConfirmed)

    def _confirms(self, root: Workspace) -> bool:
        """Whether a root is the served workspace, or contains its solution among others."""
        served = self._identity
        return served is not None and (
            _identity(root) == served or served.solution in [_key(candidate) for candidate in root.candidates]
        )

    def _due(self, new: Workspace, trigger: Trigger, *, started: bool, force_restart: bool = False) -> Transition:
        return transition(self._identity, _identity(new), trigger, started=started, force_restart=force_restart)

    def _choose(self, workspace: Workspace, solution: str | None) -> None:
        """Serve the workspace that the user has named; the client's roots do not matter any more."""
        self._chosen, self._in_roots = solution, None
        self._serve(workspace)

    def _serve(self, workspace: Workspace) -> None:
        if self._by_agent and not workspace.resolved:
            workspace = workspace.replace(effective_directory=workspace.requested_directory)
        self.workspace = workspace
        self._identity = _identity(workspace)
        if self._in_roots is not None and self._identity == _identity(self._in_roots):
            self._in_roots = None

    def _decision(self, due: Transition, result: dict[str, Any] | None = None) -> Decision:
        issues = (_roots_elsewhere(self._in_roots, self.workspace),) if self._in_roots is not None else ()
        return Decision(due, self.workspace, issues, result)


def _identity(workspace: Workspace) -> WorkspaceIdentity | None:
    """The identity, with real paths: clients name folders through links, and on macOS the temporary folder is one."""
    if not workspace.resolved:
        return None
    sdk = read_global_json(workspace.global_json).uno_sdk if workspace.global_json else None
    solution, global_json = (path and _key(path) for path in (workspace.solution, workspace.global_json))
    return WorkspaceIdentity(_key(workspace.working_directory), solution, global_json, sdk)


def _key(path: str) -> str:
    return path_key(os.path.realpath(path))


def _unresolved(directory: str) -> Workspace:
    source = SelectionSource.Automatic
    return Workspace(directory, directory, None, None, None, ResolutionKind.NoCandidates, source, (), None, ())


def _roots_elsewhere(named: Workspace, served: Workspace) -> Issue:
    place = served.solution or served.working_directory
    if named.resolved:
        message = f"The client's root {named.requested_directory} is another workspace than the one served, {place}."
        choice = f"Call uno_app_select_solution with {named.solution}" if named.solution else "Start the client there"
        return warning("RootsElsewhere", message, f"{choice}, if that is the one you mean.")
    message = f"The client's root {named.requested_directory} is no workspace; {place} is served."
    return warning("RootsElsewhere", message)


def _wrong_directory(directory: str) -> Issue | None:
    if os.path.isabs(directory) and not os.path.isdir(directory):
        return _unusable(f"There is no folder {directory}.", "Name a folder that exists.")
    return _not_absolute(directory, "the workspace's folder")


def _not_absolute(path: str, what: str) -> Issue | None:
    if os.path.isabs(path):
        return None
    return _unusable(f"'{path}' is no absolute path.", f"Name {what} by its absolute path.")


def _unusable(message: str, remedy: str) -> Issue:
    return warning("WorkspaceNotResolved", message, remedy)


# The results of uno_app_initialize and uno_app_select_solution. Members and status values are those of the .NET proxy.

# By transition: the status, devServerAction, and the end of the sentence.
_SELECTED = {
    Transition.START: ("started", "Start", "is selected, and its DevServer is being started"),
    Transition.RESTART: ("restarted", "Restart", "is selected, and the DevServer is being restarted for it"),
    Transition.REFRESH: ("already_selected", "None", "is the one that is served already"),
}


def selected(workspace: Workspace, due: Transition) -> dict[str, Any]:
    status, action, what = _SELECTED[due]
    hint = "" if due is Transition.REFRESH else " Call uno_health to see when it is ready."
    return {
        "status": status,
        "selectedSolutionPath": workspace.solution,
        "effectiveWorkspaceDirectory": workspace.effective_directory,
        "devServerAction": action,
        **_explained(workspace.issues, f"{workspace.solution} {what}.{hint}"),
    }


def selection_rejected(*issues: Issue) -> dict[str, Any]:
    nothing = {"selectedSolutionPath": None, "effectiveWorkspaceDirectory": None, "devServerAction": "None"}
    return _rejected(nothing, issues)


def initialized(
    workspace: Workspace,
    *,
    tool_count: int,
    connected: bool,
    degraded: bool = False,
    reasons: tuple[Issue, ...] = (),
) -> dict[str, Any]:
    """The result of uno_app_initialize after the wait for the upstream; `reasons`: why it is not connected."""
    issues = (*reasons, *workspace.issues)
    if connected:
        status = "ready"
        use = (
            "Use them directly, or through uno_execute_tool."
            if tool_count
            else "If there should be some, call uno_health."
        )
        message = f"The DevServer is ready, with {counted(tool_count)}. {use}"
    elif degraded:
        status = "degraded"
        message = "" if issues else "The DevServer could not be started."
    else:
        status = "starting"
        message = "The DevServer is still starting. Call uno_discover_tools, which waits for it, or uno_health."
    about = {"workspaceDirectory": workspace.requested_directory, "toolCount": tool_count}
    result = {"status": status, **about, **_explained(issues, message)}
    return {**result, "message": f"{result['message']} {DETAILS}"} if status == "degraded" else result


def initialization_rejected(directory: str, *issues: Issue) -> dict[str, Any]:
    return _rejected({"workspaceDirectory": directory, "toolCount": 0}, issues)


def _rejected(about: dict[str, Any], issues: Iterable[Issue]) -> dict[str, Any]:
    """An error result for the agent. The served workspace is kept, so none of the issues is fatal."""
    warnings = [issue.replace(severity=Severity.WARNING) for issue in issues]
    return {"status": "rejected", **about, **_explained(warnings)}


def _explained(issues: Iterable[Issue], message: str = "") -> dict[str, Any]:
    """The last members of each result; without a message, the messages of the issues are used."""
    from ..health.upstream_issues import with_proxy_step  # the first start does not wait for it

    worded = [with_proxy_step(issue) for issue in issues]
    reasons = " ".join(f"{issue.message} {issue.remediation}" for issue in worded)
    return {"message": message or reasons, "issues": [issue.to_json() for issue in worded] or None}
