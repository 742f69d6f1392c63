"""`login <url>` with a real browser, on the pages of a real authorization server."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from support.machine import Machine
from support.sign_ins import AuthorizationServer, Login


def test_a_user_signs_in_and_is_told_to_close_the_page(browser: Browser, tmp_path: Path) -> None:
    with AuthorizationServer() as authorization:
        running = Login(Machine(tmp_path), authorization.protected_server())
        page = browser.new_page()
        page.goto(running.page())
        page.locator("[name=login]").fill("somebody")
        page.locator("[name=password]").fill("a password")
        page.locator("[type=submit]").click()
        page.get_by_role("button", name="Continue").click()

        expect(page.get_by_text("You can close this page.")).to_be_visible()
        assert "127.0.0.1" in page.url
        page.close()

        assert running.result()["valid"] is True
