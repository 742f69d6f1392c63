"""What is known of a workspace's packages from one proxy to the next: the content that last started well.

Between a build and the good start of what it made, it is also kept what the output of the build stands for: several
proxies share that output, and one may be killed at any moment. A file that cannot be read or written is as good as
none; what this process itself has put is known to it all the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from ..system.files import FileProblem, read_bytes, write_atomic
from ..system.jsonc import JsonProblem, parse
from ..system.locks import FileLock
from ..system.log import log
from ..system.state_files import name_for
from ..system.values import Value

VERSION = 1
MAX_BYTES = 1024 * 1024  # some hundred bytes per package
LOCK_SECONDS = 2.0  # whoever has the file needs a few milliseconds
UNKNOWN = ""  # a build was begun, and has not gone well


class StoredDigests(Value):
    """Of one package; a digest of its sources each."""

    started: str  # what last started well
    built: str  # what the output of its build was made of; UNKNOWN counts as no content


class DigestStore:
    """All methods block, for milliseconds as a rule."""

    def __init__(self, state: str, workspace: str) -> None:
        """`state` is the folder of our own files."""
        self._state = state
        self._path = os.path.join(state, "hotreload", f"{name_for(workspace)}.json")
        self._own: dict[str, StoredDigests] = {}  # what this process has put where the file could not be written

    def get(self, key: str) -> StoredDigests | None:
        """None: the package was never seen to start."""
        return self._own.get(key) or self._read().get(key)

    def put(self, key: str, digest: str) -> None:
        """A package without a build has started well with this content."""
        self._change(key, lambda _before: StoredDigests(digest, digest))

    def building(self, key: str) -> None:
        """A build begins: until it is done, nobody knows what its output is."""
        self._change(key, lambda before: StoredDigests(before.started if before else UNKNOWN, UNKNOWN))

    def built(self, key: str, digest: str) -> None:
        """A build of this content has gone well."""
        self._change(key, lambda before: StoredDigests(before.started if before else UNKNOWN, digest))

    def started(self, key: str, digest: str) -> None:
        """What was built has started well. Where somebody has built other content meanwhile, that stays known."""
        self._change(key, lambda before: StoredDigests(digest, before.built if before else digest))

    def build_lock(self, root: str) -> FileLock:
        """Held by the one process that builds this package, whichever workspace it belongs to."""
        return FileLock(os.path.join(self._state, "locks", f"build-{name_for(root)}.lock"))

    def _change(self, key: str, change: Callable[[StoredDigests | None], StoredDigests]) -> None:
        lock = FileLock(os.path.join(self._state, "locks", f"hotreload-{os.path.basename(self._path)}.lock"))
        try:
            if not lock.acquire(LOCK_SECONDS, lambda _holder: None):
                raise OSError(f"somebody else has had the lock of {self._path} for {LOCK_SECONDS:g} s")
            try:
                self._write(key, change)
            finally:
                lock.release()
            self._own.pop(key, None)
        except OSError as error:
            log.debug(f"what is known of {key} is not kept: {error}")
            self._own[key] = change(self.get(key))

    def _write(self, key: str, change: Callable[[StoredDigests | None], StoredDigests]) -> None:
        known = self._read()
        before = known.get(key)
        known[key] = after = change(before)
        if after == before:
            return
        packages = {package: _members(kept) for package, kept in known.items()}
        content = json.dumps({"version": VERSION, "packages": packages}, indent=2)
        write_atomic(self._path, content.encode("ascii"))

    def _read(self) -> dict[str, StoredDigests]:
        try:
            document = parse(read_bytes(self._path, MAX_BYTES))
        except FileNotFoundError:
            return {}
        except (FileProblem, JsonProblem) as problem:
            log.debug(f"{self._path} is not used: {problem}")
            return {}
        packages = document.get("packages") if isinstance(document, dict) else None
        if not isinstance(packages, dict) or not isinstance(document, dict) or document.get("version") != VERSION:
            log.debug(f"{self._path} is not used: it was not written by this version.")
            return {}
        # What else there may be is not written again: a number that is no JSON would spoil all of it.
        return {key: kept for key, value in packages.items() if (kept := _entry(value)) is not None}


def _entry(value: object) -> StoredDigests | None:
    started = value.get("sha256") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(started, str):
        return None
    built = value.get("built", started)
    return StoredDigests(started, built if isinstance(built, str) else UNKNOWN)


def _members(kept: StoredDigests) -> dict[str, str]:
    same = kept.built == kept.started
    return {"sha256": kept.started} if same else {"sha256": kept.started, "built": kept.built}
