"""The two eras of MCP: their versions, and what each puts into its messages. Pure: messages in, messages out.

Handshake era (2024-11-05 … 2025-11-25): `initialize` agrees on a version once. Modern era (2026-07-28): every request
says in `params._meta` which version it speaks and what its client can do, and HTTP headers repeat the essentials.
"""

from __future__ import annotations

import binascii

from ..system.values import Value
from .jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError, RpcRequest, shown
from .peer_info import ClientInfo, ServerInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .service import Params, Result

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NEWEST_HANDSHAKE = HANDSHAKE_VERSIONS[-1]
MODERN_VERSIONS = ("2026-07-28",)
ALL_VERSIONS = (*MODERN_VERSIONS, *reversed(HANDSHAKE_VERSIONS))
BATCH_VERSION = "2025-03-26"  # the only one that allows several messages in one body
POLLING_SINCE = "2025-11-25"  # older clients choke on an event without data, and resume no call's stream

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

VERSION_HEADER = "mcp-protocol-version"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

REMOVED_IN_MODERN = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
# The parameter that the header Mcp-Name repeats.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# Only these may be answered with a question to the client.
INPUT_REQUIRED_METHODS = frozenset(NAMED_BY)
# What a client can be asked.
QUESTIONS = frozenset({"sampling/createMessage", "elicitation/create", "roots/list"})
CACHEABLE_METHODS = frozenset(
    {"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)


def negotiated(requested: object) -> str:
    """The version that `initialize` agrees on: the requested one, or the newest for the client to take or leave."""
    return requested if isinstance(requested, str) and requested in HANDSHAKE_VERSIONS else NEWEST_HANDSHAKE


def can_poll(version: str) -> bool:
    return HANDSHAKE_VERSIONS.index(version) >= HANDSHAKE_VERSIONS.index(POLLING_SINCE)


def initializing_client(params: Params) -> ClientInfo:
    """Who sent `initialize`; what is absent is left open, what is ill-formed is refused."""
    return _client(params.get("clientInfo"), params.get("capabilities"), negotiated(params.get("protocolVersion")))


def initialize_result(version: str, info: ServerInfo, capabilities: dict[str, Any]) -> Result:
    result: Result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": _server(info)}
    if info.instructions is not None:
        result["instructions"] = info.instructions
    return result


class Envelope(Value):
    """What a modern request says about itself."""

    client: ClientInfo
    log_level: str | None


def has_envelope(params: Params) -> bool:
    """Whether the request means to be modern: the key is reserved, no older client writes it."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def read_envelope(request: RpcRequest, headers: Mapping[str, str]) -> Envelope:
    """Check a modern request against itself, its headers and our versions, in this order."""
    claimed = headers.get(VERSION_HEADER)
    if claimed not in MODERN_VERSIONS and not has_envelope(request.params):
        raise unsupported_version(claimed)  # neither era's: there is nothing else to say about it
    _check_headers(request, _complete_meta(request.params)[VERSION_KEY], headers)
    return envelope_of(request.params)


def envelope_of(params: Params) -> Envelope:
    """The same where there are no headers; RpcError when it is incomplete, or of a version that we do not speak."""
    meta = _complete_meta(params)
    version = meta[VERSION_KEY]
    if version not in MODERN_VERSIONS:
        raise unsupported_version(version, MODERN_VERSIONS)  # what server/discover says, too
    level = meta.get(LOG_LEVEL_KEY)
    return Envelope(
        _client(meta.get(CLIENT_KEY), meta[CAPABILITIES_KEY], version), level if level in LOG_LEVELS else None
    )


def _complete_meta(params: Params) -> dict[str, Any]:
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, f"params._meta must be an object with {VERSION_KEY} and {CAPABILITIES_KEY}.")
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    return meta


def _check_headers(request: RpcRequest, version: object, headers: Mapping[str, str]) -> None:
    expected = [("MCP-Protocol-Version", version, False), ("Mcp-Method", request.method, False)]
    name = NAMED_BY.get(request.method)
    if name is not None and request.params.get(name) is not None:
        expected.append(("Mcp-Name", request.params[name], True))
    for header, wanted, encodable in expected:
        found = headers.get(header.lower())
        if found is None:
            raise RpcError(HEADER_MISMATCH, f"The header {header} is missing.")
        if (decoded_header(found) if encodable else found) != wanted:
            raise RpcError(HEADER_MISMATCH, f"The header {header} does not say what the body says.")


def decoded_header(value: str) -> str | None:
    """A header's text, which may be wrapped as `=?base64?…?=`; None when the wrapping is broken."""
    if not (value.startswith("=?base64?") and value.endswith("?=") and len(value) >= 11):
        return value
    wrapped = value[9:-2]
    try:
        raw = binascii.a2b_base64(wrapped, strict_mode=True)
        # Two spellings of one value would let a gateway and us read different things.
        return raw.decode() if binascii.b2a_base64(raw, newline=False).decode() == wrapped else None
    except ValueError:
        return None


def unsupported_version(requested: object, supported: tuple[str, ...] = ALL_VERSIONS) -> RpcError:
    message = "This protocol version is not supported; see data.supported."
    return RpcError(UNSUPPORTED_VERSION, message, {"supported": list(supported), "requested": requested})


def discover_result(info: ServerInfo, capabilities: dict[str, Any]) -> Result:
    result: Result = {"supportedVersions": list(MODERN_VERSIONS), "capabilities": capabilities}
    if info.instructions is not None:
        result["instructions"] = info.instructions
    return result


def modern_result(method: str, result: Result, info: ServerInfo) -> Result:
    """A result with what the modern era wants in each; whatever the service has set stays."""
    shaped: Result = {"resultType": "complete", **result}
    if method in CACHEABLE_METHODS and shaped["resultType"] == "complete":
        # 0: a client asks again when it wants to know; subscriptions tell it when that is worth while.
        shaped.setdefault("ttlMs", 0)
        shaped.setdefault("cacheScope", "private")
    meta = shaped.get("_meta")
    shaped["_meta"] = {SERVER_KEY: _server(info), **(meta if isinstance(meta, dict) else {})}
    return shaped


def modern_error(error: RpcError) -> RpcError:
    """The code for an unknown resource was retired with the handshake."""
    if error.code == RESOURCE_NOT_FOUND:
        return RpcError(INVALID_PARAMS, error.message, error.data)
    return error


def method_not_found(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"There is no method '{shown(method)}' here.")


def check_client_can(client: ClientInfo, method: str, params: Params) -> None:
    """RpcError when the client did not say that it can answer such a question."""
    required = _required_capabilities(method, params)
    if required is None:
        raise RpcError(METHOD_NOT_FOUND, f"A client cannot be asked for '{method}'.")
    lacking = _lacking(client.capabilities, required)
    if lacking:
        message = f"The client did not declare the capability {lacking}, which '{method}' needs."
        raise RpcError(MISSING_CAPABILITY, message, {"requiredCapabilities": required})


def _required_capabilities(method: str, params: Params) -> dict[str, Any] | None:
    if method == "sampling/createMessage":
        return {"sampling": {"tools": {}} if "tools" in params or "toolChoice" in params else {}}
    if method == "elicitation/create":
        return {"elicitation": {"url": {}} if params.get("mode") == "url" else {}}
    if method == "roots/list":
        return {"roots": {}}
    return None


def _lacking(declared: Mapping[str, Any], required: Mapping[str, Any], path: str = "") -> str | None:
    for key, inner in required.items():
        have = declared.get(key)
        if not isinstance(have, dict):  # an empty object is a declaration, too
            return path + key
        if lacking := _lacking(have, inner, f"{path}{key}."):
            return lacking
    return None


def wants_log(level: str | None, method: str, params: Params | None) -> bool:
    """Whether a client that asked for `level` gets this notification; only log messages depend on it."""
    if method != "notifications/message":
        return True
    said = (params or {}).get("level")
    return level in LOG_LEVELS and said in LOG_LEVELS and LOG_LEVELS.index(said) >= LOG_LEVELS.index(level)


def _client(info: object, capabilities: object, version: str) -> ClientInfo:
    if capabilities is not None and not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, "The client's capabilities must be an object.")
    if info is not None and not isinstance(info, dict):
        raise RpcError(INVALID_PARAMS, "clientInfo must be an object with a name and a version.")
    about = info or {}
    return ClientInfo(_text(about.get("name")), _text(about.get("version")), capabilities or {}, version)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _server(info: ServerInfo) -> dict[str, Any]:
    about = {"name": info.name, "version": info.version}
    if info.title is not None:
        about["title"] = info.title
    return about
