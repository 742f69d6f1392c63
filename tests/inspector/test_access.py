"""Who gets in, by headers and token alone."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from uno_devserver.inspector.access import is_known, page_refusal, token_for
from uno_devserver.protocol.http.messages import Request

OWN = {"host": "localhost:6274"}
TOKEN = "a" * 31 + "B"


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
            for host in ("localhost:6274", "127.0.0.1:6274", "[::1]:6274", "LOCALHOST:6274")
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
    assert is_known(request(path, query, authorization), TOKEN)


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
    assert not is_known(request(path, query, authorization), TOKEN)


def request(path: str, query: str, authorization: str | None) -> Request:
    return Request("POST", path, query, {} if authorization is None else {"authorization": authorization}, b"")


def kept(tmp_path: Path) -> Path:
    (file,) = (tmp_path / "state" / "inspector").iterdir()
    return file


def test_it_stays_the_same_for_a_workspace_however_its_path_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)

    tokens = {token_for(str(tmp_path / "state"), str(path)) for path in (folder, tmp_path / "link", f"{folder}/.")}

    assert len(tokens) == 1


def test_each_workspace_has_its_own(tmp_path: Path) -> None:
    state = str(tmp_path / "state")

    assert token_for(state, str(tmp_path / "a")) != token_for(state, str(tmp_path / "b"))


def test_only_its_user_can_read_it(tmp_path: Path) -> None:
    token = token_for(str(tmp_path / "state"), str(tmp_path))

    file = kept(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert json.loads(file.read_text())["token"] == token


def test_all_who_ask_at_the_same_moment_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        tokens = set(pool.map(lambda _: token_for(str(tmp_path / "state"), str(tmp_path)), range(32)))

    assert len(tokens) == 1


@pytest.mark.parametrize("token", ["", "short", "x" * 33, "&" * 32, 7, None])
def test_a_token_that_could_be_guessed_or_not_sent_is_replaced(tmp_path: Path, token: object) -> None:
    token_for(str(tmp_path / "state"), str(tmp_path))
    content = json.loads(kept(tmp_path).read_text()) | {"token": token}

    assert replaced(tmp_path, json.dumps(content).encode()) != token


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00", b'{"folder": "/elsewhere", "token": "TOKEN"}'])
def test_a_file_without_a_token_or_of_another_folder_is_replaced(tmp_path: Path, content: bytes) -> None:
    before = token_for(str(tmp_path / "state"), str(tmp_path))

    assert replaced(tmp_path, content.replace(b"TOKEN", before.encode())) != before


def replaced(tmp_path: Path, content: bytes) -> str:
    """The token of a workspace whose file has this content; the next call must return the same."""
    kept(tmp_path).write_bytes(content)
    token = token_for(str(tmp_path / "state"), str(tmp_path))
    assert token_for(str(tmp_path / "state"), str(tmp_path)) == token
    return token


def test_where_nothing_can_be_kept_there_is_one_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")

    token = token_for(str(tmp_path / "state"), str(tmp_path))

    assert len(token) == 32
    assert os.listdir(tmp_path) == ["state"]
