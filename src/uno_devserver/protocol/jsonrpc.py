"""JSON-RPC 2.0 messages as MCP uses them: read from bytes, checked, and written. Cheap to import.

Every decoded value becomes one of the kinds of message below. Ids keep their type, and unknown fields are ignored.
"""

from __future__ import annotations

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeGuard

    import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002

# MCP leaves -32000 … -32019 to implementations; other servers use the first two as well.
SESSION_REQUIRED = -32000
SESSION_NOT_FOUND = -32001
BUSY = -32010
STOPPED = -32011
UNANSWERED = -32015  # a question that the client did not answer; the codes in between belong to the proxy

SHOWN_CHARACTERS = 100
MAX_DEPTH = 10_000  # of the JSON of a message; many readers stop sooner
TOO_DEEP = "The JSON is nested too deeply."

Id = int | str


class RpcError(Exception):
    """The `error` of an answer."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class RpcRequest(Value):
    id: Id
    method: str
    params: Mapping[str, Any]


class RpcNotification(Value):
    method: str
    params: Mapping[str, Any]


class RpcResponse(Value):
    """The answer to a request of ours; result and error may be missing or ill-formed."""

    id: object
    result: object
    error: object


class InvalidMessage(Value):
    """A value that is not a message, and the error to answer. `id` is the id of that answer; None if unreadable."""

    id: Id | None
    error: RpcError


Message = RpcRequest | RpcNotification | RpcResponse | InvalidMessage


def decode(body: bytes) -> Any:
    """The JSON value in `body`; RpcError if it is empty, not JSON, or nested too deeply."""
    import msgspec  # imported late: it takes as long as starting Python, and the proxy's first answer waits

    if not body.strip():
        raise RpcError(INVALID_REQUEST, "The body is empty; it must be a JSON-RPC message.")
    if is_deep(body):
        raise RpcError(PARSE_ERROR, TOO_DEEP)
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        raise RpcError(PARSE_ERROR, TOO_DEEP) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RpcError(PARSE_ERROR, f"The body is not valid JSON: {error}") from None


def is_deep(data: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether JSON is nested deeper than that. Since Python 3.14, its readers stop only at the end of the stack."""
    if len(data) <= limit or data.count(b"[") + data.count(b"{") <= limit:
        return False
    import re
    from itertools import accumulate

    others = bytes(set(range(256)) - set(b'[{]}"'))
    left = data.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, others).replace(b'""', b"")
    brackets = re.sub(rb'"[^"]*"?', b"", left)  # without those in strings
    steps = brackets.translate(bytes.maketrans(b"[{]}", b"\1\1\xff\xff"))
    return max(accumulate(memoryview(steps).cast("b")), default=0) > limit


def read(value: object) -> Message:
    """The message in a decoded value; InvalidMessage if there is none."""
    if not isinstance(value, dict):
        return InvalidMessage(None, RpcError(INVALID_REQUEST, "A JSON-RPC message is an object."))
    identity = value.get("id")
    known = identity if is_id(identity) else None
    if value.get("jsonrpc") != "2.0":
        return InvalidMessage(known, RpcError(INVALID_REQUEST, 'A JSON-RPC message must contain "jsonrpc": "2.0".'))
    if "method" not in value and ("result" in value or "error" in value):
        return RpcResponse(identity, value.get("result"), value.get("error"))
    method = value.get("method")
    if not isinstance(method, str):
        return InvalidMessage(known, RpcError(INVALID_REQUEST, "The method of a JSON-RPC message is a string."))
    if "id" in value and known is None:
        return InvalidMessage(None, RpcError(INVALID_REQUEST, "The id of a request is a string or an integer."))
    params = value.get("params")
    if params is None:
        params = {}
    elif not isinstance(params, dict):
        return InvalidMessage(known, RpcError(INVALID_PARAMS, f"The params of '{shown(method)}' must be an object."))
    return RpcNotification(method, params) if known is None else RpcRequest(known, method, params)


def shown(text: str) -> str:
    """The text, cut to a length that can be quoted in a message."""
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


def is_id(value: object) -> TypeGuard[Id]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def result_of(response: RpcResponse) -> dict[str, Any]:
    """The result of a client's answer; RpcError if it is an error, or neither."""
    if isinstance(response.error, dict):
        raise error_of(response.error, "client")
    if isinstance(response.result, dict):
        return response.result
    raise RpcError(INTERNAL_ERROR, "The client's answer has neither a result object nor an error object.")


def error_of(error: Mapping[str, Any], sender: str) -> RpcError:
    """The error object of an answer as an exception."""
    code, message = error.get("code"), error.get("message")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) else f"The {sender} refused without saying why.",
        error.get("data"),
    )


def request_message(request_id: Id, method: str, params: Mapping[str, Any]) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification_message(method: str, params: Mapping[str, Any] | None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return encode(message)


def result_message(request_id: Id | msgspec.Raw, result: Mapping[str, Any] | msgspec.Raw) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_message(request_id: Id | msgspec.Raw | None, error: RpcError) -> bytes:
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": body})


def encode(message: Mapping[str, Any]) -> bytes:
    """The message as UTF-8 JSON on one line; TypeError or RecursionError for a value that JSON cannot express."""
    import msgspec

    try:
        data = msgspec.json.encode(message)
        if b"\n" in data or b"\r" in data:  # these can only be white space in a `Raw`
            data = data.replace(b"\n", b" ").replace(b"\r", b" ")
        return data
    except UnicodeEncodeError:
        return _encoded_with_surrogates(message)


def _encoded_with_surrogates(message: Mapping[str, Any]) -> bytes:
    """Encode a message with lone surrogates, which msgspec refuses. They are replaced, except in the id.

    Python uses them for file names that are not valid text.
    """
    import json

    import msgspec

    def plain(value: object) -> Any:
        if isinstance(value, msgspec.Raw):
            return json.loads(bytes(value))
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")

    rest = {key: value for key, value in message.items() if key != "id"}
    body = json.dumps(rest, ensure_ascii=False, separators=(",", ":"), default=plain).encode("utf-8", "replace")
    return (
        body if "id" not in message else b'{"id":%b,%b' % (json.dumps(message["id"], default=plain).encode(), body[1:])
    )
