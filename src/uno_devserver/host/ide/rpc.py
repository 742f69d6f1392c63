"""JSON-RPC as IDEs speak it with a Host: one method to give us a message, one notification to give them one.

Pure: a frame's content in, the answer and the message out. The answer says that a message has arrived; what is done
with it is nobody's business on the wire, as with the .NET Host. So there is never a call that could be cancelled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from ...system.values import Value
from . import envelopes
from .envelopes import Message

METHODS = ("SendToDevServerAsync", "SendToDevServer")
NOTIFICATION = "MessageFromDevServer"


class RpcProblem(Exception):
    """Not JSON-RPC: whoever writes this does not speak our language."""


class Received(Value):
    reply: bytes | None
    message: Message | None


def message_to_ide(type_name: str, body: Mapping[str, Any], assembly: str = envelopes.ASSEMBLY) -> bytes:
    params = [envelopes.write(type_name, body, assembly)]
    return _encode({"jsonrpc": "2.0", "method": NOTIFICATION, "params": params})


def receive(content: bytes) -> Received:
    """What came from the IDE; RpcProblem when it is neither a call nor an answer."""
    call = _decode(content)
    method = call.get("method")
    if not isinstance(method, str):
        if "result" in call or "error" in call:
            return Received(None, None)  # we ask nothing, so it answers nobody
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


def _message_in(method: str, params: object) -> Message:
    if method not in METHODS:
        raise RpcError(METHOD_NOT_FOUND, f"There is no method '{method[:100]}'; messages go to {METHODS[0]}.")
    if isinstance(params, dict) and "envelope" in params:
        return envelopes.read(params["envelope"])
    # A second parameter would be .NET's CancellationToken, which some clients send as null.
    if isinstance(params, list) and params and all(extra is None for extra in params[1:]):
        return envelopes.read(params[0])
    raise RpcError(INVALID_PARAMS, f"{method} takes one parameter, 'envelope'.")


def _error(call_id: object, error: RpcError) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": call_id, "error": {"code": error.code, "message": error.message}})


def _encode(message: Mapping[str, Any]) -> bytes:
    text = envelopes.to_json(message)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, which .NET replaces as well
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")
