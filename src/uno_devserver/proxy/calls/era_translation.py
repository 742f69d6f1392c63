"""Translates requests, results and errors between the two eras of MCP (handshake and modern). Pure.

Only the outermost level is decoded; everything below it stays as the bytes that came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...protocol.client.raw_messages import ENVELOPE_KEYS
from ...protocol.jsonrpc import INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError
from ...protocol.versions import CACHEABLE_METHODS, SERVER_KEY, SUBSCRIPTION_KEY

if TYPE_CHECKING:
    from ...protocol.service import Params, Result


# Members of `_meta` that only the modern era has. Other members with the same prefix (such as a task's) are older.
MODERN_KEYS = ENVELOPE_KEYS | {SERVER_KEY, SUBSCRIPTION_KEY}
# The members in which a modern client answers questions when it repeats a call.
ANSWERS = frozenset({"inputResponses", "requestState"})

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def for_modern_client(result: msgspec.Raw) -> Result:
    """Decode the top level of a handshake server's result, so that the endpoint can add the modern members."""
    opened: Result = _decoder.decode(result)
    if "_meta" in opened:
        opened["_meta"] = _object(opened["_meta"])
    return opened


def for_handshake_client(result: msgspec.Raw, method: str) -> Result:
    """Remove from a modern server's result the members that the handshake era does not have."""
    opened: Result = _decoder.decode(result)
    opened.pop("resultType", None)
    if method in CACHEABLE_METHODS:
        opened.pop("ttlMs", None)
        opened.pop("cacheScope", None)
    meta = _object(opened.get("_meta"))
    if isinstance(meta, dict) and not MODERN_KEYS.isdisjoint(meta):
        del opened["_meta"]
        if kept := {key: value for key, value in meta.items() if key not in MODERN_KEYS}:
            opened["_meta"] = kept
    return opened


def error_for_handshake_client(error: RpcError, method: str, params: Params) -> RpcError:
    """Use the older code for an unknown resource, which is taken as the reason if the URI is a string."""
    if error.code == INVALID_PARAMS and method == "resources/read" and isinstance(params.get("uri"), str):
        return RpcError(RESOURCE_NOT_FOUND, error.message, error.data)
    return error


def for_handshake_server(params: Params) -> Params:
    """Remove answers to questions, which only a modern server asks; RpcError if they continue a waiting call."""
    if params.get("requestState") is not None:
        message = "The call that waited for this answer is gone. Call again without requestState."
        raise RpcError(INVALID_PARAMS, message)
    return {key: value for key, value in params.items() if key not in ANSWERS}


def _object(raw: object) -> object:
    """Decode one level if it is an object; else return it unchanged."""
    if isinstance(raw, msgspec.Raw) and bytes(memoryview(raw)[:1]) == b"{":
        return _decoder.decode(raw)
    return raw
