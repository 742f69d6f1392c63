"""Fallbacks for a search that finds no add-ins: the last known good result, then MSBuild.

MSBuild runs the build of the workspace. So it is asked only if the user requested that on the command line or trusts
the workspace; otherwise an issue tells how to request it.
"""

from __future__ import annotations

import json
import os
from binascii import crc32

from ..issues import warning
from ..system.files import FileProblem, read_bytes, write_atomic
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.state_files import name_for
from ..system.values import Value
from .entry_points import AddInDiscovery, DiscoveredAddIn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
        log.info("Asking MSBuild, which takes 10 to 30 seconds ...")
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
    """The add-ins to use. `readable`: the package list could be read; `expected`: the SDK should bring add-ins."""
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


KNOWN_GOOD_VERSION = 1
MAX_KNOWN_GOOD_BYTES = 1024 * 1024


class LastKnownGood:
    """The add-ins that were found last in a workspace, kept in the state folder."""

    def __init__(self, state: str, workspace: str, sdk: str) -> None:
        self._path = os.path.join(state, "addins", f"{name_for(workspace)}.json")
        self._workspace = workspace
        self._sdk = sdk

    def save(self, packages: Iterable[str], addins: Sequence[DiscoveredAddIn]) -> None:
        document = {
            "version": KNOWN_GOOD_VERSION,
            "workspace": self._workspace,
            "sdk": self._sdk,
            "packages": _digest(packages),
            "addIns": [[addin.package, addin.version, addin.path, addin.source, addin.certain] for addin in addins],
        }
        data = json.dumps(document).encode()
        try:
            if self._read() != data:
                write_atomic(self._path, data)
        except OSError as error:
            log.debug(f"the add-ins found could not be kept in {self._path}: {error}")

    def load(self, packages: Iterable[str] | None) -> tuple[DiscoveredAddIn, ...]:
        """The kept add-ins, if they were found with these packages (None: with this SDK) and all of them exist."""
        data = self._read()
        try:
            document = parse(data) if data else None
        except JsonProblem:
            return ()
        if not isinstance(document, dict) or document.get("version") != KNOWN_GOOD_VERSION:
            return ()
        if (document.get("workspace"), document.get("sdk")) != (self._workspace, self._sdk):
            return ()
        if packages is not None and document.get("packages") != _digest(packages):
            return ()
        entries = document.get("addIns")
        addins = [_addin(entry) for entry in entries] if isinstance(entries, list) else []
        usable = [addin for addin in addins if addin and os.path.isfile(addin.path)]
        return tuple(usable) if len(usable) == len(addins) else ()

    def _read(self) -> bytes:
        try:
            return read_bytes(self._path, MAX_KNOWN_GOOD_BYTES)
        except (FileNotFoundError, FileProblem):
            return b""


def _addin(entry: object) -> DiscoveredAddIn | None:
    if not isinstance(entry, list) or len(entry) != 5 or not isinstance(entry[4], bool):
        return None
    return DiscoveredAddIn(*entry) if all(isinstance(part, str) for part in entry[:4]) else None


def _digest(texts: Iterable[str]) -> str:
    # Not for security: every path is checked on disk before use. Importing hashlib would cost 3 ms.
    # Names may contain surrogates: from a path that is not valid UTF-8, or from half a pair in JSON.
    return f"{crc32(chr(10).join(texts).encode('utf-8', 'surrogatepass')):08x}"
