"""What programs, pages and users say to a Host, a page's server, and the command line."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from typing import Any, Literal

from msgspec import Struct

from protocol.conversations import Client as HttpClient
from protocol.conversations import Connection, ScriptedService, endpoint_of, text
from protocol.line_clients import LineClient
from support.assemblies import SERVER_PROCESSOR, TARGET_FRAMEWORK, TARGET_PLATFORM, assembly
from uno_devserver.cli.commands import COMMANDS, GLOBAL_OPTIONS
from uno_devserver.cli.parse import parse as parse_command_line
from uno_devserver.host import flags
from uno_devserver.host.addins import Context
from uno_devserver.host.addins.signatures import BadArguments, signature_of
from uno_devserver.host.addins.testing import Client, InProcessCall
from uno_devserver.host.assemblies import NotAnAssembly
from uno_devserver.host.assemblies import parse_assembly as parse_assembly
from uno_devserver.host.remote_control.file_edits import FileEdit, decode_text, encode_text, plan_edits
from uno_devserver.inspector.access import has_token, page_refusal
from uno_devserver.issues import UserError
from uno_devserver.protocol.http.guard import own_names, refusal
from uno_devserver.protocol.http.messages import Request, Response, Streaming
from uno_devserver.protocol.jsonrpc import InvalidMessage, RpcRequest, read
from uno_devserver.protocol.service import Call, Result
from uno_devserver.protocol.versions import HANDSHAKE_VERSIONS, MODERN_VERSIONS

from ..documents import BUILT, RAW, WORDS, document
from ..pieces import Pieces
from ..target import Target, told
from .wire import METHODS, NAMES, VALUES

# --- assemblies -------------------------------------------------------------------------------------------------------


def check_assembly(data: bytes) -> None:
    """What it is, or why it is none."""
    try:
        found = parse_assembly(data)
    except NotAnAssembly as problem:
        told(problem)
        return
    assert len(found.mvid) == 36
    assert found.version.count(".") == 3
    assert all(isinstance(name, str) for name in found.processors)


def assembly_seeds() -> list[bytes]:
    attributes = [
        (TARGET_FRAMEWORK, ".NETCoreApp,Version=v10.0"),
        (TARGET_PLATFORM, "ios26.0"),
        (SERVER_PROCESSOR, "A.B, C"),
    ]
    return [
        assembly(attributes),
        assembly(attributes, wide=True, pe32_plus=True),
        assembly(attributes, own_attribute_types=True),
        assembly(manifest=False),
    ]


# --- arguments of tools -----------------------------------------------------------------------------------------------


class Point(Struct):
    x: int
    y: int = 0


def closed(
    count: int, at: Point | None = None, mode: Literal["a"] = "a", names: tuple[str, ...] = (), size: float = 1
) -> None:
    """A tool with arguments of several types."""


def open_(count: int, **others: Any) -> None:
    """A tool that takes more than it names."""


SIGNATURES = tuple(signature_of(function, globals()) for function in (closed, open_))
CONTEXT = Context(InProcessCall(Client(workspace="/"), "tools/call", {}), "fuzz")


def check_arguments(data: bytes) -> None:
    """Arguments of the declared types, or a sentence for the caller."""
    strict = data[:1] < b"\x80"
    try:
        arguments = json.loads(
            document(data[1:], ("count", "at", "mode", "names", "size", "x", "y", "other"), ('"a"', '"3"', '{"x": 1}'))
        )
    except (ValueError, RecursionError):
        return
    for signature in SIGNATURES:
        try:
            bound = signature.bind(arguments, CONTEXT, strict=strict)
        except BadArguments as wrong:
            told(wrong, "rgument")
            continue
        assert bound.keys() == arguments.keys()
        assert type(bound["count"]) is int


# --- edits of files by an app -----------------------------------------------------------------------------------------


def check_text_file(data: bytes) -> None:
    """A file that is read and written again has the same bytes; one that is changed stays in its encoding."""
    content, _, rest = data.partition(b"\xff\x00\xff")
    try:
        file = decode_text(content)
    except UnicodeDecodeError:
        return  # it is said to be in an encoding that it is not in
    assert encode_text(file) == content
    old, _, new = rest.decode("utf-8", "replace").partition("|")
    results, after = plan_edits([FileEdit("a", old, new)], file)
    assert len(results) == 1
    if after is None or after == file:
        return
    try:
        written = encode_text(after)
    except ValueError as problem:  # the new text has no form in the file's encoding, or would make it another one
        told(problem)
        return
    again = decode_text(written)
    assert again.encoding == after.encoding
    assert encode_text(again) == written
    if not re.search("[\ud800-\udfff]", after.text):  # bytes that were no text may be some when they come together
        assert again.text == (after.text if after.mark else after.text.removeprefix("\ufeff"))


# --- who may ask ------------------------------------------------------------------------------------------------------

HOSTS = (
    "localhost",
    "127.0.0.1",
    "[::1]",
    "LOCALHOST.",
    "evil.example",
    "a.localhost",
    "127.0.0.1.evil.example",
    "0x7f.1",
    "[::ffff:127.0.0.1]",
)
HEADER_NAMES = ("host", "origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "authorization")
HEADER_WORDS = (
    *HOSTS, ":5000", "http://", "https://", "null", "@", "/", "\\", "#", "?", ",", " ", "\t", "same-origin", "none",
    "cross-site", "navigate", "document", "Bearer ", "secret-token", "é", ":", "[", "]", "%", "..", "127.1",
    "2130706433",
)  # fmt: skip
TRUSTED = frozenset({"localhost", "127.0.0.1", "[::1]"})


def check_access(data: bytes) -> None:
    """Only names and addresses of this machine are accepted, no foreign site, and no request without the token.

    Any site may link to the page of the inspector, which is protected by its token.
    """
    pieces = Pieces(data)
    headers: dict[str, str] = {}
    for name in HEADER_NAMES:
        if pieces.flag():
            headers[name] = "".join(pieces.choice(HEADER_WORDS) for _ in range(pieces.number(5)))
    rest = pieces.rest().decode("latin-1")
    query, _, path = rest.partition("\n")
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none").lower()
    served = refusal(headers, "/", ("127.0.0.1", 0), serves_pages=lambda _addresses, _port: True) is None
    shown = page_refusal(headers) is None
    if served or shown:
        assert not _is_foreign(headers["host"])
        assert not set(headers["host"]) & set("@/\\#?, ")
    if served:
        assert not _is_foreign((origin or "").lower().removeprefix("http://").removeprefix("https://"))
        assert origin is not None or site != "cross-site"
    if shown:
        assert origin is None or origin.lower() == f"http://{headers['host'].lower()}"
        assert site in ("same-origin", "none") or headers["sec-fetch-dest"] == "document"
    if has_token(Request("GET", path or "/", query, headers, b""), "secret-token"):
        assert "secret-token" in (headers.get("authorization", "") + query + path)
    own_names(rest[:60], None)


def _is_foreign(authority: str) -> bool:
    name = re.sub(r":\d*$", "", authority.lower()).removesuffix(".")
    return "evil" in name and not name.endswith(".localhost")  # names below that always mean this machine


# --- command lines ----------------------------------------------------------------------------------------------------

WORDS_OF_COMMANDS = tuple(
    dict.fromkeys(
        [
            *(word for command in COMMANDS for word in command.words),
            *(name for option in GLOBAL_OPTIONS for name in option.names),
            *(name for command in COMMANDS for option in command.options for name in option.names),
            *(
                "--mcp-app",
                "--",
                "-",
                "",
                "=",
                "--=",
                "value",
                "5000",
                "-5",
                "--x=y",
                "/httpPort",
                "--httpPort",
                "\ud800",
                "\n",
                "é",
            ),
        ]
    )
)


def check_command_line(data: bytes) -> None:
    """An invocation of a known command, or a refusal with exit code 2 and a next step; the Host's flags likewise."""
    pieces = Pieces(data)
    words = [pieces.choice(WORDS_OF_COMMANDS) for _ in range(pieces.number(9))]
    words += pieces.rest().decode("utf-8", "replace").split("\n")[:6]
    try:
        invocation = parse_command_line(words)
        assert invocation.command is None or invocation.command in COMMANDS
    except UserError as error:
        told(error)
        _check_usage(error)
    try:
        read_ = flags.read_flags(words, {"UNO_DEVSERVER_HOST_httpPort": words[-1] if words else ""})
        assert read_.port is None or 0 <= read_.port < 65536
    except UserError as error:
        told(error)


