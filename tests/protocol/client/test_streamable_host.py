"""The bundled Host as a real process, in both eras, with all that its tools do; killed, and started again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.bundled import BundledHost, joined, write_addin
from support.mcp_peers import TestPeer
from uno_devserver.protocol.client.connection import Connection, ConnectionLost, UnusableServer
from uno_devserver.protocol.client.streamable_http import connect_http
from uno_devserver.protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from uno_devserver.protocol.service import Params, Result

from ..conversations import until

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
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


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BundledHost]:
    root = tmp_path_factory.mktemp("host")
    with started(root) as running:
        running.health()
        yield running


def started(root: Path, port: int = 0) -> BundledHost:
    waiting = write_addin(root, "waiting.py", WAITING)
    return BundledHost(root, "--addins", joined([waiting, CONFORMANCE]), port=port)


def answered(method: str, params: Params) -> Result:
    if method == "elicitation/create":
        names = params["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: f"my {name}" for name in names}}
    if method == "roots/list":
        return {"roots": [{"uri": "file:///a"}]}
    return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "sampled"}}


def client(**options: Any) -> TestPeer:
    capabilities: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
    return TestPeer("ide", answer=answered, log_level="info", **options, **capabilities)


@asynccontextmanager
async def connected(host: BundledHost, modern: bool, peer: TestPeer | None = None) -> AsyncIterator[Connection]:
    connection = await connect_http(host.url, peer or client(), modern_first=modern)
    try:
        assert connection.server.modern is modern
        yield connection
    finally:
        await connection.close()


async def call(connection: Connection, name: str, peer: TestPeer | None = None, **arguments: Any) -> str:
    params = {"name": name, "arguments": arguments, "_meta": {"progressToken": "mine"}}
    result = json.loads(bytes(await connection.request("tools/call", params, peer or client())))
    return str(result["content"][0]["text"])


@ERAS
async def test_what_it_offers_is_read(host: BundledHost, modern: bool) -> None:
    async def ask(method: str, **params: Any) -> Any:
        return json.loads(bytes(await connection.request(method, params, client())))

    async with connected(host, modern) as connection:
        tools = (await ask("tools/list"))["tools"]
        resource = await ask("resources/read", uri="test://template/7/data")
        prompt = await ask("prompts/get", name="test_simple_prompt")
        completion = await ask(
            "completion/complete",
            ref={"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            argument={"name": "arg1", "value": "par"},
        )

    assert "test_simple_text" in [tool["name"] for tool in tools]
    assert json.loads(resource["contents"][0]["text"])["id"] == "7"
    assert prompt["messages"][0]["content"]["text"] == "This is a simple prompt for testing."
    assert completion["completion"]["values"] == ["paris", "park", "party"]


@ERAS
async def test_tools_talk_while_they_work(host: BundledHost, modern: bool) -> None:
    peer = client()
    async with connected(host, modern) as connection:
        assert await call(connection, "test_tool_with_progress", peer) == "progressed"
        assert await call(connection, "test_tool_with_logging", peer) == "logged"

    progress = [params for method, params in peer.heard if method == "notifications/progress"]
    logged = [params["data"] for method, params in peer.heard if method == "notifications/message"]
    assert [(each["progressToken"], each["progress"]) for each in progress] == [("mine", n) for n in (0, 50, 100)]
    assert len(logged) == 3


@ERAS
async def test_tools_ask(host: BundledHost, modern: bool) -> None:
    peer = client()
    async with connected(host, modern) as connection:
        assert await call(connection, "test_sampling", peer, prompt="?") == "LLM response: sampled"
        assert '"username": "my username"' in await call(connection, "test_elicitation", peer, message="?")
        assert await call(connection, "test_input_required_result_elicitation", peer) == "Hello, my name!"
        assert await call(connection, "test_input_required_result_multiple_inputs", peer) == "sampled, my name: 1 roots"
        assert await call(connection, "test_input_required_result_multi_round", peer) == "my name likes my color"

    names = [name for _, _, name in peer.asked]
    assert ("user_name" in names) is modern


@ERAS
async def test_a_client_that_cannot_be_asked_is_not(host: BundledHost, modern: bool) -> None:
    peer = TestPeer()
    async with connected(host, modern, peer) as connection:
        try:
            said = await call(connection, "test_missing_capability", peer)
        except RpcError as error:  # the modern way
            said = error.message
    assert "capability sampling" in said
    assert peer.asked == []


async def test_a_call_that_closes_its_stream_is_polled(host: BundledHost) -> None:
    async with connected(host, modern=False) as connection:
        assert await call(connection, "test_reconnection") == "Reconnection test completed successfully."


@ERAS
async def test_changes_are_heard(host: BundledHost, modern: bool) -> None:
    peer = client()
    async with connected(host, modern, peer) as connection:
        await connection.watch(frozenset({"test://watched-resource"}))
        await call(connection, "test_trigger_tool_change")
        await until(lambda: "notifications/tools/list_changed" in peer.methods())
        await call(connection, "test_trigger_prompt_change")
        await until(lambda: "notifications/prompts/list_changed" in peer.methods())


@ERAS
async def test_a_call_that_is_cancelled_ends_there(host: BundledHost, modern: bool, tmp_path: Path) -> None:
    async with connected(host, modern) as connection:
        waiting = asyncio.create_task(call(connection, "wait", folder=str(tmp_path)))
        await until((tmp_path / "begun").exists)
        waiting.cancel()
        await until((tmp_path / "ended").exists)
        assert (await call(connection, "test_simple_text")).startswith("This is")


@ERAS
async def test_errors_are_told_as_such(host: BundledHost, modern: bool) -> None:
    async with connected(host, modern) as connection:
        with pytest.raises(RpcError) as refused:
            await connection.request("nothing/here", {}, client())
    assert refused.value.code == METHOD_NOT_FOUND


async def test_a_path_without_an_endpoint_is_told_with_its_status(host: BundledHost) -> None:
    for modern in (True, False):
        with pytest.raises(UnusableServer) as refusal:
            await connect_http(host.url + "/nothing", client(), modern_first=modern)
        assert refusal.value.status == 404


@ERAS
async def test_many_calls_run_side_by_side(host: BundledHost, modern: bool) -> None:
    async with connected(host, modern) as connection:
        for _ in range(5):
            results = await asyncio.gather(*(call(connection, "test_simple_text") for _ in range(32)))
            assert len(results) == 32


@ERAS
async def test_a_host_that_is_killed_loses_every_call_and_its_successor_is_used(tmp_path: Path, modern: bool) -> None:
    folders = [tmp_path / str(n) for n in range(16)]
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

        assert [isinstance(outcome, ConnectionLost) and outcome.sent for outcome in outcomes] == [True] * 16
        with pytest.raises(ConnectionLost) as refused:
            await call(connection, "test_simple_text")
        assert not refused.value.sent

    with started(tmp_path, port=first.port) as second:
        second.health()
        assert (await call(connection, "test_simple_text")).startswith("This is")
        await connection.close()
