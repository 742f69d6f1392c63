"""How a conversation over lines begins: in the wanted era, else in the other one, never in both at once."""

from __future__ import annotations

import asyncio

import pytest

from support.mcp_peers import TestPeer
from uno_devserver.protocol.client.connection import ConnectionLost, UnusableServer

from .wires import DISCOVERED, Wire, initialized

META = "io.modelcontextprotocol/"


async def test_a_modern_client_asks_who_the_server_is_and_needs_nothing_else() -> None:
    wire = Wire(TestPeer("ide", roots={}))
    begin = asyncio.ensure_future(wire.begin(modern_first=True))

    discover = await wire.next()
    wire.answer(discover, {**DISCOVERED, "_meta": {f"{META}serverInfo": {"name": "s", "version": "2"}}})
    await begin

    assert discover["method"] == "server/discover"
    assert discover["params"]["_meta"] == {
        f"{META}protocolVersion": "2026-07-28",
        f"{META}clientCapabilities": {"roots": {}},
        f"{META}clientInfo": {"name": "ide", "version": "1.0"},
    }
    server = wire.connection.server
    assert server.modern
    assert (server.info, server.instructions) == ({"name": "s", "version": "2"}, "Be nice.")
    await wire.nothing()


async def test_a_handshake_client_initializes_and_says_that_it_is_done() -> None:
    wire = Wire(TestPeer("ide", sampling={}))
    begin = asyncio.ensure_future(wire.begin(modern_first=False))

    initialize = await wire.next()
    wire.answer(initialize, initialized("2024-11-05"))
    await begin

    assert initialize["method"] == "initialize"
    assert initialize["params"]["clientInfo"] == {"name": "ide", "version": "1.0"}
    assert initialize["params"]["capabilities"] == {"sampling": {}}
    assert (await wire.next())["method"] == "notifications/initialized"
    assert wire.connection.server.version == "2024-11-05"
    await wire.nothing()


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32022])
async def test_a_server_that_refuses_the_modern_question_is_initialized(code: int) -> None:
    wire = Wire(TestPeer(modern=True))
    begin = asyncio.ensure_future(wire.begin(modern_first=True))

    wire.refuse(await wire.next(), code)
    initialize = await wire.next()
    wire.answer(initialize, initialized())
    await begin

    assert initialize["method"] == "initialize"
    assert wire.connection.server.version == "2025-11-25"


async def test_a_server_that_knows_the_modern_question_but_no_modern_version_is_initialized() -> None:
    wire = Wire(TestPeer(modern=True))
    begin = asyncio.ensure_future(wire.begin(modern_first=True))

    wire.answer(await wire.next(), {"supportedVersions": ["2025-11-25"], "capabilities": {}})
    wire.answer(await wire.next(), initialized())
    await begin

    assert wire.connection.server.version == "2025-11-25"


@pytest.mark.parametrize("code", [-32022, -32601])
async def test_a_server_that_refuses_to_be_initialized_is_asked_in_the_modern_way(code: int) -> None:
    wire = Wire(TestPeer())
    begin = asyncio.ensure_future(wire.begin(modern_first=False))

    wire.refuse(await wire.next(), code)
    wire.answer(await wire.next(), DISCOVERED)
    await begin

    assert wire.connection.server.modern
    await wire.nothing()


@pytest.mark.parametrize("modern_first", [True, False])
async def test_a_server_that_refuses_both_eras_is_refused_with_its_own_words(modern_first: bool) -> None:
    wire = Wire(TestPeer())
    begin = asyncio.ensure_future(wire.begin(modern_first=modern_first))

    for _ in range(2):
        request = await wire.next()
        words = "No licence." if request["method"] == "initialize" else "Unknown."
        wire.refuse(request, -32000, words)

    with pytest.raises(UnusableServer, match=r"No licence\. \(code -32000\)"):
        await begin


@pytest.mark.parametrize("modern_first", [True, False])
async def test_an_echo_is_no_server(modern_first: bool) -> None:
    peer = TestPeer()
    wire = Wire(peer)
    begin = asyncio.ensure_future(wire.begin(modern_first=modern_first))

    for _ in range(2):
        wire.say(**(await wire.next()))

    with pytest.raises(UnusableServer, match=r"^it sends back what it is sent$"):
        await begin
    assert peer.asked == []


async def test_a_server_of_an_unknown_version_is_refused() -> None:
    wire = Wire(TestPeer())
    begin = asyncio.ensure_future(wire.begin(modern_first=False))

    wire.answer(await wire.next(), initialized("1999-01-01"))
    wire.refuse(await wire.next(), -32601)

    with pytest.raises(UnusableServer, match="1999-01-01"):
        await begin


async def test_nothing_else_is_said_to_a_server_that_takes_its_time() -> None:
    """It may be about to answer, and has then agreed to that era."""
    wire = Wire(TestPeer(modern=True))
    begin = asyncio.ensure_future(wire.begin(modern_first=True))

    discover = await wire.next()
    await wire.nothing()
    assert wire.connection.probing
    wire.answer(discover, DISCOVERED)
    await begin

    assert not wire.connection.probing


async def test_what_a_server_says_before_it_answers_is_heard() -> None:
    peer = TestPeer()
    wire = Wire(peer)
    begin = asyncio.ensure_future(wire.begin(modern_first=False))
    initialize = await wire.next()

    wire.say(method="notifications/message", params={"level": "info", "data": "loading"})
    wire.say(id=1, method="ping")
    assert await wire.next() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    wire.answer(initialize, initialized())

    await begin
    assert peer.heard == [("notifications/message", {"level": "info", "data": "loading"})]


async def test_a_server_that_ends_instead_of_answering_is_lost() -> None:
    wire = Wire(TestPeer(modern=True))
    begin = asyncio.ensure_future(wire.begin(modern_first=True))
    await wire.next()

    wire.connection.ended()

    with pytest.raises(ConnectionLost):
        await begin
    assert wire.connection.probing  # what it was asked may be why


async def test_a_server_that_ends_over_initialize_did_not_end_over_the_modern_question() -> None:
    wire = Wire(TestPeer(modern=True))
    begin = asyncio.ensure_future(wire.begin(modern_first=True))
    wire.refuse(await wire.next(), -32601)
    await wire.next()

    wire.connection.ended()

    with pytest.raises(ConnectionLost):
        await begin
    assert not wire.connection.probing


async def test_who_gives_up_on_initialize_does_not_cancel_it() -> None:
    """The protocol forbids it."""
    wire = Wire(TestPeer())
    begin = asyncio.ensure_future(wire.begin(modern_first=False))
    await wire.next()

    begin.cancel()

    await wire.nothing()
