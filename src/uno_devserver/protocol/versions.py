"""The two eras of MCP: their versions, and the parts of messages that differ. Pure functions, cheap to import.

Handshake era (2024-11-05 … 2025-11-25; the specification calls it legacy): `initialize` agrees on a version once.
Modern era (2026-07-28): every request carries an envelope in `params._meta`, with its version and its client's
capabilities, and HTTP headers repeat the essentials. Both are read and checked here.
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
BATCH_VERSION = "2025-03-26"  # the only version with several messages in one body
POLLING_SINCE = "2025-11-25"  # older clients fail on an event without data, and do not resume the stream of a call

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

LONGEST_KEPT = 8192  # characters of a client's name, version and capabilities, each of which its session keeps

VERSION_HEADER = "mcp-protocol-version"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

CANCELLED = "notifications/cancelled"
INITIALIZED = "notifications/initialized"
LISTEN = "subscriptions/listen"
SUBSCRIPTION_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
RESOURCE_UPDATED = "notifications/resources/updated"
# Per list: what a client asks for in `subscriptions/listen`, the notification, and the capability that promises it.
LISTS = tuple(
    (f"{kind}ListChanged", f"notifications/{kind}/list_changed", kind) for kind in ("tools", "prompts", "resources")
)
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

REMOVED_IN_MODERN = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
NOTIFICATIONS_REMOVED_IN_MODERN = frozenset({INITIALIZED, "notifications/roots/list_changed"})
# The parameter that the header Mcp-Name repeats.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# The methods whose result may be a question to the client.
INPUT_REQUIRED_METHODS = frozenset(NAMED_BY)
# The requests that a server may send to a client.
QUESTIONS = frozenset({"sampling/createMessage", "elicitation/create", "roots/list"})
CACHEABLE_METHODS = frozenset(
    {"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)


def negotiated(requested: object) -> str:
    """The version that `initialize` agrees on: the requested one if it is known, else the newest."""
    return requested if isinstance(requested, str) and requested in HANDSHAKE_VERSIONS else NEWEST_HANDSHAKE


def can_poll(version: str) -> bool:
    return HANDSHAKE_VERSIONS.index(version) >= HANDSHAKE_VERSIONS.index(POLLING_SINCE)


def initializing_client(params: Params) -> ClientInfo:
    """The client that sent `initialize`; RpcError for ill-formed params or long capabilities. All may be missing."""
    client = _client(params.get("clientInfo"), params.get("capabilities"), negotiated(params.get("protocolVersion")))
    if _is_longer(client.capabilities, LONGEST_KEPT):
        raise RpcError(INVALID_PARAMS, f"The client's capabilities must not be longer than {LONGEST_KEPT} characters.")
    return client


def _is_longer(value: object, most: int) -> bool:
    """Whether a value of JSON takes more than `most` characters, by a rough count that ends there."""
    length, parts = 0, [value]
    while parts and length <= most:
        part = parts.pop()
        if isinstance(part, dict):
            length += 2 * len(part)
            parts += (*part, *part.values()) if length <= most else ()
        elif isinstance(part, list):
            length += 2 * len(part)
            parts += part if length <= most else ()
        else:
            length += len(part) if isinstance(part, str) else 1
    return length > most


def initialize_result(version: str, info: ServerInfo, capabilities: dict[str, Any]) -> Result:
    result: Result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": _server(info)}
    if info.instructions is not None:
        result["instructions"] = info.instructions
    return result


class Envelope(Value):
    """The client and the log level in the `_meta` of a modern request."""

    client: ClientInfo
    log_level: str | None


def meta_of(params: Params) -> dict[str, Any]:
    """The `_meta` of params; {} if there is none."""
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def without_meta(params: Params, keys: frozenset[str]) -> Params:
    """The params without these keys of their `_meta`, and without `_meta` if nothing is left of it."""
    meta = meta_of(params)
    if keys.isdisjoint(meta):
        return params
    kept = {key: value for key, value in meta.items() if key not in keys}
    bare = {key: value for key, value in params.items() if key != "_meta"}
    return {**bare, "_meta": kept} if kept else bare


def has_envelope(params: Params) -> bool:
    """Whether the request is modern. The key is reserved: no client of the handshake era sends it."""
    return VERSION_KEY in meta_of(params)


def is_modern(version_header: str | None, body: object) -> bool:
    """Whether an HTTP request is modern: with an envelope, yes; `initialize` without one, no; else by the header."""
    if isinstance(body, dict):
        params = body.get("params")
        if isinstance(params, dict) and has_envelope(params):
            return True
        if body.get("method") == "initialize":
            return False
    return version_header is not None and version_header not in HANDSHAKE_VERSIONS


def read_envelope(request: RpcRequest, headers: Mapping[str, str]) -> Envelope:
    """The envelope of an HTTP request. Checks the envelope, then the headers, then the version; raises RpcError."""
    claimed = headers.get(VERSION_HEADER)
    if claimed not in MODERN_VERSIONS and not has_envelope(request.params):
        raise unsupported_version(claimed)  # a version of neither era
    _check_headers(request, _complete_meta(request.params)[VERSION_KEY], headers)
    return envelope_of(request.params)


def envelope_of(params: Params) -> Envelope:
    """The envelope of a request; RpcError if it is incomplete or names a version that is not supported."""
    meta = _complete_meta(params)
    version = meta[VERSION_KEY]
    if version not in MODERN_VERSIONS:
        raise unsupported_version(version, MODERN_VERSIONS)  # the same list as in server/discover
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
    """The text of a header that `encoded_header` wrote; None if its Base64 is broken."""
    if not (value.startswith("=?base64?") and value.endswith("?=") and len(value) >= 11):
        return value
    wrapped = value[9:-2]
    try:
        raw = binascii.a2b_base64(wrapped, strict_mode=True)
        # Only the canonical spelling is accepted: a gateway might read another one differently.
        return raw.decode() if binascii.b2a_base64(raw, newline=False).decode() == wrapped else None
    except ValueError:
        return None


def encoded_header(text: str) -> str:
    """The text as the value of a header: plain where possible, else as `=?base64?…?=`."""
    plain = text.isascii() and text.isprintable() and text and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{binascii.b2a_base64(text.encode('utf-8', 'replace'), newline=False).decode()}?="


def unsupported_version(requested: object, supported: tuple[str, ...] = ALL_VERSIONS) -> RpcError:
    message = "This protocol version is not supported; see data.supported."
    return RpcError(UNSUPPORTED_VERSION, message, {"supported": list(supported), "requested": requested})


def discover_result(info: ServerInfo, capabilities: dict[str, Any]) -> Result:
    result: Result = {"supportedVersions": list(MODERN_VERSIONS), "capabilities": capabilities}
    if info.instructions is not None:
        result["instructions"] = info.instructions
    return result


def modern_result(method: str, result: Result, info: ServerInfo) -> Result:
    """Add the members that the modern era requires to a result; values that the service has set are kept."""
    shaped: Result = {"resultType": "complete", **result}
    if method in CACHEABLE_METHODS and shaped["resultType"] == "complete":
        # 0: clients do not cache the result; subscriptions notify them of changes.
        shaped.setdefault("ttlMs", 0)
        shaped.setdefault("cacheScope", "private")
    meta = shaped.get("_meta")
    shaped["_meta"] = {SERVER_KEY: _server(info), **(meta if isinstance(meta, dict) else {})}
    return shaped


def modern_error(error: RpcError) -> RpcError:
    """The error with a code of the modern era, which has no code of its own for an unknown resource."""
    if error.code == RESOURCE_NOT_FOUND:
        return RpcError(INVALID_PARAMS, error.message, error.data)
    return error


def method_not_found(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"There is no method '{shown(method)}' here.")


def check_client_can(client: ClientInfo, method: str, params: Params) -> None:
    """Raise RpcError unless the client has declared the capability to answer this question."""
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
        if not isinstance(have, dict):  # an empty object declares the capability
            return path + key
        if lacking := _lacking(have, inner, f"{path}{key}."):
            return lacking
    return None


def wants_log(level: str | None, method: str, params: Params | None) -> bool:
    """Whether a client that asked for `level` gets this notification. Only log messages depend on the level."""
    if method != "notifications/message":
        return True
    severity = (params or {}).get("level")
    return level in LOG_LEVELS and severity in LOG_LEVELS and LOG_LEVELS.index(severity) >= LOG_LEVELS.index(level)


def _client(info: object, capabilities: object, version: str) -> ClientInfo:
    if capabilities is not None and not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, "The client's capabilities must be an object.")
    if info is not None and not isinstance(info, dict):
        raise RpcError(INVALID_PARAMS, "clientInfo must be an object with a name and a version.")
    about = info or {}
    return ClientInfo(_text(about.get("name")), _text(about.get("version")), capabilities or {}, version)


def _text(value: object) -> str | None:
    return value[:LONGEST_KEPT] if isinstance(value, str) else None


def _server(info: ServerInfo) -> dict[str, Any]:
    about = {"name": info.name, "version": info.version}
    if info.title is not None:
        about["title"] = info.title
    return about
