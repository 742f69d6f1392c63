"""Conversations with the front: lines in, lines out, and what the engine is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from uno_devserver import __version__
from uno_devserver.protocol.jsonrpc import RpcNotification, RpcRequest, RpcResponse
from uno_devserver.protocol.lines import LineTooLong
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.proxy.front.dispatcher import Dispatcher
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.own_tools import CAPABILITIES
from uno_devserver.proxy.state import Lists, ProxyState

MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABLE = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
SERVER = "io.modelcontextprotocol/serverInfo"
ENVELOPE = {VERSION: MODERN, CAPABLE: {"roots": {}}, CLIENT: {"name": "c", "version": "2"}}

LISTS = Lists(b'[{"name":"t"}]', b'[{"uri":"r://"}]', b'[{"uriTemplate":"x"}]', b'[{"name":"p"}]')
MEMBERS = {
    "tools/list": ("tools", [{"name": "t"}]),
    "resources/list": ("resources", [{"uri": "r://"}]),
    "resources/templates/list": ("resourceTemplates", [{"uriTemplate": "x"}]),
    "prompts/list": ("prompts", [{"name": "p"}]),
}


class State(ProxyState):
    """With a health report of the test."""

    health: Iterator[dict[str, object]] | None = None

    def report(self) -> dict[str, object]:
        return {"status": "Healthy"} if self.health is None else next(self.health)


class Output:
    """What was written, and what waits for the end of the turn. Stands in for `ClientOutput`."""

    def __init__(self) -> None:
        self.queued: list[bytes] = []
        self.written: list[bytes] = []

    def queue(self, line: bytes) -> None:
        self.queued.append(line)

    def flush(self) -> None:
        self.written += self.queued
        self.queued.clear()


class Relay:
    """Takes calls of the tool `ordinary`. Stands in for `CallRelay`."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.flushed = 0  # of those that were taken

    def take(self, line: bytes) -> bytes | RpcRequest | None:
        try:
            value = json.loads(line)
            tool = value["params"]["name"]
        except (ValueError, RecursionError, TypeError, KeyError):
            return line
        if tool == "decoded":
            return RpcRequest(value["id"], value["method"], value["params"])
        if tool != "ordinary":
            return line
        self.taken.append(line)
        return None

    def flush(self) -> None:
        self.flushed = len(self.taken)


class Engine:
    """Remembers what it is told. Implements `front.dispatcher.Engine`."""

    def __init__(self) -> None:
        self.relay: Any = Relay()
        self.heard: list[Any] = []

    def client_met(self, client: ClientInfo) -> None:
        self.heard.append(client)

    def list_read(self, tools: bytes | None) -> None:
        self.heard.append("list read")

    def take(self, message: RpcRequest | RpcNotification | RpcResponse) -> None:
        self.heard.append(message)


class Conversation:
    """A front between a client and an engine, which is there from the beginning unless the test says otherwise."""

    def __init__(self, *, engine: bool = True) -> None:
        self.state = State(
            ProxyOptions("/ws"),
            lists=LISTS,
            capabilities=dict(CAPABILITIES),
            instructions="Be kind.",
            own_tools=frozenset(),
        )
        self.output = Output()
        self.needed = 0  # how often the engine was
        self.unwritten: list[bytes] = []  # when it was needed last
        output: Any = self.output
        self.front = Dispatcher(self.state, output, self._need)
        self.engine = Engine()
        if engine:
            self.front.open(self.engine)

    def _need(self) -> None:
        self.needed += 1
        self.unwritten = list(self.output.queued)

    def send(self, *messages: object) -> None:
        """In one read."""
        self.front.take([one if isinstance(one, bytes | LineTooLong) else json.dumps(one).encode() for one in messages])
        assert self.output.queued == []

    def said(self) -> list[Any]:
        """What was written since this was asked last."""
        lines, self.output.written[:] = [json.loads(line) for line in self.output.written], []
        return lines

    def heard(self) -> list[Any]:
        """What the engine was told since this was asked last."""
        heard, self.engine.heard = self.engine.heard, []
        return heard

    def ask(self, method: str, params: dict[str, Any] | None = None, request_id: int | str = 1) -> Any:
        """The one answer that comes at once."""
        self.send(request(method, params, request_id))
        [answer] = self.said()
        assert answer["id"] == request_id
        assert type(answer["id"]) is type(request_id)
        return answer.get("result", answer.get("error"))

    def ask_modern(self, method: str, params: dict[str, Any] | None = None) -> Any:
        return self.ask(method, {**(params or {}), "_meta": ENVELOPE})

    def initialize(self, version: str = "2025-11-25") -> None:
        self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c"}})
        self.heard()