def _check_usage(error: UserError) -> None:
    assert error.exit_code == 2
    assert error.next_step


# --- an MCP endpoint --------------------------------------------------------------------------------------------------


async def _speak(call: Call) -> Result:
    call.notify("notifications/progress", {"progress": 1})
    return text("spoken")


async def _ask(call: Call) -> Result:
    return await call.ask("elicitation/create", {})


LOOP = asyncio.new_event_loop()
STATUSES = {200, 202, 400, 404, 405, 406, 415}
VALUE_WORDS = (
    *VALUES,
    *(json.dumps(version) for version in (*HANDSHAKE_VERSIONS, *MODERN_VERSIONS)),
    '"speak"',
    '"ask"',
)
HEADER_VALUES = (
    "application/json, text/event-stream", "*/*", "application/json", "{session}", "", "1-0", "s-0", "speak",
    "=?base64?c3BlYWs=?=", "é", *HANDSHAKE_VERSIONS, *MODERN_VERSIONS, *METHODS,
)  # fmt: skip
SENT_HEADERS = (
    "accept",
    "content-type",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "last-event-id",
    "mcp-session-id",
)


def check_endpoint(data: bytes) -> None:
    """Streamable HTTP: every request gets a status that the protocol has, and a body that makes sense."""
    LOOP.run_until_complete(_converse(Pieces(data[:12]), document(data[12:], NAMES, VALUE_WORDS)))


