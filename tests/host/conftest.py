from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.addins import AddInFolder


@pytest.fixture
def addins(tmp_path: Path) -> AddInFolder:
    return AddInFolder(tmp_path)


@pytest.fixture
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temp folder for a test's pipes, whose path is short enough for a socket's address."""
    folder = tempfile.mkdtemp(prefix="u", dir="/tmp")
    monkeypatch.setenv("TMPDIR", folder)
    yield Path(folder)
    shutil.rmtree(folder)
