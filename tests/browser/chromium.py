"""The system's Chromium, without a window and without anything that it does of its own accord."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from support.programs import needed

ARGUMENTS = [
    "--no-sandbox",  # it wants a user other than root, or namespaces that containers do not have
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LAUNCH_MS = 60_000  # it takes two seconds, but several may start at once on a small machine


@contextmanager
def launched() -> Iterator[Browser]:
    program = needed("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, timeout=LAUNCH_MS)
        try:
            yield browser
        finally:
            browser.close()
