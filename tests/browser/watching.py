"""Pages of a browser, and a witness to everything that a good page never does.

    with Visit(browser, inspected.address) as visit:
        page = visit.open(inspected.new_url())

The block fails on an error in the console, an exception of a script, or a request to another origin than this one. A
test that provokes one of them says so in `expected`.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, WebError

WAIT_MS = 15_000  # for what takes some milliseconds on an idle machine
LOST = "net::ERR_"  # the browser's word in the console for a server that is not there
REFUSED = "the server responded with a status of 40"  # and for one that does not let it in
NAME = re.compile(r"//[0-9a-f]{20}\.(?=localhost:)")  # that a page has before the origin which a test knows
# What a script of ours watches: the text of elements, and the states of calls, with each value that they ever had.
HISTORY = """
window.seen = {};
new MutationObserver(() => {
  const note = (key, value) => {
    const values = (window.seen[key] ??= []);
    if (values.at(-1) !== value) values.push(value);
  };
  for (const each of document.querySelectorAll("#connection, [data-field]"))
    note(each.id || each.dataset.field, each.textContent.trim());
  for (const each of document.querySelectorAll("[data-call]"))
    note("call " + each.dataset.call, each.dataset.state);
}).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
"""


class Visit:
    """One browser context: cookies, storage and theme of its own."""

    def __init__(self, browser: Browser, *origins: str, **options: Any) -> None:
        self._origins = origins
        self.expected: list[str] = []  # parts of messages that are no problem
        self.problems: list[str] = []
        self._context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        self._context.set_default_timeout(WAIT_MS)
        self._context.add_init_script(HISTORY)
        self._context.on("console", self._on_console)
        self._context.on("weberror", self._on_error)
        self._context.on("request", self._on_request)

    def __enter__(self) -> Visit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.close()
        unexpected = [each for each in self.problems if not any(part in each for part in self.expected)]
        if error is None:
            assert not unexpected, unexpected
        elif unexpected:
            error.add_note(f"The browser saw: {unexpected}")

    def open(self, url: str) -> Page:
        page = self._context.new_page()
        page.goto(url)
        return page

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text} ({message.location.get('url')})")

    def _on_error(self, error: WebError) -> None:
        self.problems.append(f"exception: {error.error}")

    def _on_request(self, request: Request) -> None:
        url = NAME.sub("//", request.url)
        if not url.startswith((*(f"{origin}/" for origin in self._origins), "data:", "blob:", "about:")):
            self.problems.append(f"request to {request.url}")


def seen(page: Page, key: str) -> list[str]:
    """All values that an element had on this page, oldest first: `connection`, a `data-field`, or `call <id>`."""
    values: list[str] = page.evaluate("key => window.seen[key] ?? []", key)
    return values
