"""What a client says and hears, whatever carries it: both eras' openings, the envelope, and messages out of bytes.

Nothing here knows a transport. Payloads stay the bytes that came (`msgspec.Raw`), on one line and in valid UTF-8, so
that whoever passes them on can write them as they are.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

from ..jsonrpc import INTERNAL_ERROR, RpcError, encode, shown
from ..lines import LineTooLong, readable_members
from ..versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    HANDSHAKE_VERSIONS,
    LOG_LEVEL_KEY,
    MODERN_VERSIONS,
    NEWEST_HANDSHAKE,
    SERVER_KEY,
    VERSION_KEY,
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
UNNAMED = "unknown"  # `initialize` demands a name and a version, which a modern client need not give
# Every escape of a JSON text; those that are half a pair of surrogates are a group. Node writes them where a text was
# cut in the middle of an emoji, and they are no Unicode.
_HALVES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_MESSAGE_BEGINS = b'{"'
_TEXT = json.JSONDecoder()  # it tells where a value ends, in a line that goes on
EMBEDDED_TRIES = 10  # a line of a log may hold any number of brackets
LOOKED_INTO = frozenset({"name", "_meta", "inputResponses", "requestState"})  # of the params of a call
UNREADABLE = "The server has answered, but its answer cannot be read. It begins so:"
TOO_LONG = "The server has answered, but its answer is longer than what is passed on (64 MiB)."
_BOM = b"\xef\xbb\xbf"  # .NET's writers put one before their first line


class Garbage(ValueError):
    """What came is no JSON-RPC message; the message says what is wrong with it."""


class RawMessage(msgspec.Struct, gc=False):
    """A JSON-RPC message whose payloads nobody has looked into; what it did not have is ABSENT."""

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
        """It answers with a result, as a rule an object."""
        return (
            self.method is None
            and (self.error is ABSENT or self.error in NOTHING)
            and bytes(self.result).startswith(b"{")
        )

    @property
    def is_empty(self) -> bool:
        """It neither asks, nor tells, nor answers anything."""
        return self.method is None and not (self.result or self.error)

    def answers(self, request_id: int) -> bool:
        """Whether it answers our request; the refusal of a server that could not even read the id counts, too."""
        if self.method is not None:
            return False
        if self.id in NOTHING:  # many a server that knows no JSON-RPC says {"error": …}, too
            return self.error not in NOTHING and self.jsonrpc not in NOTHING
        return bytes(self.id) == b"%d" % request_id


_one = msgspec.json.Decoder(RawMessage)
decode = _one.decode  # of one message in which there is nothing unusual; it does not look at the payloads
_several = msgspec.json.Decoder(list[RawMessage])
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_error = msgspec.json.Decoder(dict[str, Any])


def read_messages(data: bytes) -> list[RawMessage]:
    """What is in one body, event or line: a message, or several where a server sends batches. Raises Garbage."""
    data = _clean(data)
    try:
        return _decoded(data)
    except RecursionError:
        raise Garbage("its JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        whole = without_half_surrogates(data)
        if whole != data:
            return read_messages(whole)
        raise Garbage(f"it is no JSON-RPC message ({error}): {shown(data[:400].decode('utf-8', 'replace'))}") from None


def without_half_surrogates(data: bytes) -> bytes:
    """JSON in which the escapes that are no Unicode, and that most readers refuse, are replaced."""
    return _HALVES.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], data)


def decode_one(data: bytes) -> RawMessage:
    """The message of a line or body in which there is nothing unusual; else ValueError or RecursionError."""
    if not data.isascii():
        data.decode()  # what is passed on without being decoded has to be UTF-8
    return decode(data)


def embedded_messages(line: bytes) -> tuple[bytes, list[RawMessage]]:
    """A line that is more than one message: the text in it that is none, and the messages."""
    found: list[RawMessage] = []
    for _ in range(EMBEDDED_TRIES):  # messages without a line end between them: two threads of a server wrote at once
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
    """What is certainly meant as messages; a log in JSON is not."""
    try:
        messages = read_messages(data)
    except Garbage:
        return []
    meant = all(message.jsonrpc is not ABSENT and not message.is_empty for message in messages)
    return messages if meant else []


def unreadable_answer(line: bytes | LineTooLong) -> RawMessage | None:
    """An error in place of an answer that cannot be read, if one can see which request it answers."""
    members = line.members if isinstance(line, LineTooLong) else readable_members(line)
    number = members.get("id")
    answers = "jsonrpc" in members or "result" in members or "error" in members
    if not answers or isinstance(members.get("method"), str) or not isinstance(number, int):
        return None
    why = TOO_LONG if isinstance(line, LineTooLong) else f"{UNREADABLE} {shown(line.decode('utf-8', 'replace'))}"
    error = {"code": INTERNAL_ERROR, "message": why}
    return RawMessage(
        jsonrpc=msgspec.Raw(b'"2.0"'), id=msgspec.Raw(b"%d" % number), error=msgspec.Raw(msgspec.json.encode(error))
    )


def opened_params(params: bytes | msgspec.Raw) -> dict[str, Any]:
    """The params of a call, open as far as somebody looks into them; the rest stays the bytes that came."""
    members: dict[str, Any] = _members.decode(params)
    for key in LOOKED_INTO & members.keys():
        try:
            members[key] = msgspec.json.decode(members[key])
        except (ValueError, RecursionError):  # a number that no float can hold: it is the server's to refuse
            pass
    return members


def encode_token(token: object) -> bytes:
    """A progress token as JSON, by which calls are found."""
    try:
        return msgspec.json.encode(token)
    except (TypeError, ValueError, RecursionError):  # half a surrogate pair, for instance
        return b""


def _decoded(data: bytes) -> list[RawMessage]:
    return _several.decode(data) if data.startswith(b"[") else [_one.decode(data)]


def _clean(data: bytes) -> bytes:
    """On one line, in valid UTF-8, without a mark in front."""
    if not data.isascii():
        data = data.removeprefix(_BOM).decode("utf-8", "replace").encode()
    if b"\n" in data or b"\r" in data:
        data = data.strip()
        if b"\n" in data or b"\r" in data:
            try:
                data = msgspec.json.format(data, indent=-1)
            except (msgspec.DecodeError, RecursionError):
                pass  # whoever decodes it says what is wrong with it
    return data


def result_in(answer: RawMessage) -> msgspec.Raw:
    """The result of an answer; its error is raised as RpcError."""
    if answer.error not in NOTHING:
        raise error_in(answer.error)
    if bytes(memoryview(answer.result)[:1]) != b"{":
        raise RpcError(INTERNAL_ERROR, "The server's answer has neither a result object nor an error object.")
    return answer.result


def error_in(raw: msgspec.Raw) -> RpcError:
    try:
        error = _error.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return RpcError(INTERNAL_ERROR, f"The server refused: {shown(bytes(raw).decode('utf-8', 'replace'))}")
    code, message = error.get("code"), error.get("message")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) else "The server refused without saying why.",
        error.get("data"),
    )


def params_of(message: RawMessage) -> dict[str, Any]:
    """The params of a notification or question; {} where there are none that could be understood."""
    return object_in(message.params) or {}


def object_in(raw: msgspec.Raw) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def request_bytes(request_id: int, method: str, params: Params) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def answer_bytes(request_id: msgspec.Raw, said: dict[str, Any] | RpcError) -> bytes:
    """Our answer to a question of the server."""
    if not isinstance(said, RpcError):
        return encode({"jsonrpc": "2.0", "id": request_id, "result": said})
    error: dict[str, Any] = {"code": said.code, "message": said.message}
    if said.data is not None:
        error["data"] = said.data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": error})


# --- how a conversation begins


def initialize_params(client: ClientInfo) -> dict[str, Any]:
    return {
        "protocolVersion": NEWEST_HANDSHAKE,
        "capabilities": client.capabilities,
        "clientInfo": {"name": client.name or UNNAMED, "version": client.version or UNNAMED},
    }


def initialized_server(result: msgspec.Raw) -> ServerDescription:
    """Who answered `initialize`; Refusal for what is no such answer, or a version that we do not speak."""
    said = object_in(result)
    if said is None or "protocolVersion" not in said:
        raise UnusableServer("its answer to initialize names no protocol version")
    version = said["protocolVersion"]
    if version not in HANDSHAKE_VERSIONS:
        raise UnusableServer(f"it wants to speak version {shown(repr(version))} of MCP, which is unknown here")
    return _server(said, _object(said.get("serverInfo")), version)


def discovered_server(result: msgspec.Raw) -> ServerDescription:
    """Who answered `server/discover`; Refusal for one with which we have no modern version in common."""
    said = object_in(result)
    versions = said.get("supportedVersions") if said is not None else None
    if said is None or not isinstance(versions, list) or MODERN_VERSION not in versions:
        raise UnusableServer(f"it does not offer version {MODERN_VERSION} of MCP")
    about = _object(said.get("_meta")).get(SERVER_KEY) or said.get("serverInfo")
    return _server(said, _object(about), MODERN_VERSION)


def _server(said: dict[str, Any], info: dict[str, Any], version: str) -> ServerDescription:
    instructions = said.get("instructions")
    return ServerDescription(
        info, _object(said.get("capabilities")), instructions if isinstance(instructions, str) else None, version
    )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# --- what an era wants in each request


def with_envelope(params: Params, peer: Peer) -> dict[str, Any]:
    """The params of a modern request. What its client has said itself stays; the version is the server's."""
    client = peer.client
    meta: dict[str, Any] = {CAPABILITIES_KEY: client.capabilities}
    if client.name is not None:
        meta[CLIENT_KEY] = {"name": client.name, "version": client.version or UNNAMED}
    if peer.log_level is not None:
        meta[LOG_LEVEL_KEY] = peer.log_level
    meta.update(_object(params.get("_meta")))
    meta[VERSION_KEY] = MODERN_VERSION
    return {**params, "_meta": meta}


def without_envelope(params: Params) -> Params:
    """The params of a handshake-era request: a server would take the keys of the modern envelope for a modern one."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or ENVELOPE_KEYS.isdisjoint(meta):
        return params
    kept = {key: value for key, value in meta.items() if key not in ENVELOPE_KEYS}
    bare = {key: value for key, value in params.items() if key != "_meta"}
    return {**bare, "_meta": kept} if kept else bare
