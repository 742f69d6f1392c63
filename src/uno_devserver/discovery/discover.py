"""Discovers what a workspace uses (Uno SDK, Host, Settings application, add-ins, .NET SDK) by reading the disk.

Discovery returns a result in every case. A part that is missing is None, and an issue says what to do about it.
"""

from __future__ import annotations

import os
import time

from ..issues import Issue, Severity, fatal, warning
from ..system.folders import folders as special_folders
from ..system.values import Value
from ..workspace.global_json import find_global_json, read_global_json
from ..workspace.resolver import resolve
from ..workspace.solutions import project_files
from .addin_search import HOST_PACKAGE, AddInSearch
from .entry_points import AddInDiscovery
from .fallback import MSBuild, apply_fallbacks
from .last_known_good import LastKnownGood
from .nuget import package_folders
from .nuget_version import parse_version
from .packages import SdkPackages, read_sdk_packages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..system.folders import Folders
    from ..workspace.global_json import GlobalJson
    from ..workspace.resolver import Workspace
    from .addin_search import AddInSearchResult
    from .dotnet import DotNet
    from .nuget import PackageFolders

SETTINGS_PACKAGE = "uno.settings.devserver"
SETTINGS_PROGRAM = ("tools", "manager", "Uno.Settings.dll")


class DiscoveryRequest(Value):
    directory: str
    explicit: bool = False  # the user named the directory
    solution: str | None = None  # the solution to use if there are several
    force: bool = False  # ask dotnet again
    force_msbuild: bool = False
    workspace: Workspace | None = None  # the workspace of the directory, if it was resolved before
    trusted: bool = False  # whether the workspace's code may run although no agreement to it is stored


class SdkInfo(Value):
    """The Uno SDK of a workspace; each part may be missing."""

    global_json: GlobalJson | None = None
    path: str | None = None
    packages: SdkPackages = SdkPackages()
    issues: tuple[Issue, ...] = ()


class ToolPackage(Value):
    """A package that contains a program; `version` comes from the package list."""

    version: str | None = None
    folder: str | None = None
    program: str | None = None


