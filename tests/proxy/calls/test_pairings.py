"""The four pairings of eras, spoken in full on both sides: a client over lines, and a server over lines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from protocol.client.wires import Wire, handshake_wire, modern_wire
from protocol.conversations import QUESTION, Client, ModernClient
from protocol.line_clients import LineClient, ModernLineClient
from support.relays import CONNECTED, Scene, ScriptedLink
from support.waiting import until
from uno_devserver.protocol.client.connection import Connection, Peer
from uno_devserver.protocol.jsonrpc import INVALID_PARAMS, RESOURCE_NOT_FOUND
from uno_devserver.protocol.server.streamable_http import StreamableHttp

KEY = "io.modelcontextprotocol/"
ANSWER = {"action": "accept", "content": {"name": "Ada"}}

eras = pytest.mark.parametrize(
    ("modern_client", "modern_server"), [(False, False), (False, True), (True, False), (True, True)]
)


class WiredLink(ScriptedLink):
    """Its upstream speaks one era, in full."""

    def __init__(self, *, modern: bool) -> None:
        super().__init__(CONNECTED, modern=modern)
        self.wires: list[Wire] = []

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        self.eras_wanted.append(modern_first)
        wire = await (modern_wire if self.modern else handshake_wire)(peer)
        self.wires.append(wire)
        return wire.connection


class Pair:
    """A client of one era, a server of one era, and the service between them."""

    def __init__(self, modern_client: bool, modern_server: bool) -> None:
        self.modern_client = modern_client
        self.modern_server = modern_server
        self.link = WiredLink(modern=modern_server)
        self.scene = Scene(link=self.link)
        kind = ModernLineClient if modern_client else LineClient
        self.client = kind(self.scene.service)

    async def open(self) -> None:
        if not self.modern_client:
            await self.client.initialize(elicitation={}, roots={})

    async def received(self) -> dict[str, Any]:
        """The next message that reaches the server."""
        await until(lambda: bool(self.link.wires))
        return await self.link.wires[0].next()

    @property
    def server(self) -> Wire:
        return self.link.wires[0]


async def _pair(modern_client: bool, modern_server: bool) -> Pair:
    pair = Pair(modern_client, modern_server)
    await pair.open()
    return pair


@eras
async def test_a_result_has_what_its_clients_era_wants_and_keeps_everything_else(
    modern_client: bool, modern_server: bool
) -> None:
    pair = await _pair(modern_client, modern_server)

    pair.client.call("echo", arguments={"x": [1.5]}, unknown={"y": None}, request_id="one")
    asked = await pair.received()
    marks = {"resultType": "complete", "_meta": {KEY + "serverInfo": {"name": "s"}, "own": 1}}
    own = {"content": [], "new": {"big": 1.0}, "_meta": {"own": 1}}
    pair.server.answer(asked, {**own, **marks} if modern_server else own)
    result = (await pair.client.message())["result"]

    assert pair.link.eras_wanted == [modern_client]
    assert asked["params"]["name"] == "echo"
    assert (asked["params"]["arguments"], asked["params"]["unknown"]) == ({"x": [1.5]}, {"y": None})
    assert (KEY + "protocolVersion" in asked["params"].get("_meta", {})) is modern_server
    if modern_client:
        name = "s" if modern_server else "uno-devserver"
        assert result.pop("resultType") == "complete"
        assert result["_meta"].pop(KEY + "serverInfo")["name"] == name
    assert result == own


@eras
async def test_a_question_of_the_server_is_asked_in_the_clients_way_and_the_answer_comes_in_the_servers(
    modern_client: bool, modern_server: bool
) -> None:
    pair = await _pair(modern_client, modern_server)

    pair.client.call("who", request_id=1)
    asked = await pair.received()
    if modern_server:
        question = {"who": {"method": "elicitation/create", "params": QUESTION}}
        wanted = {"resultType": "input_required", "inputRequests": question, "requestState": "theirs"}
        pair.server.answer(asked, wanted)
    else:
        pair.server.say(id="q", method="elicitation/create", params=QUESTION)

    heard = await pair.client.message()
    if modern_client:
        questions = heard["result"]["inputRequests"]
        ((name, only),) = questions.items()
        state = heard["result"]["requestState"]
        pair.client.call("who", request_id=2, inputResponses={name: ANSWER}, requestState=state)
    else:
        only = heard
        pair.client.respond(heard["id"], result=ANSWER)

    brought = await pair.received()
    if modern_server:
        assert brought["params"]["inputResponses"] == {"who": ANSWER}
        assert brought["params"]["requestState"] == "theirs"
        pair.server.answer(brought, {"resultType": "complete", "content": []})
    else:
        assert (brought["id"], brought["result"]) == ("q", ANSWER)
        pair.server.answer(asked, {"content": []})
    final = await pair.client.message()

    assert (only["method"], only["params"]) == ("elicitation/create", QUESTION)
    assert final["id"] == (2 if modern_client else 1)
    assert final["result"]["content"] == []
    assert pair.client.silent


@eras
async def test_progress_and_cancellation_find_their_way(modern_client: bool, modern_server: bool) -> None:
    pair = await _pair(modern_client, modern_server)

    pair.client.call("slow", request_id="s", _meta={"progressToken": "mine"})
    asked = await pair.received()
    token = asked["params"]["_meta"]["progressToken"]
    pair.server.say(method="notifications/progress", params={"progressToken": token, "progress": 1})
    progress = await pair.client.message()
    pair.client.cancel("s")
    cancelled = await pair.received()
    pair.server.answer(asked, {"content": ["late"]})
    pair.client.send("tools/list", request_id="after")

    assert progress["method"] == "notifications/progress"
    assert progress["params"] == {"progressToken": "mine", "progress": 1}
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == asked["id"]
    assert (await pair.client.message())["id"] == "after"


@eras
async def test_an_unknown_resource_has_the_code_of_the_clients_era(modern_client: bool, modern_server: bool) -> None:
    pair = await _pair(modern_client, modern_server)

    pair.client.send("resources/read", {"uri": "file:///none"})
    code = INVALID_PARAMS if modern_server else RESOURCE_NOT_FOUND
    asked = await pair.received()
    pair.server.refuse(asked, code, "There is none.", data={"uri": "file:///none"})
    error = (await pair.client.message())["error"]

    assert error["code"] == (INVALID_PARAMS if modern_client else RESOURCE_NOT_FOUND)
    assert (error["message"], error["data"]) == ("There is none.", {"uri": "file:///none"})


@eras
async def test_a_method_that_nobody_here_knows_passes(modern_client: bool, modern_server: bool) -> None:
    pair = await _pair(modern_client, modern_server)

    pair.client.send("somebody/else", {"x": 1})
    asked = await pair.received()
    pair.server.answer(asked, {"y": 2})
    result = (await pair.client.message())["result"]

    assert (asked["method"], asked["params"]["x"]) == ("somebody/else", 1)
    assert result["y"] == 2


@eras
async def test_log_messages_reach_the_client_from_the_level_on_that_it_wants(
    modern_client: bool, modern_server: bool
) -> None:
    pair = await _pair(modern_client, modern_server)
    levels = []

    if not modern_client:
        pair.client.send("logging/setLevel", {"level": "notice"})
        assert (await pair.client.message())["result"] == {}
    pair.client.call("talk", request_id="t", _meta={KEY + "logLevel": "notice"} if modern_client else {})
    asked = await pair.received()
    if asked["method"] == "logging/setLevel":
        levels.append(asked["params"]["level"])
        pair.server.answer(asked, {})
        asked = await pair.received()
    for level in ("info", "notice"):
        pair.server.say(method="notifications/message", params={"level": level, "data": {"x": 1}})
    pair.server.answer(asked, {"content": [], "resultType": "complete"} if modern_server else {"content": []})
    message, answer = await pair.client.message(), await pair.client.message()

    assert message["method"] == "notifications/message"
    assert message["params"] == {"level": "notice", "data": {"x": 1}}
    assert answer["id"] == "t"
    assert levels == ([] if modern_server else ["notice"])
    if modern_server:
        assert asked["params"]["_meta"][KEY + "logLevel"] == "notice"


async def test_a_handshake_server_is_told_the_most_detailed_level_that_a_modern_client_wants() -> None:
    pair = await _pair(True, False)
    methods = []

    for number, level in enumerate(("error", "warning", "error", "debug")):
        pair.client.call("talk", request_id=number, _meta={KEY + "logLevel": level})
        while (asked := await pair.received())["method"] != "tools/call":
            methods.append((asked["method"], asked["params"]["level"]))
            pair.server.answer(asked, {})
        pair.server.answer(asked, {"content": []})
        await pair.client.message()

    assert methods == [("logging/setLevel", level) for level in ("error", "warning", "debug")]


@pytest.mark.parametrize("modern", [False, True])
async def test_within_one_era_a_result_passes_byte_for_byte(modern: bool) -> None:
    pair = await _pair(modern, modern)

    pair.client.call("echo", request_id=7)
    asked = await pair.received()
    result = b'{ "resultType":"complete" , "n":1.50,"big":123456789012345678901234567890,"s":"\\u00e4" }'
    pair.server.connection.received([b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (asked["id"], result)])

    assert result in await pair.client.raw()


async def test_a_modern_client_is_not_run_again_with_the_state_of_a_server_that_is_gone() -> None:
    pair = await _pair(True, False)

    pair.client.call("who", request_id=1, requestState="of somebody", inputResponses={"q": ANSWER})
    answer = await pair.client.message()

    assert answer["error"]["code"] == INVALID_PARAMS
    await pair.server.nothing()


async def test_the_roots_of_a_handshake_client_are_asked_outside_its_calls() -> None:
    pair = await _pair(False, False)

    pair.client.tell("notifications/roots/list_changed")
    told = await pair.received()
    pair.server.say(id=1, method="roots/list")
    question = await pair.client.message()
    pair.client.respond(question["id"], result={"roots": []})
    reply = await pair.received()

    assert pair.scene.roots_changed == [pair.client.endpoint.session]
    assert told["method"] == "notifications/roots/list_changed"
    assert question["method"] == "roots/list"
    assert (reply["id"], reply["result"]) == (1, {"roots": []})


@eras
async def test_clients_over_http_are_served_the_same_way(modern_client: bool, modern_server: bool) -> None:
    link = WiredLink(modern=modern_server)
    endpoint = StreamableHttp(Scene(link=link).service)
    client: Client = ModernClient(endpoint) if modern_client else Client(endpoint)
    if not modern_client:
        await client.initialize()

    async def serve() -> None:
        await until(lambda: bool(link.wires))
        wire = link.wires[0]
        wire.answer(await wire.next(), {"content": [], **({"resultType": "complete"} if modern_server else {})})

    serving = asyncio.ensure_future(serve())
    called = await client.ask("tools/call", {"name": "echo"})
    listed = await client.ask("tools/list")
    await serving

    result = called.json["result"]
    assert result["content"] == []
    assert ("resultType" in result) is modern_client
    assert listed.json["result"]["tools"] == []