async def _converse(pieces: Pieces, body: bytes) -> None:
    service = ScriptedService(speak=_speak, ask=_ask)
    client = HttpClient(endpoint_of(service, question_seconds=0.001, plain_answer_seconds=0.001))
    await client.initialize(pieces.choice(HANDSHAKE_VERSIONS), elicitation={})
    headers = {"accept": HEADER_VALUES[0], "content-type": "application/json"}
    for name in SENT_HEADERS:
        if pieces.number(3) == 0:
            headers[name] = pieces.choice(HEADER_VALUES).replace("{session}", client.headers["mcp-session-id"])
    method = pieces.choice(("POST", "POST", "POST", "GET", "DELETE", "PUT"))
    answer = await client.endpoint.handle(Request(method, "/mcp", "", headers, body))
    connection = Connection(answer) if isinstance(answer, Streaming) else None
    if isinstance(answer, Response):
        assert answer.status in STATUSES
        said: Any = json.loads(answer.body) if answer.body else []
        for message in said if isinstance(said, list) else [said]:
            assert message["jsonrpc"] == "2.0"
            assert ("error" in message) != ("result" in message)
    await client.endpoint.close()
    if connection is not None:
        await connection.end()


def check_line_endpoint(data: bytes) -> None:
    """MCP on lines: each request gets one answer."""
    LOOP.run_until_complete(_converse_on_lines(Pieces(data[:1]), document(data[1:], NAMES, VALUE_WORDS)))


