"""What `dotnet restore` left for a project: exactly the package files that MSBuild imports, and the packages.

Asked in this order: `<project>.nuget.g.props` and `.g.targets` (a few KB that list the imports), the `targets` of
project.assets.json (the same list in megabytes), and its `libraries` (only names, so packages must be searched).
"""

from __future__ import annotations

import os

from ..issues import Issue, warning
from ..msbuild.evaluation import Evaluator
from ..msbuild.problems import EvaluationProblem
from ..msbuild.projects import ProjectFile, ProjectFiles
from ..msbuild.xml import Element
from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem
from ..system.values import Value
from .assets import read_assets
from .frameworks import short_name
from .nuget import PackageFolders
from .versions import folder_spellings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..msbuild.evaluation import Evaluation
    from .assets import Assets
    from .projects import Project

MAX_CACHE_BYTES = 32 * 1024 * 1024


class RestoredPackage(Value):
    name: str
    version: str
    folder: str | None  # None: restore knows it, but it is not on disk any more


class Imports(Value):
    """The package files that one framework of a project imports, in MSBuild's order."""

    framework: str | None
    props: tuple[str, ...]
    targets: tuple[str, ...]
    properties: Mapping[str, str]  # what restore itself defines


class Restored(Value):
    imports: tuple[Imports, ...] = ()
    packages: tuple[RestoredPackage, ...] = ()
    to_search: tuple[RestoredPackage, ...] = ()  # nothing tells which of their files are imported
    folders: tuple[str, ...] = ()
    found: bool = True
    issues: tuple[Issue, ...] = ()


def read_restored(
    project: Project, folders: PackageFolders, load: ProjectFiles, environ: Mapping[str, str]
) -> Restored:
    """Never fails; `found` is False when the project was not restored, or its files cannot be used."""
    issues: list[Issue] = []
    restored = _from_generated(project, load, environ, issues) or _from_assets(project, folders, issues)
    if restored is None:
        return Restored(found=False, issues=tuple(issues))
    issues += _doubts(project)
    return restored.replace(issues=tuple(issues))


def _from_generated(
    project: Project, load: ProjectFiles, environ: Mapping[str, str], issues: list[Issue]
) -> Restored | None:
    base = os.path.join(project.restore_folder, os.path.basename(project.path) + ".nuget.g.")
    generated = [path for path in (base + "props", base + "targets") if os.path.isfile(path)]
    if not generated:
        return None

    imports: list[Imports] = []
    for framework in project.frameworks or (None,):
        given = {"TargetFramework": framework} if framework else {}
        evaluator = Evaluator(
            project.path,
            global_properties=given,
            properties={"ExcludeRestorePackageImports": ""},
            environment=environ,
            load=_Hollow(load, generated),
        )
        try:
            evaluation = evaluator.evaluate(generated)
        except EvaluationProblem as problem:
            issues.append(warning("RestoreFileInvalid", f"{problem.path} cannot be used: {problem.message}"))
            return None
        files = [path for path in evaluation.imported if path not in generated]
        imports.append(
            Imports(
                framework,
                tuple(path for path in files if path.lower().endswith(".props")),
                tuple(path for path in files if not path.lower().endswith(".props")),
                _known(evaluation),
            )
        )
    folders = _list_of(imports, "NuGetPackageFolders") or _list_of(imports, "NuGetPackageRoot")
    return Restored(tuple(imports), tuple(_packages_in(imports, PackageFolders(folders))), (), folders)


class _Hollow(ProjectFiles):
    """The list of imports is what is wanted here; what the imported files say comes later."""

    def __init__(self, files: ProjectFiles, real: list[str]) -> None:
        super().__init__()
        self._files = files
        self._real = real
        self._nothing = ProjectFile("", Element("Project", {}))

    def load(self, path: str) -> ProjectFile:
        return self._files.load(path) if path in self._real else self._nothing


def _known(evaluation: Evaluation) -> dict[str, str]:
    """What restore defines: where packages are."""
    given = {**evaluation.properties("NuGet"), **evaluation.properties("Pkg")}
    return {name: value for name, value in given.items() if value is not None}


def _list_of(imports: list[Imports], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f for one in imports for f in one.properties.get(name, "").split(";") if f.strip()))


