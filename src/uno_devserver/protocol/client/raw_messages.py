"""The messages of a client, over any transport: reading them, the openings of both eras, and the modern envelope.

Payloads stay bytes (`msgspec.Raw`), on one line and in valid UTF-8, so that they can be passed on as they are.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from ..jsonrpc import INTERNAL_ERROR, MAX_DEPTH, RpcError, error_of, is_deep, shown
from ..lines import readable_members
from ..versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    HANDSHAKE_VERSIONS,
    LOG_LEVEL_KEY,
    MODERN_VERSIONS,
    NEWEST_HANDSHAKE,
    SERVER_KEY,
    VERSION_KEY,
    meta_of,
    without_meta,
)
from .connection import ServerDescription, UnusableServer

if TYPE_CHECKING:
    from ..peer_info import ClientInfo
    from ..service import Params
    from .connection import Peer

ABSENT = msgspec.Raw()
NOTHING = (ABSENT, msgspec.Raw(b"null"))
ENVELOPE_KEYS = frozenset({VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY, LOG_LEVEL_KEY})
MODERN_VERSION = MODERN_VERSIONS[0]
UNNAMED = "unknown"  # `initialize` requires a name and a version, a modern client may have neither
# Every escape of a JSON text; the group is half a pair of surrogates, which is no Unicode. Node writes one where a text
# was cut in the middle of an emoji.
_HALVES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_MESSAGE_BEGINS = b'{"'
_TEXT = json.JSONDecoder()  # finds the end of a value in a line that goes on
EMBEDDED_TRIES = 10  # a log line may contain any number of braces
DECODED_PARAMS = frozenset({"name", "_meta", "inputResponses", "requestState"})  # of a call
# Of what is decoded into objects, which may take 30 times as much memory; results are passed on as bytes.
MAX_DECODED_BYTES = 16 * 1024 * 1024
# Longer messages may be nested deeper than anybody reads; before Python 3.14, `decode` itself refuses these.
MAX_UNEXAMINED = MAX_DEPTH if sys.version_info >= (3, 14) else sys.maxsize
UNREADABLE = "The server has answered, but its answer cannot be read. It begins with:"
_BOM = b"\xef\xbb\xbf"  # .NET writers begin their output with one


class Garbage(ValueError):
    """The input is not a JSON-RPC message; the text says why."""


class RawMessage(msgspec.Struct, gc=False):
    """A JSON-RPC message whose payloads are not decoded; missing members are ABSENT, except `method`, which is None."""

    jsonrpc: msgspec.Raw = ABSENT
    id: msgspec.Raw = ABSENT
    method: str | None = None
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT

    @property
    def is_question(self) -> bool:
        return self.method is not None and self.id not in NOTHING

    @property
    def is_notification(self) -> bool:
        return self.method is not None and self.id in NOTHING

    @property
    def is_result(self) -> bool:
        """Whether it is an answer with a result object."""
        return (
            self.method is None
            and (self.error is ABSENT or self.error in NOTHING)
            and bytes(self.result).startswith(b"{")
        )

    @property
    def is_empty(self) -> bool:
        """Whether it is neither a request, nor a notification, nor an answer."""
        return self.method is None and not (self.result or self.error)

    def answers(self, request_id: int) -> bool:
        """Whether it answers our request; so does a JSON-RPC error without an id, for a request that was unreadable."""
        if self.method is not None:
            return False
        if self.id in NOTHING:  # servers that do not speak JSON-RPC also answer {"error": …}
            return self.error not in NOTHING and self.jsonrpc not in NOTHING
        return bytes(self.id) == b"%d" % request_id


_one = msgspec.json.Decoder(RawMessage)
decode = _one.decode  # of one well-formed message; payloads are not decoded
_several = msgspec.json.Decoder(list[RawMessage])
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_error = msgspec.json.Decoder(dict[str, Any])


def read_messages(data: bytes) -> list[RawMessage]:
    """The messages in one body, event or line; several if it is a batch. Raises Garbage."""
    if is_deep(data):
        raise Garbage("its JSON is nested too deeply")
    data = _clean(data)
    try:
        return _decoded(data)
    except RecursionError:
        raise Garbage("its JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        whole = without_half_surrogates(data)
        if whole != data:
            return read_messages(whole)
        text = shown(data[:400].decode("utf-8", "replace"))
        raise Garbage(f"it is not a JSON-RPC message ({error}): {text}") from None


def without_half_surrogates(data: bytes) -> bytes:
    """JSON with U+FFFD in place of escapes that are half a pair of surrogates, which most readers refuse."""
    return _HALVES.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], data)


def decode_one(data: bytes) -> RawMessage:
    """The message of a line or body that is well-formed; else ValueError or RecursionError."""
    if not data.isascii():
        data.decode()  # payloads are passed on without being decoded, and must be UTF-8
    if len(data) > MAX_UNEXAMINED and is_deep(data):
        raise RecursionError
    return decode(data)


def embedded_messages(line: bytes) -> tuple[bytes, list[RawMessage]]:
    """The other text and the messages in a line that is not exactly one message."""
    found: list[RawMessage] = []
    for _ in range(EMBEDDED_TRIES):  # no line end between messages: two threads of a server wrote at once
        try:
            text = line.decode("utf-8", "replace")
            _, end = _TEXT.raw_decode(text)
        except (ValueError, RecursionError):
            break
        messages = _messages(text[:end].encode())
        if not messages:
            break
        found += messages
        line = text[end:].strip().encode()
    at = line.find(_MESSAGE_BEGINS, 1)
    for _ in range(EMBEDDED_TRIES):
        if at < 0:
            break
        messages = _messages(line[at:])
        if messages:
            return line[:at], found + messages
        at = line.find(_MESSAGE_BEGINS, at + 1)
    return line, found


def _messages(data: bytes) -> list[RawMessage]:
    """The messages in `data`; none if it may be a log line in JSON."""
    try:
        messages = read_messages(data)
    except Garbage:
        return []
    meant = all(message.jsonrpc is not ABSENT and not message.is_empty for message in messages)
    return messages if meant else []


def unreadable_answer(line: bytes) -> RawMessage | None:
    """An error in place of an answer that cannot be read; None if its request cannot be recognised."""
    members = readable_members(line)
    number = members.get("id")
    answers = "jsonrpc" in members or "result" in members or "error" in members
    if not answers or isinstance(members.get("method"), str) or not isinstance(number, int):
        return None
    error = {"code": INTERNAL_ERROR, "message": f"{UNREADABLE} {shown(line.decode('utf-8', 'replace'))}"}
    return RawMessage(
        jsonrpc=msgspec.Raw(b'"2.0"'), id=msgspec.Raw(b"%d" % number), error=msgspec.Raw(msgspec.json.encode(error))
    )


def opened_params(params: bytes | msgspec.Raw) -> dict[str, Any]:
    """The params of a call with the members decoded that are used here; the others stay bytes."""
    members: dict[str, Any] = _members.decode(params)
    for key in DECODED_PARAMS & members.keys():
        try:
            members[key] = msgspec.json.decode(members[key])
        except (ValueError, RecursionError):  # e.g. a number that no float can hold; the server will refuse it
            pass
    return members


def encode_token(token: object) -> bytes:
    """A progress token as JSON, the key under which its call is found; empty if it cannot be encoded."""
    try:
        return msgspec.json.encode(token)
    except (TypeError, ValueError, RecursionError):  # e.g. half a pair of surrogates
        return b""


def _decoded(data: bytes) -> list[RawMessage]:
    return _several.decode(data) if data.startswith(b"[") else [_one.decode(data)]


def _clean(data: bytes) -> bytes:
    """The data on one line, in valid UTF-8, without a byte order mark."""
    if not data.isascii():
        data = data.removeprefix(_BOM).decode("utf-8", "replace").encode()
    if b"\n" in data or b"\r" in data:
        data = data.strip()
        if b"\n" in data or b"\r" in data:
            try:
                data = msgspec.json.format(data, indent=-1)
            except (msgspec.DecodeError, RecursionError):
                pass  # decoding it will say what is wrong
    return data


def result_in(answer: RawMessage) -> msgspec.Raw:
    """The result of an answer; raises its error as RpcError."""
    if answer.error not in NOTHING:
        raise error_in(answer.error)
    if bytes(memoryview(answer.result)[:1]) != b"{":
        raise RpcError(INTERNAL_ERROR, "The server's answer has neither a result object nor an error object.")
    return answer.result


def error_in(raw: msgspec.Raw) -> RpcError:
    try:
        error = _error.decode(raw if is_decoded(raw) else b"")
    except (msgspec.DecodeError, RecursionError):
        start = bytes(memoryview(raw)[:400]).decode("utf-8", "replace")
        return RpcError(INTERNAL_ERROR, f"The server refused: {shown(start)}")
    return error_of(error, "server")


def params_of(message: RawMessage) -> dict[str, Any]:
    """The params of a notification or question; {} if there are none that can be read."""
    return object_in(message.params) or {}


def is_decoded(raw: msgspec.Raw) -> bool:
    return memoryview(raw).nbytes <= MAX_DECODED_BYTES


def object_in(raw: msgspec.Raw) -> dict[str, Any] | None:
    """The object in the bytes; None if it is not one, cannot be read, or is too long to be decoded."""
    try:
        value = msgspec.json.decode(raw) if is_decoded(raw) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# --- the openings of both eras


def initialize_params(client: ClientInfo) -> dict[str, Any]:
    return {
        "protocolVersion": NEWEST_HANDSHAKE,
        "capabilities": client.capabilities,
        "clientInfo": {"name": client.name or UNNAMED, "version": client.version or UNNAMED},
    }


def initialized_server(result: msgspec.Raw) -> ServerDescription:
    """The server that answered `initialize`; UnusableServer for an unknown version, or an answer without one."""
    answer = object_in(result)
    if answer is None or "protocolVersion" not in answer:
        raise UnusableServer("its answer to initialize names no protocol version")
    version = answer["protocolVersion"]
    if version not in HANDSHAKE_VERSIONS:
        raise UnusableServer(f"it wants to speak version {shown(repr(version))} of MCP, which is unknown here")
    return _server(answer, answer.get("serverInfo"), version)


def discovered_server(result: msgspec.Raw) -> ServerDescription:
    """The server that answered `server/discover`; UnusableServer if it does not offer our modern version."""
    answer = object_in(result) or {}
    versions = answer.get("supportedVersions")
    if not isinstance(versions, list) or MODERN_VERSION not in versions:
        raise UnusableServer(f"it does not offer version {MODERN_VERSION} of MCP")
    return _server(answer, meta_of(answer).get(SERVER_KEY) or answer.get("serverInfo"), MODERN_VERSION)


def _server(answer: dict[str, Any], info: object, version: str) -> ServerDescription:
    instructions = answer.get("instructions")
    return ServerDescription(
        _object(info),
        _object(answer.get("capabilities")),
        instructions if isinstance(instructions, str) else None,
        version,
    )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# --- the envelope of modern requests


def with_envelope(params: Params, peer: Peer) -> dict[str, Any]:
    """The params of a modern request. Members of the client's own `_meta` stay, except for the version."""
    client = peer.client
    meta: dict[str, Any] = {CAPABILITIES_KEY: client.capabilities}
    if client.name is not None:
        meta[CLIENT_KEY] = {"name": client.name, "version": client.version or UNNAMED}
    if peer.log_level is not None:
        meta[LOG_LEVEL_KEY] = peer.log_level
    meta.update(meta_of(params))
    meta[VERSION_KEY] = MODERN_VERSION
    return {**params, "_meta": meta}


def without_envelope(params: Params) -> Params:
    """The params of a request of the handshake era: with the envelope, a server would take it for a modern one."""
    return without_meta(params, ENVELOPE_KEYS)
