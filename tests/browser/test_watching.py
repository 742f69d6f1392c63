"""The witness itself: what it is there for does not pass unnoticed."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from browser.inspected import Inspected
from browser.watching import Visit


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("() => console.error('no paint')", "no paint"),
        ("() => new Promise(done => setTimeout(() => { setTimeout(done); throw Error('no wall'); }))", "no wall"),
        ("() => fetch('http://127.0.0.1:9/').catch(() => {})", "http://127.0.0.1:9/"),
    ],
)
def test_what_a_good_page_never_does_is_noticed(
    inspected: Inspected, browser: Browser, script: str, problem: str
) -> None:
    with pytest.raises(AssertionError, match=problem), Visit(browser, inspected.address) as visit:
        visit.open(inspected.new_url()).evaluate(script)
