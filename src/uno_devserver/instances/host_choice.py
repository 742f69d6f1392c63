"""Which Host a workspace gets, and which add-ins it is told to load.

The workspace's own .NET Host where there is one and .NET to run it, else the bundled Host. Discovery is asked only
for what is not known without it, because it takes as long as starting a Host.
"""

from __future__ import annotations

import os

from ..issues import Issue, UserError, warning
from ..system.folders import folders
from ..system.run import find_program
from ..system.values import Value
from .host_command import NO_ADDINS, ProgramKind, addins_value, bundled_host, dotnet_host, host_at
from .membership import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..discovery.discover import AddInDiscovery, Discovery, Request
    from ..workspace.resolver import Workspace
    from .host_command import HostProgram


class Plan(Value):
    """What to launch, before anything is launched."""

    program: HostProgram
    addins: str | None  # the value of --addins; None lets the Host discover them itself
    issues: tuple[Issue, ...] = ()  # what the user should know; nothing here prevents the launch


class Wanted(Value):
    """What the user said about it."""

    host: str | None = None  # bundled, dotnet, or a path
    addins: str | None = None  # the value of --addins
    force_msbuild: bool = False  # MSBuild knows better than that value
    trusted: bool = True  # the workspace's own code may run: its Python add-ins, its packages, and its build


def plan(wanted: Wanted, workspace: Workspace, environ: Mapping[str, str]) -> Plan:
    """UserError when the Host that was asked for cannot be had."""
    return _Planner(wanted, workspace, environ).plan()


class _Planner:
    def __init__(self, wanted: Wanted, workspace: Workspace, environ: Mapping[str, str]) -> None:
        self._wanted = wanted
        self._workspace = workspace
        self._environ = environ
        self._discovery: Discovery | None = None
        self._issues: list[Issue] = []

    def plan(self) -> Plan:
        program = self._program()
        named = None if self._wanted.force_msbuild else self._wanted.addins
        addins = self._addins(program.kind) if named is None else (named.strip() and named) or NO_ADDINS
        return Plan(program, addins, tuple(dict.fromkeys(self._issues)))

    def _program(self) -> HostProgram:
        if self._wanted.host is None:
            return self._best()
        if self._wanted.host.lower() == ProgramKind.BUNDLED.value:
            return bundled_host()
        if self._wanted.host.lower() == ProgramKind.DOTNET.value:
            return self._dotnet() or self._no_dotnet_host()
        return host_at(self._wanted.host, self._environ)

    def _best(self) -> HostProgram:
        if self._workspace.global_json is None:
            return bundled_host()  # nothing here says that it is about Uno
        if find_program("dotnet", self._environ) is None:
            message = "No 'dotnet' was found in the folders of PATH, so the bundled Host is used."
            self._issues.append(warning("DotNetNotFound", message))
            return bundled_host()
        return self._dotnet() or bundled_host()

    def _dotnet(self) -> HostProgram | None:
        found = self._discover()
        if found.host.program is None or not self._may_run(found.host.program):
            return None
        return dotnet_host(found.host.program, self._environ, roll_forward=found.host_requires_major_roll_forward)

    def _no_dotnet_host(self) -> HostProgram:
        issues = [issue for issue in self._discover().issues if issue.fatal] or list(self._workspace.issues)
        reasons = " ".join(issue.message for issue in issues) or "This is no Uno workspace."
        next_step = issues[0].remediation if issues else "Use --host bundled, or go to an Uno workspace."
        raise UserError("HostBinaryNotFound", f"The workspace has no .NET Host. {reasons}", next_step)

    def _discover(self) -> Discovery:
        if self._discovery is None:
            from ..discovery.discover import discover

            self._discovery = discover(self._request(), self._environ)
            self._issues += self._discovery.issues
        return self._discovery

    def _request(self) -> Request:
        from ..discovery.discover import Request

        place = self._workspace
        return Request(place.requested_directory, force_msbuild=self._wanted.force_msbuild, workspace=place)

    def _addins(self, kind: ProgramKind) -> str | None:
        assemblies = self._assemblies()
        scripts = _python_addins(self._workspace.working_directory) if self._wanted.trusted else []
        paths = [addin.path for addin in assemblies.found if self._may_run(addin.path)] if assemblies else []
        if kind is ProgramKind.BUNDLED:
            paths = [*scripts, *paths]
        elif scripts:
            names = ", ".join(os.path.basename(path) for path in scripts)
            message = f"The workspace's Python add-ins are not loaded by a .NET Host: {names}."
            self._issues.append(warning("AddInNeedsBundledHost", message))
        if not paths and kind is not ProgramKind.BUNDLED and not (assemblies and _is_certain(assemblies)):
            return self._left_to_msbuild()
        value, lost = addins_value(list(dict.fromkeys(paths)), self._workspace.working_directory)
        for path in lost:
            message = f"The add-in {path} cannot be named to the Host: its path has a semicolon."
            self._issues.append(warning("AddInPathUnusable", message))
        return value

    def _may_run(self, path: str) -> bool:
        """What the user has restored may. A workspace can name package folders, too, and bring them along."""
        if self._wanted.trusted:
            return True
        from ..discovery.nuget import users_folders

        place = os.path.realpath(path)
        if any(is_inside(place, location) for location in users_folders(self._environ, folders(self._environ))):
            return True
        message = f"{path} is not run: it lies in no package folder of the user, who has not agreed to it."
        self._issues.append(warning("WorkspaceNotTrusted", message))
        return False

    def _left_to_msbuild(self) -> str | None:
        """Nobody knows the add-ins. A Host that is told none asks MSBuild, which runs the workspace's build."""
        if self._wanted.trusted:
            return None
        place = self._workspace.working_directory
        message = f"Only MSBuild could tell the add-ins of {place}, by running its build: the user has not agreed."
        self._issues.append(warning("WorkspaceNotTrusted", message))
        return NO_ADDINS

    def _assemblies(self) -> AddInDiscovery | None:
        if self._discovery is not None:
            return self._discovery.addins
        if self._workspace.global_json is None and not self._wanted.force_msbuild:
            return None
        from ..discovery.discover import discover_addins

        found = discover_addins(self._request(), self._environ)
        self._issues += found.issues
        return found


def _is_certain(addins: AddInDiscovery) -> bool:
    """Whether "none" is the answer, and not the lack of one."""
    return addins.possible and not addins.failed


def _python_addins(directory: str) -> list[str]:
    from ..workspace.addins import workspace_addins

    return workspace_addins(directory)
