"""Parses bytes into requests, without sockets. After the first problem nothing more is read.

httptools (llhttp in its strict mode) refuses what request smuggling relies on: two lengths, a length with chunks,
folded headers, bare line feeds. Added here are limits, and the rules of HTTP that a parser leaves to a server.
"""

from __future__ import annotations

import enum
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import NoReturn

import httptools

from ...system.values import Value
from .headers import joined_headers
from .messages import Request

FIELD_COST = 32  # counted for the memory of each header field in addition to its text, as in HTTP/2

_URL = re.compile(rb"https?://(?P<authority>[^/?#]+)(?P<rest>.*)", re.IGNORECASE)


class ReadStage(enum.Enum):
    BETWEEN = "no byte of the next request has come"
    HEAD = "the headers are incomplete"
    BODY = "the headers have come"


class IncomingRequest(Value):
    """A request, with the facts that its connection needs to answer it."""

    request: Request
    keep_alive: bool
    chunks: bool  # whether the client understands chunks, which HTTP/1.0 does not have
    websocket: bool  # whether the client asks for a WebSocket; if it gets one, the following data is not HTTP


class RequestProblem(Value):
    """Why the rest of the connection is not read."""

    status: int
    reason: str


class RequestReader:
    def __init__(
        self,
        max_body: int,
        max_headers: int,
        guard: Callable[[Mapping[str, str], str], str | None] = lambda _headers, _path: None,
    ) -> None:
        """`guard` returns the reason to refuse a request with these headers and path; its body is not kept then."""
        self._max_body = max_body
        self._max_headers = max_headers
        self._guard = guard
        self.complete: deque[IncomingRequest] = deque()
        self.problem: RequestProblem | None = None
        self.wants_continue = False  # whether the client waits for "100 Continue" before it sends the body
        self.stage = ReadStage.BETWEEN
        self._unfinished = 0  # bytes since the last callback, which the parser may be keeping
        self._start_message()
        self._parser = httptools.HttpRequestParser(self)

    def feed(self, data: bytes) -> bytes:
        """Read data; requests appear in `complete`. Returns the data after a request for a WebSocket, else b""."""
        while True:
            self._unfinished += len(data)
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
                if self._asks_for_websocket():
                    self._finish(websocket=True)
                    return data
                # Java's HTTP client asks for HTTP/2 with every request. That can be ignored, but the parser has not
                # looked for a body, so the request is parsed again without that header.
                data = self._without_upgrade() + data
                continue
            except httptools.HttpParserError as error:
                self.problem = self.problem or RequestProblem(400, f"this is not valid HTTP: {error}")
            if self._unfinished > self._max_headers and self.problem is None:
                self.problem = RequestProblem(431, f"the headers are longer than {self._max_headers} bytes")
            return b""

    @property
    def body_size(self) -> int:
        """How much of the body of an incomplete request has come."""
        return len(self._body)

    def refuse(self, problem: RequestProblem) -> None:
        """Read no more, because of this problem."""
        self.problem = problem
        self.drop_body()

    def drop_body(self) -> None:
        self._body = bytearray()

    # --- called by the parser

    def on_message_begin(self) -> None:
        self._start_message()
        self.stage = ReadStage.HEAD

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + FIELD_COST)
        if self.stage is ReadStage.HEAD:  # fields after the head are trailers, which must not change the headers
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        self.stage = ReadStage.BODY
        self._unfinished = 0
        self._headers = joined_headers(self._fields)
        self._method = self._parser.get_method()
        self._version = self._parser.get_http_version()
        self._keep_alive = self._version == "1.1" and self._parser.should_keep_alive()
        self._check_head()

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        self.wants_continue = False  # the client did not wait
        self._body += body
        if len(self._body) > self._max_body:
            self._stop(413, f"the body is longer than {self._max_body} bytes")

    def on_message_complete(self) -> None:
        self.stage = ReadStage.BETWEEN
        self._unfinished = 0
        self.wants_continue = False
        if not self._parser.should_upgrade():  # otherwise `feed` decides whether it is for a WebSocket
            self._finish(websocket=False)

    # ---

    def _start_message(self) -> None:
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._body = bytearray()  # not a list: tiny chunks would take forty times their size
        self._head_size = 0

    def _count(self, size: int) -> None:
        self._head_size += size
        if self._head_size > self._max_headers:
            self._stop(431, f"the headers are longer than {self._max_headers} bytes")

    def _check_head(self) -> None:
        headers = self._headers
        if self._version not in ("1.1", "1.0"):
            self._stop(505, f"HTTP/{self._version} is not spoken here; use HTTP/1.1")
        if self._method == b"CONNECT":
            self._stop(501, "this is no proxy")
        host = headers.get("host")
        if "," in (host or "") or (host is None and self._version == "1.1"):  # a comma means two headers
            self._stop(400, "a request needs exactly one Host header")
        coding = headers.get("transfer-encoding")
        if coding is not None and self._version == "1.0":
            self._stop(400, "HTTP/1.0 has no Transfer-Encoding")
        if coding is not None and coding.lower() != "chunked":
            self._stop(501, f"the Transfer-Encoding {coding!r} is not understood; use chunked, or a Content-Length")
        if int(headers.get("content-length", 0)) > self._max_body:
            self._stop(413, f"the body is longer than {self._max_body} bytes")
        expected = headers.get("expect", "").lower()
        if expected not in ("", "100-continue"):
            self._stop(417, f"cannot do what Expect asks for: {expected!r}")
        self.wants_continue = expected != "" and self._version == "1.1"
        self._path, self._query = self._split_target()
        if (reason := self._guard(headers, self._path)) is not None:
            self._stop(403, reason)

    def _split_target(self) -> tuple[str, str]:
        target = self._target
        if not target.startswith(b"/") and target != b"*":
            # A whole URL, as in requests to a proxy. Its host replaces the Host header, also for the guard.
            url = _URL.fullmatch(target)
            if url is None:
                self._stop(400, "the request target is no path")
            self._headers["host"] = url["authority"].decode("latin-1")
            target = url["rest"]
        path, _, query = target.partition(b"#")[0].partition(b"?")
        return path.decode("latin-1") or "/", query.decode("latin-1")

    def _stop(self, status: int, reason: str) -> NoReturn:
        self.refuse(RequestProblem(status, reason))
        raise ValueError(reason)  # the only way to make the parser stop

    def _finish(self, websocket: bool) -> None:
        request = Request(self._method.decode(), self._path, self._query, self._headers, bytes(self._body))
        self.drop_body()  # else the connection would keep it until the next request
        self.complete.append(IncomingRequest(request, self._keep_alive, self._version == "1.1", websocket))

    def _asks_for_websocket(self) -> bool:
        has_body = "transfer-encoding" in self._headers or self._headers.get("content-length", "0") != "0"
        wish = self._headers.get("upgrade", "").lower()
        return wish == "websocket" and self._method == b"GET" and self._version == "1.1" and not has_body

    def _without_upgrade(self) -> bytes:
        """The head of the present request without its Upgrade header."""
        kept = [b"%s: %s" % (name, value) for name, value in self._fields if name.lower() != b"upgrade"]
        start = b"%s %s HTTP/%s" % (self._method, self._target, self._version.encode())
        return b"\r\n".join([start, *kept, b"", b""])
