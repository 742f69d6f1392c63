"""The official SDK's server over Streamable HTTP, in both eras: everything that it does reaches whoever is meant."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.mcp_peers import TestPeer
from uno_devserver.protocol.client.connection import Connection, ConnectionLost
from uno_devserver.protocol.client.streamable_http import connect_http
from uno_devserver.protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from uno_devserver.protocol.service import Params, Result

from ..conversations import WAIT_SECONDS, until

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
PROGRAM = Path(__file__).with_name("official_server.py")


class Official:
    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self.process.stdout
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/mcp"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(WAIT_SECONDS)
        assert self.process.stdout
        self.process.stdout.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = Official()
    yield server.url
    server.stop()


def answered(method: str, params: Params) -> Result:
    if method == "elicitation/create":
        return {"action": "accept", "content": {"name": f"red ({params['message']})"}}
    if method == "roots/list":
        return {"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]}
    return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "sampled"}}


def client(**options: Any) -> TestPeer:
    capabilities: dict[str, Any] = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
    return TestPeer("ide", answer=answered, log_level="info", **options, **capabilities)


@asynccontextmanager
async def connected(url: str, modern: bool, peer: TestPeer | None = None) -> AsyncIterator[Connection]:
    connection = await connect_http(url, peer or client(), modern_first=modern)
    try:
        assert connection.server.modern is modern
        yield connection
    finally:
        await connection.close()


async def call(connection: Connection, name: str, peer: TestPeer | None = None, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, "_meta": {"progressToken": "mine"}}
    return dict(json.loads(bytes(await connection.request("tools/call", params, peer or client()))))


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


@ERAS
async def test_it_says_who_it_is_and_what_it_has(url: str, modern: bool) -> None:
    async with connected(url, modern) as connection:
        tools = json.loads(bytes(await connection.request("tools/list", {}, client())))["tools"]
        prompt = json.loads(
            bytes(await connection.request("prompts/get", {"name": "greet", "arguments": {"name": "é"}}, client()))
        )
        note = json.loads(bytes(await connection.request("resources/read", {"uri": "note://one"}, client())))

        assert (connection.server.info["name"], connection.server.instructions) == ("official", "Read me.")
        assert "paint" in [tool["name"] for tool in tools]
        assert prompt["messages"][0]["content"]["text"] == "Hello, é!"
        assert note["contents"][0]["text"] == "noted"


@ERAS
async def test_its_questions_are_answered(url: str, modern: bool) -> None:
    peer = client()
    async with connected(url, modern) as connection:
        assert text(await call(connection, "paint", peer, wall="north")) == "north in red (Which colour?)"
        assert text(await call(connection, "ask_all", peer)) == "red (Which colour?), sampled, 2"

    assert sorted(method for method, _, _ in peer.asked) == [
        "elicitation/create",
        "elicitation/create",
        "roots/list",
        "sampling/createMessage",
    ]


async def test_its_questions_are_passed_on_to_a_modern_client(url: str) -> None:
    peer = client(modern=True)
    async with connected(url, modern=True) as connection:
        asked = await call(connection, "paint", peer, wall="north")
        (name,) = asked["inputRequests"]
        params = {
            "name": "paint",
            "arguments": {"wall": "north"},
            "requestState": asked["requestState"],
            "inputResponses": {name: {"action": "accept", "content": {"name": "blue"}}},
        }
        done = json.loads(bytes(await connection.request("tools/call", params, peer)))

    assert asked["resultType"] == "input_required"
    assert peer.asked == []
    assert text(done) == "north in blue"


@ERAS
async def test_progress_and_log_messages_arrive_before_the_answer(url: str, modern: bool) -> None:
    peer = client()
    async with connected(url, modern) as connection:
        assert text(await call(connection, "steps", peer)) == "done"
        progress = [params for method, params in peer.heard if method == "notifications/progress"]
        logged = [params["data"] for method, params in peer.heard if method == "notifications/message"]

        assert [(each["progressToken"], each["progress"], each["message"]) for each in progress] == [
            ("mine", step, f"step {step}") for step in range(3)
        ]
        assert logged == ["half way"]


@ERAS
async def test_changes_are_heard(url: str, modern: bool) -> None:
    peer = client()
    async with connected(url, modern, peer) as connection:
        await connection.watch(frozenset({"note://one"}) if modern else frozenset())
        await call(connection, "change", peer)
        await until(lambda: "notifications/tools/list_changed" in peer.methods())
        await until(lambda: ("notifications/resources/updated", {"uri": "note://one"}) in peer.heard)


@ERAS
async def test_a_call_that_is_cancelled_ends_there(url: str, modern: bool, tmp_path: Path) -> None:
    async with connected(url, modern) as connection:
        calling = asyncio.create_task(call(connection, "forever", folder=str(tmp_path)))
        await until((tmp_path / "begun").exists)
        calling.cancel()
        await until((tmp_path / "ended").exists)
        assert text(await call(connection, "steps")) == "done"


@ERAS
async def test_errors_are_told_as_such(url: str, modern: bool) -> None:
    async with connected(url, modern) as connection:
        failed = await call(connection, "fail")
        with pytest.raises(RpcError) as refused:
            await connection.request("nothing/here", {}, client())

    assert failed["isError"] is True
    assert text(failed) == "Error executing tool fail"
    assert refused.value.code == METHOD_NOT_FOUND


async def test_a_call_that_closes_its_stream_is_polled(url: str) -> None:
    peer = client()
    async with connected(url, modern=False) as connection:
        assert text(await call(connection, "polled", peer)) == "polled"

    assert [params["progress"] for _, params in peer.heard] == [1, 2]


async def test_arguments_that_it_wants_in_headers_are_there(url: str) -> None:
    async with connected(url, modern=True) as connection:
        for region in ("north", "süd"):
            assert text(await call(connection, "routed", region=region, fast=True)) == f"{region} True"


@ERAS
async def test_many_calls_run_side_by_side(url: str, modern: bool) -> None:
    async with connected(url, modern) as connection:
        results = await asyncio.gather(*(call(connection, "paint", wall=str(n)) for n in range(30)))

    assert [text(result) for result in results] == [f"{n} in red (Which colour?)" for n in range(30)]


@pytest.mark.parametrize("arguments", [("stateless",), ("stateless", "json")], ids=["stateless", "stateless json"])
async def test_a_server_without_sessions_works_until_it_dies(arguments: tuple[str, ...]) -> None:
    server = Official(*arguments)
    try:
        async with connected(server.url, modern=False) as connection:
            await connection.watch(frozenset())
            assert text(await call(connection, "steps")) == "done"

            server.process.kill()
            server.process.wait(WAIT_SECONDS)
            with pytest.raises(ConnectionLost):
                await call(connection, "steps")
            with pytest.raises(ConnectionLost, match="refuses connections") as refused:
                await call(connection, "steps")
            assert not refused.value.sent
    finally:
        server.stop()
