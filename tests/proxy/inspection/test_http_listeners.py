"""The proxy over HTTP, both ways: a relay with a scripted upstream behind real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.bundled import BOTH, Reply, ask
from support.files import write
from support.inspectors import HELLO, InspectorClient, Listening, last_port_taken
from support.machine import DATA_HOME
from support.relays import Scene
from support.waiting import until
from uno_devserver.issues import Issue
from uno_devserver.protocol.jsonrpc import STOPPED
from uno_devserver.proxy.inspection.http_listeners import MOST_SESSIONS, HttpListeners, wanted_port
from uno_devserver.proxy.options import INSPECTOR_PORT, ProxyOptions
from uno_devserver.proxy.state import ProxyState
from uno_devserver.system.log import log
from uno_devserver.system.ports import free_port, is_free
from uno_devserver.workspace.resolver import resolve
from uno_devserver.workspace.trust import TRUST_VARIABLE

CONFIG = ".devtools/host.config.jsonc"
TRUSTING = {TRUST_VARIABLE: "1"}


class World:
    """The HTTP listeners of a proxy whose upstream does what the test says."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.scene = Scene()
        chosen = ProxyOptions(str(folder), command=("serve",), **options)
        self.state = ProxyState(chosen)
        self.listeners = HttpListeners(chosen, self.scene.service, self.state)

    @property
    def http_port(self) -> int:
        address = self.state.facts.http_endpoint
        assert address
        return int(address.rpartition(":")[2].partition("/")[0])

    async def ask(self, method: str, path: str, **headers: str) -> Reply:
        return await asyncio.to_thread(ask, self.http_port, method, path, b"", headers)

    async def post(self, method: str, params: dict[str, Any], **headers: str) -> Reply:
        """Over --http."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = {"Content-Type": "application/json", "Accept": BOTH, **headers}
        return await asyncio.to_thread(ask, self.http_port, "POST", "/mcp", body, headers)

    async def until_inspected(self) -> InspectorClient:
        async with asyncio.timeout(10):
            while self.state.facts.inspector is None:
                await asyncio.sleep(0.005)
        token = self.state.facts.inspector_token
        assert token
        return InspectorClient(int(self.state.facts.inspector.rpartition(":")[2][:-1]), token)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(DATA_HOME, str(tmp_path / "data"))
    return tmp_path


@asynccontextmanager
async def world_in(folder: Path, **options: Any) -> AsyncIterator[World]:
    world = World(folder, **options)
    await world.listeners.open()
    try:
        yield world
    finally:
        async with asyncio.timeout(5):
            await world.listeners.close()
        await asyncio.to_thread(world.state.close)


# --- MCP and health at --http -----------------------------------------------------------------------------------------


async def test_a_client_over_http_shakes_hands_lists_and_calls(folder: Path) -> None:
    async with world_in(folder, http_port=0) as world:
        hello = await world.post("initialize", HELLO)
        session = {"Mcp-Session-Id": hello.headers["mcp-session-id"]}
        assert hello.json["result"]["serverInfo"]["name"] == "uno-devserver"

        calling = asyncio.ensure_future(world.post("tools/call", {"name": "echo"}, **session))
        (await world.scene.next_asked()).answer({"content": [{"type": "text", "text": "echoed"}]})

        result = (await calling).json["result"]
        assert result["content"][0]["text"] == "echoed"
        assert (await world.post("tools/list", {}, **session)).json["result"] == {"tools": []}


@pytest.mark.parametrize(("status", "code"), [("Healthy", 200), ("Degraded", 503), ("Unhealthy", 503)])
async def test_health_is_json_with_a_status_that_monitors_understand(
    folder: Path, monkeypatch: pytest.MonkeyPatch, status: str, code: int
) -> None:
    monkeypatch.setattr(ProxyState, "report", lambda _: {"status": status, "issues": []})
    async with world_in(folder, http_port=0) as world:
        reply = await world.ask("GET", "/health")

        assert reply.status == code
        assert reply.json["status"] == status
        assert (await world.ask("POST", "/health")).status == 405


async def test_there_is_nothing_elsewhere(folder: Path) -> None:
    async with world_in(folder, http_port=0) as world:
        reply = await world.ask("GET", "/rc")

        assert reply.status == 404
        assert "/mcp" in reply.json["error"]


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
async def test_web_sites_are_not_served(folder: Path, headers: dict[str, str]) -> None:
    async with world_in(folder, http_port=0) as world:
        assert (await world.ask("GET", "/health", **headers)).status == 403


async def test_a_port_that_is_taken_is_said_and_the_proxy_goes_on_without(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        async with world_in(folder, http_port=port) as world:
            [issue] = world.state.facts.issues

    assert f"port {port} is taken by another program" in issue.message
    assert issue.message in capsys.readouterr().err


async def test_it_says_where_it_listens(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with world_in(folder, http_port=0) as world:
        assert f"http://localhost:{world.http_port}/mcp" in capsys.readouterr().err


async def test_a_call_that_hangs_does_not_keep_it_from_closing(folder: Path) -> None:
    async with world_in(folder, http_port=0) as world:
        session = (await world.post("initialize", HELLO)).headers["mcp-session-id"]
        calling = asyncio.ensure_future(world.post("tools/call", {"name": "echo"}, **{"Mcp-Session-Id": session}))
        await world.scene.next_asked()
        port = world.http_port

        async with asyncio.timeout(2):
            await world.listeners.close()

        assert is_free(port)
        assert (await calling).json["error"]["code"] == STOPPED


async def test_clients_that_never_say_goodbye_are_forgotten_before_they_use_up_all_files(folder: Path) -> None:
    async with world_in(folder, http_port=0) as world:
        sessions = [(await world.post("initialize", HELLO)).headers["mcp-session-id"] for _ in range(MOST_SESSIONS + 1)]

        first = await world.post("ping", {}, **{"Mcp-Session-Id": sessions[0]})
        last = await world.post("ping", {}, **{"Mcp-Session-Id": sessions[-1]})

        assert (first.status, last.status) == (404, 200)


# --- both -------------------------------------------------------------------------------------------------------------


async def test_changes_are_told_to_every_session_of_either(folder: Path) -> None:
    async with world_in(folder, http_port=0, inspector_port=0) as world:
        page = await world.until_inspected()
        session = (await world.post("initialize", HELLO)).headers["mcp-session-id"]
        other = await asyncio.to_thread(page.open_session)

        with (
            Listening(world.http_port, "/mcp", {"Mcp-Session-Id": session}) as plain,
            page.listen("/mcp", **{"Mcp-Session-Id": other}) as inspector,
        ):
            for stream in (plain, inspector):
                await asyncio.to_thread(stream.wait, "200 OK")

            world.listeners.broadcast("notifications/tools/list_changed")

            for stream in (plain, inspector):
                await asyncio.to_thread(stream.wait, "notifications/tools/list_changed")


async def test_it_waits_for_the_first_start_and_is_opened_once(folder: Path) -> None:
    async with world_in(folder, inspector_port=0) as world:
        world.listeners.open_if_wanted()
        assert not world.listeners._tasks._running, "a start is under way"

        world.listeners.start_settled()
        page = await world.until_inspected()

        world.listeners.start_settled()
        url = await world.listeners.inspector_url(0)
        assert isinstance(url, str)
        assert (await asyncio.to_thread(InspectorClient.opened, url)).port == page.port


async def test_those_who_ask_at_the_same_time_get_the_same_one(folder: Path) -> None:
    async with world_in(folder) as world:
        urls = await asyncio.gather(*(world.listeners.inspector_url(0) for _ in range(3)))

        assert len(set(urls)) == 3, "each opens the page once"
        ports = {f"http://localhost:{urlsplit(str(url)).port}/" for url in urls}
        assert ports == {world.state.facts.inspector}


async def test_a_port_that_cannot_be_had_is_an_issue_until_another_is_asked_for(folder: Path) -> None:
    with last_port_taken() as port:
        async with world_in(folder, inspector_port=port) as world:
            refused = await world.listeners.inspector_url(port)
            assert isinstance(refused, Issue)
            assert world.state.facts.issues == (refused,)

            log.recent.clear()
            world.listeners.start_settled()
            await until(lambda: world.listeners._start_over and not world.listeners._tasks._running)
            assert not log.recent, "it was tried, and said, once"

            assert isinstance(await world.listeners.inspector_url(0), str)
            assert list(world.state.facts.issues) == []


# --- where it is wanted -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "environ", "port"),
    [
        ('{"inspector": {"enabled": true}}', TRUSTING, INSPECTOR_PORT),
        ('{"inspector": {"enabled": true, "port": 7000}}', TRUSTING, 7000),
        ('{"inspector": {"enabled": true, "port": 0}}', TRUSTING, 0),
        ('{"inspector": {"enabled": true}}', {}, None),
        ('{"inspector": {"enabled": false, "port": 7000}}', TRUSTING, None),
        ('{"inspector": {"port": 7000}}', TRUSTING, None),
        ("{}", TRUSTING, None),
        ("not JSON", TRUSTING, None),
        (None, TRUSTING, None),
    ],
)
def test_a_config_wants_it_where_the_user_trusts_that(
    folder: Path, config: str | None, environ: dict[str, str], port: int | None
) -> None:
    workspace = folder / "workspace"
    (workspace / ".devtools" / "addins").mkdir(parents=True)
    if config is not None:
        write(workspace / CONFIG, config)
    environ = {**os.environ, **environ}

    assert wanted_port(ProxyOptions(str(workspace)), resolve(str(workspace)), environ) == port
    assert wanted_port(ProxyOptions(str(workspace), command=("serve",)), None, environ) == port
    assert wanted_port(ProxyOptions(str(workspace), inspector_port=0), resolve(str(workspace)), environ) == 0
