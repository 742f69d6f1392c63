"""One victim and one browser for all attacks of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from browser.chromium import launched
from browser.watching import WAIT_MS

from .victim import Victim


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    """For tests that leave it as it was."""
    with Victim() as victim:
        yield victim


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=WAIT_MS)
    with launched() as browser:
        yield browser
