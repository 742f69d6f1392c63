"""Reads the files of `dotnet restore` for a project: which package files MSBuild imports, and which packages exist.

Sources in this order: `<project>.nuget.g.props` and `.g.targets`, a few KB that list the imports; the `targets` of
project.assets.json, the same list in megabytes; its `libraries`, which are only names, so packages must be searched.
"""

from __future__ import annotations

import os

from ..issues import Issue, warning
from ..msbuild.evaluation import Evaluator
from ..msbuild.problems import EvaluationProblem
from ..msbuild.project_files import ProjectFile, ProjectFileCache
from ..msbuild.xml import Element
from ..system.files import FileProblem, read_bytes, read_head, read_text
from ..system.jsonc import JsonProblem
from ..system.values import Value
from .nuget import PackageFolders
from .nuget_version import folder_spellings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .assets import Assets
    from .project_info import ProjectInfo


class RestoredPackage(Value):
    name: str
    version: str
    folder: str | None  # None if it was restored, but is no longer on disk
    file: str = ""  # the first of its files that is imported, if any
    may_have_tools: bool = True  # False if restore recorded that there is no `tools` folder


class PackageImports(Value):
    """The package files that one framework of a project imports, in MSBuild's order."""

    framework: str | None
    props: tuple[str, ...]
    targets: tuple[str, ...]
    properties: Mapping[str, str]  # the properties that restore defines


class Restored(Value):
    imports: tuple[PackageImports, ...] = ()
    listed: tuple[tuple[str, str], ...] = ()  # name and version of every restored package
    packages: tuple[RestoredPackage, ...] = ()  # those that can contain an add-in
    to_search: tuple[RestoredPackage, ...] = ()  # packages whose imported files are unknown
    folders: tuple[str, ...] = ()
    found: bool = True
    issues: tuple[Issue, ...] = ()

    def moved(self, places: Mapping[str, str]) -> Restored:
        """The same restore with package folders at other places: `places` maps each old folder to the new one."""

        def at(path: str) -> str:
            return next((new + path[len(old) :] for old, new in places.items() if path.startswith(old + os.sep)), path)

        return self.replace(
            imports=tuple(
                one.replace(props=tuple(map(at, one.props)), targets=tuple(map(at, one.targets)))
                for one in self.imports
            ),
            packages=tuple(
                package.replace(folder=places.get(package.folder or "", package.folder), file=at(package.file))
                for package in self.packages
            ),
            folders=tuple(filter(os.path.isdir, self.folders)),
        )


def read_restored(
    project: ProjectInfo, folders: PackageFolders, load: ProjectFileCache, environ: Mapping[str, str]
) -> Restored:
    """Reads the files of restore; `found` is False if the project was not restored or they cannot be used."""
    issues: list[Issue] = []
    restored = _from_generated(project, load, environ, issues) or _from_assets(project, folders, issues)
    if restored is None:
        return Restored(found=False, issues=tuple(issues))
    issues += restore_issues(project)
    return restored.replace(issues=tuple(issues))


def _from_generated(
    project: ProjectInfo, load: ProjectFileCache, environ: Mapping[str, str], issues: list[Issue]
) -> Restored | None:
    base = os.path.join(project.restore_folder, os.path.basename(project.path) + ".nuget.g.")
    generated = [base + "props", base + "targets"]
    if not any(map(os.path.exists, generated)):
        return None
    try:
        # On Windows NuGet writes its own folder as $(UserProfile).
        profile = environ.get("USERPROFILE", "")
        lines = read_generated([read_text(path).replace("$(UserProfile)", profile) for path in generated])
        imports = [
            _imports(framework, *select_imports(lines, framework))
            if lines is not None
            else _imports(framework, *_evaluated(project, framework, generated, load, environ))
            for framework in project.frameworks or (None,)
        ]
    except (FileNotFoundError, FileProblem, EvaluationProblem) as problem:
        wrong = problem.filename if isinstance(problem, FileNotFoundError) else problem.path
        reason = "it does not exist" if isinstance(problem, FileNotFoundError) else str(problem)
        issues.append(warning("RestoreFileInvalid", f"{wrong} cannot be used: {reason}."))
        return None
    folders = (*_list_of(imports, "NuGetPackageFolders"), *_list_of(imports, "NuGetPackageRoot"))
    packages = tuple(_packages_in(imports, PackageFolders(folders)))
    return Restored(tuple(imports), tuple((p.name, p.version) for p in packages), packages, (), folders)


