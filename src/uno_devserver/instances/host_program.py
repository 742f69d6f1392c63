"""Decide which Host program a workspace gets, which add-ins it is told to load, and its command line.

The program is the workspace's own .NET Host if there is one and .NET can run it, else the bundled Host. Discovery takes
as long as starting a Host, so it is used only if the decision depends on it.
"""

from __future__ import annotations

import os
import sys

from ..issues import Issue, UserError, needs_bundled_host, warning
from ..system.folders import folders
from ..system.programs import find_program
from ..system.values import Value
from ..workspace.addins import workspace_addins
from ..workspace.paths import is_inside
from .host_kind import HostKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..discovery.discover import Discovery, DiscoveryRequest
    from ..discovery.entry_points import AddInDiscovery
    from .launch import StartRequest
    from .probe import Probe
    from .registry import RegisteredServer


# Means "no add-ins". .NET launchers that build one string lose an empty value, and the Host would then ask MSBuild.
NO_ADDINS = ";"
FORCE_MSBUILD = "--force-msbuild-discovery"
# Lets a Host that was built for an older .NET run on the next major version.
ROLL_FORWARD = ("DOTNET_ROLL_FORWARD", "Major")


class HostProgram(Value):
    kind: HostKind | None  # None if the user named a path, so that the kind is not known
    command: tuple[str, ...]  # everything before the Host's own arguments; the program by its full path
    environment: tuple[tuple[str, str], ...] = ()  # in addition to our variables


class LaunchPlan(Value):
    """The Host that will be launched, and its add-ins."""

    program: HostProgram
    addins: str | None  # the value of --addins; None if the Host discovers its add-ins itself
    issues: tuple[Issue, ...] = ()  # for the user; none of them prevents the launch
    trusted: bool = True  # whether the workspace's own code may run: its Python add-ins, packages and build


def plan_launch(request: StartRequest, environ: Mapping[str, str]) -> LaunchPlan:
    """Decide what to launch; raises UserError if the requested Host cannot be used."""
    return _Planner(request, environ).plan()


