"""What comes over pipes and sockets: lines, HTTP, events, frames."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from unittest.mock import patch

from support.golden import GOLDEN
from uno_devserver.host.ide import framing
from uno_devserver.host.ide.json_rpc import RpcProblem, receive
from uno_devserver.host.remote_control import frames
from uno_devserver.host.remote_control.frames import ContentProblem, read_members
from uno_devserver.protocol import jsonrpc
from uno_devserver.protocol.client.raw_messages import (
    Garbage,
    embedded_messages,
    params_of,
    read_messages,
    result_in,
    unreadable_answer,
)
from uno_devserver.protocol.http.guard import refusal
from uno_devserver.protocol.http.request_reader import RequestReader
from uno_devserver.protocol.http.sse import EventReader
from uno_devserver.protocol.lines import LineSplitter, LineTooLong
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.proxy.calls.era_translation import (
    error_for_handshake_client,
    for_handshake_client,
    for_modern_client,
)
from uno_devserver.proxy.front.dispatcher import Dispatcher
from uno_devserver.proxy.lists.merge import Offered, ServerOffer, combined, entries, merged
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.own_tools import CAPABILITIES, OwnToolFacts
from uno_devserver.proxy.state import ProxyState

from ..documents import BUILT, RAW, WORDS, document
from ..pieces import UNCUT, Pieces, cut_and_data
from ..target import Target, told

METHODS = (
    "initialize", "ping", "tools/list", "tools/call", "resources/read", "resources/list", "server/discover",
    "prompts/list", "resources/templates/list", "notifications/initialized", "notifications/cancelled", "no/such",
)  # fmt: skip
BATCHES = "2025-03-26"  # the only version that has them
UPSTREAM_LIMIT = 5000  # longer than what is kept of a line that is too long
MAX_DIGITS = 4300  # that Python reads of a number; an answer may have more, in what an upstream wrote
NAMES = (
    "jsonrpc", "id", "method", "params", "result", "error", "name", "uri", "cursor", "arguments", "_meta",
    "protocolVersion", "capabilities", "clientInfo", "requestId", "code", "message", "data",
    "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
)  # fmt: skip
VALUES = tuple(json.dumps(word) for word in ("2.0", "2026-07-28", BATCHES, "uno_health", "uno://health", *METHODS))


# --- the front of the proxy -------------------------------------------------------------------------------------------


class Healthy(ProxyState):
    def report(self) -> dict[str, object]:
        return {"status": "Healthy"}


class Written:
    """What the client is told, in the place of its output."""

    def __init__(self) -> None:
        self.queued: list[bytes] = []
        self.lines: list[bytes] = []

    def queue(self, line: bytes) -> None:
        self.queued.append(line)

    def flush(self) -> None:
        self.lines += self.queued
        self.queued.clear()


class Passing:
    """An engine whose relay takes nothing, and which keeps what it is passed. Implements `front.Engine`."""

    def __init__(self) -> None:
        self.relay: Any = self
        self.messages: list[object] = []

    def take(self, message: Any) -> Any:
        if isinstance(message, bytes):
            return message
        self.messages.append(message)
        return None

    def flush(self) -> None:
        pass

    def client_met(self, client: ClientInfo) -> None:
        pass

    def list_read(self, tools: bytes | None) -> None:
        pass


def check_front(data: bytes) -> None:
    """Each request is answered or passed on, once; and the front still answers behind all that."""
    flags, lines = data[:1] or b"\0", data[1:]
    batches, early = flags > b"\x7f", bool(flags[0] & 1)
    output, engine = Written(), Passing()
    state = Healthy(ProxyOptions("/ws"), capabilities=dict(CAPABILITIES))
    client: Any = output
    front = Dispatcher(state, client, lambda: None)
    if not early:  # else it is all held until there is an engine
        front.open(engine)
    if batches:
        front.take([_request(0, "initialize", {"protocolVersion": BATCHES, "capabilities": {}, "clientInfo": {}})])
        output.lines.clear()
    splitter = LineSplitter(1000)
    taken = [*splitter.feed(lines), *splitter.finish()]
    front.take(taken)
    front.open(engine)
    for message in engine.messages:
        if isinstance(message, jsonrpc.RpcRequest):
            front.write(_answer(message.id))
    assert output.queued == []
    answered = Counter(_key(answer["id"]) for line in output.lines for answer in _several(_read(line)))
    owed = Counter(_key(request["id"]) for line in taken if isinstance(line, bytes) for request in _requests(line))
    if b"cancelled" not in lines:  # a batch does not wait for what its client does not want any more
        assert not owed - answered, f"not answered: {owed - answered}"
    output.lines.clear()
    front.take([_request("last", "ping", {})])
    assert json.loads(output.lines[-1])["result"] == {}


def _read(line: bytes) -> Any:
    return json.loads(line, parse_int=lambda digits: int(digits[:MAX_DIGITS]))


def _requests(line: bytes) -> list[dict[str, Any]]:
    """The requests that a line certainly holds, as another JSON reader finds them."""
    if line.count(b"[") + line.count(b"{") > 400:  # too deep to need an answer
        return []
    try:
        value = json.loads(line.removeprefix(b"\xef\xbb\xbf").decode(), parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return []
    if isinstance(value, list) and len(value) > 100:
        return []
    return [message for message in _several(value) if _is_request(message)] if not isinstance(value, list) else []


def _is_request(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and type(message.get("id")) in (int, str)
    )


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError(text)
    return value


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _key(request_id: object) -> str:
    return f"{type(request_id).__name__} {request_id!r}"


def _request(request_id: object, method: str, params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


def _answer(request_id: object) -> bytes:
    # A number as long as no reader of Python takes, but as an upstream may write it, and a client may read it.
    return b'{"jsonrpc":"2.0","id":%s,"result":{"n":%s}}' % (json.dumps(request_id).encode(), b"1" * 5000)


def check_front_messages(data: bytes) -> None:
    """The same, of messages that are built."""
    check_front(data[:1] + document(BUILT + data[1:], NAMES, VALUES))


LONG_ID = b"\0\0\5\2\3\xfc\0\2\x91\x16\x1a\x1b\x1c\x1d."  # an id of 400 digits, and the version twice


def front_seeds() -> list[bytes]:
    lines = [_request(number, method, {"name": "uno_health"}) for number, method in enumerate(METHODS)]
    batch = b"[" + b",".join(lines[1:4]) + b"]"
    return [b"\0" + line for line in lines] + [
        b"\x80" + batch, b"\xff" + batch, b"\0" + b"\n".join(lines), b"\1" + b"\n".join(lines), b"\0" + b"[" * 600,
    ]  # fmt: skip


def check_lines(data: bytes) -> None:
    """Lines are the same however they come in pieces; too long ones are told as such."""
    body, parts = cut_and_data(data)
    limit = 64
    splitter = LineSplitter(limit)
    found = [line for part in parts for line in splitter.feed(part)] + splitter.finish()
    expected = body.replace(b"\r", b" ").split(b"\n")
    short = [line.strip() for line in expected if len(line) <= limit and line.strip()]
    assert [line for line in found if isinstance(line, bytes)] == short
    assert sum(isinstance(line, LineTooLong) for line in found) == sum(len(line) > limit for line in expected)


# --- what servers write -----------------------------------------------------------------------------------------------


def check_upstream_lines(data: bytes) -> None:
    """Lines are the same however they come in pieces, and each is messages or garbage."""
    body, parts = cut_and_data(data)
    splitter, whole = LineSplitter(UPSTREAM_LIMIT), LineSplitter(UPSTREAM_LIMIT)
    lines = [line for part in parts for line in splitter.feed(part)] + splitter.finish()
    assert lines == whole.feed(body) + whole.finish()
    for line in lines:
        if isinstance(line, bytes):
            answer = unreadable_answer(line)
            assert answer is None or answer.error
            check_upstream_message(line)
            stray, messages = embedded_messages(line)
            assert messages or stray == line
            assert not any(message.is_empty for message in messages)


def check_upstream_message(data: bytes) -> None:
    """Messages whose payloads are valid JSON on one line, or garbage that says why."""
    try:
        messages = read_messages(data)
    except Garbage as garbage:
        told(garbage)
        return
    for message in messages:
        message.answers(1)
        params_of(message)
        try:
            result = bytes(result_in(message))
        except jsonrpc.RpcError as error:
            jsonrpc.error_message(1, error)  # can be said again
            told(error)
            continue
        assert b"\n" not in result
        assert result.startswith(b"{")


def check_built_upstream_message(data: bytes) -> None:
    check_upstream_message(document(data, NAMES, VALUES))


def message_seeds() -> list[bytes]:
    return [
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"gr\xc3\xbc\xc3\x9fe"}]}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1.5]}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}',
        b'[{"id":1,"result":{}},{"id":"x","method":"ping"}]',
        b'\xef\xbb\xbf{\r\n "id": 1, "result": {"a": "\\ud800"}\n}',
    ]


def check_eras(data: bytes) -> None:
    """Each result and each error has a form for clients of the other era, which can be written."""
    try:
        messages = read_messages(document(data, NAMES, VALUES))
    except Garbage:
        return
    for message in messages:
        try:
            result = result_in(message)
        except jsonrpc.RpcError as error:
            other = error_for_handshake_client(error, "resources/read", {"uri": "a"})
            json.loads(jsonrpc.error_message(1, other), parse_int=float)
            continue
        for method in ("tools/list", "tools/call"):
            for translated in (for_modern_client(result), for_handshake_client(result, method)):
                jsonrpc.result_message(1, translated)


# --- several servers --------------------------------------------------------------------------------------------------

ENTRY_NAMES = (
    "a",
    "one_a",
    "main_a",
    "",
    "é",
    "uno_health",
    "mcpStatus",
    "x" * 62,
    "one_" + "x" * 58,
    "a" * 100,
    "\ud800",
)
ENTRY_TEXTS = (b'{"name":"%s","x":[1]}', b'{"name":"%s","y":1e400}', b'{"z":"\\ud800"}', b"{", b"[" * 2000)


def check_lists(data: bytes) -> None:
    """One list of several servers: each name once, each leads to the server that has it, and keeps doing so."""
    pieces = Pieces(data)
    given: dict[tuple[str, str], tuple[str, str]] = {}
    facts = OwnToolFacts(pieces.flag(), pieces.flag(), pieces.flag(), pieces.flag(), pieces.flag(), pieces.flag())
    before: dict[str, tuple[str, str]] = {}
    for _ in range(2):
        servers = [ServerOffer(name, _offered(pieces), pieces.flag()) for name in ("one", "two", "x" * 32)]
        offered, routes, _hidden = combined(_offered(pieces), servers, given)
        for kind, to in (("tools", routes.tools), ("prompts", routes.prompts)):
            listed = [name for name, _ in getattr(offered, kind)]
            assert sorted(listed) == sorted(to)
            assert len(set(to.values())) == len(to), "two names for one"
        assert all(before.get(name, place) == place for name, place in routes.tools.items()), "a name has moved"
        before.update(routes.tools)
        lists, _own = merged(offered, facts)
        if not pieces.left:
            assert all(text.startswith(b"[") for text in (lists.tools, lists.resources, lists.templates, lists.prompts))


def _offered(pieces: Pieces) -> Offered:
    def some() -> tuple[tuple[str, bytes], ...]:
        return entries(
            (name, pieces.choice(ENTRY_TEXTS).replace(b"%s", name.encode("utf-8", "replace")))
            for name in (pieces.choice(ENTRY_NAMES) for _ in range(pieces.number(5)))
        )

    return Offered(some(), some(), some(), some())


# --- HTTP and events --------------------------------------------------------------------------------------------------


def check_http(data: bytes) -> None:
    """The same requests, and the same verdict, however the bytes come; bodies and heads within their bounds."""
    body, parts = cut_and_data(data)
    whole, pieces = RequestReader(500, 1000), RequestReader(500, 1000)
    _feed(whole, [body])
    _feed(pieces, parts)
    assert [one.request for one in whole.complete] == [one.request for one in pieces.complete]
    for one in whole.complete:
        assert len(one.request.body) <= 500
        assert one.request.path
        host = one.request.headers.get("host", "")
        assert "," not in host or refusal({"host": host}, "/", ("127.0.0.1", 0)) is not None  # two hosts are refused


def _feed(reader: RequestReader, parts: list[bytes]) -> None:
    for part in parts:
        if reader.problem is not None or reader.feed(part):
            return  # the connection is no HTTP from here on
        if reader.complete and reader.complete[-1].websocket:
            return


HTTP_SEEDS = (
    b"GET /mcp?x=1 HTTP/1.1\r\nHost: localhost:5000\r\nOrigin: http://localhost\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: 1\r\n\r\n",
    b"GET /rc HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\nxx",
    b"GET http://localhost/a#b HTTP/1.1\r\nHost: b\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9999999999999999999\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


def check_events(data: bytes) -> None:
    """The same events, ids and waits, however the stream is cut."""
    body, parts = cut_and_data(data)
    whole, pieces = EventReader(limit=200), EventReader(limit=200)
    try:
        expected = whole.feed(body)
    except ValueError as error:
        told(error, "longer than 200 bytes")
        return
    try:
        found = [event for part in parts if part for event in pieces.feed(part)]
    except ValueError as error:  # a line that would have ended in the next part
        told(error, "longer than 200 bytes")
        return
    assert found == expected
    assert (pieces.last_id, pieces.retry_ms) == (whole.last_id, whole.retry_ms)
    assert all(b"\r" not in event.data for event in found)


EVENT_SEEDS = (
    b"id: 3-0\nretry: 500\ndata: \n\n: keep-alive\n\nid: 3-1\nevent: message\ndata: {}\n\n",
    b"\xef\xbb\xbfid: 1\r\ndata: a\r\ndata: b\r\n\r\nevent: odd\rdata:x\r\r",
    b"data\n\ndata:  two\n\nretry: 99999999999\nid\n\n",
    b"data: " + b"x" * 190 + b"\n\n",
)


# --- frames -----------------------------------------------------------------------------------------------------------


def check_rc_frame(data: bytes) -> None:
    """A frame that survives being written and read again, or a problem with a reason."""
    try:
        frame = frames.decode_frame(data)
    except frames.FrameProblem as problem:
        told(problem)
        return
    again = frames.decode_frame(frames.encode_frame(frame))
    assert again == frame
    try:
        members = read_members(frame.content)
        members.text("RequestId")
        members.flag("IsAllowed")
        members.number("Step")
        [edit.text("FilePath") for edit in members.objects("Edits")]
    except ContentProblem as problem:
        told(problem)


def rc_seeds() -> list[bytes]:
    recorded = [path.read_bytes() for path in sorted((GOLDEN / "bytes" / "frames").glob("*.bin"))]
    content = '{"requestid":"a","IsAllowed":true,"Step":1,"Edits":[{"FilePath":"f"}]}'
    return [each for each in recorded if len(each) < 2000] + [frames.encode_frame(frames.Frame("S", "N", content))]


def check_ide_stream(data: bytes) -> None:
    """The same messages however the stream is cut; what is no frame is refused, and stays refused."""
    body, parts = cut_and_data(data)
    whole = _decoded([body])
    pieces = _decoded(parts)
    assert whole[1] == pieces[1]  # whether it was refused
    if whole[1]:
        assert pieces[0][: len(whole[0])] == whole[0]  # what comes in pieces has been taken before the rest is refused
    else:
        assert whole[0] == pieces[0]
    for message in whole[0]:
        check_ide_message(message)


def _decoded(parts: list[bytes]) -> tuple[list[bytes], bool]:
    decoder, found = framing.FrameDecoder(), []
    try:
        with patch.object(framing, "MAX_MESSAGE_BYTES", 1000):
            for part in parts:
                found += decoder.feed(part)
    except framing.FramingProblem as problem:
        told(problem)
        return found, True
    return found, False


def check_ide_message(data: bytes) -> None:
    """A call that gets its answer, an answer that gets none, or a problem."""
    try:
        received = receive(data)
    except RpcProblem as problem:
        told(problem)
        return
    if received.reply is not None:
        reply = json.loads(received.reply)
        asked = json.loads(data)["id"]
        assert reply["id"] == asked or not str(asked).isprintable()  # half a surrogate pair has no form in UTF-8
        assert ("error" in reply) is (received.message is None)
    if received.message is not None:
        assert received.message.type_name


def check_built_ide_message(data: bytes) -> None:
    check_ide_message(document(data, IDE_NAMES, IDE_VALUES))


IDE_NAMES = ("jsonrpc", "id", "method", "params", "envelope", "MessageType", "messageBody", "result", "error")
IDE_VALUES = (
    '"2.0"', '"SendToDevServerAsync"', '"SendToDevServer"', '"A.B+C`1[[X]], Asm"', '"{}"', '"{\\"Scope\\":\\"x\\"}"',
    '[{"MessageType": "A.B, C", "MessageBody": "{}"}]', '[{"MessageType": "A", "MessageBody": "[1e999]"}, null]',
)  # fmt: skip


def ide_seeds() -> list[bytes]:
    records = json.loads((GOLDEN / "bytes/streamjsonrpc.json").read_text("utf-8"))["records"]
    texts = [record[name] for record in records for name in ("text", "sent_text") if record.get(name)]
    return [UNCUT + text.encode() for text in texts if text.startswith("Content-")][:40]


def ide_message_seeds() -> list[bytes]:
    return [RAW + seed.rpartition(b"\r\n\r\n")[2] for seed in ide_seeds()]


def uncut(*seeds: bytes) -> list[bytes]:
    return [UNCUT + seed for seed in seeds]


JSON_WORDS = (*WORDS, *(f'"{name}"' for name in NAMES), *VALUES)

TARGETS = (
    Target(
        "front",
        "each request is answered or passed on; nothing ends it",
        check_front,
        front_seeds,
        JSON_WORDS + ("\n",),
    ),
    Target(
        "front-messages",
        "the same, of messages that are built",
        check_front_messages,
        lambda: [bytes(range(40)) * 3, LONG_ID],
    ),
    Target(
        "front-lines", "the same lines however they are cut", check_lines, lambda: uncut(*message_seeds()), ("\n", "\r")
    ),
    Target(
        "upstream-lines",
        "the same lines however they are cut",
        check_upstream_lines,
        lambda: uncut(*message_seeds(), b"\n".join(message_seeds())),
        JSON_WORDS,
    ),
    Target(
        "upstream-messages",
        "messages, or garbage that says why",
        check_built_upstream_message,
        lambda: [RAW + seed for seed in message_seeds()] + [BUILT + bytes(range(60))],
        JSON_WORDS,
    ),
    Target(
        "eras",
        "each result has a form for clients of the other era",
        check_eras,
        lambda: [RAW + seed for seed in message_seeds()] + [BUILT + bytes(range(60))],
        (*JSON_WORDS, '"resultType"', '"ttlMs"', '"cacheScope"', '"io.modelcontextprotocol/serverInfo"'),
    ),
    Target(
        "several-lists",
        "each name once, and it stays with the server that has it",
        check_lists,
        lambda: [bytes(range(start, start + 120)) for start in range(0, 130, 13)],
        max_bytes=300,
    ),
    Target(
        "http-requests",
        "the same requests however they are cut, within bounds",
        check_http,
        lambda: uncut(*HTTP_SEEDS),
        tuple(line + b"\r\n" for seed in HTTP_SEEDS for line in seed.split(b"\r\n") if len(line) < 60),
    ),
    Target(
        "events",
        "the same events however they are cut",
        check_events,
        lambda: uncut(*EVENT_SEEDS),
        ("data:", "id:", "event:", "retry:", "\r\n", "\r", "\n\n"),
    ),
    Target("rc-frames", "there and back, or a reason", check_rc_frame, rc_seeds, (*WORDS, '"Edits"', '"Step"')),
    Target(
        "ide-stream",
        "the same messages however they are cut, or a refusal",
        check_ide_stream,
        ide_seeds,
        ("Content-Length: ", "Content-Type: ", "\r\n\r\n", "charset=", *IDE_VALUES),
    ),
    Target(
        "ide-messages",
        "each call has its answer",
        check_built_ide_message,
        lambda: ide_message_seeds() + [BUILT + bytes(range(60))],
        (*WORDS, *IDE_NAMES, *IDE_VALUES),
    ),
)