def _imports(framework: str | None, files: list[str], properties: Mapping[str, str]) -> PackageImports:
    if "\\" in properties.get("NuGetPackageRoot", ""):  # the restore was made on Windows
        files = list(map(_from_windows, files))
        properties = {name: ";".join(map(_from_windows, value.split(";"))) for name, value in properties.items()}
    props = tuple(path for path in files if path[-6:].lower() == ".props")
    targets = tuple(path for path in files if path[-6:].lower() != ".props")
    return PackageImports(framework, props, targets, properties)


def _evaluated(
    project: ProjectInfo,
    framework: str | None,
    generated: list[str],
    load: ProjectFileCache,
    environ: Mapping[str, str],
) -> tuple[list[str], dict[str, str]]:
    """The imports and properties of generated files that are not in NuGet's own form."""
    evaluation = Evaluator(
        project.path,
        global_properties={"TargetFramework": framework} if framework else {},
        properties={"ExcludeRestorePackageImports": ""},
        environment=environ,
        load=_ImportsOnly(load, generated),
    ).evaluate(generated)
    given = {**evaluation.properties("NuGet"), **evaluation.properties("Pkg")}
    return (
        [path for path in evaluation.imported if path not in generated],
        {name: value for name, value in given.items() if value is not None},
    )


class _ImportsOnly(ProjectFileCache):
    """Loads the generated files, and an empty project for each file that they import."""

    def __init__(self, files: ProjectFileCache, real: list[str]) -> None:
        super().__init__()
        self.work = files.work
        self._files = files
        self._real = real
        self._nothing = ProjectFile("", Element("Project", {}))

    def load(self, path: str) -> ProjectFile:
        return self._files.load(path) if path in self._real else self._nothing


def _list_of(imports: list[PackageImports], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f for one in imports for f in one.properties.get(name, "").split(";") if f.strip()))


def _packages_in(imports: list[PackageImports], folders: PackageFolders) -> Iterator[RestoredPackage]:
    """Packages with imported files, and packages with a `tools` folder, for which restore defines `Pkg<Id>`."""
    seen: set[str] = set()
    for one in imports:
        with_tools = {value: name[3:].replace("_", ".") for name, value in one.properties.items() if name[:3] == "Pkg"}
        for path in (*one.props, *one.targets, *(value + os.sep for value in with_tools)):
            owner = folders.owner(path)
            if owner is not None and owner[2] not in seen:
                name, version, folder = owner
                seen.add(folder)
                has_tools = folder in with_tools
                spelling = with_tools[folder] if has_tools else os.path.splitext(os.path.basename(path))[0]
                file = "" if path == folder + os.sep else path
                yield RestoredPackage(_spelt(name, spelling), version, folder, file, has_tools)


def _spelt(folder: str, spelling: str) -> str:
    """The package's own spelling of its name, from file names and `Pkg` properties; folders are in lower case."""
    if spelling.lower() == folder:
        return spelling
    if len(spelling) != len(folder):
        return folder
    mixed = "".join(own if own.isalnum() else plain for own, plain in zip(spelling, folder, strict=True))
    return mixed if mixed.lower() == folder.lower() else folder


def _from_assets(project: ProjectInfo, folders: PackageFolders, issues: list[Issue]) -> Restored | None:
    path = os.path.join(project.restore_folder, "project.assets.json")
    if not os.path.exists(path):
        return None
    from .assets import read_assets  # imported here because projects with generated files do not need it

    try:
        assets = read_assets(path)
    except FileNotFoundError:
        return None
    except (FileProblem, JsonProblem) as problem:
        issues.append(warning("RestoreFileInvalid", f"{path} cannot be used: {problem}."))
        return None
    if assets.project and not _is_same_project(assets.project, project.path):
        return None  # two projects share the folder, and the other one was restored last
    return from_assets(assets, folders)