def request(method: str, params: dict[str, Any] | None = None, request_id: int | str = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **({} if params is None else {"params": params})}


def call(tool: str, request_id: int | str = 1) -> dict[str, Any]:
    return request("tools/call", {"name": tool}, request_id)


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


# --- hello ----------------------------------------------------------------------------------------------------------


def test_initialize_tells_who_we_are_and_the_engine_who_asks(talk: Conversation) -> None:
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "c", "version": "2"},
    }

    result = talk.ask("initialize", params)

    assert result == {
        "protocolVersion": "2025-06-18",
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": "uno-devserver", "version": __version__},
        "instructions": "Be kind.",
    }
    assert talk.heard() == [ClientInfo("c", "2", {"roots": {}}, "2025-06-18")]
    talk.ask("ping")
    assert [stage for stage, _ in talk.state.timeline.stages()] == ["initialize"]


def test_the_engine_hears_of_a_client_when_its_handshake_is_answered(talk: Conversation) -> None:
    """It may have questions for it, which must not come before."""

    class Curious(Engine):
        def client_met(self, client: ClientInfo) -> None:
            talk.front.write(b'{"jsonrpc":"2.0","id":"q","method":"roots/list"}')

    talk.front.open(Curious())
    talk.send(request("initialize", {}))

    assert [message["id"] for message in talk.said()] == [1, "q"]


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        (MODERN, "2025-11-25"),
        ("garbage", "2025-11-25"),
        (None, "2025-11-25"),
        (7, "2025-11-25"),
    ],
)
def test_an_unknown_version_gets_the_newest_one(talk: Conversation, asked: object, agreed: str) -> None:
    assert talk.ask("initialize", {"protocolVersion": asked})["protocolVersion"] == agreed


@pytest.mark.parametrize("params", [{"capabilities": []}, {"clientInfo": "me"}])
def test_an_ill_formed_client_is_refused_and_may_try_again(talk: Conversation, params: dict[str, Any]) -> None:
    assert talk.ask("initialize", params)["code"] == -32602
    assert talk.heard() == []

    assert "protocolVersion" in talk.ask("initialize", {})


def test_a_probe_is_answered_in_the_modern_era(talk: Conversation) -> None:
    result = talk.ask_modern("server/discover")

    assert result["supportedVersions"] == [MODERN]
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
    assert result["instructions"] == "Be kind."
    assert result["_meta"][SERVER]["name"] == "uno-devserver"
    assert talk.heard() == [ClientInfo("c", "2", {"roots": {}}, MODERN)]


def test_a_modern_client_is_announced_once_before_what_it_asks_and_another_again(talk: Conversation) -> None:
    talk.send(request("tools/call", {"name": "x", "_meta": ENVELOPE}))
    assert [type(one) for one in talk.heard()] == [ClientInfo, RpcRequest]

    talk.ask_modern("tools/list")
    talk.ask("tools/list", {"_meta": {**ENVELOPE, CAPABLE: {}}})

    assert [client.capabilities for client in talk.heard() if isinstance(client, ClientInfo)] == [{}]


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe"])
def test_a_method_that_the_modern_era_has_removed_is_not_found_there(talk: Conversation, method: str) -> None:
    assert talk.ask_modern(method)["code"] == -32601
    assert [type(one) for one in talk.heard()] == [ClientInfo]


def test_an_unknown_modern_version_is_told_the_known_ones(talk: Conversation) -> None:
    error = talk.ask("tools/list", {"_meta": {**ENVELOPE, VERSION: "2999-01-01"}})

    assert (error["code"], error["data"]) == (-32022, {"supported": [MODERN], "requested": "2999-01-01"})


