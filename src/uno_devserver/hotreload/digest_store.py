"""Stores per package the digest of the content that last started well, and that of the last build, for later proxies.

The content of a build is stored as well, because several proxies share its output and one may be killed between the
build and the start. A file that cannot be read counts as missing. If it cannot be written, this process still uses what
it has put.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ..system.locks import FileLock
from ..system.log import log
from ..system.state_files import name_for, read_state, write_state
from ..system.values import Value

VERSION = 1
MAX_BYTES = 1024 * 1024  # some hundred bytes per package
LOCK_SECONDS = 2.0  # the lock is held for a few milliseconds
UNKNOWN = ""  # the content of a build that was begun and has not succeeded


class StoredDigests(Value):
    """The digests of the sources of one package."""

    started: str  # when it last started well
    built: str  # when the output of its build was made; UNKNOWN equals no content


class DigestStore:
    """All methods block, usually for milliseconds."""

    def __init__(self, state: str, workspace: str) -> None:
        """`state` is the folder of our own files."""
        self._state = state
        self._path = os.path.join(state, "hotreload", f"{name_for(workspace)}.json")
        self._unwritten: dict[str, StoredDigests] = {}  # put by this process when the file could not be written

    def get(self, key: str) -> StoredDigests | None:
        """None: the package has never started well."""
        return self._unwritten.get(key) or self._read().get(key)

    def put(self, key: str, digest: str) -> None:
        """A package that needs no build has started well with this content."""
        self._change(key, lambda _before: StoredDigests(digest, digest))

    def building(self, key: str) -> None:
        """A build begins: until it has succeeded, the content of its output is not known."""
        self._change(key, lambda before: StoredDigests(before.started if before else UNKNOWN, UNKNOWN))

    def built(self, key: str, digest: str) -> None:
        """A build of this content has succeeded."""
        self._change(key, lambda before: StoredDigests(before.started if before else UNKNOWN, digest))

    def started(self, key: str, digest: str) -> None:
        """A package with a build has started well; if another process has built other content since, that stays."""
        self._change(key, lambda before: StoredDigests(digest, before.built if before else digest))

    def build_lock(self, root: str) -> FileLock:
        """The lock of the process that builds this package, which may belong to several workspaces."""
        return FileLock(os.path.join(self._state, "locks", f"build-{name_for(root)}.lock"))

    def _change(self, key: str, change: Callable[[StoredDigests | None], StoredDigests]) -> None:
        lock = FileLock(os.path.join(self._state, "locks", f"hotreload-{os.path.basename(self._path)}.lock"))
        try:
            if not lock.acquire(LOCK_SECONDS, lambda _holder: None):
                raise OSError(f"another process has held the lock of {self._path} for {LOCK_SECONDS:g} s")
            try:
                self._write(key, change)
            finally:
                lock.release()
            self._unwritten.pop(key, None)
        except OSError as error:
            log.debug(f"the digests of {key} are not stored: {error}")
            self._unwritten[key] = change(self.get(key))

    def _write(self, key: str, change: Callable[[StoredDigests | None], StoredDigests]) -> None:
        known = self._read()
        before = known.get(key)
        known[key] = after = change(before)
        if after == before:
            return
        packages = {package: _members(digests) for package, digests in known.items()}
        write_state(self._path, {"version": VERSION, "packages": packages})

    def _read(self) -> dict[str, StoredDigests]:
        document = read_state(self._path, MAX_BYTES)
        packages = document.get("packages")
        if not isinstance(packages, dict) or document.get("version") != VERSION:
            return {}
        # Entries of other types are dropped: a number like NaN would make the next file invalid JSON.
        return {key: digests for key, value in packages.items() if (digests := _entry(value)) is not None}


def _entry(value: object) -> StoredDigests | None:
    started = value.get("sha256") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(started, str):
        return None
    built = value.get("built", started)
    return StoredDigests(started, built if isinstance(built, str) else UNKNOWN)


def _members(digests: StoredDigests) -> dict[str, str]:
    members = {"sha256": digests.started}
    return members if digests.built == digests.started else {**members, "built": digests.built}