class _Planner:
    def __init__(self, request: StartRequest, environ: Mapping[str, str]) -> None:
        self._request = request
        self._workspace = request.workspace
        self._environ = environ
        self._trusted = request.trusted or _is_trusted(request.folder, environ)
        self._discovery: Discovery | None = None
        self._issues: list[Issue] = []

    def plan(self) -> LaunchPlan:
        if not self._trusted and not self._request.by_user and any(map(_asks_msbuild, self._request.forwarded)):
            from ..workspace.trust import AGREE

            message = (
                f"{FORCE_MSBUILD} would run the build of {self._request.folder}, to which the user has not agreed."
            )
            raise UserError("WorkspaceNotTrusted", message, f"Leave it out, or let the user run {AGREE}.")
        program = self._program()
        named = None if self._request.force_msbuild else self._request.addins
        addins = self._addins(program.kind) if named is None else (named.strip() and named) or NO_ADDINS
        return LaunchPlan(program, addins, tuple(dict.fromkeys(self._issues)), self._trusted)

    def _program(self) -> HostProgram:
        if self._request.host is None:
            return self._best()
        kind = HostKind.named(self._request.host)
        if kind is HostKind.BUNDLED:
            return bundled_host()
        if kind is HostKind.DOTNET:
            return self._dotnet() or self._no_dotnet_host()
        return host_at(self._request.host, self._environ)

    def _best(self) -> HostProgram:
        if self._workspace.global_json is None:
            return bundled_host()  # the folder is not an Uno workspace
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
        found = self._discover()
        if found.dotnet is not None and found.dotnet.absent and found.dotnet.issue is not None:
            issues = [found.dotnet.issue]
        else:
            issues = [issue for issue in found.issues if issue.fatal] or list(self._workspace.issues)
        reasons = " ".join(issue.message for issue in issues) or "This is no Uno workspace."
        next_step = issues[0].remediation if issues else "Use --host bundled, or go to an Uno workspace."
        raise UserError("HostBinaryNotFound", f"The workspace has no .NET Host. {reasons}", next_step)

    def _discover(self) -> Discovery:
        if self._discovery is None:
            from ..discovery.discover import discover

            self._discovery = discover(self._discovery_request(), self._environ)
            self._issues += self._discovery.issues
        return self._discovery

    def _discovery_request(self) -> DiscoveryRequest:
        from ..discovery.discover import DiscoveryRequest

        workspace = self._workspace
        return DiscoveryRequest(
            workspace.requested_directory,
            force_msbuild=self._request.force_msbuild,
            workspace=workspace,
            trusted=self._trusted,
        )

    def _addins(self, kind: HostKind | None) -> str | None:
        assemblies = self._assemblies()
        scripts = workspace_addins(self._workspace.working_directory) if self._trusted else []
        paths = list(filter(self._may_run, assemblies.for_host)) if assemblies else []
        if kind is HostKind.BUNDLED:
            paths = [*scripts, *paths]
        elif scripts:
            self._issues.append(needs_bundled_host(scripts))
        if not paths and kind is not HostKind.BUNDLED and not (assemblies and _is_certain(assemblies)):
            return self._left_to_msbuild()
        value, lost = addins_value(list(dict.fromkeys(paths)), self._workspace.working_directory)
        for path in lost:
            message = f"The add-in {path} cannot be named to the Host: its path has a semicolon."
            self._issues.append(warning("AddInPathUnusable", message))
        return value

    def _may_run(self, path: str) -> bool:
        """Whether the Host or add-in may run: without trust, only if it is in a package folder of the user."""
        if self._trusted or is_of_the_user(path, self._environ):
            return True
        from ..workspace.trust import NOT_AGREED, not_run

        self._issues.append(not_run(path, f"it lies in no package folder of the user, and {NOT_AGREED}"))
        return False

    def _left_to_msbuild(self) -> str | None:
        """The value of --addins if discovery failed: without one the Host asks MSBuild, which the user must want."""
        if self._trusted or self._request.force_msbuild:
            return None
        from ..workspace.trust import not_run

        place = self._workspace.working_directory
        self._issues.append(not_run(f"The build of {place}, which is needed to find its add-ins,"))
        return NO_ADDINS

    def _assemblies(self) -> AddInDiscovery | None:
        if self._discovery is not None:
            return self._discovery.addins
        if self._workspace.global_json is None and not self._request.force_msbuild:
            return None
        from ..discovery.discover import discover_addins

        found = discover_addins(self._discovery_request(), self._environ)
        # Without .NET, what is missing could not be loaded anyway; that .NET is missing is an issue of its own.
        if found.found or find_program("dotnet", self._environ) is not None:
            self._issues += found.issues
        return found


def restored_since(
    server: RegisteredServer, host: Probe, discovery: Discovery, environ: Mapping[str, str]
) -> list[str]:
    """The packages whose .NET add-ins a running bundled Host was not told, because they were not there at its start.

    There are none if somebody has chosen what this Host loads, or if it has died with its add-ins.
    """
    if _is_chosen(server):
        return []
    trusted = _is_trusted(discovery.workspace.working_directory, environ)
    may_run = [path for path in discovery.addins.for_host if trusted or is_of_the_user(path, environ)]
    missing = host.lacks(may_run)
    return list(dict.fromkeys(addin.package for addin in discovery.addins.found if addin.path in missing))


def written_since(server: RegisteredServer, host: Probe, folder: str, environ: Mapping[str, str]) -> list[str]:
    """The Python add-ins of a workspace that a running bundled Host was not told, because they came after its start.

    There are none if somebody has chosen what this Host loads, or if the user has not agreed to them.
    """
    if _is_chosen(server) or not host.connected or not (missing := host.lacks(workspace_addins(folder))):
        return []
    return missing if _is_trusted(folder, environ) else []


def not_told(addins: Sequence[str], remediation: str = "") -> Issue:
    """The issue that a Host runs without these Python add-ins."""
    return warning("AddInNotLoaded", f"The Host was started without {', '.join(addins)}.", remediation)


