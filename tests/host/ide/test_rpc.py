"""JSON-RPC as StreamJsonRpc speaks it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.golden import GOLDEN
from uno_devserver.host.ide.json_rpc import Received, RpcProblem, message_to_ide, receive

RECORDS = json.loads((GOLDEN / "bytes/streamjsonrpc.json").read_text("utf-8"))["records"]
CALLS = {
    record["what"]: record
    for record in RECORDS
    if record["what"].startswith("server:") and "header" not in record["what"] and "sent_text" in record
}
# Where .NET ends the connection and we go on, and why.
TOLERATED = {
    "server: jsonrpc member missing": "a call without it is clear, and answered",
    "server: response with an unknown id": "we never ask, so an answer is nobody's; the connection is still sound",
}


@pytest.mark.parametrize("what", CALLS)
def test_ids_and_silence_are_as_recorded(what: str) -> None:
    """The recorded class has other methods, so a call here is answered with an error; the id has to come back."""
    record = CALLS[what]
    sent = [text.encode() for text in record["sent_text"].split(" || ")]
    if record["text"] == "<EOF>" and what not in TOLERATED:
        with pytest.raises(RpcProblem):
            receive(sent[0])
        return

    replies = [received.reply for received in map(receive, sent) if received.reply]

    if what in TOLERATED:
        assert [json.loads(reply)["id"] for reply in replies] == [1]
    else:
        recorded = [part.partition("\r\n\r\n")[2] for part in record["text"].split("Content-Length")[1:]]
        assert [_until_outcome(reply.decode()) for reply in replies] == [_until_outcome(text) for text in recorded]


def _until_outcome(text: str) -> str:
    return text.partition(',"result"')[0].partition(',"error"')[0]


def envelope(**members: Any) -> dict[str, Any]:
    return {"MessageType": "Uno.X.AppLaunchRegisterIdeMessage, Uno.X", "MessageBody": '{"Ide":"ä"}', **members}


def call(params: object, **members: Any) -> Received:
    content = {"jsonrpc": "2.0", "id": 1, "method": "SendToDevServerAsync", "params": params, **members}
    return receive(json.dumps(content).encode())


@pytest.mark.parametrize(
    "params",
    [
        [envelope()],
        [envelope(), None],
        {"envelope": envelope()},
        {"envelope": envelope(), "ct": None},
        [{"messageType": envelope()["MessageType"], "messageBody": envelope()["MessageBody"]}],
    ],
    ids=["by position", "with a null token", "by name", "by name with a token", "camelCase"],
)
@pytest.mark.parametrize("method", ["SendToDevServerAsync", "SendToDevServer"])
def test_a_message_arrives_however_it_is_passed(params: object, method: str) -> None:
    received = call(params, method=method)

    assert received.reply == b'{"jsonrpc":"2.0","id":1,"result":null}'
    assert received.message is not None
    assert (received.message.type_name, received.message.body) == ("AppLaunchRegisterIdeMessage", {"Ide": "ä"})


@pytest.mark.parametrize("params", [None, [], {}, {"other": 1}, [envelope(), 1], [None], "text", 5, {"envelope": 5}])
def test_wrong_parameters_are_an_error_that_says_so(params: object) -> None:
    received = call(params)

    assert received.reply is not None
    error = json.loads(received.reply)["error"]
    assert error["code"] == -32602
    assert error["message"]
    assert received.message is None


def test_a_wrong_notification_is_answered_with_nothing() -> None:
    assert receive(b'{"jsonrpc":"2.0","method":"SendToDevServerAsync","params":[]}') == Received(None, None)


def test_a_message_in_a_notification_arrives_without_an_answer() -> None:
    content = {"jsonrpc": "2.0", "method": "SendToDevServerAsync", "params": [envelope()]}

    received = receive(json.dumps(content).encode())

    assert received.reply is None
    assert received.message is not None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"null",
        b"1",
        b"[" * 200_000,
        b'{"method": 5, "id": 1}',
        b'{"method": "x", "id": {}}',
        b'{"method": "x", "id": true}',
        b'{"method": "x", "id": NaN}',
        b'{"method": "x", "id": 1e999}',
        b'{"method": "x", "id": ' + b"1" * 5000 + b"}",
    ],
    ids=lambda content: repr(content[:30]),
)
def test_what_is_no_json_rpc_is_a_problem_and_never_another_exception(content: bytes) -> None:
    with pytest.raises(RpcProblem):
        receive(content)


def test_half_a_surrogate_pair_does_not_break_the_answer() -> None:
    received = receive(b'{"id": "\\ud800", "method": "\\udc00"}')

    assert received.reply is not None
    assert json.loads(received.reply)["id"] == "\ufffd"


def test_a_message_to_the_ide_is_one_notification_with_one_envelope() -> None:
    content = json.loads(message_to_ide("X", {"Ä": 1}))

    assert content == {
        "jsonrpc": "2.0",
        "method": "MessageFromDevServer",
        "params": [
            {
                "MessageType": "Uno.UI.RemoteControl.Messaging.IdeChannel.X, Uno.UI.RemoteControl.Messaging",
                "MessageBody": '{"Ä":1}',
            }
        ],
    }
