"""Real servers over Streamable HTTP, in both eras: the official SDK's, and the bundled Host."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.bundled import BundledHost, joined, write_addin
from support.mcp_peers import TestPeer
from support.proxies import ERAS
from support.waiting import until
from uno_devserver.protocol.client.connection import Connection, ConnectionLost
from uno_devserver.protocol.client.http_connect import connect_http
from uno_devserver.protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from uno_devserver.protocol.service import Params, Result

from ..conversations import WAIT_SECONDS

PROGRAM = Path(__file__).with_name("official_server.py")
CONFORMANCE = Path(__file__).parents[2] / "conformance" / "addin.py"
WAITING = """
import asyncio
from pathlib import Path
from uno_devserver.host.addins import AddIn, Context

def register(addin: AddIn) -> None:
    @addin.tool
    async def wait(folder: str, ctx: Context) -> str:
        ctx.progress(1, 2)
        (Path(folder) / "begun").touch()
        try:
            await asyncio.Event().wait()
        finally:
            (Path(folder) / "ended").touch()
"""


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


def started(root: Path, port: int = 0) -> BundledHost:
    waiting = write_addin(root, "waiting.py", WAITING)
    return BundledHost(root, "--addins", joined([waiting, CONFORMANCE]), port=port)


@pytest.fixture(scope="module")
def official() -> Iterator[str]:
    server = Official()
    yield server.url
    server.stop()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(tmp_path_factory.mktemp("host")) as running:
        running.health()
        yield running.url


class Server(NamedTuple):
    """A server, with tools of it that do the same as others do elsewhere."""

    url: str
    quick: tuple[str, str]  # and its answer
    waits: str
    polled: tuple[str, str]
    changes: dict[str, str]  # and what is heard of it


@pytest.fixture(params=["official", "host"])
def server(request: pytest.FixtureRequest) -> Server:
    url = request.getfixturevalue(request.param)
    if request.param == "official":
        changes = {"change": "notifications/tools/list_changed"}
        return Server(url, ("steps", "done"), "forever", ("polled", "polled"), changes)
    quick = ("test_simple_text", "This is a simple text response for testing.")
    polled = ("test_reconnection", "Reconnection test completed successfully.")
    kinds = {f"test_trigger_{kind}_change": f"notifications/{kind}s/list_changed" for kind in ("tool", "prompt")}
    return Server(url, quick, "wait", polled, kinds)


def answered(method: str, params: Params) -> Result:
    if method == "elicitation/create":
        names = params["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: f"my {name} ({params['message']})" for name in names}}
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


async def ask(connection: Connection, method: str, peer: TestPeer | None = None, **params: Any) -> Any:
    return json.loads(bytes(await connection.request(method, params, peer or client())))


async def call(connection: Connection, name: str, peer: TestPeer | None = None, **arguments: Any) -> str:
    meta = {"progressToken": "mine"}
    result = await ask(connection, "tools/call", peer, name=name, arguments=arguments, _meta=meta)
    return str(result["content"][0]["text"])


# --- both servers


@ERAS
async def test_changes_are_heard(server: Server, modern: bool) -> None:
    peer = client()
    async with connected(server.url, modern, peer) as connection:
        await connection.watch(frozenset({"note://one"} if modern and "change" in server.changes else ()))
        for tool, heard in server.changes.items():
            await call(connection, tool, peer)
            await until(lambda heard=heard: heard in peer.methods())  # type: ignore[misc]
        if "change" in server.changes:
            await until(lambda: ("notifications/resources/updated", {"uri": "note://one"}) in peer.heard)


@ERAS
async def test_a_call_that_is_cancelled_ends_there(server: Server, modern: bool, tmp_path: Path) -> None:
    async with connected(server.url, modern) as connection:
        calling = asyncio.create_task(call(connection, server.waits, folder=str(tmp_path)))
        await until((tmp_path / "begun").exists)
        calling.cancel()
        await until((tmp_path / "ended").exists)
        assert await call(connection, server.quick[0]) == server.quick[1]


@ERAS
async def test_an_unknown_method_is_an_error(server: Server, modern: bool) -> None:
    async with connected(server.url, modern) as connection:
        with pytest.raises(RpcError) as refused:
            await connection.request("nothing/here", {}, client())
    assert refused.value.code == METHOD_NOT_FOUND


async def test_a_call_that_closes_its_stream_is_polled(server: Server) -> None:
    peer = client()
    async with connected(server.url, modern=False) as connection:
        assert await call(connection, server.polled[0], peer) == server.polled[1]
    assert [params["progress"] for _, params in peer.heard] == ([1, 2] if server.polled[0] == "polled" else [])


@ERAS
async def test_many_calls_run_side_by_side(server: Server, modern: bool) -> None:
    async with connected(server.url, modern) as connection:
        for _ in range(2):
            results = await asyncio.gather(*(call(connection, server.quick[0]) for _ in range(32)))
            assert results == [server.quick[1]] * 32


# --- the official SDK's server


@ERAS
async def test_the_official_server_says_who_it_is_and_what_it_has(official: str, modern: bool) -> None:
    async with connected(official, modern) as connection:
        tools = (await ask(connection, "tools/list"))["tools"]
        prompt = await ask(connection, "prompts/get", name="greet", arguments={"name": "é"})
        note = await ask(connection, "resources/read", uri="note://one")

        assert (connection.server.info["name"], connection.server.instructions) == ("official", "Read me.")
        assert "paint" in [tool["name"] for tool in tools]
        assert prompt["messages"][0]["content"]["text"] == "Hello, é!"
        assert note["contents"][0]["text"] == "noted"


@ERAS
async def test_the_questions_of_the_official_server_are_answered(official: str, modern: bool) -> None:
    peer = client()
    async with connected(official, modern) as connection:
        walls = await asyncio.gather(*(call(connection, "paint", peer, wall=str(n)) for n in range(30)))
        assert walls == [f"{n} in my name (Which colour?)" for n in range(30)]
        assert await call(connection, "ask_all", peer) == "my name (Which colour?), sampled, 2"

    asked = [method for method, _, _ in peer.asked]
    assert sorted(asked) == ["elicitation/create"] * 31 + ["roots/list", "sampling/createMessage"]


async def test_the_questions_of_the_official_server_are_passed_on_to_a_modern_client(official: str) -> None:
    peer = client(modern=True)
    async with connected(official, modern=True) as connection:
        paint: dict[str, Any] = {"name": "paint", "arguments": {"wall": "north"}}
        asked = await ask(connection, "tools/call", peer, **paint)
        (name,) = asked["inputRequests"]
        answers = {name: {"action": "accept", "content": {"name": "blue"}}}
        state = asked["requestState"]
        done = await ask(connection, "tools/call", peer, **paint, requestState=state, inputResponses=answers)

    assert asked["resultType"] == "input_required"
    assert peer.asked == []
    assert done["content"][0]["text"] == "north in blue"


@ERAS
async def test_progress_and_log_messages_arrive_before_the_answer(official: str, modern: bool) -> None:
    peer = client()
    async with connected(official, modern) as connection:
        assert await call(connection, "steps", peer) == "done"
        progress = [params for method, params in peer.heard if method == "notifications/progress"]
        logged = [params["data"] for method, params in peer.heard if method == "notifications/message"]

    steps = [("mine", step, f"step {step}") for step in range(3)]
    assert [(each["progressToken"], each["progress"], each["message"]) for each in progress] == steps
    assert logged == ["half way"]


@ERAS
async def test_a_tool_that_fails_has_a_result_that_says_so(official: str, modern: bool) -> None:
    async with connected(official, modern) as connection:
        failed = await ask(connection, "tools/call", name="fail", arguments={})
    assert failed["isError"] is True
    assert failed["content"][0]["text"] == "Error executing tool fail"


async def test_arguments_that_the_official_server_wants_in_headers_are_there(official: str) -> None:
    async with connected(official, modern=True) as connection:
        for region in ("north", "süd"):
            assert await call(connection, "routed", region=region, fast=True) == f"{region} True"


@pytest.mark.parametrize("arguments", [("stateless",), ("stateless", "json")], ids=["stateless", "stateless json"])
async def test_a_server_without_sessions_works_until_it_dies(arguments: tuple[str, ...]) -> None:
    server = Official(*arguments)
    try:
        async with connected(server.url, modern=False) as connection:
            await connection.watch(frozenset())
            assert await call(connection, "steps") == "done"

            server.process.kill()
            server.process.wait(WAIT_SECONDS)
            with pytest.raises(ConnectionLost):
                await call(connection, "steps")
            with pytest.raises(ConnectionLost, match="refuses connections") as refused:
                await call(connection, "steps")
            assert not refused.value.sent
    finally:
        server.stop()


# --- the bundled Host


@ERAS
async def test_a_host_that_is_killed_loses_every_call_and_its_successor_is_used(tmp_path: Path, modern: bool) -> None:
    folders = [tmp_path / str(n) for n in range(8)]
    for folder in folders:
        folder.mkdir()
    with started(tmp_path) as first:
        connection = await connect_http(first.url, client(), modern_first=modern)
        await connection.watch(frozenset())
        calls = [asyncio.create_task(call(connection, "wait", folder=str(folder))) for folder in folders]
        await until(lambda: all((folder / "begun").exists() for folder in folders))

        first.process.kill()
        outcomes = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5)
        first.process.wait()

        assert [isinstance(outcome, ConnectionLost) and outcome.sent for outcome in outcomes] == [True] * 8
        with pytest.raises(ConnectionLost) as refused:
            await call(connection, "test_simple_text")
        assert not refused.value.sent

    with started(tmp_path, port=first.port) as second:
        second.health()
        assert (await call(connection, "test_simple_text")).startswith("This is")
        await connection.close()
