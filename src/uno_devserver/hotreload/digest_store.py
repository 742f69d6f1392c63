"""Stores, per package, the digests of the content that last started well and of the content that was last built.

Later proxies read them. Both are needed, because proxies share the output of a build and one may be killed between the
build and the start. A file that cannot be read is treated as missing. If it cannot be written, this process uses what
it would have written.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable

from ..system.locks import FileLock
from ..system.log import log
from ..system.state_files import name_for, read_state, write_state
from ..system.values import Value

VERSION = 1
MAX_BYTES = 1024 * 1024  # a package takes a few hundred bytes
LOCK_SECONDS = 2.0  # the lock is held for a few milliseconds
UNKNOWN = ""  # the digest for a build that was begun and has not succeeded


class StoredDigests(Value):
    """The digests of the sources of one package."""

    started: str  # of the content that last started well
    built: str  # of the content that was last built; UNKNOWN differs from every content
    # The digest of the output that was built or started last, and of the content that it was built from; empty: no such
    # output.
    output: tuple[str, ...] = ()
    built_at: float = 0.0  # when that build ended, in seconds since 1970; 0 if it is not known


NOTHING = StoredDigests(UNKNOWN, UNKNOWN)


class DigestStore:
    """All methods block, usually for milliseconds."""

    def __init__(self, state: str) -> None:
        """`state` is the folder of our own files."""
        self._state = state
        self._path = os.path.join(state, "hotreload", "digests.json")  # several workspaces may share a package
        self._unwritten: dict[str, StoredDigests] = {}  # changes of this process that could not be written
        self._one_at_a_time = threading.Lock()  # wakes the next thread at once; the lock between processes is polled

    def get(self, key: str) -> StoredDigests | None:
        """The stored digests of a package; None if it has never been built or started well."""
        return self._unwritten.get(key) or self._read().get(key)

    def put(self, key: str, digest: str, output: tuple[str, ...] = ()) -> None:
        """Store that a package without a build has started well with this content."""
        self._change(key, lambda _before: StoredDigests(digest, digest, output))

    def building(self, key: str) -> None:
        """Store that a build begins; until `built`, the content of its output is unknown."""
        self._change(key, lambda before: (before or NOTHING).replace(built=UNKNOWN))

    def built(self, key: str, digest: str) -> None:
        """Store that a build of this content has succeeded."""
        now = round(time.time(), 3)
        self._change(key, lambda before: (before or NOTHING).replace(built=digest, built_at=now))

    def wrote(self, key: str, output: tuple[str, ...]) -> None:
        """Store what the last build has written."""
        self._change(key, lambda before: (before or NOTHING).replace(output=output))

    def started(self, key: str, digest: str, output: tuple[str, ...] | None = None) -> None:
        """Store that a package with a build has started well; what is stored of its last build stays."""
        more = {} if output is None else {"output": output}
        self._change(key, lambda before: (before or StoredDigests(digest, digest)).replace(started=digest, **more))

    def build_lock(self, root: str) -> FileLock:
        """The lock that a process holds while it builds this package; several workspaces may share the package."""
        return FileLock(os.path.join(self._state, "locks", f"build-{name_for(root)}.lock"))

    def _change(self, key: str, change: Callable[[StoredDigests | None], StoredDigests]) -> None:
        lock = FileLock(os.path.join(self._state, "locks", f"hotreload-{os.path.basename(self._path)}.lock"))
        with self._one_at_a_time:
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
        # Entries of other types are dropped, because a number like NaN would make the next file invalid JSON.
        return {key: digests for key, value in packages.items() if (digests := _entry(value)) is not None}


def _entry(value: object) -> StoredDigests | None:
    started = value.get("sha256") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(started, str):
        return None
    built = value.get("built", started)
    output = value.get("output")
    built_at = value.get("builtAt")
    is_pair = isinstance(output, list) and len(output) == 2 and all(isinstance(each, str) for each in output)
    return StoredDigests(
        started,
        built if isinstance(built, str) else UNKNOWN,
        tuple(output) if output and is_pair else (),
        built_at if isinstance(built_at, float) and 0.0 < built_at < math.inf else 0.0,
    )


def _members(digests: StoredDigests) -> dict[str, object]:
    members: dict[str, object] = {"sha256": digests.started}
    if digests.built != digests.started:
        members["built"] = digests.built
    if digests.output:
        members["output"] = list(digests.output)
    if digests.built_at:
        members["builtAt"] = digests.built_at
    return members
