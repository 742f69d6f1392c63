"""Servers at URLs: their addresses, headers, event streams and stored sign-ins, and the HTTP proxies on the way."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any
from unittest.mock import patch

from support.machine import DATA_HOME
from support.mcp_peers import TestPeer
from uno_devserver.cli import server_login
from uno_devserver.protocol.client.connection import AccessDenied, ConnectionLost, UnusableServer
from uno_devserver.protocol.client.credentials import expanded_headers
from uno_devserver.protocol.client.http_endpoint import Endpoint, NotMcp, StreamCut
from uno_devserver.protocol.client.http_sse import SseConnection
from uno_devserver.protocol.http.client import Origin, encode_headers, split_url
from uno_devserver.protocol.http.client_connection import HttpFailure, Reply
from uno_devserver.protocol.http.network_settings import HttpProxy, ProxyRefusal, proxy_for
from uno_devserver.protocol.http.request_reader import RequestReader
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.proxy.upstream import access_tokens
from uno_devserver.system.text import shown_url

from ..documents import BUILT, RAW, WORDS, document
from ..pieces import Pieces
from ..scratch import folder
from ..target import Target, told
from .answers import LOOP, _asked, _say
from .wire import message_seeds

SECRET = "s3cr3t"  # what no message may have
FAILURES = (NotMcp, UnusableServer, ConnectionLost, AccessDenied, StreamCut, RpcError)


def say_nothing_secret(text: str) -> None:
    assert SECRET not in text, text


# --- addresses --------------------------------------------------------------------------------------------------------


def check_url(data: bytes) -> None:
    """A request that can be sent, and the same server when it is read again; no text shows a password or a query."""
    url = Pieces(data[1:]).joined(URL_WORDS, 20) if data[:1] == BUILT else data[1:].decode("utf-8", "replace")
    if data[:1] == BUILT:
        say_nothing_secret(shown_url(url))
    try:
        origin, target = split_url(url)
    except ValueError as error:
        told(error)
        if data[:1] == BUILT:
            say_nothing_secret(str(error))
        return
    _check_target(origin, target)
    key = access_tokens.server_key(url)
    assert access_tokens.server_key(key) == key
    os.fsencode(access_tokens.record_path(url))
    LOOP.run_until_complete(_check_redirect(url))


def _check_target(origin: Origin, target: str) -> None:
    assert target.isascii()
    assert target.isprintable()
    assert " " not in target
    assert split_url(f"{origin}{target}") == (origin, target)


async def _check_redirect(url: str) -> None:
    """A server cannot lead elsewhere."""
    endpoint = Endpoint("http://127.0.0.1:1/mcp")
    try:
        target = endpoint.target_of(url)
    except ValueError as error:
        told(error)
    else:
        _check_target(Origin("http", "127.0.0.1", 1), target)
    endpoint.close()


URL_WORDS = (
    "http://", "https://", "HTTP://", "ftp://", "://", f"user:{SECRET}@", f"{SECRET}@", f"12/34{SECRET}@", "@", ":",
    "/", "localhost", "127.0.0.1", "[::1]", "[", "]", "mcp.example", "münchen.example", "xn--", ":80", ":0", ":99999",
    ":٣", "/mcp", "/sse", "//", "..", f"?key={SECRET}", "?", f"#{SECRET}", "#", " ", "\t", "\r\n", "\0", "%0d%0a",
    "%", "é", "a" * 70, ".", "\u2028", "\ud800", "\\", "\x1b",
)  # fmt: skip


# --- headers ----------------------------------------------------------------------------------------------------------

ENVIRON = {"A": SECRET, "B": f"{SECRET}\r\nX: 1", "C": "é", "EMPTY": ""}


def check_given_headers(data: bytes) -> None:
    """Lines that another reader takes for these headers, or a sentence that shows no value."""
    given = dict(line.partition(": ")[::2] for line in data.decode("utf-8", "replace").split("\n"))
    try:
        expanded = expanded_headers(given, ENVIRON)
        lines = encode_headers(expanded)
    except ValueError as error:
        told(error)
        say_nothing_secret(str(error))
        return
    assert lines.count(b"\r\n") == lines.count(b"\n") == len(expanded)
    reader = RequestReader(500, 100_000)
    reader.feed(b"GET / HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n")
    if reader.problem is None:
        (one,) = reader.complete
        assert set(one.request.headers) >= {name.lower() for name in expanded}


# --- the network ------------------------------------------------------------------------------------------------------

ORIGIN = Origin("https", "mcp.example", 443)


def check_network_settings(data: bytes) -> None:
    """A proxy that connects, or a sentence; neither shows a password."""
    settings, _, answer = data.partition(b"\n\n")
    lines = settings.decode("utf-8", "replace").split("\n")
    environ = {name: value for name, _, value in (line.partition("=") for line in lines)}
    for origin in (ORIGIN, Origin("http", "10.1.2.3", 8080), Origin("http", "2001:db8::1", 80)):
        try:
            proxy = proxy_for(origin, environ)
        except ValueError as error:
            told(error)
            if settings.count(SECRET.encode()) == settings.count(f"//user:{SECRET}@".encode()):
                say_nothing_secret(str(error))
            continue
        if proxy is not None:
            assert 0 < proxy.port < 65536
            assert proxy.authorization.count(b"\r\n") == bool(proxy.authorization)
            if origin is ORIGIN:
                LOOP.run_until_complete(_connect(proxy, answer))


async def _connect(proxy: HttpProxy, answer: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        try:
            await proxy._ask(asyncio.get_running_loop(), ours, ORIGIN)
        except ProxyRefusal as refusal:
            told(refusal)
        else:
            assert answer.startswith(b"HTTP/1.")
        request = theirs.recv(100_000)
    assert request.startswith(b"CONNECT mcp.example:443 HTTP/1.1\r\n")
    assert request.endswith(b"\r\n\r\n")
    assert request.count(b"\n") == request.count(b"\r\n") <= 4


NETWORK_SEEDS = (
    f"HTTPS_PROXY=http://user:{SECRET}@proxy.example:3128\n\nHTTP/1.1 200 Connection established\r\n\r\n".encode(),
    b"all_proxy=proxy:80\nno_proxy=.example,10.0.0.0/8 *:99\n\nHTTP/1.0 407 No\r\nProxy-Authenticate: Basic\r\n\r\n",
    b"https_proxy=[::1]:1/\nNO_PROXY=2001:db8::/32,[::1]:80\n\nHTTP/1.1 503\r\n",
)


# --- the older transport ----------------------------------------------------------------------------------------------


class _SseServer:
    """In the place of an `HttpClient`: answers with one stream, and takes every message."""

    def __init__(self, parts: list[bytes]) -> None:
        self.origin = Origin("http", "127.0.0.1", 1)
        self.proxy = None
        self._parts: list[bytes] | None = parts
        self._feeding: asyncio.Task[None] | None = None

    async def request(self, method: str, target: str, _headers: bytes, _body: bytes | None = None) -> Reply:
        _check_target(self.origin, target)
        if method == "GET" and self._parts is None:
            raise HttpFailure("is gone", sent=False)
        connection, asked = await _asked()
        if method == "GET":
            _say(connection, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            self._feeding = asyncio.ensure_future(self._feed(connection, self._parts or []))
            self._parts = None
        else:
            _say(connection, b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        return await asked

    async def _feed(self, connection: Any, parts: list[bytes]) -> None:
        for part in parts:
            for _ in range(8):  # so that the answer to the last part is on its way
                await asyncio.sleep(0)
            _say(connection, part)
        await asyncio.sleep(0)
        connection.eof_received()

    def break_off(self) -> None: ...

    close = break_off


def check_sse(data: bytes) -> None:
    """A conversation, or why there is none; each request ends with the stream."""
    LOOP.run_until_complete(_converse(data.split(b"\xff")))


async def _converse(parts: list[bytes]) -> None:
    endpoint = Endpoint("http://127.0.0.1:1/sse")
    server: Any = _SseServer(parts)
    endpoint._http = server
    peer = TestPeer()
    try:
        connection = await asyncio.wait_for(SseConnection.open(endpoint, peer), 4)
    except FAILURES as failure:
        told(failure)
        return
    try:
        bytes(await asyncio.wait_for(connection.request("tools/list", {}, peer), 4))
    except FAILURES as failure:
        told(failure)
    finally:
        await connection.close()


HELLO = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
SSE_SEED = b"event: endpoint\ndata: /messages?id=1\n\n\xffdata: %s\n\n\xffdata: %s\n\n" % (
    json.dumps({"jsonrpc": "2.0", "id": 1, "result": HELLO}).encode(),
    b'{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}',
)


# --- stored sign-ins --------------------------------------------------------------------------------------------------

URL = "https://mcp.example/mcp"
SIGN_IN: dict[str, Any] = {
    "url": URL,
    "issuer": "https://login.example",
    "client": {"client_id": "one", "client_secret": "x"},
    "registered": True,
    "tokens": {"access_token": "a", "refresh_token": "r", "expires_in": 60, "scope": "s"},
    "expires_at": 2e9,
    "authorization_server": {"issuer": "https://login.example"},
    "resource": None,
    "keyring": False,
}
SIGN_IN_NAMES = (*SIGN_IN, *SIGN_IN["client"], *SIGN_IN["tokens"])
SIGN_IN_VALUES = tuple(json.dumps(value) for value in (*SIGN_IN.values(), "a b", "é", 253402300799, -1, 1e300))


def check_sign_in(data: bytes) -> None:
    """A damaged file is as good as none; of a sound one, a header can carry the token, and it can be written again."""
    text = document(data[1:], SIGN_IN_NAMES, SIGN_IN_VALUES)
    if data[:1] == BUILT:  # one member of a sound record is another one
        text = _changed(Pieces(data[1:]))
    with patch.dict(os.environ, {DATA_HOME: str(folder())}):
        path = Path(access_tokens.record_path(URL))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        access_tokens._told.add(str(path))
        found = access_tokens.read_sign_in(URL)
        json.dumps(server_login.list_sign_ins().data)
        if found is None:
            found = access_tokens.SignIn(**SIGN_IN)
        assert found.url == URL
        assert found.access_token is None or encode_headers({"Authorization": f"Bearer {found.access_token}"})
        assert found.is_due(0.0) <= found.is_due(1e12)
        assert found.scope is None or isinstance(found.scope, str)
        if not found.keyring and _is_finite(found):
            access_tokens.write_sign_in(found)
            assert access_tokens.read_sign_in(URL) == found


def _is_finite(record: access_tokens.SignIn) -> bool:
    """Whether JSON has a form for each number; a member that nobody reads may be any."""
    try:
        json.dumps(record.__dict__, allow_nan=False)
    except ValueError:
        return False
    return True


def _changed(pieces: Pieces) -> bytes:
    record = {**SIGN_IN, "client": dict(SIGN_IN["client"]), "tokens": dict(SIGN_IN["tokens"])}
    within = pieces.choice((record, record["client"], record["tokens"]))
    within[pieces.choice(SIGN_IN_NAMES)] = None
    text = json.dumps(record)
    return text.replace("null", pieces.choice(SIGN_IN_VALUES + ODD_VALUES), 1).encode("utf-8", "surrogatepass")


ODD_VALUES = ("null", "1e999", "NaN", "1" * 5000, '"\\ud800"', "[[]]", '""', "true", "-0", '"\\u0000"', '{"a": 1}')

TARGETS = (
    Target(
        "urls",
        "a request that can be sent to the same server, or a sentence without a secret",
        check_url,
        lambda: [
            RAW + b"https://user:pass@mcp.example:8443/mcp?a=b#c",
            RAW + b"http://[::1]:1/sse",
            RAW + "http://münchen.example/é".encode(),
            *(BUILT + bytes(range(start, start + 12)) for start in range(0, 40, 8)),
            BUILT + bytes([0, 5, 11, 23, 28, 32]),
        ],
        tuple(word for word in URL_WORDS if word.isprintable()),
        300,
    ),
    Target(
        "headers",
        "lines that another reader takes for these headers, or a sentence that shows no value",
        check_given_headers,
        lambda: [b"Authorization: Bearer ${A}\nX-Key: ${C}", b"Host: a\nX: ${NONE}", b"X: ${B}\nx: y", b": "],
        ("${A}", "${B}", "${C}", "${EMPTY}", "${", "}", ": ", "\n", "\r", "Authorization", "Content-Length", "\0"),
        300,
    ),
    Target(
        "network-settings",
        "a proxy that connects, or a sentence that shows no password",
        check_network_settings,
        lambda: NETWORK_SEEDS,
        (
            *("HTTPS_PROXY=", "http_proxy=", "all_proxy=", "no_proxy=", f"user:{SECRET}@", "http://", "[::1]", ":3128"),
            *("/8", "*", ".example", "\n\n", "HTTP/1.1 200", "HTTP/1.1 407", "\r\n\r\n", "%0d%0a"),
        ),
        500,
    ),
    Target(
        "older-transport",
        "a conversation, or why there is none; each request ends with the stream",
        check_sse,
        lambda: [
            SSE_SEED,
            SSE_SEED.replace(b"/messages", b"http://127.0.0.1:1/x"),
            SSE_SEED.replace(b"/messages", b"https://elsewhere.example/x"),
            *(SSE_SEED + b"\xffdata: " + seed + b"\n\n" for seed in message_seeds()),
        ],
        ("event: endpoint\n", "data: ", "\n\n", b"\xff", '"id":1', '"id":2', '"result":{}', '"error":', '"method":'),
        1000,
    ),
    Target(
        "sign-ins",
        "a damaged one is as good as none; a header can carry its token",
        check_sign_in,
        lambda: [
            RAW + RAW + json.dumps(SIGN_IN).encode(),
            RAW + BUILT + bytes(range(60)),
            *(
                BUILT + bytes([kind, name, value])
                for kind, name, value in ((0, 5, 3), (2, 12, 2), (1, 9, 5), (2, 11, 9))
            ),
        ],
        (*WORDS, *(f'"{name}"' for name in SIGN_IN_NAMES)),
    ),
)
