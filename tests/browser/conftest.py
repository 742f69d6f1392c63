"""One browser for all tests of this folder, and what they look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.chromium import launched
from browser.inspected import Inspected
from browser.screen import Screen
from browser.watching import REFUSED, WAIT_MS, Visit

expect.set_options(timeout=WAIT_MS)
Opener = Callable[..., Screen]


# Not longer than this folder's tests: while it runs, this thread has a running event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="package")
def inspected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspected]:
    """For tests that leave it as it was: many have the same."""
    with Inspected(tmp_path_factory.mktemp("inspected")) as inspected:
        yield inspected


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Inspected]:
    """For tests that edit, kill, or start it anew."""
    with Inspected(tmp_path) as inspected:
        yield inspected


@pytest.fixture(scope="module")
def visited(inspected: Inspected, browser: Browser) -> Iterator[Page]:
    """Of the same origin and policy, but without a script of its own: nobody who is refused gets one."""
    with Visit(browser, inspected.address) as visit:
        visit.expected += [REFUSED]
        yield visit.open(f"{inspected.address}/refused")


@pytest.fixture
def page(visited: Page) -> Page:
    """With nothing in it but an element for what a test puts there."""
    visited.evaluate("document.body.replaceChildren(Object.assign(document.createElement('main'), {id: 'stage'}))")
    return visited


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opener]:
    """Opens the page of an inspector, in a browser context that sees to it that nothing goes wrong."""
    with ExitStack() as visits:

        def open_page(inspected: Inspected, view: str = "", **options: Any) -> Screen:
            visit = visits.enter_context(Visit(browser, inspected.address, **options))
            screen = Screen(visit.open(f"{inspected.new_url()}#{view}"), visit)
            screen.wait_connected()
            return screen

        yield open_page
