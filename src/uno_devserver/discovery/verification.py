"""From entry points that packages name to add-ins that can be loaded: each file once, there, and not empty."""

from __future__ import annotations

import os

from ..issues import Issue, warning
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .nuget import PackageFolders
    from .packages import Package
    from .targets import Candidate


class AddIn(Value):
    package: str
    version: str
    path: str
    source: str  # "manifest", "targets" or "msbuild"
    certain: bool = True  # False: a condition could not be decided, and the file is there


def verify(
    candidates: Iterable[Candidate], packages: Mapping[str, Package], folders: PackageFolders, issues: list[Issue]
) -> tuple[AddIn, ...]:
    """The add-ins in the order of the package list; what is left out, or counts in doubt, becomes an issue."""
    rank = {name: number for number, name in enumerate(packages)}
    found: dict[str, tuple[int, AddIn]] = {}
    doubtful: list[tuple[str, Issue]] = []
    for candidate in candidates:
        owner = folders.owner(candidate.defined_in)
        name, version = _package_of(candidate, owner, packages, folders)
        problem = _problem_with(candidate.path, f"{name} {version}".strip(), folders)
        if problem is None:
            place = rank.get(owner[0].lower(), len(rank)) if owner else len(rank)
            addin = AddIn(name, version, candidate.path, candidate.source, candidate.certain)
            found.setdefault(os.path.normcase(candidate.path), (place, addin))
            issues += _remarks(candidate, packages.get(name.lower()))
        elif candidate.certain:
            issues.append(problem)
        else:
            doubtful.append((name, problem))
    # A missing file that may not be wanted matters only where its package has nothing else to offer.
    offering = {addin.package for _, addin in found.values()}
    issues += [problem for name, problem in doubtful if name not in offering]
    return tuple(addin for _, addin in sorted(found.values(), key=lambda entry: entry[0]))


def _package_of(
    candidate: Candidate, owner: tuple[str, str, str] | None, packages: Mapping[str, Package], folders: PackageFolders
) -> tuple[str, str]:
    """Name and version, spelt as in the package list where the entry point comes from there."""
    if owner is None:  # the workspace's own Directory.Build.targets, for example
        return os.path.basename(candidate.defined_in), ""
    package = packages.get(owner[0].lower())
    if package is None:
        return owner[0], owner[1]
    listed = folders.find(package.name, package.version) == owner[2]
    return package.name, package.version if listed else owner[1]


def _problem_with(path: str, package: str, folders: PackageFolders) -> Issue | None:
    try:
        size = os.stat(path).st_size if os.path.isfile(path) else -1
    except OSError:
        size = -1
    if size > 0:
        return None
    if size == 0:
        return warning("AddInBinaryCorrupted", f"The add-in of {package} is an empty file: {path}.")
    searched = ", ".join(folders.locations)
    return warning("AddInBinaryNotFound", f"The add-in of {package} is missing: {path}. Package folders: {searched}.")


def _remarks(candidate: Candidate, package: Package | None) -> list[Issue]:
    """What the user should know of an add-in that counts."""
    remarks = [package.overridden()] if package else []
    if not candidate.certain:
        conditions = " and ".join(candidate.undecided) or "one of its conditions"
        message = f"{candidate.path} counts because it exists; only a build can decide {conditions}"
        remarks.append(warning("AddInConditionUnknown", f"{message} (in {candidate.defined_in})."))
    return [remark for remark in remarks if remark]
