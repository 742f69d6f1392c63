"""Entry points of add-ins: how packages declare them, and which of them exist.

A package declares entry points in its manifest or as items `UnoRemoteControlAddIns` in .props and .targets files, which
are evaluated as by MSBuild. MSBuild rejects a whole project if one file is wrong; here only that file is left out and
reported.
"""

from __future__ import annotations

import os
import stat

from ..issues import Issue, warning
from ..msbuild.evaluation import Evaluator
from ..msbuild.problems import EvaluationProblem
from ..system.values import Value
from .manifest import MANIFEST_NAME, read_manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..msbuild.project_files import ProjectFileCache
    from .nuget import PackageFolders
    from .packages import WorkspacePackage

ADDIN_ITEM = "UnoRemoteControlAddIns"


class DiscoveredAddIn(Value):
    """An add-in whose entry point exists."""

    package: str
    version: str
    path: str
    source: str  # "manifest", "targets" or "msbuild"
    certain: bool = True  # False if a condition could not be decided
    replaced_by: str = ""  # the version of its package that a Host gets instead, if there are several


class AddInDiscovery(Value):
    found: tuple[DiscoveredAddIn, ...] = ()
    method: str | None = None  # "targets", "manifest", both joined by "+", "cached" or "msbuild"; None: nothing found
    issues: tuple[Issue, ...] = ()
    failed: bool = False  # whether the package list could not be read, or MSBuild failed
    possible: bool = False  # whether there was anything to search
    duration_ms: int = 0

    @property
    def for_host(self) -> tuple[str, ...]:
        """The paths that a Host gets: each once, and one version of each package."""
        return tuple(dict.fromkeys(addin.path for addin in self.found if not addin.replaced_by))


class EntryPoint(Value):
    """An entry point that a package declares; `verify_entry_points` checks whether the file exists."""

    path: str
    defined_in: str  # the file that declares it
    source: str  # "targets" or "manifest"
    certain: bool = True  # False if a condition is undecided; then the add-in is used if its file exists
    undecided: tuple[str, ...] = ()  # the expressions that could not be decided


def declared_addins(
    project: str,
    files: Sequence[str | Mapping[str, str]],
    *,
    properties: Mapping[str, str],
    families: Iterable[str] = (),
    global_properties: Mapping[str, str],
    environ: Mapping[str, str],
    load: ProjectFileCache,
    issues: list[Issue],
    undecided: dict[str, tuple[str, ...]],
) -> list[EntryPoint]:
    """The entry points that the files declare when they are evaluated in this order as parts of one project."""
    remaining = list(files)
    while remaining:
        evaluator = Evaluator(
            project,
            properties=properties,
            global_properties=global_properties,
            environment=environ,
            families=families,
            load=load,
        )
        try:
            evaluation = evaluator.evaluate(remaining)
        except EvaluationProblem as problem:
            issues.append(invalid_targets(problem))
            del remaining[problem.entry]
            continue
        for _, path in evaluation.notes:
            undecided[path] = tuple(dict.fromkeys(text for text, where in evaluation.notes if where == path))
        notes = evaluation.notes_about(ADDIN_ITEM)
        return [
            EntryPoint(
                os.path.normpath(item.full_path),
                item.defined_in,
                "targets",
                item.certain,
                () if item.certain else tuple(text for text, path in notes if path == item.defined_in),
            )
            for item in evaluation.items(ADDIN_ITEM)
        ]
    return []


def invalid_targets(problem: EvaluationProblem) -> Issue:
    return warning("AddInTargetsInvalid", f"{problem.path} was left out: {problem.message}.")


def search_package(
    folder: str,
    name: str,
    host_version: str | None,
    evaluate: Callable[[Sequence[str]], Sequence[EntryPoint]],
    issues: list[Issue],
) -> list[EntryPoint]:
    """The entry points that a package declares, by its manifest or by its build files, which `evaluate` evaluates."""
    manifest = read_manifest(folder, name, host_version)
    issues += manifest.issues
    if manifest.entry_points is not None:
        return [EntryPoint(path, os.path.join(folder, MANIFEST_NAME), "manifest") for path in manifest.entry_points]
    folders = _subfolders(folder)
    for kind in ("buildtransitive", "build"):
        files = _build_files(os.path.join(folder, folders[kind])) if kind in folders else []
        if not files:
            continue
        candidates = list(evaluate(files))
        if candidates and kind == "build":
            issues.append(deprecated_targets(name, candidates[0].defined_in))
        return candidates or _undeclared(folder, name, folders, issues)
    return _undeclared(folder, name, folders, issues)


def _undeclared(folder: str, name: str, folders: dict[str, str], issues: list[Issue]) -> list[EntryPoint]:
    if "tools" in folders and os.path.isdir(os.path.join(folder, folders["tools"], "devserver")):
        issues.append(undeclared_entry_point(name, folder))
    return []


