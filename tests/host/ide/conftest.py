from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_temp(temp: Path) -> None:
    """Every test here opens pipes."""
