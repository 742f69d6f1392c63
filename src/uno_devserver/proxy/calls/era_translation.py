"""From one era to the other: what a client of one hears from a server of the other. Pure.

Only the outermost level is looked into; what is inside stays the bytes that came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...protocol.eras import (
    CACHEABLE_METHODS,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LOG_LEVEL_KEY,
    SERVER_KEY,
    SUBSCRIPTION_KEY,
    VERSION_KEY,
)
from ...protocol.jsonrpc import INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError

if TYPE_CHECKING:
    from ...protocol.service import Params, Result


# Other keys of that name space are older (a task's, for instance), and stay.
MODERN_KEYS = frozenset({VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, LOG_LEVEL_KEY, SERVER_KEY, SUBSCRIPTION_KEY})
# With these a modern client calls again.
ANSWERS = frozenset({"inputResponses", "requestState"})

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def for_modern_client(result: msgspec.Raw) -> Result:
    """A handshake server's result, open at the top, for the endpoint to add what the modern era wants in it."""
    opened: Result = _decoder.decode(result)
    if "_meta" in opened:
        opened["_meta"] = _object(opened["_meta"])
    return opened


def for_handshake_client(result: msgspec.Raw, method: str) -> Result:
    """A modern server's result, without what no handshake client knows."""
    opened: Result = _decoder.decode(result)
    opened.pop("resultType", None)
    if method in CACHEABLE_METHODS:
        opened.pop("ttlMs", None)
        opened.pop("cacheScope", None)
    meta = _object(opened.get("_meta"))
    if isinstance(meta, dict) and not MODERN_KEYS.isdisjoint(meta):
        kept = {key: value for key, value in meta.items() if key not in MODERN_KEYS}
        if kept:
            opened["_meta"] = kept
        else:
            del opened["_meta"]
    return opened


def error_for_handshake_client(error: RpcError, method: str, params: Params) -> RpcError:
    """The older code for an unknown resource; what else can be wrong with such a request is its uri's type."""
    if error.code == INVALID_PARAMS and method == "resources/read" and isinstance(params.get("uri"), str):
        return RpcError(RESOURCE_NOT_FOUND, error.message, error.data)
    return error


def for_handshake_server(params: Params) -> Params:
    """A modern client's request, without answers that only a modern server could have asked for."""
    if params.get("requestState") is not None:
        message = "The call that waited for this answer is gone. Call again without requestState."
        raise RpcError(INVALID_PARAMS, message)
    if ANSWERS.isdisjoint(params):
        return params
    return {key: value for key, value in params.items() if key not in ANSWERS}


def _object(raw: object) -> object:
    """Decoded one level deep, if it is an object; else as it is."""
    if isinstance(raw, msgspec.Raw) and bytes(memoryview(raw)[:1]) == b"{":
        return _decoder.decode(raw)
    return raw