@pytest.mark.parametrize("params", [None, {}, {"_meta": {VERSION: MODERN}}])
def test_a_probe_without_its_envelope_is_told_what_it_lacks(talk: Conversation, params: dict[str, Any] | None) -> None:
    error = talk.ask("server/discover", params)

    assert error["code"] == -32602
    assert CAPABLE in error["message"]


def test_each_request_is_answered_in_its_own_era(talk: Conversation) -> None:
    talk.ask_modern("server/discover")
    talk.initialize("2025-06-18")

    assert "resultType" not in talk.ask("tools/list")
    assert talk.ask_modern("tools/list")["resultType"] == "complete"
    assert talk.ask("ping") == {}


# --- lists ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", MEMBERS)
def test_lists_are_answered_from_the_state_and_the_engine_hears_of_it(talk: Conversation, method: str) -> None:
    member, entries = MEMBERS[method]

    assert talk.ask(method) == {member: entries}
    assert talk.heard() == ["list read"]
    modern = talk.ask_modern(method)
    assert modern[member] == entries
    assert (modern["resultType"], modern["ttlMs"], modern["cacheScope"]) == ("complete", 0, "private")
    assert modern["_meta"][SERVER] == {"name": "uno-devserver", "version": __version__}


def test_a_list_is_what_the_state_says_at_that_moment(talk: Conversation) -> None:
    talk.ask("tools/list")
    talk.state.lists = Lists(tools=b"[]")

    assert talk.ask("tools/list") == {"tools": []}


def test_there_is_no_second_page(talk: Conversation) -> None:
    assert talk.ask("tools/list", {"cursor": "x"})["code"] == -32602
    assert talk.ask("tools/list", {"cursor": None}) == {"tools": [{"name": "t"}]}


def test_tools_that_are_held_back_are_asked_of_the_engine_and_nothing_else_is(talk: Conversation) -> None:
    talk.state.holds_tools = True

    talk.send(request("tools/list"))

    assert talk.said() == []
    assert talk.heard() == [RpcRequest(1, "tools/list", {})]
    assert talk.ask("resources/list") == {"resources": [{"uri": "r://"}]}


# --- health ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "structured"),
    [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True), ("2025-11-25", True), (MODERN, True)],
)
def test_health_is_text_and_an_object_too_for_those_who_know_that(
    talk: Conversation, version: str, structured: bool
) -> None:
    if version == MODERN:
        result = talk.ask_modern("tools/call", {"name": "uno_health"})
        assert result["resultType"] == "complete"
    else:
        talk.initialize(version)
        result = talk.ask("tools/call", {"name": "uno_health", "arguments": {}})

    assert json.loads(result["content"][0]["text"]) == {"status": "Healthy"}
    assert result.get("structuredContent") == ({"status": "Healthy"} if structured else None)
    assert result["isError"] is False


@pytest.mark.parametrize("uri", ["uno://health", "UNO://Health"])
def test_health_can_be_read(talk: Conversation, uri: str) -> None:
    [content] = talk.ask("resources/read", {"uri": uri})["contents"]

    assert content["uri"] == "uno://health"
    assert json.loads(content["text"]) == {"status": "Healthy"}


def test_a_health_that_cannot_be_told_is_an_error_and_not_the_end(
    talk: Conversation, capsys: pytest.CaptureFixture[str]
) -> None:
    talk.state.health = iter(())

    assert talk.ask("tools/call", {"name": "uno_health"})["code"] == -32603
    assert "StopIteration" in capsys.readouterr().err
    assert talk.ask("ping") == {}


