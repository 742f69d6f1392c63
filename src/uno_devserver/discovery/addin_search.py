"""Finds the add-ins of a workspace: those that restored projects import, and those in packages of the Uno SDK.

A package that was restored is used in its restored version. Packages that only the SDK lists are searched by
convention. An entry point must be a file that is not empty; an issue reports each one that is left out, and why.
"""

from __future__ import annotations

import os
from itertools import chain

from ..issues import Issue, listed, warning
from ..msbuild.problems import EvaluationProblem
from ..msbuild.project_files import ProjectFileCache
from ..system.files import FileProblem
from ..system.jsonc import JsonProblem
from ..system.values import Value
from ..workspace.paths import is_below
from .entry_points import (
    ADDIN_ITEM,
    EntryPoint,
    build_files,
    declared_addins,
    deprecated_targets,
    excluded_build_files,
    invalid_targets,
    search_package,
    undeclared_entry_point,
    verify_entry_points,
)
from .import_filter import ImportFilter
from .manifest import MANIFEST_NAME, read_manifest
from .nuget import PackageFolders
from .packages import merge_packages
from .project_info import ProjectInfo, framework_properties, known_properties, read_project, sdk_defaults
from .restore import RestoredPackage, from_assets, read_restored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .entry_points import DiscoveredAddIn
    from .packages import SdkPackage, WorkspacePackage
    from .restore import PackageImports, Restored

HOST_PACKAGE = "uno.winui.devserver"
SDK_FAMILIES = {"microsoft", "system", "nuget", "msbuild", "net", "netstandard", "target"}  # first words that SDKs use


class AddInSearchResult(Value):
    found: tuple[DiscoveredAddIn, ...]
    declined: frozenset[str]  # names, in lower case, of packages and files whose conditions all say no
    packages: Mapping[str, WorkspacePackage]  # by name in lower case
    listed: tuple[tuple[str, str], ...]  # name and version of every package that was considered
    projects: tuple[tuple[str, tuple[str, ...]], ...]  # with their target frameworks
    issues: tuple[Issue, ...]


