from __future__ import annotations

import json

import pytest

from uno_devserver.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_DEPTH,
    PARSE_ERROR,
    InvalidMessage,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    decode,
    error_message,
    is_deep,
    notification_message,
    read,
    request_message,
    result_message,
    result_of,
)


@pytest.mark.parametrize("request_id", [0, -1, 7, 2**60, 10**400, "", "7", "server-discover-probe-1"])
def test_ids_keep_their_type(request_id: int | str) -> None:
    message = read(decode(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "m"}).encode()))

    assert isinstance(message, RpcRequest)
    assert type(message.id) is type(request_id)
    assert json.loads(result_message(message.id, {}))["id"] == request_id


def test_fields_that_nobody_knows_stay_in_the_params() -> None:
    params = {"name": "x", "_meta": {"progressToken": 1, "vendor/key": [1.5, None]}, "later": {"a": True}}

    message = read({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, "odd": 1})

    assert message == RpcRequest(1, "tools/call", params)


def test_a_message_without_id_is_a_notification() -> None:
    assert read({"jsonrpc": "2.0", "method": "n"}) == RpcNotification("n", {})
    assert read({"jsonrpc": "2.0", "method": "n", "params": None}) == RpcNotification("n", {})


def test_a_message_without_method_is_a_response() -> None:
    assert read({"jsonrpc": "2.0", "id": "a", "result": {}}) == RpcResponse("a", {}, None)
    assert read({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}) == RpcResponse(1, None, {"code": 1})


@pytest.mark.parametrize(
    ("message", "request_id", "code"),
    [
        (1, None, INVALID_REQUEST),
        ("x", None, INVALID_REQUEST),
        (None, None, INVALID_REQUEST),
        ([], None, INVALID_REQUEST),
        ({}, None, INVALID_REQUEST),
        ({"id": 1, "method": "m"}, 1, INVALID_REQUEST),
        ({"jsonrpc": "1.0", "id": 1, "method": "m"}, 1, INVALID_REQUEST),
        ({"jsonrpc": 2.0, "id": 1, "method": "m"}, 1, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1}, 1, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, 1, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": None, "method": "m"}, None, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": True, "method": "m"}, None, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "m"}, None, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": [1], "method": "m"}, None, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "method": "m", "params": []}, 1, INVALID_PARAMS),
        ({"jsonrpc": "2.0", "id": 1, "method": "m", "params": "x"}, 1, INVALID_PARAMS),
        ({"jsonrpc": "2.0", "method": "m", "params": 1}, None, INVALID_PARAMS),
    ],
)
def test_what_is_no_message_is_refused_with_the_id_to_answer_with(
    message: object, request_id: object, code: int
) -> None:
    refused = read(message)

    assert isinstance(refused, InvalidMessage)
    assert (refused.id, refused.error.code) == (request_id, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", INVALID_REQUEST),
        (b" \n", INVALID_REQUEST),
        (b"{", PARSE_ERROR),
        (b"{} {}", PARSE_ERROR),
        (b"nope", PARSE_ERROR),
        (b"\xff\xfe{}", PARSE_ERROR),
        (b'"\xff"', PARSE_ERROR),
        (b'"\\ud800"', PARSE_ERROR),
        (b"NaN", PARSE_ERROR),
        (b"1e999", PARSE_ERROR),
        (b"1" * 100_000, PARSE_ERROR),
        (b"[" * 1_000_000, PARSE_ERROR),
        (b'{"a":' * 1_000_000, PARSE_ERROR),
    ],
    ids=lambda value: repr(value)[:30],  # not the million itself
)
def test_a_body_that_is_no_json_is_refused(body: bytes, code: int) -> None:
    with pytest.raises(RpcError) as refused:
        decode(body)

    assert refused.value.code == code


@pytest.mark.parametrize(
    ("data", "deep"),
    [
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, False),
        (b"[" * (MAX_DEPTH + 1), True),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), True),
        (b'["]",' * (MAX_DEPTH + 1), True),
        (b'["\\"]","\\\\",' * (MAX_DEPTH + 1), True),
        (b"[[{}]," + b"[1,{}]," * MAX_DEPTH + b"0]", False),
        (b'["%s"]' % (b"[" * 2 * MAX_DEPTH), False),
        (b'["%s"]' % (b'\\"[' * 2 * MAX_DEPTH), False),
        (b'["\\\\","%s"]' % (b"{" * 2 * MAX_DEPTH), False),
        (b'["' + b"[" * 2 * MAX_DEPTH, False),  # it ends within a string
    ],
    ids=range(10),
)
def test_the_depth_of_json_is_that_of_its_brackets_outside_strings(data: bytes, deep: bool) -> None:
    assert is_deep(data) is deep


def test_a_client_may_answer_with_an_error() -> None:
    with pytest.raises(RpcError) as refused:
        result_of(RpcResponse("a", None, {"code": -1, "message": "the user said no", "data": [1]}))

    assert (refused.value.code, refused.value.message, refused.value.data) == (-1, "the user said no", [1])


@pytest.mark.parametrize("error", [{}, {"code": "x", "message": 5}, "no", None])
def test_an_ill_formed_answer_of_a_client_is_an_error(error: object) -> None:
    with pytest.raises(RpcError) as refused:
        result_of(RpcResponse("a", None, error))

    assert refused.value.code == INTERNAL_ERROR


def test_messages_are_one_line_of_json() -> None:
    said = {"text": "a\nb\r\n\u2028 é 😀"}

    for message in (
        result_message(1, said),
        request_message("x", "m", said),
        notification_message("n", said),
        error_message(None, RpcError(-1, said["text"], said)),
    ):
        assert b"\n" not in message
        assert b"\r" not in message
        assert "😀" in message.decode()


def test_a_notification_without_params_has_none() -> None:
    assert json.loads(notification_message("n", None)) == {"jsonrpc": "2.0", "method": "n"}


def test_text_that_is_no_text_does_not_spoil_the_answer() -> None:
    message = result_message(1, {"name": "caf\udce9", "other": "fine"})

    assert json.loads(message)["result"] == {"name": "caf?", "other": "fine"}
