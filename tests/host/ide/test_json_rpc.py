"""Envelopes, against those that the .NET Host wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.golden import GOLDEN
from uno_devserver.host.ide import message_types
from uno_devserver.host.ide.json_rpc import (
    ASSEMBLY,
    NAMESPACE,
    Received,
    RpcProblem,
    message_to_ide,
    newtonsoft_json,
    parse_type,
    read_envelope,
    receive,
    write_envelope,
)
from uno_devserver.protocol.jsonrpc import RpcError

CONVERSATION = json.loads((GOLDEN / "host/ide-channel/conversation.json").read_text("utf-8"))
SERIALIZED = json.loads((GOLDEN / "bytes/json/serializers.json").read_text("utf-8"))
STRINGS = [case for case in SERIALIZED if case["value"].startswith("string")]


def recorded_envelopes() -> list[dict[str, str]]:
    texts = [received.get("text", "") for step in CONVERSATION for received in step.get("received", ())]
    contents = [json.loads(text.partition("\r\n\r\n")[2]) for text in texts if text]
    return [content["params"][0] for content in contents if "params" in content]


@pytest.mark.parametrize("envelope", recorded_envelopes())
def test_an_envelope_of_the_net_host_is_read(envelope: dict[str, str]) -> None:
    message = read_envelope(envelope)

    assert message.type_name in message_types.SCOPES
    assert message.body["Scope"] == message_types.SCOPES[message.type_name]
    assert message.assembly == f"{ASSEMBLY}, Version=6.0.0.0, Culture=neutral, PublicKeyToken=null"


@pytest.mark.parametrize("envelope", recorded_envelopes())
def test_the_same_message_is_written_byte_for_byte(envelope: dict[str, str]) -> None:
    message = read_envelope(envelope)

    assert write_envelope(message.type_name, message.body, message.assembly) == envelope


def test_the_bodies_have_the_recorded_members_in_the_recorded_order() -> None:
    recorded = {read_envelope(envelope).type_name: read_envelope(envelope).body for envelope in recorded_envelopes()}
    ours = {
        message_types.KEEP_ALIVE: message_types.with_scope(message_types.KEEP_ALIVE, message_types.keep_alive()),
        message_types.STATUS: message_types.with_scope(message_types.STATUS, message_types.environment_status()),
    }
    # Counted for itself, and a sentence of our own for people.
    ours[message_types.KEEP_ALIVE]["SequenceId"] = recorded[message_types.KEEP_ALIVE]["SequenceId"]
    theirs = recorded[message_types.STATUS]["Component"]
    ours[message_types.STATUS]["Component"] = {**message_types.COMPONENT, "Description": theirs["Description"]}

    assert {name: newtonsoft_json(body) for name, body in ours.items()} == {
        name: newtonsoft_json(body) for name, body in recorded.items()
    }


@pytest.mark.parametrize("case", STRINGS, ids=lambda case: str(case["value"]))
def test_texts_are_written_in_newtonsofts_characters(case: dict[str, Any]) -> None:
    assert newtonsoft_json(json.loads(case["newtonsoft"])) == case["newtonsoft"]


@pytest.mark.parametrize("body", [{"x": float("nan")}, {"x": object()}])
def test_what_json_cannot_hold_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        write_envelope("X", body)


@pytest.mark.parametrize(
    ("name", "short", "assembly"),
    [
        ("A.B.KeepAlive, Asm, Version=1.0.0.0, Culture=neutral", "KeepAlive", "Asm, Version=1.0.0.0, Culture=neutral"),
        ("A.B.KeepAlive, Asm", "KeepAlive", "Asm"),
        ("A.B.KeepAlive", "KeepAlive", ""),
        ("KeepAlive", "KeepAlive", ""),
        ("A.Outer+Inner, Asm", "Inner", "Asm"),
        ("A.List`1[[System.String]], Asm", "List`1", "Asm"),
        (" A.B , Asm ", "B", "Asm"),
        ("", "", ""),
        (", Asm", "", "Asm"),
        ("A.", "", ""),
    ],
)
def test_a_type_name_has_a_class_and_perhaps_an_assembly(name: str, short: str, assembly: str) -> None:
    assert parse_type(name) == (short, assembly)


def test_a_short_name_is_qualified_and_a_qualified_one_is_kept() -> None:
    assert write_envelope("X", {})["MessageType"] == f"{NAMESPACE}.X, {ASSEMBLY}"
    assert write_envelope("Acme.X, Acme", {})["MessageType"] == "Acme.X, Acme"


@pytest.mark.parametrize(
    "envelope",
    [
        None,
        [],
        "text",
        {},
        {"MessageType": "A.B"},
        {"MessageBody": "{}"},
        {"MessageType": 1, "MessageBody": "{}"},
        {"MessageType": "A.B", "MessageBody": {}},
        {"MessageType": " , ", "MessageBody": "{}"},
        {"MessageType": "A.B", "MessageBody": ""},
        {"MessageType": "A.B", "MessageBody": "null"},
        {"MessageType": "A.B", "MessageBody": "[1]"},
        {"MessageType": "A.B", "MessageBody": '{"x": '},
        {"MessageType": "A.B", "MessageBody": "[" * 100_000},
    ],
)
def test_what_is_no_envelope_is_refused_with_a_sentence(envelope: object) -> None:
    with pytest.raises(RpcError) as refusal:
        read_envelope(envelope)

    assert refusal.value.message
    assert "Traceback" not in refusal.value.message


def test_a_scope_is_added_to_a_known_message_and_never_replaced() -> None:
    assert message_types.with_scope("ForceHotReloadIdeMessage", {"CorrelationId": 3}) == {
        "CorrelationId": 3,
        "Scope": "HotReload",
    }
    assert message_types.with_scope("ForceHotReloadIdeMessage", {"Scope": "mine"}) == {"Scope": "mine"}
    assert message_types.with_scope("SomebodyElses", {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("errors", "status", "description", "actions"),
    [
        ({}, 2, "Ready", ["Learn More"]),
        ({"discovery_error": "no list"}, 3, "Studio unavailable", ["Troubleshoot", "Learn More"]),
        ({"load_error": "A.dll"}, 3, "Unable to load Studio", ["Troubleshoot", "Learn More"]),
        ({"discovery_error": "no list", "load_error": "x"}, 3, "Studio unavailable", ["Troubleshoot", "Learn More"]),
    ],
)
def test_the_status_says_what_is_wrong_with_the_add_ins(
    errors: dict[str, str], status: int, description: str, actions: list[str]
) -> None:
    body = message_types.environment_status(**errors)

    assert (body["Status"], body["Description"]) == (status, description)
    assert body["Details"] == next(iter(errors.values()), None)
    assert [action["Text"] for action in body["Actions"]] == actions
    assert (body["Component"]["Id"], body["Component"]["Priority"]) == ("uno.dev_server", 200)


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
