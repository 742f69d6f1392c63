"""Who gets in: by the headers of a request, by the token, by a code, by the key of a page."""

from __future__ import annotations

import os
import re
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.privileges import ROOT
from uno_devserver.inspector import access
from uno_devserver.inspector.access import (
    KEY_FOLDER,
    KEY_SECONDS,
    MAX_CODES,
    MAX_KEYS,
    OneTimeCodes,
    PageKeys,
    has_token,
    new_host,
    page_refusal,
    page_url,
    remove_old_keys,
    sent_key,
)
from uno_devserver.protocol.http.messages import Request

OWN = {"host": "localhost:6274"}
TOKEN = "a" * 31 + "B"
HOST = "0123456789abcdef0123.localhost"


def fetch(site: str, mode: str, dest: str) -> dict[str, str]:
    return {**OWN, "sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}


SITES = ("cross-site", "same-site")
EMBEDDED = (("no-cors", "script"), ("navigate", "iframe"), ("cors", "empty"), ("websocket", "websocket"))


@pytest.mark.parametrize(
    "headers",
    [
        OWN,  # a program without a browser
        *(
            {"host": host, "origin": f"http://{host.lower()}", "sec-fetch-site": "same-origin"}
            for host in ("localhost:6274", "127.0.0.1:6274", "[::1]:6274", "LOCALHOST:6274", f"{HOST}:6274")
        ),
        *(fetch(site, "navigate", "document") for site in (*SITES, "none")),  # a link on another site
    ],
)
def test_programs_the_page_itself_and_links_to_it_are_served(headers: dict[str, str]) -> None:
    assert page_refusal(headers) is None


@pytest.mark.parametrize(
    "headers",
    [
        *({"host": host, "origin": f"http://{host}"} for host in ("evil.example:6274", "evil.example")),
        *({"host": f"{host}:6274"} for host in ("0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "192.168.1.5", "[fe80::1]")),
        *(fetch(site, mode, dest) for site in SITES for mode, dest in EMBEDDED),
        fetch("cross-site", "navigate", "document") | {"origin": "http://evil.example"},  # a form
    ],
)
def test_foreign_host_names_and_what_other_sites_embed_are_refused(headers: dict[str, str]) -> None:
    assert page_refusal(headers) is not None


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3000", "http://127.0.0.1:6274", "https://localhost:6274", "http://evil.example", "null", ""],
)
def test_a_page_of_another_origin_is_refused_with_its_name(origin: str) -> None:
    assert repr(origin) in str(page_refusal({**OWN, "origin": origin}))


@pytest.mark.parametrize(
    ("path", "query", "authorization"),
    [
        *(("/", query, None) for query in (f"token={TOKEN}", f"a=b&token={TOKEN}", f"token={TOKEN}&a=b")),
        *(("/", "", value) for value in (f"Bearer {TOKEN}", f"bearer  {TOKEN}")),
        *((path, "", None) for path in (f"/mcp/{TOKEN}", f"/MCP/{TOKEN}/")),
    ],
)
def test_the_token_is_taken_from_the_query_the_header_or_the_path_of_mcp(
    path: str, query: str, authorization: str | None
) -> None:
    assert has_token(request(path, query, authorization), TOKEN)


@pytest.mark.parametrize(
    ("path", "query", "authorization"),
    [
        *(("/", query, None) for query in ("", "token=", f"token={TOKEN[:-1]}", f"token={TOKEN}x", "token=\udcff")),
        *(("/", query, None) for query in (f"token={TOKEN.lower()}", f"xtoken={TOKEN}")),
        *(("/", "", value) for value in ("", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN} x", "Bearer x")),
        *((path, "", None) for path in ("/mcp/", "/mcp/x", f"/mcp/{TOKEN}/x")),
        *((path, "", None) for path in (f"/{TOKEN}", f"/mcp/x/{TOKEN}", f"/health/{TOKEN}")),
        ("/", f"token={TOKEN}", "Bearer x"),  # a right query does not make up for a wrong header
    ],
)
def test_nothing_else_is_taken_for_the_token(path: str, query: str, authorization: str | None) -> None:
    assert not has_token(request(path, query, authorization), TOKEN)


def request(path: str, query: str, authorization: str | None) -> Request:
    return Request("POST", path, query, {} if authorization is None else {"authorization": authorization}, b"")


def test_the_key_of_a_page_is_taken_from_the_header_alone() -> None:
    """Addresses are seen by others: in histories, logs, and the arguments of programs."""
    assert sent_key(request("/mcp", "", f"Bearer {TOKEN}")) == TOKEN
    assert sent_key(request(f"/mcp/{TOKEN}", f"token={TOKEN}&key={TOKEN}", None)) == ""


# --- one-time codes ---------------------------------------------------------------------------------------------------


def test_a_code_can_be_used_once() -> None:
    codes = OneTimeCodes()
    (one, host), (other, other_host) = codes.new(), codes.new()

    assert [codes.redeem(one.encode(), host) for _ in range(3)] == [True, False, False]
    assert codes.redeem(other.encode(), other_host), "that another was used makes no difference"


@pytest.mark.parametrize("sent", [b"", b"x", b"x" * 32, b"\xff" * 32, b"x" * 10_000])
def test_nothing_else_is_a_code(sent: bytes) -> None:
    codes = OneTimeCodes()
    made, host = codes.new()
    code = made.encode()

    assert not any(codes.redeem(each, host) for each in (sent, code[:-1], code + b"x", code.swapcase()))
    assert codes.redeem(code, host)


def test_a_code_can_be_used_at_its_own_host_only() -> None:
    codes = OneTimeCodes()
    (one, host), (_, other) = codes.new(), codes.new()

    assert host != other
    assert not codes.redeem(one.encode(), other)
    assert not codes.redeem(one.encode(), host), "whoever tried it elsewhere has used it up"


def test_macos_opens_pages_at_localhost_because_safari_finds_no_name_below_it() -> None:
    assert new_host("darwin") == "localhost"
    assert all(re.fullmatch(r"[0-9a-f]{20}\.localhost", new_host(platform)) for platform in ("linux", "win32"))


def test_a_code_that_was_not_used_in_time_is_none() -> None:
    codes = OneTimeCodes(seconds=0)

    code, host = codes.new()
    assert not codes.redeem(code.encode(), host)


def test_the_oldest_code_makes_room_for_another() -> None:
    codes = OneTimeCodes()
    made = [codes.new() for _ in range(MAX_CODES + 1)]

    assert [codes.redeem(code.encode(), host) for code, host in made] == [False] + [True] * MAX_CODES


@pytest.mark.parametrize("port", [0, 99_999])
def test_there_is_no_url_where_no_proxy_answers(port: int) -> None:
    assert page_url(port, TOKEN) is None


# --- keys of pages ----------------------------------------------------------------------------------------------------


def keys_of(tmp_path: Path, folder: Path | str = "") -> PageKeys:
    """As the next proxy of a workspace has them."""
    return PageKeys(str(tmp_path / "state"), str(folder or tmp_path))


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "state" / KEY_FOLDER).iterdir())


def unused(file: Path, seconds: float) -> None:
    file.write_text(f"{time.time() - seconds:.0f}")


def test_the_next_proxies_of_the_workspace_know_the_key_however_the_path_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()

    key = keys_of(tmp_path, folder).new(HOST)

    assert all(keys_of(tmp_path, path).use(key, HOST) for path in (folder, f"{folder}/.", f"{tmp_path}/x/../app"))


def test_the_next_proxies_know_the_key_by_a_link_to_the_workspace_too(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)

    key = keys_of(tmp_path, folder).new(HOST)

    assert keys_of(tmp_path, tmp_path / "link").use(key, HOST)


def test_those_of_another_workspace_do_not(tmp_path: Path) -> None:
    key = keys_of(tmp_path, tmp_path / "a").new(HOST)

    assert not keys_of(tmp_path, tmp_path / "b").use(key, HOST)


def test_nor_is_it_a_key_at_another_host(tmp_path: Path) -> None:
    keys = keys_of(tmp_path)
    key = keys.new(HOST)

    assert not any(keys.use(key, host) or keys.was_just_used(key, host) for host in ("localhost", f"1{HOST[1:]}", ""))
    assert keys.use(key, HOST)


def test_only_digests_are_kept_and_only_for_the_user(tmp_path: Path) -> None:
    keys = keys_of(tmp_path)
    made = [keys.new(HOST) for _ in range(2)]

    files = kept(tmp_path)
    assert [len(file.name) for file in files] == [64] * 2
    assert not any(key in f"{file.name} {file.read_text()}" for key in made for file in files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700
    assert not any(keys.use(file.name, HOST) for file in files), "a digest is no key"


@pytest.mark.parametrize("key", ["", "x" * 32, "../" * 10 + "xx", "/etc/passwd", "\0", "é" * 32])
def test_nothing_else_is_a_key(tmp_path: Path, key: str) -> None:
    keys_of(tmp_path).new(HOST)

    assert not keys_of(tmp_path).use(key, HOST)
    assert len(kept(tmp_path)) == 1


def test_a_key_that_was_not_used_for_a_day_has_expired(tmp_path: Path) -> None:
    key = keys_of(tmp_path).new(HOST)
    unused(kept(tmp_path)[0], KEY_SECONDS + 60)

    assert not keys_of(tmp_path).use(key, HOST)


def test_a_key_that_another_proxy_saw_last_is_valid(tmp_path: Path) -> None:
    keys = keys_of(tmp_path)
    key = keys.new(HOST)
    keys._recorded = {digest: then - KEY_SECONDS - 60 for digest, then in keys._recorded.items()}

    assert keys.use(key, HOST)


def test_its_use_is_recorded(tmp_path: Path) -> None:
    key = keys_of(tmp_path).new(HOST)
    unused(kept(tmp_path)[0], KEY_SECONDS - 60)
    keys = keys_of(tmp_path)
    assert not keys.was_just_used(key, HOST), "as far as this proxy knows"

    assert keys.use(key, HOST)

    assert keys.was_just_used(key, HOST)
    assert time.time() - float(kept(tmp_path)[0].read_text()) < 60


def test_the_key_that_was_not_used_for_longest_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_KEYS", 3)
    keys = keys_of(tmp_path)
    made: list[str] = []
    for age in (30, 20, 10):
        before = kept(tmp_path) if made else []
        made.append(keys.new(HOST))
        (file,) = set(kept(tmp_path)) - set(before)
        unused(file, age)

    made.append(keys.new(HOST))

    assert len(kept(tmp_path)) == 3
    assert [keys_of(tmp_path).use(key, HOST) for key in made] == [False, True, True, True]
    assert MAX_KEYS > 100, "so many pages are not open at the same time"


def test_all_who_make_one_at_the_same_moment_have_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: keys_of(tmp_path).new(HOST), range(32)))

    assert len(set(made)) == 32
    assert all(keys_of(tmp_path).use(key, HOST) for key in made)


