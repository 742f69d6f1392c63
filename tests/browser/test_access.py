"""Who gets in: a page that was opened with a code. Who gets nothing: everybody else, and pages of other origins."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from browser.inspected import Inspected
from browser.screen import Screen
from browser.watching import REFUSED, Visit
from support.proxies import MODERN, PATIENCE

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "markup",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "stranger", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}
CALL_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": MODERN,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "markup",
}
ATTACK_SECONDS = 8  # for what is refused at once; a stream that stays silent counts as one that gives nothing
ATTACKS = Path(__file__).with_name("attacks.js").read_text("utf-8")


@pytest.mark.parametrize("path", ["/mcp", "/health", "/events", "/code", "/other-page"])
def test_without_the_token_nothing_is_told(inspected: Inspected, path: str) -> None:
    for query, headers in (
        ("", {}),
        ("?token=", {}),
        ("?token=wrong", {}),
        (f"?token={inspected.token[:-1]}", {}),
        (f"?tokens={inspected.token}", {}),
        ("", {"Authorization": "Bearer wrong"}),
        ("", {"Authorization": f"Basic {inspected.token}"}),
    ):
        for method in ("GET", "POST"):
            status, body = _ask(inspected, method, path + query, headers, json.dumps(CALL))

            assert status == 401, (method, query, headers)
            for secret in (inspected.token, str(inspected.machine.workspace), "gallery", "greet"):
                assert secret not in body


def test_with_the_token_each_of_them_answers(inspected: Inspected) -> None:
    """The test above shows something only because of this."""
    bearer = {"Authorization": f"Bearer {inspected.token}"}
    assert _ask(inspected, "GET", f"/health?token={inspected.token}")[0] == 200
    before = len(inspected.calls())
    assert _ask(inspected, "POST", "/mcp", bearer | CALL_HEADERS, json.dumps(CALL))[0] == 200
    assert len(inspected.calls()) == before + 1


@pytest.mark.parametrize("query", ["", "?code=wrong", "?token={token}", "?code={token}"])
def test_a_browser_without_a_code_shows_what_to_do(inspected: Inspected, browser: Browser, query: str) -> None:
    with Visit(browser, inspected.address) as visit:
        visit.expected += [REFUSED]
        page = visit.open(f"{inspected.address}/{query.format(token=inspected.token)}")

        expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
        expect(page.locator("body")).to_contain_text("uno-devserver inspect")
        assert inspected.machine.workspace.name not in page.locator("body").inner_text().split()


def test_the_code_is_gone_from_the_address_and_the_history_before_anything_else_is_loaded(
    inspected: Inspected, browser: Browser
) -> None:
    url = inspected.new_url()
    address, _, code = url.partition("/?code=")
    with Visit(browser, inspected.address) as visit:
        page = visit.open(f"{address}/refused")
        visit.expected += [REFUSED]
        asked: list[tuple[str, str]] = []
        page.on("request", lambda request: asked.append((request.url, request.headers.get("referer", ""))))

        page.goto(f"{url}#calls")
        Screen(page, visit).wait_connected()

        assert page.url == f"{address}/#calls"
        assert [each for each in asked if code in "".join(each)] == [(url, "")]
        page.go_back()
        page.wait_for_url(f"{address}/refused")
        page.go_forward()
        page.wait_for_url(f"{address}/#calls")
        Screen(page, visit).wait_connected()
        assert code not in page.content()


def test_the_key_is_kept_for_the_tab_and_in_no_cookie(inspected: Inspected, browser: Browser) -> None:
    """Cookies would be sent to every port of this machine."""
    with Visit(browser, inspected.address) as visit:
        visit.expected += [REFUSED]
        url = inspected.new_url()
        page = visit.open(url)
        Screen(page, visit).wait_connected()

        page.reload()
        Screen(page, visit).wait_connected()

        assert page.context.cookies() == []
        kept = page.evaluate("JSON.stringify([document.cookie, localStorage])")
        assert page.evaluate("window.pageKey") not in kept
        other = visit.open(url.partition("?")[0])  # a second tab, whose user typed the address
        expect(other.get_by_role("heading", name="Not allowed")).to_be_visible()
        with page.expect_popup() as popup:
            page.evaluate("void window.open('/')")  # a duplicate: browsers copy the storage of the tab
        Screen(popup.value, visit).wait_connected()


def test_a_url_opens_the_page_in_one_tab_only(inspected: Inspected, browser: Browser) -> None:
    url = inspected.new_url()
    with Visit(browser, inspected.address) as visit:
        Screen(visit.open(url), visit).wait_connected()
        visit.expected += [REFUSED]

        again = visit.open(url)

        expect(again.get_by_role("heading", name="Not allowed")).to_be_visible()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_page_of_another_origin_gets_nothing(inspected: Inspected, browser: Browser, name: str) -> None:
    before = inspected.calls()
    with _other_site() as port, Visit(browser) as visit:
        visit.expected += ["console: ", "request to "]  # it is that page's business
        page = visit.open(f"http://{name}:{port}/")

        learned: dict[str, Any] = page.evaluate(
            ATTACKS,
            {
                "address": inspected.address,
                "token": inspected.token,
                "call": CALL,
                "headers": CALL_HEADERS,
                "seconds": ATTACK_SECONDS,
            },
        )

        assert len(learned) > 20
        assert {how: what for how, what in learned.items() if what is not None} == {}
        for frame in page.frames[1:]:
            assert "Overview" not in frame.content()
            assert str(inspected.machine.workspace) not in frame.content()
    assert inspected.calls() == before


def test_the_same_page_at_its_other_address_gets_nothing(inspected: Inspected, browser: Browser) -> None:
    """`127.0.0.1` and `localhost` are two origins, even where one server answers on both."""
    with Visit(browser) as visit:
        visit.expected += ["console: ", "request to "]
        page = visit.open(f"http://127.0.0.1:{inspected.port}/?token=wrong")

        learned = page.evaluate(
            "url => fetch(url).then(response => response.text(), () => null)",
            f"{inspected.address}/health?token={inspected.token}",
        )

        assert learned is None


def test_a_link_on_another_page_may_lead_to_it(inspected: Inspected, browser: Browser) -> None:
    with _other_site(f'<a href="{inspected.new_url()}">the inspector</a>') as port:
        other = f"http://127.0.0.1:{port}"
        with Visit(browser, inspected.address, other) as visit:
            page = visit.open(f"{other}/")
            page.get_by_role("link", name="the inspector").click()

            Screen(page, visit).wait_connected()


def _ask(
    inspected: Inspected, method: str, path: str, headers: dict[str, str] | None = None, body: str = ""
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("localhost", inspected.port, timeout=PATIENCE)
    try:
        connection.request(method, path, body if method == "POST" else None, headers or {})
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    finally:
        connection.close()


@contextmanager
def _other_site(markup: str = "") -> Iterator[int]:
    """A web site on another port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = urlsplit(self.path).path == "/"
            self.send_response(200 if found else 204)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            if found:
                self.wfile.write(f"<!doctype html><title>another site</title>{markup}".encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
