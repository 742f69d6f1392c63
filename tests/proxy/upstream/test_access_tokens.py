"""Stored tokens: which server gets which, and how they are renewed, with a real authorization server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from support.machine import DATA_HOME, Machine
from support.sign_ins import AuthorizationServer, login, served
from support.waiting import until
from uno_devserver.proxy.upstream import access_tokens
from uno_devserver.proxy.upstream.access_tokens import (
    SignIn,
    TokenCredentials,
    read_sign_in,
    record_path,
    sign_ins,
    write_sign_in,
)
from uno_devserver.proxy.upstream.oauth_sign_in import renew_stored

URL = "https://mcp.example.com/mcp"


@pytest.fixture(autouse=True)
def _state(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_HOME, str(machine.data))


def a_sign_in(url: str = URL, token: str = "one", **fields: Any) -> SignIn:
    usual: dict[str, Any] = {
        "url": url,
        "issuer": "https://login.example.com",
        "client": {"client_id": "me"},
        "registered": True,
        "tokens": {"access_token": token},
        "expires_at": None,
        "authorization_server": None,
        "resource": None,
    }
    return SignIn(**{**usual, **fields})


@pytest.mark.parametrize("url", [URL, f"{URL}/", f"{URL}?project=1", "https://MCP.example.com:443/mcp#part"])
def test_a_token_is_found_by_every_spelling_of_its_server(url: str) -> None:
    write_sign_in(a_sign_in())

    assert TokenCredentials(url, {}).headers() == {"Authorization": "Bearer one"}


@pytest.mark.parametrize(
    "url",
    [
        "https://mcp.example.com/mcp2",
        "https://mcp.example.com/mcp/other",
        "https://mcp.example.com/",
        "https://mcp.example.com:8443/mcp",
        "http://mcp.example.com/mcp",
        "https://mcp.example.com.attacker.example/mcp",
        "https://example.com/mcp",
    ],
)
def test_a_token_is_not_sent_to_another_server(url: str) -> None:
    write_sign_in(a_sign_in())

    assert TokenCredentials(url, {"X-Own": "1"}).headers() == {"X-Own": "1"}


def test_a_token_whose_file_was_copied_for_another_server_is_not_sent_there() -> None:
    other = "https://attacker.example/mcp"
    os.rename(write_sign_in(a_sign_in()), record_path(other))

    assert read_sign_in(other) is None
    assert TokenCredentials(other, {}).headers() == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"url": 1}', '{"url": "x", "tokens": []}'])
def test_a_damaged_file_is_no_sign_in_and_the_log_names_it_once(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(write_sign_in(a_sign_in()))
    path.write_text(text, "utf-8")

    assert TokenCredentials(URL, {}).headers() == {}
    assert sign_ins() == []
    assert capsys.readouterr().err.count(str(path)) == 1


@pytest.mark.parametrize("field", [{"client": {}}, {"expires_at": 1e30}, {"expires_at": -1}, {"expires_at": "x"}])
def test_a_record_with_values_that_cannot_be_used_is_damaged(field: dict[str, Any]) -> None:
    write_sign_in(a_sign_in(**field))

    assert read_sign_in(URL) is None


def test_a_lifetime_beyond_all_numbers_does_not_stop_requests() -> None:
    tokens = {"access_token": "one", "refresh_token": "two", "expires_in": 10**400}
    write_sign_in(a_sign_in(tokens=tokens, expires_at=time.time() + 3600))

    assert TokenCredentials(URL, {}).headers() == {"Authorization": "Bearer one"}


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX-Other: 1", "\u20ac", 7, None])
def test_a_token_that_a_header_cannot_carry_is_not_sent(token: object) -> None:
    write_sign_in(a_sign_in(tokens={"access_token": token}))

    assert TokenCredentials(URL, {}).headers() == {}


def test_a_file_that_others_may_write_is_not_used() -> None:
    os.chmod(write_sign_in(a_sign_in()), 0o666)

    assert TokenCredentials(URL, {}).headers() == {}


def test_headers_stay_the_same_object_until_the_user_signs_in_or_out() -> None:
    credentials = TokenCredentials(URL, {"X-Own": "1"})
    without = credentials.headers()
    path = write_sign_in(a_sign_in())
    first = credentials.headers()
    same = credentials.headers()
    write_sign_in(a_sign_in(token="two"))
    second = credentials.headers()
    os.remove(path)

    assert without == {"X-Own": "1"}
    assert first is same
    assert first == {"X-Own": "1", "Authorization": "Bearer one"}
    assert second == {"X-Own": "1", "Authorization": "Bearer two"}
    assert credentials.headers() == without


@pytest.mark.parametrize("signed_in", [True, False])
def test_requests_open_no_file_until_it_has_changed(signed_in: bool) -> None:
    """Reading it took longer than the rest of a relayed call."""
    if signed_in:
        write_sign_in(a_sign_in())
    credentials = TokenCredentials(URL, {})
    credentials.headers()
    opened: list[object] = []
    watched = True

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if watched and event == "open":
            opened.append(arguments[0])

    sys.addaudithook(note)  # which cannot be removed
    for _ in range(100):
        credentials.headers()
    watched = False
    write_sign_in(a_sign_in(token="two"))

    assert opened == []
    assert credentials.headers() == {"Authorization": "Bearer two"}


@pytest.mark.parametrize(
    ("left", "lifetime", "due"),
    [(3600, 3600, False), (61, 3600, False), (59, 3600, True), (-1, 3600, True), (9, 10, False), (1, 10, True)],
)
def test_a_token_is_due_shortly_before_it_expires(left: int, lifetime: int, due: bool) -> None:
    tokens = {"access_token": "one", "refresh_token": "two", "expires_in": lifetime}
    record = a_sign_in(tokens=tokens, expires_at=1000.0 + left)

    assert record.is_due(1000.0) is due
    assert not record.replace(tokens={"access_token": "one"}).is_due(1000.0)


async def test_a_token_that_cannot_be_renewed_is_not_tried_again() -> None:
    write_sign_in(a_sign_in())
    credentials = TokenCredentials(URL, {})

    assert not await credentials.renew(credentials.headers())


async def test_without_the_extra_the_log_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(util, "find_spec", lambda _: None)
    write_sign_in(a_sign_in(tokens={"access_token": "one", "refresh_token": "two"}))
    credentials = TokenCredentials(URL, {})

    assert not await credentials.renew(credentials.headers())
    assert "pip install '<folder of the clone>[login]'" in capsys.readouterr().err


# --- renewals


@pytest.fixture
def url(url: str, machine: Machine) -> str:
    """A server that the user is signed in to."""
    assert login(machine, url)["renewable"]
    return url


def record_of(url: str) -> SignIn:
    record = read_sign_in(url)
    assert record is not None
    return record


async def test_a_refused_token_is_renewed(url: str, authorization: AuthorizationServer) -> None:
    credentials = TokenCredentials(url, {"X-Own": "1"})
    before = credentials.headers()

    renewed = await credentials.renew(before)

    record = record_of(url)
    after = credentials.headers()
    assert renewed
    assert after == {"X-Own": "1", "Authorization": f"Bearer {record.access_token}"}
    assert authorization.is_active(str(record.access_token))
    assert record.expires_at is not None
    assert record.expires_at > time.time() + 3000


async def test_a_token_is_renewed_before_it_expires_while_requests_go_on(url: str) -> None:
    write_sign_in(record_of(url).replace(expires_at=time.time() + 30))
    credentials = TokenCredentials(url, {})

    before = credentials.headers()
    meanwhile = credentials.headers()

    assert meanwhile is before
    await until(lambda: credentials.headers() != before, "the new token")


async def test_renewals_at_once_ask_for_one_token_and_keep_the_rotating_refresh_token(
    url: str, authorization: AuthorizationServer
) -> None:
    """Using a refresh token twice would revoke everything that the user has granted."""
    proxies = [TokenCredentials(url, {}) for _ in range(3)]
    refused = proxies[0].headers()
    asked = authorization.token_requests()

    renewed = await asyncio.gather(*(proxy.renew(refused) for proxy in (*proxies, *proxies)))

    assert renewed == [True] * 6
    assert authorization.token_requests() == asked + 1
    assert len({proxy.headers()["Authorization"] for proxy in proxies}) == 1
    assert await proxies[0].renew(proxies[0].headers())


async def test_an_authorization_server_that_fails_is_asked_again_later(
    url: str, authorization: AuthorizationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    credentials = TokenCredentials(url, {})
    before = credentials.headers()
    authorization.refuse_token_requests(1)

    failed = await credentials.renew(before)
    later = await credentials.renew(before)

    assert (failed, later) == (False, True)
    assert "answered HTTP 503" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "body", "final"),
    [
        (403, b"<html>blocked", False),
        (400, {"error": "temporarily_unavailable"}, False),
        (401, {"message": "no"}, False),
        (503, {"error": "invalid_grant"}, False),
        (400, {"error": "invalid_grant"}, True),
        (401, {"error": "invalid_client"}, True),
        (403, {"error": "unauthorized_client"}, True),
    ],
)
def test_only_an_error_of_oauth_itself_ends_a_sign_in(status: int, body: object, final: bool) -> None:
    with served() as site:
        site.answers["/token"] = (status, {}, body)
        url = f"{site.address}/mcp"
        tokens = {"access_token": "one", "refresh_token": "two", "token_type": "Bearer"}
        write_sign_in(a_sign_in(url, issuer=site.address, tokens=tokens))

        problem, _ = renew_stored(url, "one")

    assert problem
    assert record_of(url).renewable is not final


async def test_a_refresh_token_is_not_sent_while_its_successor_cannot_be_stored(
    url: str, authorization: AuthorizationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    credentials = TokenCredentials(url, {})
    before = credentials.headers()
    asked = authorization.token_requests()
    size = os.path.getsize(record_path(url))

    with limited_files(size // 2):
        failed = await credentials.renew(before)
    sent = authorization.token_requests() - asked
    later = await credentials.renew(before)

    assert (failed, sent, later) == (False, 0, True)
    assert record_path(url) in capsys.readouterr().err


@pytest.mark.parametrize("refused", [False, True], ids=["in use", "refused"])
async def test_tokens_that_could_not_be_stored_are_used_and_stored_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], refused: bool
) -> None:
    """The store fails between the look and the answer: here, because that is longer."""
    if not refused:
        monkeypatch.setattr(access_tokens, "PAUSE_SECONDS", 0.0)
    with served() as site:
        answer = {"access_token": "new", "refresh_token": "r" * 20_000, "token_type": "Bearer"}
        site.answers["/token"] = (200, {}, answer)
        url = f"{site.address}/mcp"
        tokens = {"access_token": "old", "refresh_token": "two", "token_type": "Bearer"}
        write_sign_in(a_sign_in(url, issuer=site.address, tokens=tokens))
        credentials = TokenCredentials(url, {})
        with limited_files(10_000):
            renewed = await credentials.renew(credentials.headers())
        in_use, stored = credentials.headers(), record_of(url).access_token
        if refused:
            site.answers["/token"] = (200, {}, {**answer, "access_token": "newer"})
            assert await credentials.renew(in_use)
            assert credentials.headers() == {"Authorization": "Bearer newer"}
        else:
            await until(lambda: credentials.headers() == in_use and record_of(url).access_token == "new", "the file")

        assert renewed
        assert (in_use, stored) == ({"Authorization": "Bearer new"}, "old")
        assert len([one for one in site.asked if "/token" in one]) == 1 + refused
        assert "is in this process only" in capsys.readouterr().err


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """Let no process that is started meanwhile write a file of more than `size` bytes, as on a full disk."""
    resource = pytest.importorskip("resource")

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_revoked_sign_in_is_not_tried_again_and_the_log_says_what_to_do(
    url: str, authorization: AuthorizationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    credentials = TokenCredentials(url, {})
    record = record_of(url)
    authorization.revoke(json.loads(Path(record_path(url)).read_text("utf-8")))
    asked = authorization.token_requests()

    renewed = [await credentials.renew(credentials.headers()) for _ in range(3)]

    told = capsys.readouterr().err
    assert renewed == [False] * 3
    assert authorization.token_requests() == asked + 1
    assert f"uno-devserver login {url}" in told
    assert str(record.access_token) not in told
    assert not record_of(url).renewable


async def test_the_refresh_token_goes_only_to_the_authorization_server_that_issued_it(
    url: str, authorization: AuthorizationServer
) -> None:
    """Whatever the server says now: the stored metadata name the token endpoint."""
    record = record_of(url)
    with AuthorizationServer() as other:
        moved = record.replace(
            issuer=other.issuer, resource={**(record.resource or {}), "authorization_servers": [other.issuer]}
        )
        write_sign_in(moved)
        credentials = TokenCredentials(url, {})
        await credentials.renew(credentials.headers())

        assert other.token_requests() == 0


async def test_a_sign_out_during_a_renewal_stays_one(url: str, machine: Machine) -> None:
    """In whichever order the two get the lock."""
    credentials = TokenCredentials(url, {})

    _, out = await asyncio.gather(
        credentials.renew(credentials.headers()), asyncio.to_thread(machine.run, "logout", url)
    )

    assert out.exit_code == 0
    assert credentials.headers() == {}
