"""Who gets in, by headers and token alone."""

from __future__ import annotations

import pytest

from uno_devserver.inspector.access import is_known, stranger
from uno_devserver.protocol.http.messages import Request

OWN = {"host": "localhost:6274"}
TOKEN = "a" * 31 + "B"


def test_a_program_without_a_browser_is_no_stranger() -> None:
    assert stranger(OWN) is None


@pytest.mark.parametrize("host", ["localhost:6274", "127.0.0.1:6274", "[::1]:6274", "LOCALHOST:6274"])
def test_the_page_itself_may_ask_under_each_name_of_this_machine(host: str) -> None:
    assert stranger({"host": host, "origin": f"http://{host.lower()}", "sec-fetch-site": "same-origin"}) is None


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3000", "http://127.0.0.1:6274", "https://localhost:6274", "http://evil.example", "null", ""],
)
def test_a_page_of_another_origin_may_not(origin: str) -> None:
    refused = stranger({**OWN, "origin": origin})

    assert refused is not None
    assert repr(origin) in refused


@pytest.mark.parametrize("host", ["evil.example:6274", "evil.example"])
def test_a_name_that_somebody_made_point_here_is_refused(host: str) -> None:
    assert stranger({"host": host, "origin": f"http://{host}"}) is not None


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "dest"), [("no-cors", "script"), ("navigate", "iframe"), ("cors", "empty"), ("websocket", "websocket")]
)
def test_what_another_site_embeds_is_refused_also_without_an_origin(site: str, mode: str, dest: str) -> None:
    assert stranger({**OWN, "sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}) is not None


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_a_link_on_another_site_may_lead_here(site: str) -> None:
    assert stranger({**OWN, "sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}) is None


def test_a_form_of_another_site_may_not_lead_here() -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}

    assert stranger({**OWN, **headers, "origin": "http://evil.example"}) is not None


def _request(query: str = "", **headers: str) -> Request:
    return Request("GET", "/", query, headers, b"")


@pytest.mark.parametrize("query", [f"token={TOKEN}", f"a=b&token={TOKEN}", f"token={TOKEN}&a=b"])
def test_the_token_is_taken_from_the_query(query: str) -> None:
    assert is_known(_request(query), TOKEN)


@pytest.mark.parametrize("value", [f"Bearer {TOKEN}", f"bearer  {TOKEN}"])
def test_or_from_the_header_that_programs_use(value: str) -> None:
    assert is_known(_request(authorization=value), TOKEN)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "token=",
        f"token={TOKEN[:-1]}",
        f"token={TOKEN}x",
        f"token={TOKEN.lower()}",
        f"xtoken={TOKEN}",
        "token=\udcff",
    ],
)
def test_nothing_else_will_do(query: str) -> None:
    assert not is_known(_request(query), TOKEN)


@pytest.mark.parametrize("value", ["", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN} x", "Bearer x"])
def test_nor_in_the_header(value: str) -> None:
    assert not is_known(_request(authorization=value), TOKEN)


@pytest.mark.parametrize("path", [f"/mcp/{TOKEN}", f"/MCP/{TOKEN}/"])
def test_or_from_the_path_of_mcp(path: str) -> None:
    assert is_known(Request("POST", path, "", {}, b""), TOKEN)


@pytest.mark.parametrize(
    "path", ["/mcp/", "/mcp/x", f"/mcp/{TOKEN}/x", f"/{TOKEN}", f"/mcp/x/{TOKEN}", f"/health/{TOKEN}"]
)
def test_but_of_nothing_else(path: str) -> None:
    assert not is_known(Request("POST", path, "", {}, b""), TOKEN)


def test_a_wrong_header_is_not_mended_by_the_query() -> None:
    assert not is_known(_request(f"token={TOKEN}", authorization="Bearer x"), TOKEN)
