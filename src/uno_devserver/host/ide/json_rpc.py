"""JSON-RPC between an IDE and the Host, and the envelopes of the messages.

An envelope contains the .NET type of a message, and its body as JSON in a string. Both are written as .NET's
serializers write them, and read more leniently: member names in any case, type names with or without assembly and
version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from ...system.values import Value

METHODS = ("SendToDevServerAsync", "SendToDevServer")
NOTIFICATION = "MessageFromDevServer"
NAMESPACE = "Uno.UI.RemoteControl.Messaging.IdeChannel"
# Without a version, because .NET refuses a name with a newer version than the one it has loaded.
ASSEMBLY = "Uno.UI.RemoteControl.Messaging"
BODY_UNREADABLE = -32000  # .NET's code for every failure inside the called method


class RpcProblem(Exception):
    """The client's message is not valid JSON-RPC."""


class IdeMessage(Value):
    """A message from the IDE."""

    type_name: str  # the class name, without namespace and assembly
    body: dict[str, Any]
    assembly: str  # as the sender wrote it; may be empty


class Received(Value):
    reply: bytes | None
    message: IdeMessage | None


def message_to_ide(type_name: str, body: Mapping[str, Any], assembly: str = ASSEMBLY) -> bytes:
    params = [write_envelope(type_name, body, assembly)]
    return _encode({"jsonrpc": "2.0", "method": NOTIFICATION, "params": params})


def receive(content: bytes) -> Received:
    """The IDE's message in a call, and the reply if it needs one; RpcProblem if it is neither call nor answer."""
    call = _decode(content)
    method = call.get("method")
    if not isinstance(method, str):
        if "result" in call or "error" in call:
            return Received(None, None)  # an answer is ignored, because the Host sends no calls
        raise RpcProblem("a message that is neither a call nor an answer")
    wants_answer = "id" in call
    call_id = call.get("id")
    if isinstance(call_id, bool) or not isinstance(call_id, int | str | None):
        raise RpcProblem("a call whose id is neither a number nor a text")
    try:
        message = _message_in(method, call.get("params"))
    except RpcError as error:
        return Received(_error(call_id, error) if wants_answer else None, None)
    return Received(_encode({"jsonrpc": "2.0", "id": call_id, "result": None}) if wants_answer else None, message)


def _decode(content: bytes) -> dict[str, Any]:
    try:
        call = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RpcProblem(f"a message that is not JSON: {error}") from error
    if not isinstance(call, dict):
        raise RpcProblem("a message that is not a JSON object")
    return call


def _message_in(method: str, params: object) -> IdeMessage:
    if method not in METHODS:
        raise RpcError(METHOD_NOT_FOUND, f"There is no method '{method[:100]}'; messages go to {METHODS[0]}.")
    if isinstance(params, dict) and "envelope" in params:
        return read_envelope(params["envelope"])
    # The second parameter is .NET's CancellationToken, which some clients send as null.
    if isinstance(params, list) and params and all(extra is None for extra in params[1:]):
        return read_envelope(params[0])
    raise RpcError(INVALID_PARAMS, f"{method} takes one parameter, 'envelope'.")


def _error(call_id: object, error: RpcError) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": call_id, "error": {"code": error.code, "message": error.message}})


def _encode(message: Mapping[str, Any]) -> bytes:
    text = newtonsoft_json(message)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which .NET replaces too
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def write_envelope(type_name: str, body: Mapping[str, Any], assembly: str = ASSEMBLY) -> dict[str, str]:
    """The envelope of a message; a type name with a comma already contains its assembly."""
    qualified = type_name if "," in type_name else f"{NAMESPACE}.{type_name}, {assembly}"
    return {"MessageType": qualified, "MessageBody": newtonsoft_json(body)}


def read_envelope(envelope: object) -> IdeMessage:
    """The message in an envelope; RpcError if this is not an envelope or its body is not a JSON object."""
    if not isinstance(envelope, dict):
        raise RpcError(INVALID_PARAMS, "The parameter has to be an object with MessageType and MessageBody.")
    members = {name.lower(): value for name, value in envelope.items()}
    type_name, body = members.get("messagetype"), members.get("messagebody")
    if not isinstance(type_name, str) or not isinstance(body, str):
        raise RpcError(INVALID_PARAMS, "MessageType and MessageBody of an envelope have to be texts.")
    short, assembly = parse_type(type_name)
    if not short:
        raise RpcError(INVALID_PARAMS, f"MessageType '{type_name[:100]}' names no type.")
    return IdeMessage(short, _read_body(short, body), assembly)


def parse_type(name: str) -> tuple[str, str]:
    """The class (the innermost one, without generic arguments) and the assembly of an assembly-qualified name."""
    full, _, assembly = name.partition(",")
    outer = full.partition("[")[0].strip()
    return outer.replace("+", ".").rpartition(".")[2], assembly.strip()


def _read_body(type_name: str, text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RpcError(BODY_UNREADABLE, f"The body of {type_name} is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise RpcError(BODY_UNREADABLE, f"The body of {type_name} has to be a JSON object.")
    return body


def newtonsoft_json(value: object) -> str:
    """Compact JSON, escaped as by Newtonsoft; ValueError or TypeError for a value without a JSON form."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for line_end in "\x85\u2028\u2029":
        text = text.replace(line_end, f"\\u{ord(line_end):04x}")
    return text
