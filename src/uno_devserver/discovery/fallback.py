"""Fallbacks for a search that finds no add-ins: the last known good result, then MSBuild.

MSBuild runs the build of the workspace, so it is asked only if the user requested that on the command line or trusts
the workspace; otherwise an issue says how to request it.
"""

from __future__ import annotations

import os

from ..issues import warning
from ..system.values import Value
from .entry_points import AddInDiscovery, DiscoveredAddIn
from .last_known_good import LastKnownGood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .addins import AddInSearchResult


class MSBuild(Value):
    """A question to MSBuild, asked only if it is needed."""

    solution: str | None
    host_path: Callable[[], str | None]
    scratch: str
    environ: Mapping[str, str]

    def ask(self) -> AddInDiscovery:
        from .msbuild_query import ask_msbuild

        if self.solution is None:
            issue = warning("MSBuildDiscoveryFailed", "There is no solution or project to ask MSBuild about.")
            return AddInDiscovery(issues=(issue,), failed=True)
        answer = ask_msbuild(self.solution, self.host_path(), self.scratch, self.environ)
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
        known_good.save(packages, addins.found)
        return AddInDiscovery(addins.found, "+".join(dict.fromkeys(addin.source for addin in addins.found)))
    if not expected:
        return AddInDiscovery((), None)
    kept = known_good.load(packages if readable else None)
    if kept:
        message = "The add-ins could not be found on disk; the last known good ones are used."
        return AddInDiscovery(kept, "cached", (warning("AddInDiscoveryFallback", message),))
    if trusted():
        message = "The add-ins could not be found on disk; MSBuild was asked instead."
        outcome = msbuild.ask()
        return outcome.replace(issues=(warning("AddInDiscoveryFallback", message), *outcome.issues))
    message = "No add-ins were found on disk. MSBuild may know more, but it would run this workspace's build."
    remedy = "Run 'dotnet restore', or let MSBuild answer: uno-devserver disco --force-msbuild-discovery."
    return AddInDiscovery((), None, (warning("AddInDiscoveryFallback", message, remedy),))


def _package_of(path: str) -> tuple[str, str]:
    """Id and version from a path `<id>/<version>/tools/devserver/x.dll`; otherwise the file's name, and no version."""
    parts = os.path.normpath(path).split(os.sep)
    if len(parts) >= 5 and [part.lower() for part in parts[-3:-1]] == ["tools", "devserver"]:
        return parts[-5], parts[-4]
    return os.path.splitext(parts[-1])[0], ""