# --- what is passed on ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "passed_on"),
    [
        (
            request("tools/call", {"name": "build", "arguments": {"n": 1.5}, "x-unknown": [None]}, "a"),
            RpcRequest("a", "tools/call", {"name": "build", "arguments": {"n": 1.5}, "x-unknown": [None]}),
        ),
        (request("tools/call", {}), RpcRequest(1, "tools/call", {})),
        (request("resources/read", {"uri": "a://b"}), RpcRequest(1, "resources/read", {"uri": "a://b"})),
        (request("resources/read", {"uri": 7}), RpcRequest(1, "resources/read", {"uri": 7})),
        (request("logging/setLevel", {"level": "debug"}), RpcRequest(1, "logging/setLevel", {"level": "debug"})),
        (request("some/future", {"x": 1}, 2**70), RpcRequest(2**70, "some/future", {"x": 1})),
        (
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            RpcNotification("notifications/initialized", {}),
        ),
        (
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
            RpcNotification("notifications/cancelled", {"requestId": 1}),
        ),
        ({"jsonrpc": "2.0", "method": "notifications/cancelled"}, RpcNotification("notifications/cancelled", {})),
        ({"jsonrpc": "2.0", "id": 5, "result": {"roots": []}}, RpcResponse(5, {"roots": []}, None)),
        ({"jsonrpc": "2.0", "id": "nobody", "error": {"code": 1}}, RpcResponse("nobody", None, {"code": 1})),
        ({"jsonrpc": "2.0", "id": None, "result": {}}, RpcResponse(None, {}, None)),
    ],
)
def test_everything_else_reaches_the_engine_decoded(talk: Conversation, sent: object, passed_on: object) -> None:
    talk.send(sent)

    assert talk.said() == []
    assert talk.heard() == [passed_on]


# --- ordinary calls -------------------------------------------------------------------------------------------------


def test_a_call_goes_to_the_relay_as_the_bytes_that_came(talk: Conversation) -> None:
    line = b'{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"ordinary","arguments":{"n":1e2}}}'

    talk.send(line)

    assert (talk.engine.relay.taken, talk.said(), talk.heard()) == ([line], [], [])


def test_the_calls_of_one_read_are_flushed_together_at_its_end(talk: Conversation) -> None:
    talk.send(call("ordinary", 1), request("ping", None, 2), call("ordinary", 3))

    assert talk.engine.relay.flushed == 2
    assert [answer["id"] for answer in talk.said()] == [2]


def test_what_the_relay_does_not_take_goes_the_general_way(talk: Conversation) -> None:
    talk.send(call("decoded", 1), call("other", 2))

    assert talk.heard() == [RpcRequest(n, "tools/call", {"name": name}) for n, name in ((1, "decoded"), (2, "other"))]


def test_health_is_answered_by_the_front_also_when_the_relay_has_decoded_it(talk: Conversation) -> None:
    talk.engine.relay.take = lambda line: RpcRequest(1, "tools/call", {"name": "uno_health"})

    assert talk.ask("tools/call", {"name": "uno_health"})["isError"] is False


def test_other_messages_are_not_shown_to_the_relay(talk: Conversation) -> None:
    talk.send(request("ping"), LineTooLong({}), request("resources/read", {"name": "ordinary"}))

    assert talk.engine.relay.taken == []


def test_messages_keep_their_order_whatever_way_they_take(talk: Conversation) -> None:
    order: list[object] = []
    talk.engine.take = lambda message: order.append(message)  # type: ignore[method-assign]
    talk.engine.relay.take = lambda line: order.append(json.loads(line)["id"])

    talk.send(
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call("ordinary", 1),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    )

    initialized, relayed, cancelled = order
    assert isinstance(initialized, RpcNotification)
    assert (relayed, cancelled) == (1, RpcNotification("notifications/cancelled", {"requestId": 1}))


# --- before there is an engine, and after ---------------------------------------------------------------------------


def test_what_only_the_engine_can_answer_is_held_for_it_in_order() -> None:
    talk = Conversation(engine=False)
    talk.initialize()
    talk.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, request("some/thing", {"n": 1}, 2))
    talk.ask("tools/list")
    assert talk.heard() == []

    talk.front.open(talk.engine)

    assert talk.heard() == [
        ClientInfo("c", None, {}, "2025-11-25"),
        RpcNotification("notifications/initialized", {}),
        RpcRequest(2, "some/thing", {"n": 1}),
        "list read",
    ]
    talk.front.open(talk.engine)
    assert talk.heard() == [], "each of it once"


def test_a_call_that_is_held_goes_to_the_relay_as_the_bytes_that_came() -> None:
    talk = Conversation(engine=False)
    line = b'{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"ordinary","arguments":{"n":1e2}}}'
    talk.send(line, call("other", 2))
    assert talk.engine.relay.taken == []

    talk.front.open(talk.engine)

    assert talk.engine.relay.taken == [line]
    assert talk.engine.relay.flushed == 1
    assert talk.heard() == [RpcRequest(2, "tools/call", {"name": "other"})]


