"""What to do when reading the disk does not give the add-ins: the last known good ones, then MSBuild.

MSBuild runs the workspace's own build, so it is asked only if the user said so on the command line or trusts the
workspace; otherwise the result says how to ask it.
"""

from __future__ import annotations

import os

from ..issues import Issue, warning
from ..system.log import log
from ..system.values import Value
from .verification import AddIn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .addins import AddIns
    from .last_known_good import LastKnownGood


class Outcome(Value):
    found: tuple[AddIn, ...]
    method: str | None  # "targets", "manifest", both joined by "+", "cached" or "msbuild"; None when nothing was found
    issues: tuple[Issue, ...] = ()
    failed: bool = False  # somebody was asked, and could not answer


class MSBuild(Value):
    """Everything that asking MSBuild takes, found out only if it comes to that."""

    solution: str | None
    host_path: Callable[[], str | None]
    scratch: str
    environ: Mapping[str, str]

    def ask(self) -> Outcome:
        from .msbuild_build import ask_msbuild

        if self.solution is None:
            message = "There is no solution or project to ask MSBuild about."
            return Outcome((), None, (warning("MSBuildDiscoveryFailed", message),), failed=True)
        log.info("Asking MSBuild, which takes 10 to 30 seconds ...")
        answer = ask_msbuild(self.solution, self.host_path(), self.scratch, self.environ)
        found = tuple(AddIn(*_package_of(path), path, "msbuild") for path in answer.paths if os.path.isfile(path))
        lost = [path for path in answer.paths if not os.path.isfile(path)]
        issues = [warning("AddInBinaryNotFound", f"MSBuild names an add-in that is missing: {path}.") for path in lost]
        method = "msbuild" if found else None
        return Outcome(found, method, (*answer.issues, *issues), failed=bool(answer.issues))


def settle(
    addins: AddIns,
    *,
    readable: bool,
    expected: bool,
    known_good: LastKnownGood,
    msbuild: MSBuild,
    trusted: Callable[[], bool],
) -> Outcome:
    """The add-ins that count. `readable`: the list of packages could be read; `expected`: the SDK brings add-ins."""
    packages = ["/".join(package) for package in addins.listed]
    if addins.found:
        known_good.save(packages, addins.found)
        return Outcome(addins.found, "+".join(dict.fromkeys(addin.source for addin in addins.found)))
    if not expected:
        return Outcome((), None)
    kept = known_good.load(packages if readable else None)
    if kept:
        message = "The add-ins could not be found on disk; the last known good ones are used."
        return Outcome(kept, "cached", (warning("AddInDiscoveryFallback", message),))
    if trusted():
        message = "The add-ins could not be found on disk; MSBuild was asked instead."
        outcome = msbuild.ask()
        return outcome.replace(issues=(warning("AddInDiscoveryFallback", message), *outcome.issues))
    message = "No add-ins were found on disk. MSBuild may know more, but it would run this workspace's build."
    remedy = "Run 'dotnet restore', or let MSBuild answer: uno-devserver disco --force-msbuild-discovery."
    return Outcome((), None, (warning("AddInDiscoveryFallback", message, remedy),))


def _package_of(path: str) -> tuple[str, str]:
    """`<id>/<version>/tools/devserver/x.dll` is the convention; elsewhere the file's name has to do."""
    parts = os.path.normpath(path).split(os.sep)
    if len(parts) >= 5 and [part.lower() for part in parts[-3:-1]] == ["tools", "devserver"]:
        return parts[-5], parts[-4]
    return os.path.splitext(parts[-1])[0], ""
