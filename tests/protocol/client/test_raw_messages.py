from __future__ import annotations

import json

import msgspec
import pytest

from support.mcp_peers import HANDSHAKE, MODERN, TestPeer
from uno_devserver.protocol.client import raw_messages
from uno_devserver.protocol.client.connection import ServerDescription, UnusableServer
from uno_devserver.protocol.client.raw_messages import (
    Garbage,
    discovered_server,
    initialize_params,
    initialized_server,
    object_in,
    params_of,
    read_messages,
    result_in,
    with_envelope,
    without_envelope,
)
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, RpcError, error_message, request_message, result_message
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.protocol.versions import CAPABILITIES_KEY, CLIENT_KEY, LOG_LEVEL_KEY, VERSION_KEY


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


# --- messages out of bytes


def test_a_result_is_the_bytes_that_came() -> None:
    result = b'{"content":[], "big":123456789012345678901234567890,"tiny":1e-400,  "odd" : [1.50] }'

    (message,) = read_messages(b'{"jsonrpc":"2.0","id":7,"result":%s}' % result)

    assert message.answers(7)
    assert not message.answers(8)
    assert bytes(result_in(message)) == result


def test_a_result_that_was_printed_nicely_comes_to_one_line() -> None:
    nice = b'\n{\n  "jsonrpc": "2.0",\r\n  "id": 1,\n  "result": {\n    "text": "a\\nb",\n    "n": 1.50\n  }\n}\n'

    (message,) = read_messages(nice)

    assert bytes(result_in(message)) == b'{"text":"a\\nb","n":1.50}'


def test_a_line_end_behind_a_message_changes_nothing_in_it() -> None:
    (message,) = read_messages(b'{"id":1,"result":{"a": 1}}\r\n')

    assert bytes(result_in(message)) == b'{"a": 1}'


def test_bytes_that_are_no_text_are_replaced() -> None:
    (message,) = read_messages(b'{"id":1,"result":{"a":"\xff\xc3\xa9"}}')

    assert bytes(result_in(message)).decode() == '{"a":"�é"}'


def test_a_mark_before_the_first_message_is_no_part_of_it() -> None:
    (message,) = read_messages(b'\xef\xbb\xbf{"id":1,"result":{}}')

    assert message.answers(1)


def test_messages_are_told_apart() -> None:
    messages = read_messages(
        b'[{"id":1,"method":"ping"},{"method":"note"},{"id":null,"method":"note"},{"id":"x","method":"m"},'
        b'{"id":5,"result":{}},{"jsonrpc":"2.0","id":null,"error":{"code":1}},{"jsonrpc":"2.0","error":{"code":1}},{"error":{"code":1}}]'
    )

    assert [message.is_question for message in messages] == [True, False, False, True] + [False] * 4
    assert [message.is_notification for message in messages] == [False, True, True] + [False] * 5
    assert [message.answers(5) for message in messages] == [False] * 4 + [True] * 3 + [False]


@pytest.mark.parametrize(
    "data",
    [b"", b" ", b"<html>", b'"text"', b"1", b"null", b'{"id":1', b'{"method":1}', b"[1]", b'{"id":1} {"id":2}']
    + [b'{"id":1,"result":%s}' % (b"[" * 100_000 + b"]" * 100_000), b"\x00", b"\n\n<html>\n"],
)
def test_what_is_no_message_is_garbage(data: bytes) -> None:
    with pytest.raises(Garbage):
        read_messages(data)


@pytest.mark.parametrize("params", [b"", b',"params":null', b',"params":[1]', b',"params":"x"'])
def test_params_that_are_no_object_are_none(params: bytes) -> None:
    (message,) = read_messages(b'{"method":"note"%s}' % params)

    assert params_of(message) == {}


def test_an_error_keeps_its_code_its_message_and_its_data() -> None:
    (message,) = read_messages(b'{"id":1,"error":{"code":-32002,"message":"none","data":{"uri":"x"}}}')

    with pytest.raises(RpcError) as refused:
        result_in(message)

    assert (refused.value.code, refused.value.message, refused.value.data) == (-32002, "none", {"uri": "x"})


@pytest.mark.parametrize(
    "answer",
    [
        b'"error":"boom"',
        b'"error":{}',
        b'"error":{"code":"x","message":1}',
        b'"result":null',
        b'"result":[1]',
        b'"x":1',
    ],
)
def test_an_answer_that_is_neither_result_nor_error_is_an_error(answer: bytes) -> None:
    (message,) = read_messages(b'{"jsonrpc":"2.0","id":1,%s}' % answer)

    with pytest.raises(RpcError) as refused:
        result_in(message)

    assert refused.value.code == INTERNAL_ERROR


def test_an_answer_with_a_null_error_is_a_result() -> None:
    (message,) = read_messages(b'{"id":1,"result":{},"error":null}')

    assert bytes(result_in(message)) == b"{}"


@pytest.mark.parametrize("name", [b"1", b'"1"', b'"a\\u00e9"', b"-5"])
def test_a_question_is_answered_by_the_id_it_came_with(name: bytes) -> None:
    (question,) = read_messages(b'{"id":%s,"method":"roots/list"}' % name)

    assert result_message(question.id, {"roots": []}) == b'{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}' % name
    assert json.loads(error_message(question.id, RpcError(5, "no", {"a": 1})))["error"] == {
        "code": 5,
        "message": "no",
        "data": {"a": 1},
    }


