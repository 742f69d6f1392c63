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
from ..system.files import FileProblem, read_text
from ..system.jsonc import JsonProblem
from ..system.values import Value
from .generated import read_generated, select
from .nuget import PackageFolders
from .restore_record import doubts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .assets import Assets
    from .projects import Project


class RestoredPackage(Value):
    name: str
    version: str
    folder: str | None  # None: restore knows it, but it is not on disk any more
    file: str = ""  # one of its files that is imported, if any
    may_have_tools: bool = True  # False: restore says that there is no `tools` folder


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
    issues += doubts(project)
    return restored.replace(issues=tuple(issues))


def _from_generated(
    project: Project, load: ProjectFiles, environ: Mapping[str, str], issues: list[Issue]
) -> Restored | None:
    base = os.path.join(project.restore_folder, os.path.basename(project.path) + ".nuget.g.")
    generated = [base + "props", base + "targets"]
    if not any(map(os.path.exists, generated)):
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
        wrong = problem.filename if isinstance(problem, FileNotFoundError) else problem.path
        reason = "it does not exist" if isinstance(problem, FileNotFoundError) else str(problem)
        issues.append(warning("RestoreFileInvalid", f"{wrong} cannot be used: {reason}."))
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
        with_tools = {value: name[3:] for name, value in one.properties.items() if name[:3] == "Pkg"}
        for path in (*one.props, *one.targets, *(value + os.sep + "x" for value in with_tools)):
            owner = folders.owner(path)
            if owner is not None and owner[2] not in seen:
                name, version, folder = owner
                seen.add(folder)
                has_tools = folder in with_tools
                spelling = with_tools[folder] if has_tools else os.path.splitext(os.path.basename(path))[0]
                yield RestoredPackage(_spelt(name, spelling), version, folder, path, has_tools)


def _spelt(folder: str, spelling: str) -> str:
    """The folder is in lower case; imported files, and `Pkg` properties but for their dots, keep the package's own."""
    if spelling.lower() == folder or len(spelling) != len(folder):
        return spelling if spelling.lower() == folder else folder
    mixed = "".join(own if own.isalnum() else plain for own, plain in zip(spelling, folder, strict=True))
    return mixed if mixed.lower() == folder.lower() else folder


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
    from .assets import short_name

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
