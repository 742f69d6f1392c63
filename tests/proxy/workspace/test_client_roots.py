"""The client's folders: who has them, what an answer means on each system, and that nobody waits for one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.parties import ClientInfo
from uno_devserver.proxy.workspace.client_roots import (
    MAX_ROOTS,
    ask_roots,
    can_be_asked,
    read_roots,
)

PATIENCE = 10.0


def _client(capabilities: dict[str, Any], version: str = "2025-06-18") -> ClientInfo:
    return ClientInfo("client", "1", capabilities, version)


def _answer(*uris: object) -> dict[str, Any]:
    return {"roots": [{"uri": uri, "name": "a root"} for uri in uris]}


# --- who has roots ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"roots": {"listChanged": True}}, True),
        ({"roots": {"listChanged": False}}, True),
        ({"roots": {}}, True),
        ({}, False),
        ({"roots": None}, False),
        ({"sampling": {}}, False),
    ],
)
def test_a_client_has_roots_if_it_declares_them_even_without_details(
    capabilities: dict[str, Any], expected: bool
) -> None:
    assert can_be_asked(_client(capabilities)) is expected


@pytest.mark.parametrize(("version", "expected"), [("2024-11-05", True), ("2025-11-25", True), ("2026-07-28", False)])
def test_only_a_client_of_the_handshake_era_can_be_asked_outside_a_call(version: str, expected: bool) -> None:
    assert can_be_asked(_client({"roots": {}}, version)) is expected
    assert not can_be_asked(_client({}, version))


# --- what an answer means --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///home/ada/app", "/home/ada/app"),
        ("file:///home/ada/app/", "/home/ada/app"),
        ("file://localhost/home/ada", "/home/ada"),
        ("FILE:/home/ada", "/home/ada"),
        ("file:///home/ada/my%20app", "/home/ada/my app"),
        ("file:///home/ada/my app", "/home/ada/my app"),
        ("file:///home/ada/%C3%BCn%C3%AF", "/home/ada/ünï"),
        ("file:///home/ada/100%", "/home/ada/100%"),
        ("file:///home/ada/c%23", "/home/ada/c#"),
        ("file:///home/ada/c#", "/home/ada/c#"),
        ("file:///home/ada/%FF", os.fsdecode(b"/home/ada/\xff")),
        ("file:///home/ada/../eve", "/home/eve"),
        ("/home/ada", "/home/ada"),
        ("app", "/current/app"),
        ("./app/", "/current/app"),
        ("c", "/current/c"),
    ],
)
def test_a_root_becomes_a_path(uri: str, path: str) -> None:
    assert read_roots(_answer(uri), "/current", "linux") == ([path], [])


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///c:/Users/ada", r"c:\Users\ada"),
        ("file:///C%3A/Users/ada%20l", r"C:\Users\ada l"),
        ("file://localhost/c:/x", r"c:\x"),
        ("file://server/share/app", r"\\server\share\app"),
        ("file:///app", r"D:\app"),
        (r"C:\Users\ada", r"C:\Users\ada"),
        ("C:/Users/ada/", r"C:\Users\ada"),
        ("app", r"D:\current\app"),
    ],
)
def test_a_root_becomes_a_path_of_windows(uri: str, path: str) -> None:
    assert read_roots(_answer(uri), r"D:\current", "win32") == ([path], [])


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("https://example.com/app", "only file: URIs name local folders"),
        ("vscode-remote://ssh/app", "only file: URIs name local folders"),
        ("file://server/share", "it is on another machine, server"),
        ("file:app", "it has no absolute path"),
        ("file://", "it has no absolute path"),
        ("file:///a%00b", "it holds a NUL character"),
        ("", "it is no URI"),
        ("  ", "it is no URI"),
        (7, "it is no URI"),
        (None, "it is no URI"),
    ],
)
def test_what_is_no_local_folder_is_left_out_with_a_sentence(uri: object, reason: str) -> None:
    paths, problems = read_roots(_answer(uri, "/good"), "/current", "linux")

    assert (paths, problems) == (["/good"], [f"The client's root {uri!r} cannot be used: {reason}."])


@pytest.mark.parametrize("answer", [None, [], "x", {}, {"roots": None}, {"roots": {}}, {"roots": "file:///a"}])
def test_an_ill_formed_answer_names_nothing(answer: object) -> None:
    assert read_roots(answer, "/") == ([], ["The client's answer to roots/list holds no list of roots."])


def test_an_entry_that_is_no_object_is_left_out() -> None:
    paths, problems = read_roots({"roots": ["file:///a", 3, None, {"uri": "/good"}]}, "/")

    assert (paths, len(problems)) == (["/good"], 3)


def test_a_client_without_a_folder_names_none() -> None:
    assert read_roots({"roots": []}, "/") == ([], [])


def test_an_endless_list_is_read_to_its_beginning_only() -> None:
    assert len(read_roots(_answer(*("/a",) * 10_000), "/")[0]) == MAX_ROOTS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["roots", "uri", "name"]), inner),
)


@given(JSON, st.sampled_from(["linux", "darwin", "win32"]))
def test_any_answer_can_be_read(answer: object, platform: str) -> None:
    current = r"C:\here" if platform == "win32" else "/here"

    paths, _ = read_roots(answer, current, platform)

    assert all(path.startswith("/") or platform == "win32" for path in paths)


# --- asking ----------------------------------------------------------------------------------------------------------


class _Session:
    """A client as the inquiry sees it; `reply` is what becomes of a question."""

    def __init__(self, reply: Callable[[], Any]) -> None:
        self.client = _client({"roots": {}})
        self.asked: list[str] = []
        self._reply = reply

    def notify(self, method: str, params: object = None) -> None:
        raise AssertionError("nobody is notified")

    async def ask(self, method: str, params: object) -> Any:
        self.asked.append(method)
        return await self._reply()


async def _never() -> Any:
    await asyncio.Event().wait()


def _inquire(reply: Callable[[], Any], seconds: float = PATIENCE) -> tuple[_Session, object | None]:
    session = _Session(reply)
    return session, asyncio.run(ask_roots(session, seconds))


def test_the_answer_is_handed_over() -> None:
    async def reply() -> Any:
        return _answer("file:///a")

    session, taken = _inquire(reply)

    assert (session.asked, taken) == (["roots/list"], _answer("file:///a"))


def test_a_client_that_never_answers_is_given_up_and_that_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    _, taken = _inquire(_never, seconds=0.01)

    assert taken is None
    assert "did not answer roots/list within 0.01 s" in capsys.readouterr().err


def test_a_client_that_refuses_has_named_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    async def reply() -> Any:
        raise RpcError(-32601, "Method not found")

    _, taken = _inquire(reply)

    assert taken is None
    assert "did not name them: Method not found" in capsys.readouterr().err