# --- openings


def test_a_client_shakes_hands_as_itself_with_the_newest_version() -> None:
    capabilities: dict[str, object] = {"roots": {}, "elicitation": {"url": {}}}

    assert initialize_params(ClientInfo("c", "2", capabilities, "2025-03-26")) == {
        "protocolVersion": HANDSHAKE,
        "capabilities": capabilities,
        "clientInfo": {"name": "c", "version": "2"},
    }


def test_a_client_without_a_name_has_one_for_the_handshake() -> None:
    assert initialize_params(ClientInfo(None, None, {}, MODERN))["clientInfo"] == {
        "name": "unknown",
        "version": "unknown",
    }


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_any_version_of_the_era_that_a_server_answers_is_taken(version: str) -> None:
    info = {"name": "s", "version": "1", "title": "S", "x": [1]}
    said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info, "instructions": "Do."}

    server = initialized_server(raw(said))

    assert server == ServerDescription(info, {"tools": {}}, "Do.", version)
    assert not server.modern


@pytest.mark.parametrize("said", [{}, {"protocolVersion": "2031-01-01"}, {"protocolVersion": MODERN}, [], "x"])
def test_a_server_that_agrees_on_nothing_is_refused(said: object) -> None:
    with pytest.raises(UnusableServer):
        initialized_server(raw(said))


def test_what_a_server_leaves_out_is_empty() -> None:
    said: dict[str, object] = {"protocolVersion": HANDSHAKE, "capabilities": None, "serverInfo": 5, "instructions": {}}

    assert initialized_server(raw(said)) == ServerDescription({}, {}, None, HANDSHAKE)


def test_a_modern_server_says_who_it_is_beside_its_result() -> None:
    info = {"name": "s", "version": "1"}
    said = {
        "supportedVersions": ["2030-01-01", MODERN],
        "capabilities": {"tools": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": info},
    }

    server = discovered_server(raw(said))

    assert server == ServerDescription(info, {"tools": {}}, None, MODERN)
    assert server.modern


@pytest.mark.parametrize("said", [{}, {"supportedVersions": [HANDSHAKE]}, {"supportedVersions": MODERN}, 1])
def test_a_server_without_a_modern_version_in_common_is_refused(said: object) -> None:
    with pytest.raises(UnusableServer):
        discovered_server(raw(said))


# --- the envelope


def test_a_modern_request_says_for_whom_it_is() -> None:
    peer = TestPeer("c", log_level="warning", roots={})

    assert with_envelope({"name": "t", "_meta": {"progressToken": 5, "x": "y"}}, peer) == {
        "name": "t",
        "_meta": {
            CAPABILITIES_KEY: {"roots": {}},
            CLIENT_KEY: {"name": "c", "version": "1.0"},
            LOG_LEVEL_KEY: "warning",
            "progressToken": 5,
            "x": "y",
            VERSION_KEY: MODERN,
        },
    }


def test_what_a_modern_client_has_said_itself_stays() -> None:
    said = {CAPABILITIES_KEY: {"sampling": {}}, CLIENT_KEY: {"name": "own", "title": "Own"}, LOG_LEVEL_KEY: "debug"}

    meta = with_envelope({"_meta": said}, TestPeer("other", modern=True))["_meta"]

    assert meta == {**said, VERSION_KEY: MODERN}


def test_a_client_that_wants_no_log_asks_for_none() -> None:
    assert LOG_LEVEL_KEY not in with_envelope({}, TestPeer())["_meta"]


def test_a_handshake_server_does_not_see_the_envelope() -> None:
    enveloped = with_envelope({"name": "t", "_meta": {"progressToken": 5}}, TestPeer(log_level="info"))

    assert without_envelope(enveloped) == {"name": "t", "_meta": {"progressToken": 5}}
    assert without_envelope(with_envelope({"name": "t"}, TestPeer())) == {"name": "t"}


def test_params_without_an_envelope_are_sent_as_they_are() -> None:
    params = {"name": "t", "_meta": {"x": 1}}

    assert without_envelope(params) is params
    assert json.loads(request_message(3, "m", params)) == {"jsonrpc": "2.0", "id": 3, "method": "m", "params": params}


def test_what_is_no_object_is_none() -> None:
    assert object_in(msgspec.Raw(b"[1]")) is None
    assert object_in(msgspec.Raw(b"")) is None
    assert object_in(msgspec.Raw(b'{"a":1}')) == {"a": 1}


def test_an_answer_with_half_a_surrogate_pair_keeps_the_id_that_the_server_wrote() -> None:
    answer = result_message(msgspec.Raw(b'"q"'), {"name": "a\ud83db"})

    assert json.loads(answer) == {"jsonrpc": "2.0", "id": "q", "result": {"name": "a?b"}}


def test_what_is_too_long_to_be_decoded_is_not_an_object_and_an_error_is_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(raw_messages, "MAX_DECODED_BYTES", 100)
    short, long = b'{"message":"x"}', b'{"message":"%b"}' % (b"x" * 100)

    assert raw_messages.object_in(msgspec.Raw(short)) == {"message": "x"}
    assert raw_messages.object_in(msgspec.Raw(long)) is None
    assert 'The server refused: {"message":"xxx' in str(raw_messages.error_in(msgspec.Raw(long)))
