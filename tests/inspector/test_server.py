"""The inspector over real sockets: its routes, who gets in, which port it takes, and that it gives it back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support.inspectors import last_port_taken
from uno_devserver.inspector import server
from uno_devserver.inspector.server import ATTEMPTS, asset, open_inspector
from uno_devserver.issues import Issue
from uno_devserver.system.ports import is_free, listen_on, loopback_addresses

from .serving import TOKEN, ask, feed, inspecting, mcp, viewing

PAGE = Path(server.PAGE_FOLDER)
PATHS = ["/", "/mcp", "/health", "/events", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token=" + "t" * 31, "?token=" + "t" * 33])
async def test_without_the_token_nothing_is_told(path: str, query: str) -> None:
    async with inspecting() as inspector:
        answer = await ask(inspector, path + query)

        assert answer.status == 401
        assert b"uno-devserver inspect" in answer.body  # what to do
        assert b"Healthy" not in answer.body


@pytest.mark.parametrize("path", [*PATHS, "/assets/app.js"])
async def test_a_page_of_another_port_gets_nothing_although_it_has_the_token(path: str) -> None:
    async with inspecting() as inspector:
        answer = await ask(inspector, f"{path}?token={TOKEN}", Origin="http://localhost:3000")
        embedded = await ask(inspector, f"{path}?token={TOKEN}", Sec_Fetch_Site="same-site", Sec_Fetch_Mode="no-cors")

    assert (answer.status, embedded.status) == (403, 403)
    assert answer.headers["Access-Control-Allow-Origin"] is None


async def test_the_page_is_served_with_a_policy_that_lets_nothing_foreign_run() -> None:
    async with inspecting() as inspector:
        answer = await ask(inspector, f"/?token={TOKEN}")

    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'; script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    assert TOKEN.encode() not in answer.body


async def test_each_file_of_the_page_is_served_by_its_type_without_a_token() -> None:
    names = [path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.is_file()]

    assert len(names) > 5
    async with inspecting() as inspector:
        for name in names:
            answer = await ask(inspector, f"/assets/{name}")
            if name.endswith(".html"):  # whole pages: which is shown depends on the token
                assert answer.status == 404
            else:
                assert (answer.status, answer.body) == (200, (PAGE / name).read_bytes()), name
                assert answer.headers["Content-Type"].startswith(("text/css", "text/javascript", "image/svg+xml"))


def test_a_name_counts_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PAGE_FOLDER", str(tmp_path))
    for name in ("app.js", "app.js.orig", "x-app.js.css", ".app.js"):
        (tmp_path / name).write_text("content")

    assert asset("app.js").status == 200
    assert [asset(name).status for name in ("app.js.orig", "x-app.js.css", ".app.js")] == [404] * 3


@pytest.mark.parametrize(
    "name",
    ["../server.py", "..%2fserver.py", "%2e%2e/server.py", "views/../../server.py", "/etc/passwd", "", "x.js", "views"],
)
async def test_no_path_leads_out_of_the_folder_of_the_page(name: str) -> None:
    async with inspecting() as inspector:
        assert (await ask(inspector, f"/assets/{name}")).status == 404


@pytest.mark.parametrize(("status", "expected"), [("Healthy", 200), ("Degraded", 503), ("Unhealthy", 503)])
async def test_health_is_200_only_where_all_is_well(status: str, expected: int) -> None:
    async with inspecting(status=status) as inspector:
        answer = await ask(inspector, "/health", Authorization=f"Bearer {TOKEN}")

    assert (answer.status, json.loads(answer.body)) == (expected, {"status": status})


async def test_what_is_posted_to_mcp_is_answered_there() -> None:
    async with inspecting() as inspector:
        answers = [await ask(inspector, path, "POST", b"hello") for path in (f"/mcp?token={TOKEN}", f"/mcp/{TOKEN}")]

    assert [(answer.status, answer.body) for answer in answers] == [(200, b"mcp got hello")] * 2


@pytest.mark.parametrize("path", ["/", "/health", "/events", "/assets/app.js"])
async def test_the_rest_can_only_be_read(path: str) -> None:
    async with inspecting() as inspector:
        answer = await ask(inspector, f"{path}?token={TOKEN}", "POST", b"x")

    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


async def test_a_taken_port_leads_to_the_next_free_one() -> None:
    async with inspecting() as first, inspecting(port=first.port) as second, inspecting(port=first.port) as third:
        assert first.port < second.port < third.port <= first.port + ATTEMPTS
        assert second.url == f"http://localhost:{second.port}/?token={TOKEN}"


async def test_where_no_port_can_be_had_there_is_an_issue_that_says_so() -> None:
    with last_port_taken() as port:
        issue = await open_inspector(port, TOKEN, mcp=mcp, health=dict, feed=feed())

    assert isinstance(issue, Issue)
    assert issue.code == "InspectorNotServed"
    assert "port 65535 is taken by another program" in issue.message
    assert "--inspector" in issue.remediation


async def test_when_it_is_closed_its_port_is_free_although_pages_are_open() -> None:
    async with inspecting() as inspector, viewing(inspector) as viewer:
        assert (await viewer.event()).name == "snapshot"

        begun = asyncio.get_running_loop().time()
        await inspector.close()

        assert is_free(inspector.port)
        assert asyncio.get_running_loop().time() - begun < 0.9, "clients that do not leave would be given a second"
        for each in listen_on(loopback_addresses(inspector.port)):
            each.close()