def deprecated_targets(name: str, path: str) -> Issue:
    message = f"{name} declares its add-in in {path}; only buildTransitive/ reaches every project."
    return warning("AddInTargetsDeprecated", message)


def undeclared_entry_point(name: str, folder: str) -> Issue:
    message = f"{name} has a tools/devserver folder ({folder}) but names no entry point; nothing of it is loaded."
    return warning("AddInEntryPointUnknown", message)


def excluded_build_files(name: str, path: str) -> Issue:
    message = (
        f"{name} declares its add-in in {path}, but was restored without its build files; nothing of it is loaded."
    )
    return warning("AddInBuildFilesExcluded", message)


def build_files(folder: str) -> Iterator[str]:
    """The .props and .targets files below buildTransitive/ and build/ of a package."""
    folders = _subfolders(folder)
    for kind in ("buildtransitive", "build"):
        for parent, _, names in os.walk(os.path.join(folder, folders.get(kind, kind))):
            yield from (os.path.join(parent, n) for n in sorted(names) if n.lower().endswith((".props", ".targets")))


def _subfolders(folder: str) -> dict[str, str]:
    try:
        return {entry.lower(): entry for entry in os.listdir(folder)}
    except OSError:
        return {}


def _build_files(folder: str) -> list[str]:
    """The .targets files, each preceded by the .props file of the same name."""
    try:
        names = sorted(os.listdir(folder), key=str.lower)
    except OSError:
        return []
    files: list[str] = []
    for name in names:
        stem, extension = os.path.splitext(name)
        if extension.lower() == ".targets":
            props = next((other for other in names if other.lower() == f"{stem.lower()}.props"), None)
            files += [os.path.join(folder, one) for one in (props, name) if one]
    return files


def verify_entry_points(
    candidates: Iterable[EntryPoint],
    packages: Mapping[str, WorkspacePackage],
    folders: PackageFolders,
    issues: list[Issue],
) -> tuple[DiscoveredAddIn, ...]:
    """The add-ins whose files exist, in the order of the package list; the others are added to `issues`."""
    rank = {name: number for number, name in enumerate(packages)}
    found: dict[str, tuple[int, DiscoveredAddIn]] = {}
    doubtful: list[tuple[str, Issue]] = []
    for candidate in dict.fromkeys(candidates):  # many projects declare the same ones
        owner = folders.owner(candidate.defined_in)
        name, version = _package_of(candidate, owner, packages, folders)
        problem = _problem_with(candidate.path, f"{name} {version}".strip(), folders)
        if problem is None:
            place = rank.get(owner[0].lower(), len(rank)) if owner else len(rank)
            addin = DiscoveredAddIn(name, version, candidate.path, candidate.source, candidate.certain)
            found.setdefault(os.path.normcase(candidate.path), (place, addin))
            issues += _remarks(candidate, packages.get(name.lower()))
        elif candidate.certain:
            issues.append(problem)
        else:
            doubtful.append((name, problem))
    # A missing file with an undecided condition is reported only if its package has no other add-in.
    offering = {addin.package for _, addin in found.values()}
    issues += [problem for name, problem in doubtful if name not in offering]
    return tuple(addin for _, addin in sorted(found.values(), key=lambda entry: entry[0]))


def _package_of(
    candidate: EntryPoint,
    owner: tuple[str, str, str] | None,
    packages: Mapping[str, WorkspacePackage],
    folders: PackageFolders,
) -> tuple[str, str]:
    """Name and version of the entry point's package, spelt as in the package list if it is listed."""
    if owner is None:  # declared outside of packages, for example in Directory.Build.targets
        return os.path.basename(candidate.defined_in), ""
    package = packages.get(owner[0].lower())
    if package is None:
        return owner[0], owner[1]
    listed = package.version != owner[1] and folders.find(package.name, package.version) == owner[2]
    return package.name, package.version if listed else owner[1]


def _problem_with(path: str, package: str, folders: PackageFolders) -> Issue | None:
    try:
        status = os.stat(path)
        size = status.st_size if stat.S_ISREG(status.st_mode) else -1
    except (OSError, ValueError):
        size = -1
    if size > 0:
        return None
    if size == 0:
        return warning("AddInBinaryCorrupted", f"The add-in of {package} is an empty file: {path}.")
    searched = ", ".join(folders.locations)
    return warning("AddInBinaryNotFound", f"The add-in of {package} is missing: {path}. Package folders: {searched}.")


def _remarks(candidate: EntryPoint, package: WorkspacePackage | None) -> list[Issue]:
    """Warnings about an add-in that is used."""
    remarks = [package.overridden()] if package else []
    if not candidate.certain:
        conditions = " and ".join(candidate.undecided) or "one of its conditions"
        message = f"{candidate.path} counts because it exists; only a build can decide {conditions}"
        remarks.append(warning("AddInConditionUnknown", f"{message} (in {candidate.defined_in})."))
    return [remark for remark in remarks if remark]
