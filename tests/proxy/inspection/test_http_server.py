"""The proxy over HTTP: a relay with a scripted upstream behind real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from support.bundled import BOTH, Reply, ask
from support.relays import Scene, state_of
from uno_devserver.issues import Issue
from uno_devserver.protocol.streamable import StreamableHttp
from uno_devserver.proxy.inspection.http_server import HttpEndpoint, open_endpoint
from uno_devserver.system.ports import free_port

JSON = {"Content-Type": "application/json", "Accept": BOTH}


def with_endpoint(story: Callable[[HttpEndpoint, Scene], Coroutine[Any, Any, None]], **health: object) -> None:
    """Run a story with an open endpoint, and close it."""

    async def run() -> None:
        scene = Scene(state=state_of(health=health or None))
        mcp = StreamableHttp(scene.service)
        endpoint = await open_endpoint(0, mcp=mcp.handle, health=scene.state.report)
        assert isinstance(endpoint, HttpEndpoint)
        try:
            await story(endpoint, scene)
        finally:
            async with asyncio.timeout(5):
                await mcp.close()
                await endpoint.close()

    asyncio.run(run())


async def asked(endpoint: HttpEndpoint, method: str, path: str, **headers: str) -> Reply:
    return await asyncio.to_thread(ask, endpoint.port, method, path, b"", headers)


async def posted(endpoint: HttpEndpoint, method: str, params: dict[str, Any], **headers: str) -> Reply:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await asyncio.to_thread(
        ask, endpoint.port, "POST", "/mcp", json.dumps(message).encode(), {**JSON, **headers}
    )


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "http", "version": "1"}}


def test_a_client_over_http_shakes_hands_lists_and_calls() -> None:
    async def story(endpoint: HttpEndpoint, scene: Scene) -> None:
        hello = await posted(endpoint, "initialize", HELLO)
        session = {"Mcp-Session-Id": hello.headers["mcp-session-id"]}
        assert hello.json["result"]["serverInfo"]["name"] == "uno-devserver"

        calling = asyncio.ensure_future(posted(endpoint, "tools/call", {"name": "echo"}, **session))
        (await scene.next_asked()).answer({"content": [{"type": "text", "text": "echoed"}]})

        result = (await calling).json["result"]
        assert result["content"][0]["text"] == "echoed"
        assert (await posted(endpoint, "tools/list", {}, **session)).json["result"] == {"tools": []}

    with_endpoint(story)


@pytest.mark.parametrize(("status", "code"), [("Healthy", 200), ("Degraded", 503), ("Unhealthy", 503)])
def test_health_is_json_with_a_status_that_monitors_understand(status: str, code: int) -> None:
    async def story(endpoint: HttpEndpoint, scene: Scene) -> None:
        reply = await asked(endpoint, "GET", "/health")

        assert reply.status == code
        assert reply.json["status"] == status
        assert (await asked(endpoint, "POST", "/health")).status == 405

    with_endpoint(story, status=status, issues=[])


def test_there_is_nothing_elsewhere() -> None:
    async def story(endpoint: HttpEndpoint, scene: Scene) -> None:
        reply = await asked(endpoint, "GET", "/rc")

        assert reply.status == 404
        assert "/mcp" in reply.json["error"]

    with_endpoint(story)


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
def test_web_sites_are_not_served(headers: dict[str, str]) -> None:
    async def story(endpoint: HttpEndpoint, scene: Scene) -> None:
        assert (await asked(endpoint, "GET", "/health", **headers)).status == 403

    with_endpoint(story)


def test_a_port_that_is_taken_is_said_and_the_proxy_goes_on_without(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):

        async def run() -> HttpEndpoint | Issue:
            scene = Scene()
            return await open_endpoint(port, mcp=StreamableHttp(scene.service).handle, health=scene.state.report)

        issue = asyncio.run(run())

    assert isinstance(issue, Issue)
    assert f"port {port} is taken by another program" in issue.message
    assert issue.message in capsys.readouterr().err


def test_it_says_where_it_listens(capsys: pytest.CaptureFixture[str]) -> None:
    async def story(endpoint: HttpEndpoint, scene: Scene) -> None:
        assert f"http://localhost:{endpoint.port}/mcp" in capsys.readouterr().err

    with_endpoint(story)