def _is_same_project(recorded: str, path: str) -> bool:
    """Whether restore recorded this project, perhaps at another place: on another machine, or before it was moved."""
    if os.path.normcase(os.path.normpath(recorded)) == os.path.normcase(path):
        return True
    return os.path.basename(recorded.replace("\\", "/")) == os.path.basename(path) and not os.path.exists(recorded)


def from_assets(assets: Assets, folders: PackageFolders) -> Restored:
    """The restore that an assets file describes; packages are looked for in the folders that it names, then here."""
    from ..msbuild.frameworks import short_framework_name

    own = PackageFolders(map(_from_windows, assets.package_folders)) if assets.package_folders else folders
    entries = [entry for one in (assets.build_files or {}).values() for entry in one]
    wanted = dict.fromkeys((*(package for package, _ in entries), *assets.with_manifest, *assets.with_tools))
    if assets.build_files is None:  # the imports are unknown, so all packages must be searched
        wanted = dict.fromkeys(assets.packages)
    located = {package: own.find(*package) or folders.find(*package) for package in wanted}
    packages = tuple(RestoredPackage(*package, folder) for package, folder in located.items())
    imports = []
    for framework, listed in (assets.build_files or {}).items():
        files = [
            os.path.join(f, *file.split("/")) for package, names in listed if (f := located[package]) for file in names
        ]
        if "/" not in framework:  # with a slash, it repeats a framework for one runtime
            imports.append(_imports(short_framework_name(framework), files, {}))
    to_search = packages if assets.build_files is None else ()
    return Restored(tuple(imports), assets.packages, packages, to_search, own.locations)


# Plain text, because compiling regular expressions would take longer than reading the files.
_IMPORT = '<Import Project="'
_IF_EXISTS = '" Condition="Exists(\''
_GROUPS = ('<ImportGroup Condition=" ', '<PropertyGroup Condition=" ', '<ItemGroup Condition=" ')
_ALWAYS = "'$(ExcludeRestorePackageImports)' != 'true' \">"
_FOR_FRAMEWORK = "'$(TargetFramework)' == '"
_FRAME = ("<?xml ", "<Project ", "</Project>", "</PropertyGroup>", "</ImportGroup>", "</ItemGroup>", "<SourceRoot ")
_END = "</Project>"
_WANTED = ("NuGet", "Pkg")
_ROOT = "$(NuGetPackageRoot)"


# Framework, name and value of a property or import; an import has no name. The framework is None if the line is for
# all frameworks, and empty if it is only for the outer build.
GeneratedLine = tuple[str | None, str, str]


def read_generated(texts: Iterable[str]) -> list[GeneratedLine] | None:
    """The properties and imports in g.props and g.targets; None if the files are not in NuGet's form."""
    lines: list[GeneratedLine] = []
    framework: str | None = None
    for text in texts:
        inside = False  # whether the line is inside a group, which has the condition
        if "&" in text or "%" in text or not text.rstrip().endswith((_END, "/>")):
            return None
        for raw in text.splitlines():
            line = raw.strip()
            if line.startswith(_IMPORT):
                path, _, rest = line[len(_IMPORT) :].partition(_IF_EXISTS)
                if rest != path + "')\" />" or "$(" in path.removeprefix(_ROOT) or not inside:
                    return None
                lines.append((framework, "", path))
            elif line.startswith(_GROUPS):
                condition = line.partition('=" ')[2].removesuffix(_ALWAYS)
                framework = condition.removeprefix(_FOR_FRAMEWORK).removesuffix("' AND ") if condition else None
                inside = True
                if condition and (condition != f"{_FOR_FRAMEWORK}{framework}' AND " or "'" in (framework or "")):
                    return None
            elif line.startswith(_FRAME):
                if line.count("<") > 1:  # the line breaks are not NuGet's
                    return None
                inside = inside and not line.startswith("</")
            elif line:
                name = line[1 : line.find(" ")]
                start, end = f"<{name} Condition=\" '$({name})' == '' \">", f"</{name}>"
                value = line[len(start) : -len(end)]
                if not line.startswith(start) or not line.endswith(end) or not inside:
                    return None
                if "$(" in value and name.startswith(_WANTED):
                    return None  # on Windows NuGet writes the root with $(UserProfile)
                lines.append((framework, name, value))
    return lines


