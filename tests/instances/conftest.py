"""Shared by the tests of the instances."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.servers import Processes, Registry


@pytest.fixture
def processes() -> Iterator[Processes]:
    started = Processes()
    yield started
    started.end()


@pytest.fixture
def folder(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "Uno Platform" / "DevServers")
