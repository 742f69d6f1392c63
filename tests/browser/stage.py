"""An empty page under the policy of the real one, in which a test calls modules of the page with what it makes up."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

BOUND_MS = 30_000  # for what takes a second at most on an idle machine; a hanging page is noticed


def evaluate(page: Page, script: str, given: dict[str, Any] | None = None) -> Any:
    """What the script gives; `stage` is the page's element, and what was given is there by its names."""
    names = ", ".join(given or {})
    function = f"async ([{{{names}}}]) => {{ const stage = document.getElementById('stage'); {script} }}"
    late = f"new Promise((_, reject) => setTimeout(reject, {BOUND_MS}, Error('it hangs')))"
    return page.evaluate(f"(given) => Promise.race([({function})(given), {late}])", [given or {}])