async def _converse_on_lines(pieces: Pieces, body: bytes) -> None:
    try:
        said = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return
    message = read(said)
    if isinstance(message, InvalidMessage):
        return  # the front does that
    client = LineClient(ScriptedService(speak=_speak, ask=_ask), question_seconds=0.001)
    await client.initialize(pieces.choice(HANDSHAKE_VERSIONS), elicitation={})
    client.endpoint.take(message)
    await asyncio.sleep(0)
    await client.endpoint.close()
    answered = Counter(
        repr(message["id"]) for message in client.rest() if isinstance(message, dict) and "method" not in message
    )
    if isinstance(message, RpcRequest):
        # Half a surrogate pair has no form in UTF-8, so an id with one cannot come back as it was.
        assert answered[repr(message.id)] == 1 or not str(message.id).isprintable()


def _refuse(word: str) -> None:
    raise ValueError(word)


def endpoint_seeds() -> list[bytes]:
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "speak", "arguments": {}, "uri": "r://"}}
        for method in METHODS
    ]
    odd = {"jsonrpc": "2.0", "id": "\ud800", "method": "ping"}
    return [RAW + json.dumps(call).encode() for call in (*calls, odd)] + [BUILT + bytes(range(60))]


TARGETS = (
    Target(
        "assemblies",
        "what it is, or why it is none",
        check_assembly,
        assembly_seeds,
        ("BSJB", "#~", "#Strings", "#Blob", "#GUID", "MZ", "PE"),
        4096,
    ),
    Target(
        "arguments",
        "arguments of the declared types, or a sentence",
        check_arguments,
        lambda: [
            b"\0" + RAW + b'{"count": 1, "at": {"x": 2}}',
            b"\xff" + RAW + b'{"count": "1", "size": "2.5"}',
            b"\0" + BUILT + bytes(range(40)),
        ],
        WORDS,
    ),
    Target(
        "file-edits",
        "the same bytes when read and written again, the same encoding when changed",
        check_text_file,
        lambda: [
            "a\r\nb".encode("utf-16") + b"\xff\x00\xffa|c",
            b"\xef\xbb\xbfx\ny\xff\x00\xffx|z\n",
            "é".encode("utf-32") + b"\xff\x00\xff\xc3\xa9|",
            b"\xff\xfe\x00\xd8\xff\x00\xffx|y",
            b"a\xffb\xff\x00\xffb|c",
            b"\xef\xef\xbbu\xbb\xff\x00\xffu",
            b"u\xff\xfea\xff\x00\xffu",
        ],
        (b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\x00\x00", b"\xef\xbb\xbf", b"\xff\x00\xff", "|", "\r\n"),
        400,
    ),
    Target(
        "access",
        "no foreign name, site or token gets in",
        check_access,
        lambda: [
            bytes([1, 1, 0, 1, 2, 10, 0, 0, 0, 0]) + b"token=secret-token\n/",
            bytes(range(60)),
            bytes([1, 2, 1, 9, 1, 3, 10, 1, 9]),
            bytes([1, 1, 8, 1, 2, 10, 8]),
            bytes([1, 1, 0, 0, 1, 1, 23, 1, 1, 24, 1, 1, 25]),
        ],
        ("token=secret-token", "/mcp/secret-token", "secret-tokem", "&"),
        300,
    ),
    Target(
        "command-line",
        "a known command, or exit code 2 and a next step",
        check_command_line,
        lambda: [bytes([4, 1, 2, 3, 4]) + b"a\n--b=c", bytes(range(9))],
        tuple(word for word in WORDS_OF_COMMANDS if word and "\ud800" not in word),
        300,
    ),
    Target(
        "mcp-http",
        "a status that the protocol has, a body that makes sense",
        check_endpoint,
        lambda: [bytes([3, *([1] * 11)]) + seed for seed in endpoint_seeds()],
        (*WORDS, *VALUE_WORDS),
        800,
    ),
    Target(
        "mcp-lines",
        "each request gets one answer",
        check_line_endpoint,
        lambda: [b"\0" + seed for seed in endpoint_seeds()],
        (*WORDS, *VALUE_WORDS),
        800,
    ),
)