class AddInSearch:
    """One search through a workspace; `run` performs it."""

    def __init__(
        self,
        directory: str,
        solution: str | None,
        folders: PackageFolders,
        sdk_versions: Mapping[str, str],
        environ: Mapping[str, str],
    ) -> None:
        self.directory = directory
        self.solution = solution
        self.folders = folders
        self.sdk_versions = sdk_versions  # the versions of project SDKs that global.json pins
        self.environ = environ
        self.issues: list[Issue] = []
        self._excluded: set[str] = set()  # names, in lower case, of packages restored without their build files
        self._undecided: dict[str, tuple[str, ...]] = {}  # expressions that only a build can decide, by file
        self._load = ProjectFileCache()
        self._filter = ImportFilter(ADDIN_ITEM)

    def run(
        self,
        project_files: Iterable[str],
        sdk_packages: Iterable[SdkPackage],
        default_framework: Callable[[], str | None],
    ) -> AddInSearchResult:
        projects = [read_project(path, self._load, self.environ) for path in project_files]
        frameworks_of = tuple((project.path, project.frameworks) for project in projects)
        restored = [read_restored(project, self.folders, self._load, self.environ) for project in projects]
        self._report(projects, restored)
        for project, one in self._workspace_assets(projects):
            projects.append(project)
            restored.append(one)
        restored = [self._located(one, project) for project, one in zip(projects, restored, strict=True)]
        self.folders = self.folders.with_locations(location for one in restored for location in one.folders)

        known = list(dict.fromkeys(package for one in restored for package in one.packages))
        known += self._manifest_only([p for p, one in zip(projects, restored, strict=True) if one.found], known)
        frameworks = [framework for project in projects for framework in project.frameworks]
        packages = merge_packages(sdk_packages, restored, frameworks, default_framework)
        host_version = packages[HOST_PACKAGE].version if HOST_PACKAGE in packages else None

        declared = self._by_manifest(known, host_version)
        imported = self._by_imports(projects, restored)
        found = self._combined(declared, imported)
        searched = [package for one in restored for package in one.to_search]
        folders = {package.folder for package in searched}  # `_by_convention` reports these
        self._report_undeclared([p for p in known if p.folder not in folders], declared, imported, restored)
        found += self._by_convention(packages.values(), searched, host_version)
        listed = [*((p.name, p.version) for p in packages.values()), *(pair for one in restored for pair in one.listed)]
        addins = verify_entry_points(found, packages, self.folders, self.issues)
        addins = self._one_version_each(addins, projects, restored)
        self._report_undecided(found)
        declined = frozenset() if addins else self._declined(projects, restored, imported)
        issues = tuple(dict.fromkeys(self.issues))
        return AddInSearchResult(addins, declined, packages, tuple(listed), frameworks_of, issues)

    def _declined(
        self, projects: Iterable[ProjectInfo], restored: Iterable[Restored], imported: Iterable[EntryPoint]
    ) -> frozenset[str]:
        """The packages and files that were read, and declare add-ins that no project takes."""
        own = {file for project in projects for file in (*project.own_files, *chain(*self._sdk_files(project)))}
        said_no, doubtful = set(self._excluded), {self._declarer(candidate.defined_in) for candidate in imported}
        for file in filter(self._declares, own.union(_package_files(restored))):
            files = (file, *self._filter.mentioning(file))
            unread = any(each in self._undecided or not self._is_valid(each) for each in files)
            (doubtful if unread else said_no).update(map(self._declarer, files))
        return frozenset(said_no - doubtful)

    def _declarer(self, file: str) -> str:
        """The name of a file's package, otherwise of the file, as found add-ins have it; in lower case."""
        owner = self.folders.owner(file)
        return (owner[0] if owner else os.path.basename(file)).lower()

    def _declares(self, file: str) -> bool:
        """Whether the file, or one of its package that it may import, contains the item."""
        if self._filter.mentions(file):
            return True
        owner = self.folders.owner(file) if self._filter.matters(file) else None
        return owner is not None and any(map(self._filter.mentions, build_files(owner[2])))

    def _one_version_each(
        self, addins: tuple[DiscoveredAddIn, ...], projects: Sequence[ProjectInfo], restored: Sequence[Restored]
    ) -> tuple[DiscoveredAddIn, ...]:
        """Marks the add-ins that a Host does not get because another version of their package takes their place.

        Of several versions, the highest that the start-up project uses counts: the first program of the solution.
        """
        versions: dict[str, dict[str, None]] = {}
        for addin in addins:
            if addin.version:
                versions.setdefault(addin.package, {})[addin.version] = None
        several = {name: list(found) for name, found in versions.items() if len(found) > 1}
        if not several:
            return addins
        from .nuget_version import highest

        startup = next((pair for pair in zip(projects, restored, strict=True) if pair[0].starts), None)
        used = {(name.lower(), version.lower()) for name, version in startup[1].listed} if startup else set()
        chosen: dict[str, str] = {}
        for name, found in several.items():
            of_startup = [version for version in found if (name.lower(), version.lower()) in used]
            chosen[name] = highest(of_startup or found)
            why = f"which {startup[0].path} uses" if startup and of_startup else "the highest"
            message = f"{name} is used in versions {' and '.join(found)}; the Host gets {chosen[name]}, {why}."
            self.issues.append(warning("AddInVersionsDiffer", message))
        return tuple(
            addin.replace(replaced_by=other)
            if (other := chosen.get(addin.package)) and other != addin.version
            else addin
            for addin in addins
        )

    def _report(self, projects: Sequence[ProjectInfo], restored: Sequence[Restored]) -> None:
        for project, one in zip(projects, restored, strict=True):
            self.issues += [issue for issue in (project.issue, *one.issues) if issue]
        missing = [project.path for project, one in zip(projects, restored, strict=True) if not one.found]
        if missing:
            message = f"Not restored: {listed(missing)}. Packages that no restored project references are not seen."
            self.issues.append(warning("RestoreMissing", message))

    def _located(self, one: Restored, project: ProjectInfo) -> Restored:
        """The restore with its packages at their places on this machine, if it was made on another one."""
        places: dict[str, str] = {}
        elsewhere = False
        missing: list[str] = []
        recorded = PackageFolders(one.folders)
        for package in one.packages:
            if self._filter.can_read(package.file):
                continue  # its folder exists
            folder = package.folder
            if folder and os.path.isdir(folder):  # from an assets file, whose packages were looked up already
                elsewhere |= bool(one.folders) and recorded.owner(folder + os.sep) is None
            elif folder and (found := self.folders.find(package.name, package.version)):
                places[folder] = found
                elsewhere |= recorded.owner(found + os.sep) is None  # else only its folder is spelt otherwise
            else:
                missing.append(f"{package.name} {package.version}")
        if missing:
            folders = ", ".join(self.folders.with_locations(one.folders).locations)
            was, are = ("was", "is") if len(missing) == 1 else ("were", "are")
            message = f"{listed(missing)} {was} restored, but {are} in none of the package folders: {folders}."
            self.issues.append(warning("AddInPackageNotCached", message))
        if not elsewhere:
            return one.moved(places) if places else one
        message = (
            f"{project.path} was restored with other package folders ({', '.join(recorded.locations)}); "
            f"its packages are taken from {', '.join(self.folders.locations)}."
        )
        self.issues.append(warning("RestoreElsewhere", message))
        return one.moved(places)

    def _workspace_assets(self, projects: Sequence[ProjectInfo]) -> list[tuple[ProjectInfo, Restored]]:
        """Reads an assets file that belongs to no project from the workspace's own `obj`, as if of a project there."""
        folder = os.path.join(self.directory, "obj")
        path = os.path.join(folder, "project.assets.json")
        if not os.path.exists(path) or any(project.restore_folder == folder for project in projects):
            return []
        from .assets import read_assets

        try:
            assets = read_assets(path)
        except (FileNotFoundError, FileProblem, JsonProblem):
            return []
        if assets.project:
            return []
        project = ProjectInfo(os.path.join(self.directory, "workspace.proj"), (), (), (), folder, (), (), ())
        return [(project, from_assets(assets, self.folders))]

    def _manifest_only(
        self, projects: Iterable[ProjectInfo], known: Iterable[RestoredPackage]
    ) -> list[RestoredPackage]:
        """Referenced packages that contain only a manifest; the generated files of restore do not mention them."""
        names = {package.name.lower() for package in known}
        references = dict.fromkeys(reference for project in projects for reference in project.references)
        found = (
            (name, version, self.folders.find(name, version))
            for name, version in references
            if name.lower() not in names
        )
        return [
            RestoredPackage(name, version, folder)
            for name, version, folder in found
            if folder and os.path.exists(os.path.join(folder, MANIFEST_NAME))
        ]

    def _by_manifest(self, known: Iterable[RestoredPackage], host_version: str | None) -> dict[str, list[EntryPoint]]:
        """The entry points in the manifests of restored packages, by package folder; a manifest may declare none."""
        declared: dict[str, list[EntryPoint]] = {}
        for package in known:
            if package.folder is None or package.folder in declared:
                continue
            path = f"{package.folder}{os.sep}{MANIFEST_NAME}"
            if not os.access(path, os.F_OK):  # hundreds of packages have none; `exists` takes twice as long to say so
                continue
            manifest = read_manifest(package.folder, package.name, host_version)
            self.issues += manifest.issues
            if manifest.entry_points is not None:
                declared[package.folder] = [EntryPoint(entry, path, "manifest") for entry in manifest.entry_points]
        return declared

    def _by_imports(self, projects: Sequence[ProjectInfo], restored: Sequence[Restored]) -> list[EntryPoint]:
        return [
            candidate
            for project, one in zip(projects, restored, strict=True)
            for imports in one.imports or (None,)
            for candidate in self._evaluated(project, imports)
        ]

    def _evaluated(self, project: ProjectInfo, imports: PackageImports | None) -> list[EntryPoint]:
        """The add-ins that a project declares for one framework; files that cannot affect them are not evaluated."""
        sdk_props, sdk_targets = self._sdk_files(project)
        package_files = (*imports.props, *imports.targets) if imports else ()
        chosen = set(self._filter.choose(package_files, project.own_files))
        if not chosen and not sdk_targets and not any(map(self._filter.matters, project.own_files)):
            return []
        framework = imports.framework if imports else next(iter(project.frameworks), None)
        # MSBuild's order: .props files of packages do not see what the project and the SDK set after them.
        files: list[str | Mapping[str, str]] = [
            *sdk_props,
            *project.before,
            *(path for path in (imports.props if imports else ()) if path in chosen),
            sdk_defaults(project.path),
            *project.body,
            framework_properties(framework),
            *project.user,
            *(path for path in (imports.targets if imports else ()) if path in chosen),
            *project.after,
            *sdk_targets,
        ]
        return declared_addins(
            project.path,
            files,
            properties=known_properties(project, self.solution) | dict(imports.properties if imports else {}),
            families=self._families(project, chosen),
            global_properties={"TargetFramework": framework} if framework else {},
            environ=self.environ,
            load=self._load,
            issues=self.issues,
            undecided=self._undecided,
        )

    def _families(self, project: ProjectInfo, files: Iterable[str]) -> set[str]:
        """The first words of the ids of packages; a property that begins with one is set by these files or by none.

        Not those of the project's SDKs: an SDK sets such properties, and its files are not evaluated.
        """
        owners = (self.folders.owner(file) for file in files)
        words = {owner[0].partition(".")[0].lower() for owner in owners if owner}
        return words - SDK_FAMILIES - {sdk.partition(".")[0].lower() for sdk in project.sdks}

    def _sdk_files(self, project: ProjectInfo) -> tuple[list[str], list[str]]:
        """The Sdk.props and Sdk.targets of those project SDKs from NuGet that declare add-ins."""
        props: list[str] = []
        targets: list[str] = []
        for sdk in project.sdks:
            name, _, version = sdk.partition("/")
            folder = self.folders.find(name, version or self.sdk_versions.get(name, ""))
            files = [os.path.join(folder, "Sdk", file) for file in ("Sdk.props", "Sdk.targets")] if folder else []
            if any(map(self._filter.mentions, files)):
                props.append(files[0])
                targets.append(files[1])
        return props, targets

    def _combined(self, declared: dict[str, list[EntryPoint]], imported: Iterable[EntryPoint]) -> list[EntryPoint]:
        """All entry points; those that a package's .targets files declare are ignored if it has a manifest."""
        found = [candidate for candidates in declared.values() for candidate in candidates]
        for candidate in imported:
            owner = self.folders.owner(candidate.defined_in)
            if owner is None or owner[2] not in declared:
                found.append(candidate)
                if owner and is_below(candidate.defined_in, os.path.join(owner[2], "build")):
                    self.issues.append(deprecated_targets(owner[0], candidate.defined_in))
        return found

    def _report_undeclared(
        self,
        known: Iterable[RestoredPackage],
        declared: Iterable[str],
        imported: Iterable[EntryPoint],
        restored: Iterable[Restored],
    ) -> None:
        """Reports packages that have a tools/devserver folder but declare no entry point."""
        owners = [self.folders.owner(candidate.defined_in) for candidate in imported]
        declaring = {*declared, *(owner[2] for owner in owners if owner)}
        others = {p.folder: p.name for p in known if p.folder and p.may_have_tools and p.folder not in declaring}
        files = _package_files(restored)
        for folder, name in others.items():
            if os.path.isdir(os.path.join(folder, "tools", "devserver")):
                own = [f for f in files if is_below(f, folder)]
                self._report_damaged(own)
                if any(self._declares(f) or not self._is_valid(f) for f in own):
                    continue  # a condition says no, or the file was reported as damaged
                left_out = next(filter(self._filter.mentions, build_files(folder)), None)
                if left_out:
                    self._excluded.add(name.lower())
                    self.issues.append(excluded_build_files(name, left_out))
                else:
                    self.issues.append(undeclared_entry_point(name, folder))

    def _report_undecided(self, found: Iterable[EntryPoint]) -> None:
        """Reports files with undecided conditions, if their package declares no other add-in."""
        owners = [self.folders.owner(candidate.defined_in) for candidate in found]
        naming = {owner[2] for owner in owners if owner}
        for path, expressions in self._undecided.items():
            owner = self.folders.owner(path)
            if owner and owner[2] not in naming:
                message = f"{path} names no add-in that counts; only a build can decide {' and '.join(expressions)}."
                self.issues.append(warning("AddInConditionUnknown", message))

    def _report_damaged(self, files: Iterable[str]) -> None:
        for path in dict.fromkeys(files):
            try:
                self._load.load(path)
            except EvaluationProblem as problem:
                self.issues.append(invalid_targets(problem))

    def _is_valid(self, path: str) -> bool:
        return not any(issue.code == "AddInTargetsInvalid" and path in issue.message for issue in self.issues)

    def _by_convention(
        self, packages: Iterable[WorkspacePackage], restored: Iterable[RestoredPackage], host_version: str | None
    ) -> list[EntryPoint]:
        """Searches packages whose imported files are unknown: the SDK's that were not restored, and bare libraries."""
        found: list[EntryPoint] = []
        wanted = [
            (package.name, self.folders.find(package.name, package.version))
            for package in packages
            if not package.restored
        ]
        wanted += [(package.name, package.folder) for package in restored]
        for name, folder in wanted:
            if folder is not None:
                found += search_package(folder, name, host_version, self._evaluate_alone, self.issues)
        return found

    def _evaluate_alone(self, files: Sequence[str]) -> list[EntryPoint]:
        if not self._filter.choose(files):
            self._report_damaged(files)
            return []
        return declared_addins(
            os.path.join(self.directory, "workspace.proj"),  # the base of relative paths is the workspace
            files,
            properties={},
            global_properties={},
            environ=self.environ,
            load=self._load,
            issues=self.issues,
            undecided=self._undecided,
        )


def _package_files(restored: Iterable[Restored]) -> list[str]:
    """The files that projects import from packages."""
    return [file for one in restored for imports in one.imports for file in (*imports.props, *imports.targets)]