@pytest.mark.parametrize(
    ("message", "answers", "needed"),
    [
        (request("initialize", {}), 1, 0),
        (request("ping"), 1, 0),
        (call("uno_health"), 1, 0),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, 0, 0),
        (request("tools/list"), 1, 1),
        (call("other"), 0, 1),
        (request("some/thing"), 0, 1),
    ],
)
def test_the_engine_is_begun_when_something_needs_it(message: object, answers: int, needed: int) -> None:
    talk = Conversation(engine=False)

    talk.send(message)

    assert (len(talk.said()), talk.needed) == (answers, needed)


def test_the_engine_is_begun_behind_the_answers_that_came_with_its_need() -> None:
    talk = Conversation(engine=False)

    talk.send(request("initialize", {}, 1), request("tools/list", None, 2), call("other", 3), request("ping", None, 4))

    assert [answer["id"] for answer in talk.said()] == [1, 2, 4]
    assert talk.needed
    assert talk.unwritten == [], "what the engine imports would delay these answers"


@pytest.mark.parametrize("held", [True, False])
def test_without_an_engine_what_only_it_could_answer_is_refused_and_the_rest_answered(held: bool) -> None:
    talk = Conversation(engine=False)
    messages = [
        call("other", 1),
        request("some/thing", None, "two"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 3, "result": {}},
    ]
    if held:
        talk.send(*messages)

    talk.front.close("It broke. Restart it.")

    if not held:
        talk.send(*messages)
    error = {"code": -32603, "message": "It broke. Restart it."}
    assert talk.said() == [{"jsonrpc": "2.0", "id": name, "error": error} for name in (1, "two")]
    assert talk.ask("ping") == {}
    assert talk.ask("tools/list") == {"tools": [{"name": "t"}]}
    assert talk.ask("tools/call", {"name": "uno_health"})["isError"] is False


def test_an_engine_that_has_ended_is_told_nothing_more(talk: Conversation) -> None:
    talk.front.close("It has ended.")

    talk.send(call("ordinary", 1), call("other", 2), request("initialize", {}, 3))

    assert [answer["id"] for answer in talk.said()] == [1, 2, 3]
    assert (talk.engine.relay.taken, talk.heard()) == ([], [])


def test_what_is_written_for_the_engine_goes_out_at_once(talk: Conversation) -> None:
    talk.front.write(b'{"jsonrpc":"2.0","method":"notifications/x"}')

    assert talk.output.written == [b'{"jsonrpc":"2.0","method":"notifications/x"}']


# --- what is no message ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"hello", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700, 1),
        (b'{"jsonrpc":"2.0","id":1,"par', -32700, None),  # what was to come may have made it an answer
        (b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"n":NaN}}', -32700, "a"),
        (b'{"jsonrpc":"2.0","id":3,"method":"x","params":{"n":1e999}}', -32700, 3),
        (b'{"jsonrpc":"2.0","id":4,"method":"x","params":' + b"[" * 5000 + b"]" * 5000 + b"}", -32700, 4),
        (b'{"jsonrpc":"2.0","id":5,"method":"\xff"}', -32700, 5),
        (b"7", -32600, None),
        (b'"text"', -32600, None),
        (b"null", -32600, None),
        (b"[]", -32600, None),
        (b"{}", -32600, None),
        (b'{"id":6,"method":"ping"}', -32600, 6),
        (b'{"jsonrpc":"1.0","id":6,"method":"ping"}', -32600, 6),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":[]}', -32602, 8),
        (b'{"jsonrpc":"2.0","id":9}', -32600, 9),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_message_is_answered_as_json_rpc_demands(
    talk: Conversation, line: bytes, code: int, request_id: object
) -> None:
    talk.send(line)

    [answer] = talk.said()
    assert (answer["error"]["code"], answer["id"]) == (code, request_id)
    assert answer["error"]["message"]
    assert talk.heard() == []
    assert talk.ask("ping") == {}


