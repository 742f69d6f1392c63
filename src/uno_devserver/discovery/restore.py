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
from ..system.files import FileProblem, read_bytes, read_text
from ..system.jsonc import JsonProblem
from ..system.values import Value
from .generated import read_generated, select
from .nuget import PackageFolders
from .versions import folder_spellings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
    listed: tuple[tuple[str, str], ...] = ()  # name and version of every package that restore tells of
    packages: tuple[RestoredPackage, ...] = ()  # those that can hold an add-in
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
    try:
        lines = read_generated([read_text(path) for path in generated])
        imports = [
            _imports(framework, *select(lines, framework))
            if lines is not None
            else _imports(framework, *_evaluated(project, framework, generated, load, environ))
            for framework in project.frameworks or (None,)
        ]
    except (FileNotFoundError, FileProblem, EvaluationProblem) as problem:
        issues.append(warning("RestoreFileInvalid", f"{problem}."))
        return None
    folders = _list_of(imports, "NuGetPackageFolders") or _list_of(imports, "NuGetPackageRoot")
    packages = tuple(_packages_in(imports, PackageFolders(folders)))
    return Restored(tuple(imports), tuple((p.name, p.version) for p in packages), packages, (), folders)


def _imports(framework: str | None, files: list[str], properties: Mapping[str, str]) -> Imports:
    props = tuple(path for path in files if path.lower().endswith(".props"))
    targets = tuple(path for path in files if not path.lower().endswith(".props"))
    return Imports(framework, props, targets, properties)


def _evaluated(
    project: Project, framework: str | None, generated: list[str], load: ProjectFiles, environ: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The imports and properties of generated files that somebody changed by hand."""
    evaluation = Evaluator(
        project.path,
        global_properties={"TargetFramework": framework} if framework else {},
        properties={"ExcludeRestorePackageImports": ""},
        environment=environ,
        load=_Hollow(load, generated),
    ).evaluate(generated)
    given = {**evaluation.properties("NuGet"), **evaluation.properties("Pkg")}
    return (
        [path for path in evaluation.imported if path not in generated],
        {name: value for name, value in given.items() if value is not None},
    )


class _Hollow(ProjectFiles):
    """The list of imports is what is wanted here; what the imported files say comes later."""

    def __init__(self, files: ProjectFiles, real: list[str]) -> None:
        super().__init__()
        self._files = files
        self._real = real
        self._nothing = ProjectFile("", Element("Project", {}))

    def load(self, path: str) -> ProjectFile:
        return self._files.load(path) if path in self._real else self._nothing


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
    if not os.path.exists(path):
        return None
    from .assets import read_assets  # a restored project has the generated files and comes past this

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
    from .frameworks import short_name

    own = PackageFolders(assets.package_folders) if assets.package_folders else folders
    entries = [entry for one in (assets.build_files or {}).values() for entry in one]
    wanted = dict.fromkeys((*(package for package, _ in entries), *assets.with_manifest, *assets.with_tools))
    if assets.build_files is None:  # nothing tells what is imported, so every package has to be searched
        wanted = dict.fromkeys(assets.packages)
    located = {package: own.find(*package) for package in wanted}
    packages = tuple(RestoredPackage(*package, folder) for package, folder in located.items())
    imports = []
    for framework, listed in (assets.build_files or {}).items():
        files = [
            os.path.join(f, *file.split("/")) for package, names in listed if (f := located[package]) for file in names
        ]
        if "/" not in framework:  # else it is the same framework again, for one runtime
            imports.append(_imports(short_name(framework), files, {}))
    to_search = packages if assets.build_files is None else ()
    return Restored(tuple(imports), assets.packages, packages, to_search, own.locations)


def _doubts(project: Project) -> Iterator[Issue]:
    """What restore's own record of its work says against trusting it."""
    path = os.path.join(project.restore_folder, "project.nuget.cache")
    try:
        record = read_bytes(path, MAX_CACHE_BYTES).lower()
    except (FileNotFoundError, FileProblem):
        return
    head, _, files = record.partition(b'"expectedpackagefiles"')
    if os.path.basename(project.path).lower().encode() not in head:
        return  # another project's: the folder is shared
    if b'"success": false' in head or b'"success":false' in head:
        yield warning("RestoreFailed", f"The last restore of {project.path} failed: packages may be missing.")
    elif missing := _unrecorded(project.references, files.replace(b"\\\\", b"/")):
        names = ", ".join(missing)
        yield warning("RestoreStale", f"{project.path} asks for {names}, in a version that was not restored.")


def _unrecorded(references: Iterable[tuple[str, str]], record: bytes) -> list[str]:
    """References that restore did not know. Ranges, floating and central versions are only looked up by name."""
    raised = b"nu1603" in record  # a higher version was taken because the asked one does not exist
    missing = []
    for name, version in references:
        exact = version[:1].isdigit() and "*" not in version and not raised
        tails = [f"{spelling.lower()}/" for spelling in folder_spellings(version)] if exact else [""]
        if not any(f"/{name.lower()}/{tail}".encode() in record for tail in tails):
            missing.append(name)
    return missing
