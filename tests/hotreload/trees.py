"""Real trees of source files for the tests of fingerprints, with a watching and a reading view of each."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.privileges import ROOT
from uno_devserver.hotreload.fingerprint import Fingerprint
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

NOBODY = 65534


def fingerprint(root: Path, *, watches: bool = True, include: tuple[str, ...] = ()) -> Fingerprint:
    package = WatchedPackage(Role.SERVER, str(root), include)
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


@contextmanager
def as_ordinary_user() -> Iterator[Path]:
    """A folder of a user who may not read everything; root becomes somebody else for it."""
    folder = Path(tempfile.mkdtemp(prefix="u"))
    is_root = ROOT
    if is_root:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        for path, _, _ in os.walk(folder):
            os.chmod(path, 0o755)
        shutil.rmtree(folder)