@pytest.mark.parametrize("line", [b'{"id":1,"result":{}}', b'{"jsonrpc":"1.0","id":1,"error":{}}'])
def test_an_ill_formed_answer_is_not_answered(talk: Conversation, line: bytes) -> None:
    """The client would take it for the answer to its own request of that id."""
    talk.send(line)

    assert (talk.said(), talk.heard()) == ([], [])


def test_a_line_that_is_too_long_is_refused_by_its_id_or_fails_the_question_it_answers(talk: Conversation) -> None:
    too_long = {"jsonrpc": "2.0", "id": 5, "params": None}
    talk.send(
        LineTooLong({**too_long, "method": "tools/call"}), LineTooLong({}), LineTooLong({**too_long, "result": 1})
    )

    known, unknown = talk.said()
    assert (known["id"], known["error"]["code"]) == (5, -32600)
    assert "16 MiB" in known["error"]["message"]
    assert unknown["id"] is None
    [answer] = talk.heard()
    assert (answer.id, answer.error["code"]) == (5, -32600)


@pytest.fixture
def batching(talk: Conversation) -> Conversation:
    talk.initialize("2025-03-26")
    return talk


# --- batches --------------------------------------------------------------------------------------------------------


def test_a_batch_is_answered_in_one_line_when_all_of_it_is(batching: Conversation) -> None:
    batching.send([request("ping", None, 1), request("tools/call", {"name": "x"}, "1"), request("tools/list", None, 2)])

    assert batching.said() == []
    assert batching.heard() == [RpcRequest("1", "tools/call", {"name": "x"}), "list read"]
    batching.front.write(b'{"jsonrpc":"2.0","id":"1","result":{}}')
    [answers] = batching.said()
    assert [answer["id"] for answer in answers] == [1, 2, "1"]


def test_what_is_wrong_in_a_batch_is_told_in_it(batching: Conversation) -> None:
    batching.send([request("initialize", {}, 1), 7, {"jsonrpc": "2.0", "id": 2}, request("ping", None, 3)])

    [answers] = batching.said()
    assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers] == [
        (1, -32600),
        (None, -32600),
        (2, -32600),
        (3, None),
    ]


def test_a_batch_of_notifications_and_answers_is_passed_on_without_a_word(batching: Conversation) -> None:
    messages = [{"jsonrpc": "2.0", "method": "notifications/x"}, {"jsonrpc": "2.0", "id": 1, "result": {}}]

    batching.send(messages)

    assert batching.said() == []
    assert batching.heard() == [RpcNotification("notifications/x", {}), RpcResponse(1, {}, None)]


def test_a_request_of_a_batch_can_be_cancelled(batching: Conversation) -> None:
    batching.send([request("ping", None, 1), request("tools/call", {"name": "x"}, 2)])

    batching.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})

    [answers] = batching.said()
    assert [answer["id"] for answer in answers] == [1]


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
def test_other_versions_have_no_batches(talk: Conversation, version: str | None) -> None:
    if version:
        talk.initialize(version)

    talk.send([request("ping")])

    [answer] = talk.said()
    assert (answer["error"]["code"], answer["id"]) == (-32600, None)


@pytest.mark.parametrize("count", [0, 101])
def test_a_batch_is_neither_empty_nor_endless(batching: Conversation, count: int) -> None:
    batching.send([request("ping", None, number) for number in range(count)])

    [answer] = batching.said()
    assert answer["error"]["code"] == -32600


def test_calls_of_a_batch_are_not_relayed_as_they_are(batching: Conversation) -> None:
    """Their answers have to be gathered."""
    batching.send([call("ordinary", 1)])

    assert batching.engine.relay.taken == []
    assert batching.heard() == [RpcRequest(1, "tools/call", {"name": "ordinary"})]
    batching.front.write(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert batching.said() == [[{"jsonrpc": "2.0", "id": 1, "result": {}}]]


def test_a_batch_that_waits_for_an_engine_that_never_comes_is_answered_in_one_line() -> None:
    talk = Conversation(engine=False)
    talk.initialize("2025-03-26")
    talk.send([request("ping", None, 1), call("x", 2)])

    talk.front.close("It broke.")

    [answers] = talk.said()
    assert [("result" in answer, answer["id"]) for answer in answers] == [(True, 1), (False, 2)]