def _is_chosen(server: RegisteredServer) -> bool:
    """Whether a launcher, or the death of the Host before, has decided what it loads, and not the workspace."""
    return server.names_addins or server.left_out is not None or server.log_file is None


def is_of_the_user(path: str, environ: Mapping[str, str]) -> bool:
    """Whether the file is in a package folder of the user, and so needs no agreement to run.

    A link in another folder to such a file is not: .NET reads other files beside the path that it is given.
    """
    from ..discovery.nuget import users_folders

    places = (os.path.dirname(path), os.path.realpath(path))
    locations = users_folders(environ, folders(environ))
    return any(all(is_inside(place, location) for place in places) for location in locations)


def _asks_msbuild(argument: str) -> bool:
    """Whether the Host would run MSBuild because of this argument, in any of the forms that .NET has for flags."""
    return argument.lstrip("-/").partition("=")[0].lower() == FORCE_MSBUILD.lstrip("-")


def _is_certain(addins: AddInDiscovery) -> bool:
    """Whether the discovery is complete, so that finding no add-ins means that there are none."""
    return addins.possible and not addins.failed


def _is_trusted(folder: str, environ: Mapping[str, str]) -> bool:
    from ..workspace.trust import is_trusted

    return is_trusted(environ, folder)


def bundled_host() -> HostProgram:
    # -P, because the current folder is the workspace, and its modules must not replace ours.
    return HostProgram(HostKind.BUNDLED, (sys.executable, "-P", "-m", "uno_devserver.host"))


def dotnet_host(path: str, environ: Mapping[str, str], *, roll_forward: bool) -> HostProgram:
    extra = (ROLL_FORWARD,) if roll_forward else ()
    return HostProgram(HostKind.DOTNET, _run_by(path, environ), extra)


def host_at(path: str, environ: Mapping[str, str]) -> HostProgram:
    """The Host that the user named; raises UserError if it does not exist, or needs .NET and there is none."""
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        next_step = "Name a Host that exists, or use --host bundled or --host dotnet."
        raise UserError("HostBinaryNotFound", f"There is no Host at {path}.", next_step)
    return HostProgram(None, _run_by(path, environ))


def _run_by(path: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    if not path.lower().endswith(".dll"):
        return (path,)
    dotnet = find_program("dotnet", environ)
    if dotnet is None:
        message = f"{path} needs .NET to run, and no 'dotnet' was found in the folders of PATH."
        next_step = "Install the .NET SDK, or use --host bundled."
        raise UserError("DotNetNotFound", message, next_step)
    return (dotnet, path)


def command_line(program: HostProgram, request: StartRequest, port: int, addins: str | None) -> list[str]:
    """The command line of the Host, in the order that all launchers use."""
    line = [*program.command, "--httpPort", str(port)]
    named = (
        ("--ppid", None if request.parent is None else str(request.parent)),
        ("--solution", request.solution),
        ("--ideChannel", request.ide_channel),
        ("--addins", addins),
        ("--workingDir", request.folder if program.kind is HostKind.BUNDLED else None),
    )
    for flag, value in named:
        line += [] if value is None else [flag, value]
    return [*line, *request.forwarded]


def addins_value(paths: Sequence[str], workspace: str) -> tuple[str, tuple[str, ...]]:
    """The value of --addins, and the paths that it cannot contain.

    The flag cannot contain a path with a semicolon. The Host runs in the workspace's folder, so if only the name of the
    workspace has a semicolon, the relative path is used.
    """
    spellings = {path: _spelling(path, workspace) for path in paths}
    written = [spelling for spelling in spellings.values() if spelling is not None]
    return ";".join(written) or NO_ADDINS, tuple(path for path, spelling in spellings.items() if spelling is None)


def _spelling(path: str, workspace: str) -> str | None:
    if ";" not in path:
        return path
    try:
        relative = os.path.relpath(path, workspace)
    except ValueError:  # the path is on another drive
        return None
    return None if ";" in relative else relative


def addin_paths(value: str | None) -> tuple[str, ...]:
    """The paths in a value of --addins, as a Host reads it."""
    return tuple(path.strip() for path in (value or "").split(";") if path.strip())
