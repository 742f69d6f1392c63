"""Shared by the tests of the evaluator."""

from __future__ import annotations

from pathlib import Path

import pytest

from .builder import Package


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return Package(tmp_path)
