"""Fallbacks for a search that finds no add-ins: the last known good result, then MSBuild.

MSBuild runs the build of the workspace, so it is asked only if the user requested that on the command line or trusts
the workspace; otherwise an issue says how to request it.
"""

from __future__ import annotations

import os
import time

from ..issues import REMEDIES, warning
from ..system.values import Value
from .entry_points import AddInDiscovery, DiscoveredAddIn
from .last_known_good import LastKnownGood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .addin_search import AddInSearchResult


# Issues that mean that not everything could be read or decided, so that finding no add-ins is not an answer.
UNREAD = frozenset(
    {
        "AddInBinaryCorrupted",
        "AddInBinaryNotFound",
        "AddInConditionUnknown",
        "AddInManifestInvalid",
        "AddInPackageNotCached",
        "AddInTargetsInvalid",
        "NuGetConfigInvalid",
        "ProjectUnreadable",
        "RestoreFailed",
        "RestoreFileInvalid",
        "RestoreMissing",
        "SolutionUnreadable",
    }
)


class MSBuild(Value):
    """A question to MSBuild, asked only if it is needed."""

    solution: str | None
    projects: Sequence[tuple[str, Sequence[str]]]  # with their target frameworks
    host_path: Callable[[], str | None]
    scratch: str
    environ: Mapping[str, str]

    @property
    def possible(self) -> bool:
        from ..system.programs import find_program

        return find_program("dotnet", self.environ) is not None

    def ask(self) -> AddInDiscovery:
        from .msbuild_query import ask_msbuild

        if self.solution is None:
            issue = warning("MSBuildDiscoveryFailed", "There is no solution or project to ask MSBuild about.")
            return AddInDiscovery(issues=(issue,), failed=True)
        answer = ask_msbuild(self.solution, self.projects, self.host_path(), self.scratch, self.environ)
        found = tuple(
            DiscoveredAddIn(*_package_of(path), path, "msbuild") for path in answer.paths if os.path.isfile(path)
        )
        lost = [path for path in answer.paths if not os.path.isfile(path)]
        issues = [warning("AddInBinaryNotFound", f"MSBuild names an add-in that is missing: {path}.") for path in lost]
        return AddInDiscovery(found, "msbuild" if found else None, (*answer.issues, *issues), bool(answer.issues))


def apply_fallbacks(
    addins: AddInSearchResult,
    *,
    readable: bool,
    expected: bool,
    known_good: LastKnownGood,
    msbuild: MSBuild,
    trusted: Callable[[], bool],
) -> AddInDiscovery:
    """The add-ins to use. `readable`: the package list could be read; `expected`: the workspace should have add-ins."""
    packages = ["/".join(package) for package in addins.listed]
    if addins.found:
        known_good.save(packages, [addin for addin in addins.found if not addin.replaced_by])
        return AddInDiscovery(addins.found, "+".join(dict.fromkeys(addin.source for addin in addins.found)))
    if not expected:
        return AddInDiscovery((), None)
    if readable and not UNREAD.intersection(issue.code for issue in addins.issues):
        known_good.forget()  # that there is none is an answer, also for the next time
        if addins.declined:
            return AddInDiscovery((), None)
    kept = known_good.load(packages if readable else None)
    kept = tuple(addin for addin in kept if addin.package.lower() not in addins.declined)
    if kept:
        message = "The add-ins could not be found on disk; the last known good ones are used."
        return AddInDiscovery(kept, "cached", (warning("AddInDiscoveryFallback", message),))
    if not msbuild.possible:
        message = "No add-ins were found on disk. MSBuild may know more, but it needs .NET."
        return AddInDiscovery((), None, (warning("AddInDiscoveryFallback", message, REMEDIES["DotNetNotFound"]),))
    if trusted():
        started = time.monotonic()
        outcome = msbuild.ask()
        seconds = time.monotonic() - started
        message = f"The add-ins could not be found on disk; MSBuild was asked instead, which took {seconds:.1f} s."
        return outcome.replace(issues=(warning("AddInDiscoveryFallback", message), *outcome.issues))
    message = "No add-ins were found on disk. MSBuild may know more, but it would run this workspace's build."
    remedy = "Run 'dotnet restore', or let MSBuild answer: uno-devserver disco --force-msbuild-discovery."
    return AddInDiscovery((), None, (warning("AddInDiscoveryFallback", message, remedy),))


class Comparison(Value):
    """What reading the files and MSBuild say of the same workspace; paths of add-ins that exist."""

    only_read: tuple[str, ...]
    only_msbuild: tuple[str, ...]


def compare(read: AddInDiscovery, msbuild: AddInDiscovery) -> Comparison:
    """Compares two discoveries; MSBuild knows no manifests, so packages that have one are left out of both.

    Where MSBuild gave no answer there is nothing to compare.
    """
    if msbuild.failed and not msbuild.found:
        return Comparison((), ())
    own = {(addin.package.lower(), addin.version.lower()) for addin in read.found if addin.source == "manifest"}
    paths = [
        {addin.path for addin in one.found if (addin.package.lower(), addin.version.lower()) not in own}
        for one in (read, msbuild)
    ]
    return Comparison(tuple(sorted(paths[0] - paths[1])), tuple(sorted(paths[1] - paths[0])))


def _package_of(path: str) -> tuple[str, str]:
    """Id and version from a path `<id>/<version>/tools/devserver/x.dll`; otherwise the file's name, and no version."""
    parts = os.path.normpath(path).split(os.sep)
    if len(parts) >= 5 and [part.lower() for part in parts[-3:-1]] == ["tools", "devserver"]:
        return parts[-5], parts[-4]
    return os.path.splitext(parts[-1])[0], ""