def test_expired_keys_and_tokens_of_earlier_versions_are_removed(tmp_path: Path) -> None:
    keys = keys_of(tmp_path)
    keys.new(HOST)
    (expired,) = kept(tmp_path)
    key = keys.new(HOST)
    unused(expired, KEY_SECONDS + 60)
    old = expired.with_name("app-01234567.json")
    old.write_text('{"folder": "/app", "token": "a"}')

    removed = remove_old_keys(str(old.parent))

    assert sorted(removed) == sorted(map(str, (expired, old)))
    assert len(kept(tmp_path)) == 1
    assert keys_of(tmp_path).use(key, HOST)


def test_nothing_is_a_key_while_the_clock_is_not_set_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 60.0)
    keys = keys_of(tmp_path)

    assert not keys.was_just_used("x" * 32, HOST)
    assert not keys.use("x" * 32, HOST)


@pytest.mark.skipif(not ROOT, reason="only root can give a folder to another user")
def test_the_keys_of_another_user_are_not_removed(tmp_path: Path) -> None:
    keys_of(tmp_path).new(HOST)
    (file,) = kept(tmp_path)
    os.chown(file.parent, 65534, -1)

    assert remove_old_keys(str(file.parent)) == []
    assert kept(tmp_path) == [file]


def test_where_nothing_can_be_kept_a_key_is_valid_as_long_as_its_proxy_runs(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    keys = keys_of(tmp_path)

    key = keys.new(HOST)

    assert keys.was_just_used(key, HOST)
    assert keys.use(key, HOST)
    assert not keys_of(tmp_path).use(key, HOST)
