"""The inspector page as somebody uses it: by the names that are on it."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Locator, Page, Request, expect

from browser.watching import Visit, seen

VIEWS = ("Overview", "Calls", "Tools", "Resources", "Prompts", "Log", "Reloads", "Servers")


class Screen:
    def __init__(self, page: Page, visit: Visit) -> None:
        self.page = page
        self.visit = visit
        self.requests: list[dict[str, Any]] = []  # MCP messages that the page has sent
        page.on("request", self._on_request)

    # --- the frame

    @property
    def connection(self) -> Locator:
        return self.page.locator("#connection")

    def wait_connected(self) -> None:
        expect(self.connection).to_have_text("Live")

    def go(self, view: str) -> Locator:
        """Choose a view as a mouse does; the section that shows it."""
        self.page.get_by_role("navigation", name="Views").get_by_role("link", name=view, exact=True).click()
        return self.view(view)

    def view(self, name: str) -> Locator:
        heading = self.page.get_by_role("heading", level=2, name=name, exact=True)
        expect(heading).to_be_visible()
        return self.page.locator("section").filter(has=heading)

    def field(self, name: str) -> Locator:
        return self.page.locator(f'[data-field="{name}"]')

    def seen(self, key: str) -> list[str]:
        return seen(self.page, key)

    # --- tools

    def choose(self, tool: str) -> Locator:
        """Open a tool; its form."""
        tools = self.go("Tools")
        named = re.compile(rf"^{re.escape(tool)}\b")
        tools.get_by_role("button", name=named).or_(tools.get_by_role("link", name=named)).first.click()
        form = tools.get_by_role("form", name=f"Call {tool}", exact=True)
        expect(form).to_be_visible()
        return form

    def call(self, tool: str, **fields: str) -> Locator:
        """Fill the form of a tool, send it, and have the result."""
        form = self.choose(tool)
        for name, value in fields.items():
            labelled(form, name).fill(value)
        self.send(form)
        return self.result

    def send(self, form: Locator) -> None:
        form.get_by_role("button", name="Call", exact=True).click()

    @property
    def result(self) -> Locator:
        return self.page.get_by_role("region", name="Result", exact=True)

    def sent(self, method: str) -> list[dict[str, Any]]:
        """The parameters of the page's requests of that method."""
        return [each.get("params", {}) for each in self.requests if each.get("method") == method]

    def _on_request(self, request: Request) -> None:
        if request.method == "POST" and "/mcp" in request.url:
            self.requests.append(json.loads(request.post_data or "{}"))

    # --- calls

    def row(self, name: str) -> Locator:
        """The rows of the calls of a tool."""
        return self.page.locator("[data-call]").filter(has_text=name)


def labelled(form: Locator, name: str, number: int = 0) -> Locator:
    """The control whose label begins with the name of a property; of several, the one of that number."""
    named = form.get_by_label(re.compile(rf"^\s*{re.escape(name)}\b", re.IGNORECASE))
    return named.and_(form.locator("input, select, textarea")).nth(number)


def expect_outcome(result: Locator, outcome: str) -> None:
    """That a call has come to its end, so."""
    expect(result).to_have_attribute("data-outcome", outcome)
