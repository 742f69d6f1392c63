"""Real trees of source files for the tests of fingerprints, with a watching and a reading view of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from uno_devserver.hotreload.fingerprint import Fingerprint
from uno_devserver.hotreload.package import Package, Role
from uno_devserver.hotreload.sources.find import find_sources


def fingerprint(root: Path, *, watches: bool = True, include: tuple[str, ...] = ()) -> Fingerprint:
    package = Package(Role.SERVER, str(root), include)
    return Fingerprint(lambda: find_sources(package), watches=watches)


def fresh_digest(root: Path, include: tuple[str, ...] = ()) -> str:
    """What somebody finds who has never looked before, and watches nothing."""
    return fingerprint(root, watches=False, include=include).digest()


@contextmanager
def watched(root: Path, include: tuple[str, ...] = ()) -> Iterator[Fingerprint]:
    """A fingerprint that has looked once, and watches."""
    one = fingerprint(root, include=include)
    try:
        one.digest()
        assert one.watching
        assert one.news() is False
        yield one
    finally:
        one.close()