def select_imports(lines: Iterable[GeneratedLine], framework: str | None) -> tuple[list[str], dict[str, str]]:
    """The imports, in order and as full paths, and the properties that apply to a framework (None: any)."""
    properties: dict[str, str] = {}
    imports: list[str] = []
    for condition, name, value in lines:
        if condition is not None and condition != framework and (framework is not None or not condition):
            continue
        if name:
            properties.setdefault(name, value)
        else:
            imports.append(value)
    # The imports are written to fit a root with or without a trailing slash.
    root = properties.get("NuGetPackageRoot", "")
    return (
        [_normal(value.replace(_ROOT, root)) for value in imports],
        {name: value for name, value in properties.items() if name.startswith(_WANTED)},
    )


def _from_windows(path: str) -> str:
    """A path of Windows as an absolute path of this system: C:\\x becomes /C:/x, which does not exist here."""
    if os.sep != "/" or "\\" not in path:
        return path
    return "/" + path.replace("\\", "/").lstrip("/")


def _normal(path: str) -> str:
    """Normalises a path; NuGet's paths are usually normal, and checking is cheaper than normalising."""
    return os.path.normpath(path) if "//" in path or "/." in path or "\\" in path else path


MAX_RECORD_BYTES = 32 * 1024 * 1024
ASSETS_HEAD_BYTES = 1024  # the first target framework is in the first lines of project.assets.json


def restore_issues(project: ProjectInfo) -> Iterator[Issue]:
    """Yields reasons to restore again; none if restore left no record."""
    path = os.path.join(project.restore_folder, "project.nuget.cache")
    try:
        record = read_bytes(path, MAX_RECORD_BYTES).lower()
    except (FileNotFoundError, FileProblem):
        return
    head, _, files = record.partition(b'"expectedpackagefiles"')
    if os.fsencode(os.path.basename(project.path).lower()) not in head:
        return  # the record of another project that shares the folder
    if b'"success": false' in head or b'"success":false' in head:
        yield warning("RestoreFailed", f"The last restore of {project.path} failed: packages may be missing.")
    elif missing := _unrecorded(project.references, files.replace(b"\\\\", b"/") if b"\\" in files else files):
        names = ", ".join(missing)
        yield warning("RestoreStale", f"{project.path} asks for {names}, in a version that was not restored.")
    elif other := _other_framework(project):
        message = f"{project.path} targets {project.frameworks[0]}, but was restored for {other}."
        yield warning("RestoreStale", message)


def _unrecorded(references: Iterable[tuple[str, str]], record: bytes) -> list[str]:
    """References that were not restored; ranges, floating and central versions are compared by name only."""
    raised = b"nu1603" in record  # NuGet took a higher version because the referenced one does not exist
    missing = []
    near = 0  # NuGet sorts the record by name, so the next reference is found close to the last one
    for name, version in sorted(references, key=lambda reference: reference[0].lower()):
        exact = version[:1].isdigit() and "*" not in version and not raised
        wanted = (f"{name}/{spelling}" for spelling in folder_spellings(version)) if exact else (name,)
        texts = (os.fsencode(f"/{text.lower()}/") for text in wanted)
        found = next((at for text in texts for start in (near, 0) if (at := record.find(text, start)) >= 0), None)
        if found is None:
            missing.append(name)
        else:
            near = found
    return missing


def _other_framework(project: ProjectInfo) -> str | None:
    """The framework that a project with one framework was restored for, if that is certainly another one."""
    if len(project.frameworks) != 1:
        return None
    try:
        head = read_head(os.path.join(project.restore_folder, "project.assets.json"), ASSETS_HEAD_BYTES)
    except (FileNotFoundError, FileProblem):
        return None
    between, _, rest = head.partition(b'"targets": {')[2].partition(b'"')
    found = rest.partition(b'"')[0].partition(b"/")[0].decode("utf-8", "replace")
    if between.strip() or not found or found.lower() == project.frameworks[0].lower():
        return None
    from ..msbuild.frameworks import parse_framework, short_framework_name

    restored = short_framework_name(found)
    one, other = parse_framework(restored), parse_framework(project.frameworks[0])
    # Restore may add the platform's version; everything else must be equal.
    if one is None or other is None or one.replace(platform_version=()) == other.replace(platform_version=()):
        return None
    return restored
