"""The older transport HTTP+SSE: real servers of both official SDKs, and scripted ones that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.mcp_peers import TestPeer
from support.npm import NODE, installed
from support.ports import lasting_port
from support.raw_servers import RawServer, Visitor
from support.waiting import until
from uno_devserver.protocol.client import http_endpoint
from uno_devserver.protocol.client.connection import AccessDenied, Connection, ConnectionLost, UnusableServer
from uno_devserver.protocol.client.credentials import FixedHeaders
from uno_devserver.protocol.client.http_connect import connect_http
from uno_devserver.protocol.client.http_sse import SseConnection
from uno_devserver.protocol.http.client_connection import HttpFailure, Reply
from uno_devserver.protocol.jsonrpc import RpcError

from ..conversations import WAIT_SECONDS
from .pending_calls import RecordedCall
from .test_streamable_servers import PROGRAM, ask, call, client

CONFORMANCE = Path(__file__).parents[2] / "conformance"
CHANGED = "notifications/tools/list_changed"


class Official:
    """The server of the official Python SDK, which can be killed, and started again at the same port."""

    def __init__(self) -> None:
        self.port = lasting_port()
        self.url = f"http://127.0.0.1:{self.port}/sse"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), "sse", f"port={self.port}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout
        assert self.process.stdout.readline()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(WAIT_SECONDS)
        assert self.process.stdout
        self.process.stdout.close()


@pytest.fixture
def official() -> Iterator[Official]:
    server = Official()
    yield server
    server.kill()


@asynccontextmanager
async def connected(url: str, peer: TestPeer | None = None) -> AsyncIterator[Connection]:
    connection = await connect_http(url, peer or client(), modern_first=True)
    try:
        yield connection
    finally:
        await connection.close()


# --- real servers


async def test_a_server_of_the_python_sdk_is_spoken_to_and_its_transport_is_named(official: Official) -> None:
    peer = client()
    async with connected(official.url, peer) as connection:
        assert connection.server.info["name"] == "official"
        assert connection.server.transport == "HTTP+SSE"
        assert await call(connection, "steps", peer) == "done"
        assert [method for method, _ in peer.heard].count("notifications/progress") == 3

        pending = RecordedCall()
        assert connection.send(pending, "steps", b'{"name":"steps","arguments":{}}'), "no other connection is needed"
        connection.flush()
        assert (await pending.settled())["content"][0]["text"] == "done"


async def test_a_request_that_is_cancelled_ends_at_the_server(official: Official, tmp_path: Path) -> None:
    async with connected(official.url) as connection:
        running = asyncio.ensure_future(call(connection, "forever", folder=str(tmp_path)))
        await until((tmp_path / "begun").exists)

        running.cancel()

        await until((tmp_path / "ended").exists)


async def test_a_killed_server_costs_only_its_open_requests_and_is_found_again(
    official: Official, tmp_path: Path
) -> None:
    peer = client()
    async with connected(official.url, peer) as connection:
        await connection.watch(frozenset({"note://one"}))
        running = asyncio.ensure_future(call(connection, "forever", folder=str(tmp_path)))
        await until((tmp_path / "begun").exists)

        official.kill()

        with pytest.raises(ConnectionLost) as lost:
            await running
        assert lost.value.sent, "whether it has run is not known"
        with pytest.raises(ConnectionLost) as lost:
            await call(connection, "steps")
        assert not lost.value.sent
        peer.heard.clear()
        official.start()
        await until(lambda: CHANGED in peer.methods())  # by itself: notifications come over the stream
        assert await call(connection, "steps") == "done"


async def test_the_everything_server_of_the_typescript_sdk_is_spoken_to() -> None:
    if NODE is None:
        pytest.skip("there is no Node.js")
    port = lasting_port()
    everything = installed(CONFORMANCE) / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    process = subprocess.Popen(
        [str(NODE), str(everything), "sse"],
        env={**os.environ, "PORT": str(port)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}/sse"
        connection = await _opened(url)
        assert connection.server.transport == "HTTP+SSE"
        assert await call(connection, "echo", message="hello") == "Echo: hello"
        await connection.close()
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)


async def _opened(url: str) -> Connection:
    """The connection, as soon as the server listens."""
    async with asyncio.timeout(3 * WAIT_SECONDS):
        while True:
            try:
                return await connect_http(url, client(), modern_first=False)
            except ConnectionLost:
                await asyncio.sleep(0.05)


# --- scripted servers


class Scripted:
    """Names `endpoint`, accepts messages there, and answers `initialize` and `ping` over the stream.

    `statuses` are the answers to the next messages after the opening; all others are accepted.
    """

    def __init__(self, endpoint: str = "/messages?session={}", *statuses: int) -> None:
        self.endpoint = endpoint
        self.statuses = list(statuses)
        self.opening_status = 202
        self.streams: list[Visitor] = []
        self.posted: list[str] = []

    async def __call__(self, visitor: Visitor) -> None:
        while True:
            asked = await visitor.asked()
            if asked.method == "GET":
                self.streams.append(visitor)
                visitor.begin_events()
                endpoint = self.endpoint.format(len(self.streams))
                visitor.chunk(f"event: endpoint\r\ndata: {endpoint}\r\n\r\n".encode())
                await visitor.gone()
                return
            if asked.target == "/mcp":
                visitor.answer(b"no", status=405)
                continue
            method = asked.json.get("method")
            self.posted.append(f"{asked.target} {method}")
            opening = method in ("initialize", "notifications/initialized")
            status = self.opening_status if opening else self.statuses.pop(0) if self.statuses else 202
            visitor.answer(status=status)
            if status == 202 and method in ("initialize", "ping"):
                result: dict[str, Any] = {}
                if method == "initialize":
                    info = {"name": "scripted", "version": "1"}
                    result = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": info}
                message = {"jsonrpc": "2.0", "id": asked.json["id"], "result": result}
                self.streams[-1].chunk(b"data: " + json.dumps(message).encode() + b"\n\n")


async def test_messages_go_where_the_first_event_says_and_in_their_order() -> None:
    server = Scripted()
    async with RawServer(server) as raw, connected(raw.url) as connection:
        await ask(connection, "ping")

    assert server.posted == [
        f"/messages?session=1 {method}" for method in ("initialize", "notifications/initialized", "ping")
    ]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1/messages", "https://127.0.0.1/messages", "//evil.example/x"])
async def test_an_endpoint_on_another_server_gets_nothing(endpoint: str) -> None:
    server = Scripted(endpoint)
    async with RawServer(server) as raw:
        with pytest.raises(UnusableServer, match="is not on the same server"):
            await connect_http(raw.url, TestPeer(), modern_first=False)

    assert server.posted == []


@pytest.mark.parametrize("status", [404, 410])
async def test_a_session_that_the_server_has_forgotten_is_opened_again_and_the_request_was_not_run(status: int) -> None:
    server = Scripted("/messages?session={}", status)
    async with RawServer(server) as raw, connected(raw.url) as connection:
        with pytest.raises(ConnectionLost) as lost:
            await ask(connection, "ping")
        assert not lost.value.sent

        assert await ask(connection, "ping") == {}

    assert server.posted[-1] == "/messages?session=2 ping"


async def test_a_message_that_the_server_does_not_want_fails_alone() -> None:
    server = Scripted("/messages", 413, 202, 400, 400)
    async with RawServer(server) as raw, connected(raw.url) as connection:
        with pytest.raises(RpcError, match="HTTP 413"):
            await ask(connection, "ping")
        assert await ask(connection, "ping") == {}
        with pytest.raises(ConnectionLost):  # some servers forget sessions with this status
            await ask(connection, "ping")
        with pytest.raises(RpcError, match="HTTP 400"):  # but a new session is not forgotten
            await ask(connection, "ping")

    assert len(server.streams) == 2


async def test_a_message_that_is_refused_for_its_credentials_is_reported_as_that_and_the_stream_stays() -> None:
    server = Scripted("/messages", 401)
    async with RawServer(server) as raw, connected(raw.url) as connection:
        with pytest.raises(AccessDenied, match=r"asks for credentials \(HTTP 401\)"):
            await ask(connection, "ping")
        assert await ask(connection, "ping") == {}

    assert len(server.streams) == 1


async def test_an_opening_that_is_refused_for_its_credentials_is_not_tried_in_another_era() -> None:
    server = Scripted("/messages")
    server.opening_status = 401
    async with RawServer(server) as raw:
        with pytest.raises(AccessDenied, match=r"asks for credentials \(HTTP 401\)"):
            await connect_http(raw.url, TestPeer(), modern_first=False)

    assert server.posted == ["/messages initialize"]


class Changed(FixedHeaders):
    def use(self, headers: dict[str, str]) -> None:
        self._headers = headers


class RecordedTaker:
    def replied(self, reply: Reply) -> None: ...

    def failed(self, failure: HttpFailure) -> None: ...


async def test_a_stream_is_opened_again_with_the_credentials_that_another_request_was_first_to_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_endpoint, "CREDENTIAL_SECONDS", 0.01)
    refused = asyncio.Event()
    opened: list[SseConnection] = []
    server = Scripted()
    given = Changed({"Authorization": "Bearer old"})

    async def guarded(visitor: Visitor) -> None:
        if opened and not refused.is_set():
            await visitor.asked()
            visitor.answer(status=401)
            given.use({"Authorization": "Bearer new"})
            opened[0].endpoint.send_now(b"", b"", RecordedTaker())  # another request is first to use them
            refused.set()
        await server(visitor)

    async with RawServer(guarded) as raw:
        connection = await connect_http(raw.url, TestPeer(), modern_first=False, credentials=given)
        assert isinstance(connection, SseConnection)
        opened.append(connection)
        connection.endpoint.break_off()
        await asyncio.wait_for(refused.wait(), WAIT_SECONDS)
        await until(lambda: len(server.streams) == 2, "the new stream")
        await connection.close()


async def test_a_stream_that_names_no_endpoint_is_not_waited_for_longer_than_needed() -> None:
    async def script(visitor: Visitor) -> None:
        asked = await visitor.asked()
        if asked.method == "GET":
            visitor.begin_events()
            visitor.event({"jsonrpc": "2.0", "method": "notifications/message"})
            visitor.end_events()
            await visitor.gone()
        visitor.answer(status=404)

    async with RawServer(script) as raw:
        with pytest.raises(
            UnusableServer, match="does not speak MCP: asked for 'initialize', it answered with HTTP 404"
        ):
            await connect_http(raw.url, TestPeer(), modern_first=False)


async def test_levels_and_watched_resources_are_set_again_on_a_new_stream() -> None:
    server = Scripted()
    async with RawServer(server) as raw, connected(raw.url) as connection:
        watching = asyncio.ensure_future(connection.watch(frozenset({"note://one"})))
        await until(lambda: any("resources/subscribe" in posted for posted in server.posted))

        server.streams[0].abort()

        await until(lambda: "/messages?session=2 resources/subscribe" in server.posted)
        await asyncio.wait((watching,))
        assert isinstance(watching.exception(), ConnectionLost)
