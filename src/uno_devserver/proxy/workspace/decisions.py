"""Which workspace the proxy serves, and what a new answer to that question leads to.

Every operation looks at the disk, so it belongs into a thread; it decides by `workspace/transitions.py` and starts or
stops nothing itself. What is named wrongly changes nothing: the workspace that was served stays.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from ...issues import Issue, warning
from ...system.log import log
from ...system.values import Value
from ...workspace.globaljson import read_global_json
from ...workspace.paths import absolute, path_key
from ...workspace.resolver import ResolutionKind, SelectionSource, Workspace, resolve, select_solution
from ...workspace.transitions import Identity, Transition, Trigger, transition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..options import Options


class Decision(Value):
    transition: Transition
    workspace: Workspace  # the one that counts from now on, and the one to watch
    issues: tuple[Issue, ...] = ()  # beyond the workspace's own
    result: dict[str, Any] | None = None  # for the tool that asked; None: it depends on what becomes of the start


class WorkspaceDecisions:
    """One operation at a time; what it holds may be read from any thread."""

    def __init__(self, options: Options) -> None:
        self.workspace = _not_looked_at(options.directory)
        self.issues: tuple[Issue, ...] = ()
        # In forced fallback mode, the folder that we stand in means nothing.
        self.told = not options.force_fallback
        self._explicit = options.explicit
        self._chosen: str | None = None  # the solution that the user has selected
        self._identity: Identity | None = None
        self._offered: Workspace | None = None  # what the client's roots name, where something else is served
        self._lock = allocate_lock()

    def initial(self) -> Decision:
        """The folder that the proxy was started for."""
        with self._lock:
            if not self.told:
                return self._decided(Transition.REFRESH)
            self._serve(resolve(self.workspace.requested_directory, explicit=self._explicit))
            return self._decided(Transition.START if self.workspace.resolved else Transition.DIAGNOSE)

    def rescan(self, *, started: bool) -> Decision:
        """Files have changed."""
        with self._lock:
            if not self.told:
                return self._decided(Transition.REFRESH)
            new = self._look(self.workspace.requested_directory, explicit=self._explicit)
            new = new.replace(source=self.workspace.source)
            due = self._transition(new, Trigger.FILE_SYSTEM, started=started)
            self._serve(new)
            return self._decided(due)

    def roots(self, answer: object, *, started: bool) -> Decision:
        """The client has answered `roots/list`. Where another workspace is served already, that one stays."""
        with self._lock:
            new = self._named(answer) if self.told else None
            if new is None:
                return self._decided(Transition.REFRESH)
            due = self._transition(new, Trigger.ROOTS, started=started)
            if due is Transition.DIAGNOSE and self.workspace.resolved:
                self._offered, self.issues = new, (_elsewhere(new, self.workspace),)
                return self._decided(due)
            self._offered, self.issues = None, ()
            if new is not self.workspace:
                self._explicit = False
                self._serve(new)
            elif self.workspace.source is SelectionSource.Automatic:
                self.workspace = self.workspace.replace(source=SelectionSource.RootsConfirmed)
            return self._decided(due)

    def initialize(self, directory: str, solution: str | None, *, started: bool) -> Decision:
        """uno_app_initialize. There is a result where nothing is started; else `initialized` makes it later."""
        from .tool_results import initialization_rejected, initialized

        with self._lock:
            problem = _wrong_directory(directory) or (_wrong_solution(solution) if solution else None)
            if problem:
                return self._decided(Transition.REFRESH, initialization_rejected(directory, problem))
            new = resolve(directory, explicit=True)
            if solution:
                new = select_solution(new, solution)
            if not new.resolved and (solution or self.workspace.resolved):
                return self._decided(Transition.REFRESH, initialization_rejected(directory, *new.issues))
            due = self._transition(new, Trigger.USER, started=started)
            self._explicit = self.told = True
            self._chosen = new.solution if solution else None
            self._offered, self.issues = None, ()
            self._serve(new)
            hopeless = None if new.resolved else initialized(new, tool_count=0, connected=False, degraded=True)
            return self._decided(due, hopeless)

    def select(self, solution: str, *, started: bool, force_restart: bool = False) -> Decision:
        """uno_app_select_solution."""
        from .tool_results import selected, selection_rejected

        with self._lock:
            problem = _wrong_solution(solution) or (None if self.told else _nothing_told())
            if problem:
                return self._decided(Transition.REFRESH, selection_rejected(problem))
            # Searched again: it may have been created a moment ago.
            here = resolve(self.workspace.requested_directory, explicit=self._explicit)
            new = select_solution(here, solution)
            if not new.resolved and self._offered is not None:
                there = select_solution(self._offered, solution)
                new = there if there.resolved else new
            if not new.resolved:
                return self._decided(Transition.REFRESH, selection_rejected(*new.issues))
            due = self._transition(new, Trigger.USER, started=started, force_restart=force_restart)
            self._chosen = new.solution
            self._offered, self.issues = None, ()
            self._serve(new)
            return self._decided(due, selected(new, due))

    def _look(self, directory: str, *, explicit: bool) -> Workspace:
        """The workspace of a folder, with the user's choice as long as it can be had."""
        found = resolve(directory, explicit=explicit)
        if self._chosen is None:
            return found
        chosen = select_solution(found, self._chosen)
        return chosen if chosen.resolved else found

    def _named(self, answer: object) -> Workspace | None:
        """Of the client's roots: what is served already, else the first workspace, else the first folder."""
        from .client_roots import (
            read_roots,  # with it comes asyncio, and the first start of a Host does not wait for that
        )

        named = read_roots(answer, absolute("."))
        folders = [path for path in named.paths if os.path.isdir(path)]
        missing = [
            f"The client's root {path} is no folder on this machine." for path in named.paths if path not in folders
        ]
        for problem in (*named.problems, *missing):
            log.warn(problem)
        found = [self._look(folder, explicit=False) for folder in folders]
        if any(self._confirms(workspace) for workspace in found):
            return self.workspace
        useful = [workspace for workspace in found if workspace.resolved]
        first = next(iter((*useful, *found)), None)
        return first and first.replace(source=SelectionSource.RootsConfirmed)

    def _confirms(self, root: Workspace) -> bool:
        """Whether a root means what is served, or holds it among other solutions."""
        served = self._identity
        return served is not None and (
            _identity(root) == served or served.solution in [_key(candidate) for candidate in root.candidates]
        )

    def _transition(
        self, new: Workspace, trigger: Trigger, *, started: bool, force_restart: bool = False
    ) -> Transition:
        return transition(self._identity, _identity(new), trigger, started=started, force_restart=force_restart)

    def _serve(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._identity = _identity(workspace)
        if self._offered is not None and self._identity == _identity(self._offered):
            self._offered, self.issues = None, ()

    def _decided(self, due: Transition, result: dict[str, Any] | None = None) -> Decision:
        return Decision(due, self.workspace, self.issues, result)


def _identity(workspace: Workspace) -> Identity | None:
    """By real paths: clients name a folder through links, and macOS has its temporary files behind one."""
    if not workspace.resolved:
        return None
    sdk = read_global_json(workspace.global_json).uno_sdk if workspace.global_json else None
    solution, global_json = (path and _key(path) for path in (workspace.solution, workspace.global_json))
    return Identity(_key(workspace.working_directory), solution, global_json, sdk)


def _key(path: str) -> str:
    return path_key(os.path.realpath(path))


def _elsewhere(named: Workspace, served: Workspace) -> Issue:
    place = served.solution or served.working_directory
    if named.resolved:
        message = f"The client's root {named.requested_directory} is another workspace than the one served, {place}."
        choice = f"Call uno_app_select_solution with {named.solution}" if named.solution else "Start the client there"
        return warning("RootsElsewhere", message, f"{choice}, if that is the one you mean.")
    message = f"The client's root {named.requested_directory} is no workspace; {place} is served."
    return warning("RootsElsewhere", message)


def _wrong_directory(directory: str) -> Issue | None:
    if not os.path.isabs(directory):
        return _unusable(f"'{directory}' is no absolute path.", "Name the workspace's folder by its absolute path.")
    if not os.path.isdir(directory):
        return _unusable(f"There is no folder {directory}.", "Name a folder that exists.")
    return None


def _wrong_solution(solution: str) -> Issue | None:
    if not os.path.isabs(solution):
        return _unusable(f"'{solution}' is no absolute path.", "Name the solution by its absolute path.")
    return None


def _nothing_told() -> Issue:
    return _unusable("The workspace is not known yet.", "Call uno_app_initialize with its directory first.")


def _unusable(message: str, remedy: str) -> Issue:
    return warning("WorkspaceNotResolved", message, remedy)


def _not_looked_at(directory: str) -> Workspace:
    source = SelectionSource.Automatic
    return Workspace(directory, directory, None, None, None, ResolutionKind.NoCandidates, source, (), None, ())