class Discovery(Value):
    workspace: Workspace
    sdk: SdkInfo
    dotnet: DotNet | None
    host: ToolPackage
    host_requires_major_roll_forward: bool
    settings: ToolPackage
    addins: AddInDiscovery
    package_locations: tuple[str, ...]
    duration_ms: int
    issues: tuple[Issue, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        """The messages of the problems that prevent a dev server; none for a folder without solutions."""
        own = tuple(issue.message for issue in self.issues if issue.fatal)
        if self.workspace.resolved or not self.workspace.candidates:
            return own
        return tuple(dict.fromkeys((*(issue.message for issue in self.workspace.issues), *own)))

    @property
    def warnings(self) -> tuple[str, ...]:
        errors = self.errors
        return tuple(issue.message for issue in self.issues if not issue.fatal and issue.message not in errors)


def discover(request: DiscoveryRequest, environ: Mapping[str, str]) -> Discovery:
    """Discovers everything; `discover_addins` is the part that launchers need."""
    started = time.perf_counter()
    session = _Session(request, environ)
    if not session.workspace.resolved:
        return _unresolved(session, _milliseconds_since(started))
    addins = session.addins()
    host, roll_forward = session.host()
    settings = session.settings()
    dotnet = session.dotnet()
    missing = (dotnet.issue,) if dotnet.issue and session.needs_dotnet else ()  # first: nothing is restored without it
    packages = (*session.sdk.issues, *session.issues, *addins.issues)
    if dotnet.absent:  # the bundled Host serves, which needs none of these
        packages = tuple(issue.replace(severity=Severity.WARNING) for issue in packages)
    issues = (*session.workspace.issues, *missing, *packages)
    return Discovery(
        session.workspace,
        session.sdk,
        dotnet,
        host,
        roll_forward,
        settings,
        addins,
        session.folders.locations,
        _milliseconds_since(started),
        tuple(dict.fromkeys(issues)),
    )


def empty_discovery(workspace: Workspace) -> Discovery:
    """The result for a workspace that has not been searched yet."""
    no_tool = ToolPackage()
    return Discovery(workspace, SdkInfo(), None, no_tool, False, no_tool, AddInDiscovery(), (), 0, workspace.issues)


def _unresolved(session: _Session, duration_ms: int) -> Discovery:
    """The result for a folder that is not a workspace: only the reasons."""
    issues = (*session.workspace.issues, *session.folders.issues)
    locations = session.folders.locations
    return empty_discovery(session.workspace).replace(
        package_locations=locations, duration_ms=duration_ms, issues=issues
    )


def discover_addins(request: DiscoveryRequest, environ: Mapping[str, str]) -> AddInDiscovery:
    """Discovers only the add-ins, without the .NET SDK and the Host."""
    session = _Session(request, environ)
    if not os.path.isdir(request.directory):  # otherwise the global.json of a parent folder would be used
        return AddInDiscovery(issues=session.workspace.issues)
    found = session.addins()
    return found.replace(issues=(*session.workspace.issues, *session.sdk.issues, *session.issues, *found.issues))


class _Session:
    """One discovery, with the values that its steps share."""

    def __init__(self, request: DiscoveryRequest, environ: Mapping[str, str]) -> None:
        self.request = request
        self.environ = dict(environ)  # `os.environ` decodes each value whenever it is read
        self.special: Folders = special_folders(environ)
        self.workspace = self._workspace()
        self.directory = self.workspace.working_directory
        self.folders: PackageFolders = package_folders(self.directory, environ, self.special)
        self.sdk = self._sdk()
        self.issues: list[Issue] = [*self.folders.issues]
        self._addins: AddInSearchResult | None = None
        self._dotnet: DotNet | None = None

    @property
    def needs_dotnet(self) -> bool:
        """Whether .NET and the Uno SDK are expected; a workspace with only a config or add-ins needs neither."""
        return self.workspace.global_json is not None

    def _workspace(self) -> Workspace:
        if self.request.workspace is not None:
            return self.request.workspace
        return resolve(self.request.directory, explicit=self.request.explicit, solution=self.request.solution)

    def _sdk(self) -> SdkInfo:
        path = self.workspace.global_json or find_global_json(self.directory)
        if path is None:
            return SdkInfo()
        global_json = read_global_json(path)
        if global_json.uno_sdk is None:
            return SdkInfo(global_json)  # the workspace has the issue
        name, version = global_json.uno_sdk.package, global_json.uno_sdk.version
        folder = self.folders.find(name, version)
        if folder is None:
            reason = _not_exact(path, name, version) or (self._not_found(name, version), "")
            return SdkInfo(global_json, issues=(fatal("SdkNotInCache", *reason),))
        packages = read_sdk_packages(folder)
        return SdkInfo(global_json, folder, packages, (packages.issue,) if packages.issue else ())

    def addins(self) -> AddInDiscovery:
        started = time.perf_counter()
        projects = project_files(self.workspace)
        document = self.sdk.global_json.document if self.sdk.global_json else None
        search = AddInSearch(
            self.directory, self.workspace.solution, self.folders, _sdk_versions(document), self.environ
        )
        self._addins = search.run(projects.paths, self.sdk.packages.packages, lambda: self.dotnet().tfm)
        self.folders = search.folders
        uno_sdk = self.sdk.global_json.uno_sdk if self.sdk.global_json else None
        msbuild = MSBuild(
            self.workspace.solution or next(iter((*self.workspace.candidates, *projects.paths)), None),
            self._addins.projects,
            lambda: self.host()[0].program,
            os.path.join(self.special.state, "msbuild"),
            self.environ,
        )
        if self.request.force_msbuild:
            outcome = msbuild.ask()
        else:
            outcome = apply_fallbacks(
                self._addins,
                readable=self.sdk.packages.readable,
                expected=uno_sdk is not None,
                known_good=LastKnownGood(
                    self.special.state, self.directory, f"{uno_sdk.package}/{uno_sdk.version}" if uno_sdk else ""
                ),
                msbuild=msbuild,
                trusted=self._is_trusted,
            )
        unreadable = self.sdk.packages.path is not None and not self.sdk.packages.readable
        return outcome.replace(
            failed=outcome.failed or unreadable,
            possible=bool(outcome.found) or self.sdk.packages.readable,
            duration_ms=_milliseconds_since(started),
            issues=(*projects.issues, *self._addins.issues, *outcome.issues),
        )

    def _is_trusted(self) -> bool:
        from ..workspace.trust import is_trusted  # imported here because few workspaces need a fallback

        return self.request.trusted or is_trusted(self.environ, self.directory)

    def dotnet(self) -> DotNet:
        if self._dotnet is None:
            from .dotnet import resolve_dotnet

            cache = os.path.join(self.special.state, "dotnet-version-cache.json")
            self._dotnet = resolve_dotnet(
                self.directory, self.environ, cache_path=cache, force=self.request.force, trusted=self.request.trusted
            )
        return self._dotnet

    def host(self) -> tuple[ToolPackage, bool]:
        """The .NET Host of the workspace, and whether it must roll forward to another major runtime version."""
        from .dotnet import installed_runtimes
        from .host_binary import find_host

        tool = self._tool(HOST_PACKAGE, fatal, "DevServerPackageNotCached")
        tfm = self.dotnet().tfm
        if tool.folder is None or tfm is None:
            return tool, False
        found = find_host(tool.folder, tfm, lambda: installed_runtimes(self.directory, self.environ))
        if isinstance(found, Issue):
            self.issues.append(found)
            return tool, False
        return tool.replace(program=found.path), found.requires_major_roll_forward

    def settings(self) -> ToolPackage:
        tool = self._tool(SETTINGS_PACKAGE, warning, "AddInPackageNotCached")
        if tool.folder is None:
            return tool
        program = os.path.join(tool.folder, *SETTINGS_PROGRAM)
        if not os.path.isfile(program):
            message = f"The Settings application is missing from its package: {program}."
            self.issues.append(warning("AddInBinaryNotFound", message))
            return tool
        return tool.replace(program=program)

    def _tool(self, name: str, severity: Callable[[str, str], Issue], code: str) -> ToolPackage:
        package = self._addins.packages.get(name) if self._addins else None
        if package is None:
            if self.sdk.packages.readable:
                self.issues.append(severity(code, f"{name} version not found in packages.json of the Uno SDK."))
            return ToolPackage()
        overridden = package.overridden()
        self.issues += [overridden] if overridden else []
        folder = self.folders.find(package.name, package.version)
        if folder is None:
            self.issues.append(severity(code, self._not_found(package.name, package.version)))
        return ToolPackage(package.version, folder)

    def _not_found(self, name: str, version: str) -> str:
        return f"{name} {version} was not found in package folders: {', '.join(self.folders.locations)}."


def _not_exact(path: str, name: str, version: str) -> tuple[str, str] | None:
    """Message and next step for a version that no restore can make an SDK of: a floating one, or a typing error."""
    if parse_version(version) is not None:
        return None
    message = f"{path} names {name} {version}, which is no valid version: MSBuild finds a project SDK by an exact one."
    return message, f'Write the exact version into the file, as in "{name}": "6.5.31", then run \'dotnet restore\'.'


def _sdk_versions(document: object) -> dict[str, str]:
    """The versions of project SDKs that global.json pins."""
    pinned = document.get("msbuild-sdks") if isinstance(document, dict) else None
    items = pinned.items() if isinstance(pinned, dict) else ()
    return {name: version for name, version in items if isinstance(version, str)}


def _milliseconds_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)
