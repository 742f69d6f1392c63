"""Shared by the tests of the instances."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.servers import Registry


@pytest.fixture
def folder(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "Uno Platform" / "DevServers")
