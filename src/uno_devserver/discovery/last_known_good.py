"""Keeps the add-ins that were found last in a workspace, for a discovery that finds none."""

from __future__ import annotations

import json
import os
from binascii import crc32

from ..system.files import FileProblem, remove_file
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.state_files import name_for, read_own, write_own
from .entry_points import DiscoveredAddIn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


VERSION = 1
MAX_BYTES = 1024 * 1024


class LastKnownGood:
    """The add-ins that were found last in a workspace, kept in the state folder."""

    def __init__(self, state: str, workspace: str, sdk: str) -> None:
        self._path = os.path.join(state, "addins", f"{name_for(workspace)}.json")
        self._workspace = workspace
        self._sdk = sdk

    def save(self, packages: Iterable[str], addins: Sequence[DiscoveredAddIn]) -> None:
        document = {
            "version": VERSION,
            "workspace": self._workspace,
            "sdk": self._sdk,
            "packages": _digest(packages),
            "addIns": [[addin.package, addin.version, addin.path, addin.source, addin.certain] for addin in addins],
        }
        data = json.dumps(document).encode()
        try:
            if self._read() != data:
                write_own(self._path, data)
        except OSError as error:
            log.debug(f"the add-ins found could not be kept in {self._path}: {error}")

    def load(self, packages: Iterable[str] | None) -> tuple[DiscoveredAddIn, ...]:
        """The kept add-ins; empty unless they were found with this SDK and these packages (None: any) and all exist."""
        data = self._read()
        try:
            document = parse(data) if data else None
        except JsonProblem:
            return ()
        if not isinstance(document, dict) or document.get("version") != VERSION:
            return ()
        if (document.get("workspace"), document.get("sdk")) != (self._workspace, self._sdk):
            return ()
        if packages is not None and document.get("packages") != _digest(packages):
            return ()
        entries = document.get("addIns")
        addins = [_addin(entry) for entry in entries] if isinstance(entries, list) else []
        usable = [addin for addin in addins if addin and os.path.isfile(addin.path)]
        return tuple(usable) if len(usable) == len(addins) else ()

    def forget(self) -> None:
        try:
            remove_file(self._path)
        except OSError:
            pass

    def _read(self) -> bytes:
        try:
            return read_own(self._path, MAX_BYTES)
        except (FileNotFoundError, FileProblem):
            return b""


def _addin(entry: object) -> DiscoveredAddIn | None:
    if not isinstance(entry, list) or len(entry) != 5 or not isinstance(entry[4], bool):
        return None
    return DiscoveredAddIn(*entry) if all(isinstance(part, str) for part in entry[:4]) else None


def _digest(texts: Iterable[str]) -> str:
    # Not for security, because every path is checked on disk before use. Importing hashlib would take 3 ms.
    # Names may contain lone surrogates, from a path that is not valid UTF-8 or from JSON.
    return f"{crc32(chr(10).join(texts).encode('utf-8', 'surrogatepass')):08x}"
