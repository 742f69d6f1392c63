"""A temp folder of its own for each test's pipes, with a path that a socket's address has room for."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix="u", dir="/tmp")
    monkeypatch.setenv("TMPDIR", folder)
    yield Path(folder)
    shutil.rmtree(folder)
