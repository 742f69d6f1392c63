from __future__ import annotations

from pathlib import Path

import pytest

from support.addins import AddInFolder


@pytest.fixture
def addins(tmp_path: Path) -> AddInFolder:
    return AddInFolder(tmp_path)