def _packages_in(imports: list[Imports], folders: PackageFolders) -> Iterator[RestoredPackage]:
    """Packages with imported files, and those with a `tools` folder: restore defines `Pkg<Id>` for each of them."""
    seen: set[str] = set()
    for one in imports:
        pkg = [value + os.sep + "x" for name, value in one.properties.items() if name.lower().startswith("pkg")]
        for path in (*one.props, *one.targets, *pkg):
            owner = folders.owner(os.path.normpath(path))
            if owner is None or owner[2] in seen:
                continue
            seen.add(owner[2])
            stem = os.path.splitext(os.path.basename(path))[0]
            # The file is named like the package, in the package's own spelling; the folder is in lower case.
            yield RestoredPackage(stem if stem.lower() == owner[0].lower() else owner[0], owner[1], owner[2])


def _from_assets(project: Project, folders: PackageFolders, issues: list[Issue]) -> Restored | None:
    path = os.path.join(project.restore_folder, "project.assets.json")
    try:
        assets = read_assets(path)
    except FileNotFoundError:
        return None
    except (FileProblem, JsonProblem) as problem:
        issues.append(warning("RestoreFileInvalid", f"{path} cannot be used: {problem}."))
        return None
    if assets.project and os.path.normcase(os.path.normpath(assets.project)) != os.path.normcase(project.path):
        return None  # two projects share one folder, and the other was restored last
    return from_assets(assets, folders)


def from_assets(assets: Assets, folders: PackageFolders) -> Restored:
    """The restore that an assets file describes; `folders` are used where the file does not name its own."""
    own = PackageFolders(assets.package_folders) if assets.package_folders else folders
    located = {package: own.find(*package) for package in assets.packages} if assets.build_files is None else {}

    def folder_of(package: tuple[str, str]) -> str | None:
        if package not in located:
            located[package] = own.find(*package)
        return located[package]

    imports = []
    for framework, entries in (assets.build_files or {}).items():
        if "/" in framework:
            continue  # the same framework again, for one runtime
        files = [
            os.path.join(folder, *file.split("/"))
            for package, listed in entries
            if (folder := folder_of(package))
            for file in listed
        ]
        imports.append(
            Imports(
                short_name(framework),
                tuple(file for file in files if file.lower().endswith(".props")),
                tuple(file for file in files if file.lower().endswith(".targets")),
                {},
            )
        )
    wanted = assets.with_manifest | assets.with_tools
    wanted |= {package for entries in (assets.build_files or {}).values() for package, _ in entries}
    packages = [
        RestoredPackage(*package, folder_of(package) if package in wanted or assets.build_files is None else None)
        for package in assets.packages
    ]
    to_search = packages if assets.build_files is None else []
    return Restored(tuple(imports), tuple(packages), tuple(to_search), own.locations)


def _doubts(project: Project) -> Iterator[Issue]:
    """What restore's own record of its work says against trusting it."""
    path = os.path.join(project.restore_folder, "project.nuget.cache")
    try:
        record = read_bytes(path, MAX_CACHE_BYTES).lower()
    except (FileNotFoundError, FileProblem):
        return
    head = record[:4096]
    if os.path.basename(project.path).lower().encode() not in head.partition(b'"expectedpackagefiles"')[0]:
        return  # another project's: the folder is shared
    if b'"success": false' in head or b'"success":false' in head:
        yield warning("RestoreFailed", f"The last restore of {project.path} failed: packages may be missing.")
    elif missing := [name for name, version in project.references if not _is_recorded(record, name, version)]:
        names = ", ".join(missing)
        yield warning("RestoreStale", f"{project.path} asks for {names}, in a version that was not restored.")


def _is_recorded(record: bytes, name: str, version: str) -> bool:
    """Whether restore knew this reference. Ranges, floating and central versions are only looked up by name."""
    start = b"/" + name.lower().encode() + b"/"
    unified = record.replace(b"\\\\", b"/")
    plain = version and version[0].isdigit() and "*" not in version
    if not plain or b"nu1603" in record:  # NU1603: a higher version was taken because the asked one does not exist
        return start in unified
    return any(start + spelling.lower().encode() + b"/" in unified for spelling in folder_spellings(version))
