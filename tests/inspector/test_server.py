"""The inspector over real sockets: its routes, who gets in, which port it takes, and that it gives it back."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.inspectors import last_port_taken
from support.waiting import until
from uno_devserver.inspector import server
from uno_devserver.inspector.server import ATTEMPTS, asset
from uno_devserver.issues import Issue
from uno_devserver.system.ports import is_free, listen_on, loopback_addresses

from .serving import OTHER_PROXY, OTHER_URL, ask, exchange, inspecting, opened_inspector, opened_page, viewing

PAGE = Path(server.PAGE_FOLDER)
PATHS = ["/mcp", "/health", "/events", "/code", "/other-page", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token=" + "t" * 32, "?code=" + "t" * 32])
async def test_without_the_token_nothing_is_told(path: str, query: str) -> None:
    async with inspecting() as inspector:
        answer = await ask(inspector, path + query)

        assert answer.status == 401
        assert b"uno-devserver inspect" in answer.body  # what to do
        assert b"Healthy" not in answer.body


async def test_each_proxy_has_a_token_of_its_own(tmp_path: Path) -> None:
    async with inspecting(folder=tmp_path) as first, inspecting(folder=tmp_path) as second:
        assert first.token != second.token
        assert (await ask(second, "/health", bearer=first.token)).status == 401


async def test_a_code_is_exchanged_once_for_a_key_that_opens_everything_a_page_needs() -> None:
    async with inspecting() as inspector:
        url = inspector.new_url()

        first, second = [await exchange(inspector, url) for _ in range(2)]

        assert (first.status, second.status) == (200, 401)
        assert first.headers["Cache-Control"] == "no-store"
        assert b"uno-devserver inspect" in second.body  # what to do
        key = json.loads(first.body)["key"]
        assert key not in (url.rpartition("=")[2], inspector.token)
        host = urlsplit(url).netloc
        assert (await ask(inspector, "/health", bearer=key, Host=host)).status == 200
        assert (await ask(inspector, "/mcp", "POST", b"hello", bearer=key, Host=host)).body == b"mcp got hello"


async def test_each_page_has_an_origin_that_nobody_could_have_served_before() -> None:
    async with inspecting() as inspector:
        hosts = {urlsplit(inspector.new_url()).netloc for _ in range(10)}

        assert len(hosts) == 10
        assert all(re.fullmatch(rf"[0-9a-f]{{20}}\.localhost:{inspector.port}", host) for host in hosts)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "0123456789abcdef0123.localhost"])
async def test_a_page_of_another_name_gets_nothing_by_the_code_or_the_key(name: str) -> None:
    """What another user left in the browser for `localhost` may be handed either."""
    async with inspecting() as inspector:
        url, other = inspector.new_url(), f"{name}:{inspector.port}"
        page = await opened_page(inspector)

        assert (await exchange(inspector, url, other)).status == 401
        assert (await exchange(inspector, url)).status == 401, "a code that was seen elsewhere is used up"
        for path in ("/mcp", "/health", "/events", "/other-page"):
            assert (await ask(inspector, path, "POST", b"x", page={**page, "Host": other})).status == 401
        assert (await ask(inspector, "/health", page=page)).status == 200


async def test_a_tunnel_may_end_at_another_port() -> None:
    async with inspecting() as inspector:
        url = inspector.new_url()
        host = f"{urlsplit(url).hostname}:8000"

        key = json.loads((await exchange(inspector, url, host)).body)["key"]

        assert (await ask(inspector, "/health", bearer=key, Host=host)).status == 200


async def test_a_code_alone_opens_nothing_and_reading_the_page_does_not_use_it_up() -> None:
    """Programs that look at links before people do must not take the code away."""
    async with inspecting() as inspector:
        url = inspector.new_url()
        code = url.rpartition("?code=")[2]

        for path in ("/health", "/mcp", "/events", "/code"):
            assert (await ask(inspector, f"{path}?code={code}", "POST", b"x", bearer=code)).status == 401
        assert [(await ask(inspector, f"/?code={code}")).status for _ in range(2)] == [200, 200]
        assert (await ask(inspector, "/key")).status == 405

        assert (await exchange(inspector, url)).status == 200


async def test_only_the_token_gets_codes() -> None:
    async with inspecting() as inspector:
        page = await opened_page(inspector)

        answers = [
            await ask(inspector, "/code", "POST", bearer=inspector.token),
            await ask(inspector, "/code", "POST", page=page),
        ]
        read = await ask(inspector, "/code", bearer=inspector.token)

        assert [answer.status for answer in answers] == [200, 401]
        assert read.status == 405
        made = json.loads(answers[0].body)
        assert (await exchange(inspector, f"http://{made['host']}:{inspector.port}/?code={made['code']}")).status == 200


async def test_a_key_stays_valid_for_the_next_proxy_of_the_workspace_and_the_rest_does_not(tmp_path: Path) -> None:
    async with inspecting(folder=tmp_path) as first:
        page, unused = await opened_page(first), first.new_url()

    async with inspecting(folder=tmp_path) as second:
        assert (await ask(second, "/health", page=page)).status == 200
        assert (await ask(second, "/health", bearer=first.token)).status == 401
        assert (await exchange(second, unused)).status == 401


async def test_a_key_is_taken_from_no_address() -> None:
    async with inspecting() as inspector:
        page = await opened_page(inspector)
        host, key = page["Host"], page["Authorization"].removeprefix("Bearer ")

        for path in (f"/health?token={key}", f"/health?key={key}", f"/mcp/{key}"):
            assert (await ask(inspector, path, "POST", b"x", Host=host)).status == 401


async def test_a_page_that_only_reads_events_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "RECORD_SECONDS", 0.01)
    async with inspecting(folder=tmp_path) as inspector:
        page = await opened_page(inspector)
        (file,) = (tmp_path / "state" / "inspector").iterdir()
        async with viewing(inspector, page) as viewer:
            assert (await viewer.event()).name == "snapshot"
            file.write_text("0")

            await until(lambda: file.read_text() != "0")


async def test_a_page_opens_that_of_another_proxy() -> None:
    async with inspecting() as inspector:
        page = await opened_page(inspector)

        opened = await ask(inspector, "/other-page", "POST", str(OTHER_PROXY).encode(), page=page)
        others = [
            await ask(inspector, "/other-page", "POST", body, page=page) for body in (b"1", b"", b"-1", b"9" * 99)
        ]

        assert json.loads(opened.body) == {"url": OTHER_URL}
        assert [answer.status for answer in others] == [404] * 4
        assert (await ask(inspector, "/other-page", page=page)).status == 405


@pytest.mark.parametrize("path", [*PATHS, "/", "/key", "/refused", "/assets/app.js"])
async def test_a_page_of_another_port_gets_nothing_although_it_has_the_token(path: str) -> None:
    async with inspecting() as inspector:
        path += f"?token={inspector.token}"
        answer = await ask(inspector, path, Origin="http://localhost:3000")
        embedded = await ask(inspector, path, Sec_Fetch_Site="same-site", Sec_Fetch_Mode="no-cors")

    assert (answer.status, embedded.status) == (403, 403)
    assert answer.headers["Access-Control-Allow-Origin"] is None


async def test_the_page_is_served_with_a_policy_that_lets_nothing_foreign_run() -> None:
    async with inspecting() as inspector:
        answer = await ask(inspector, "/")
        refused = await ask(inspector, "/refused")

    assert answer.status == 200
    assert (refused.status, b"uno-devserver inspect" in refused.body) == (401, True)
    assert b"<script" not in refused.body
    first = re.search(rb'<(?:script|link|img)[^>]*(?:src|href)="[^>]*>', answer.body)
    assert first
    assert first[0] == b'<script src="assets/access.js">', "takes the code out of the address before all else"
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'; script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"


async def test_each_file_of_the_page_is_served_by_its_type_without_a_token() -> None:
    names = [path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.is_file()]

    assert len(names) > 5
    async with inspecting() as inspector:
        for name in names:
            answer = await ask(inspector, f"/assets/{name}")
            if name.endswith(".html"):  # whole pages, which have addresses of their own
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
        answer = await ask(inspector, "/health", bearer=inspector.token)

    assert (answer.status, json.loads(answer.body)) == (expected, {"status": status})


async def test_what_is_posted_to_mcp_is_answered_there() -> None:
    async with inspecting() as inspector:
        paths = (f"/mcp?token={inspector.token}", f"/mcp/{inspector.token}")
        answers = [await ask(inspector, path, "POST", b"hello") for path in paths]

    assert [(answer.status, answer.body) for answer in answers] == [(200, b"mcp got hello")] * 2


@pytest.mark.parametrize("path", ["/", "/refused", "/health", "/events", "/assets/app.js"])
async def test_the_rest_can_only_be_read(path: str) -> None:
    async with inspecting() as inspector:
        answer = await ask(inspector, f"{path}?token={inspector.token}", "POST", b"x")

    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


async def test_a_taken_port_leads_to_the_next_free_one() -> None:
    async with inspecting() as first, inspecting(port=first.port) as second, inspecting(port=first.port) as third:
        assert first.port < second.port < third.port <= first.port + ATTEMPTS
        assert second.address == f"http://localhost:{second.port}/"


async def test_where_no_port_can_be_had_there_is_an_issue_that_says_so(tmp_path: Path) -> None:
    with last_port_taken() as port:
        issue = await opened_inspector(tmp_path, port=port)

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
