"""An HTTP/1.1 client for one server. It keeps connections open for the next requests; their number is limited.

Only safe requests are sent twice. `HttpFailure.sent` says whether the server may have seen a request.

Hand-written around httptools: importing httpx takes several times as long as starting Python, and its errors do not
tell whether the request was sent.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...system.tcp_peers import is_another_users_server
from ...system.text import shown_url
from ...system.values import Value
from .client_connection import ClientConnection, HttpFailure, Reply, Taker
from .headers import check_headers, header_lines

if TYPE_CHECKING:
    from .network_settings import HttpProxy

CONNECT_SECONDS = 5.0  # a server of this machine takes microseconds, one elsewhere a few hundred milliseconds
# Shorter than the 5 s after which uvicorn and Node close idle connections, so that none closes when it is used again.
IDLE_SECONDS = 4.0
MAX_IDLE = 512  # about as many as calls may run at once; opening a connection costs as much as three calls
MAX_CONNECTIONS = 1000
NAME_DELAY_SECONDS = 0.25  # until the next address of a name is tried in parallel to the first (RFC 8305)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
DEFAULT_PORTS = {"http": 80, "https": 443}
LOCALHOST = ("127.0.0.1", "::1")  # a server may listen on either one; looking up the name would take time

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[^/?#@:\[\]\s\0-\x1f\x7f]+)(?::(?P<port>\d{1,5}))?(?P<target>[/?][^#\s\0-\x1f\x7f]*)?(?:#.*)?",
    re.IGNORECASE,
)


class Origin(Value):
    """The address of a server."""

    scheme: str
    host: str  # without brackets
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        return self.host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", self.host) is not None

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def split_url(url: str) -> tuple[Origin, str]:
    """The origin and the target of a request to this URL; ValueError if it is not the URL of an HTTP server."""
    found = _URL.fullmatch(url.strip())
    port = int(found["port"]) if found and found["port"] else None
    if found is None or port == 0 or (port or 0) > 65535:
        shown = shown_url(url)
        raise ValueError(f"'{shown}' is not the URL of an HTTP server, which looks like http://<host>:<port>/<path>")
    scheme, host = found["scheme"].lower(), found["host"].strip("[]").lower()
    target = found["target"] or "/"
    return Origin(scheme, _ascii_host(host), port or DEFAULT_PORTS[scheme]), _ascii_target(target)


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Header lines for a request; ValueError for headers that HTTP does not allow."""
    fields = tuple(headers.items())
    check_headers(fields)
    return header_lines(fields)


class HttpClient:
    def __init__(self, origin: Origin, *, this_users: bool = False) -> None:
        """`this_users`: whether to send nothing to a server of another user of this machine, where that is known.

        ValueError if the environment names a proxy that cannot be used.
        """
        self.origin = origin
        self.proxy = named_proxy(origin)
        self.this_users = this_users  # may be set later; connections that were not checked are not used then
        self._loop = asyncio.get_running_loop()
        self._addresses: tuple[str, ...] = LOCALHOST if origin.host == "localhost" else (origin.host,)
        self._host = b"Host: %s\r\n" % origin.authority.encode()
        self._prefix = ""  # before the target of each request
        if self.proxy is not None and origin.scheme == "http":
            self._addresses, self._prefix = (self.proxy.host,), str(origin)
            self._host += self.proxy.authorization
        self._starts: dict[tuple[str, str], bytes] = {}
        self._idle: list[ClientConnection] = []
        self._open: set[ClientConnection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._left = 0  # how often `break_off` was called
        self._closed = False

    async def request(self, method: str, target: str, headers: bytes = b"", body: bytes | None = None) -> Reply:
        """Send a request; return its answer as soon as the head has come. HttpFailure if there is none."""
        length = b"" if body is None else b"Content-Length: %d\r\n" % len(body)
        request = b"".join((self._start(method, target), headers, length, b"\r\n", body or b""))
        left = self._left
        kept = self._kept()
        if kept is not None:
            try:
                return await kept.exchange(request)
            except HttpFailure as failure:
                if failure.began or method not in SAFE_METHODS:
                    raise
        connection = await self._connect()
        if left != self._left:
            connection.close()
            raise HttpFailure("was disconnected before it got the request", sent=False)
        return await connection.exchange(request)

    def send(self, method: str, target: str, headers: bytes, body: bytes, taker: Taker) -> ClientConnection | None:
        """Send over an open connection without waiting; return None, and send nothing, if there is none."""
        kept = self._kept()
        if kept is not None:
            head = b"%b%bContent-Length: %d\r\n\r\n" % (self._start(method, target), headers, len(body))
            kept.send(head + body, taker)
        return kept

    def break_off(self) -> None:
        """Close all connections; requests that wait fail."""
        self._left += 1
        for connection in list(self._open):
            connection.fail("was disconnected before it had answered")

    def close(self) -> None:
        """Close all connections, and refuse new requests."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.break_off()

    def _start(self, method: str, target: str) -> bytes:
        """The request line and the Host header."""
        start = self._starts.get((method, target))
        if start is None:
            start = f"{method} {self._prefix}{target} HTTP/1.1\r\n".encode("ascii") + self._host
            self._starts[(method, target)] = start
        return start

    # --- connections

    def _kept(self) -> ClientConnection | None:
        """The usable idle connection that was used last (the least likely to have been closed); None without one."""
        if not self._idle:
            return None
        oldest = self._loop.time() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            checked = connection.checked or not self.this_users
            if checked and connection.usable and connection.idle_since > oldest and not connection.has_input():
                return connection
            connection.close()
        return None

    async def _connect(self) -> ClientConnection:
        if self._closed or len(self._open) >= MAX_CONNECTIONS:
            why = "was disconnected" if self._closed else f"already has {MAX_CONNECTIONS} connections with us"
            raise HttpFailure(why, sent=False)
        problems: list[OSError] = []
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                for address in self._addresses:
                    try:
                        return await self._connect_to(address)
                    except OSError as error:
                        problems.append(error)
        except TimeoutError:
            raise HttpFailure(f"could not be reached within {CONNECT_SECONDS:g} s", sent=False) from None
        raise HttpFailure(self._unreached(problems[0]), sent=False) from problems[0]

    async def _connect_to(self, address: str) -> ClientConnection:
        secure = self.origin.scheme == "https"
        tls = None
        if secure:
            from .network_settings import tls_context  # imports ssl, which servers of this machine do not need

            tls = tls_context(os.environ)
        if secure and self.proxy is not None:
            transport, connection = await self._loop.create_connection(
                lambda: ClientConnection(self._free, self._open.discard),
                sock=await self.proxy.tunnel(self.origin),
                ssl=tls,
                server_hostname=self.origin.host,
            )
        else:
            transport, connection = await self._loop.create_connection(
                lambda: ClientConnection(self._free, self._open.discard),
                address,
                self.origin.port if self.proxy is None else self.proxy.port,
                ssl=tls,
                server_hostname=self.origin.host if secure else None,
                happy_eyeballs_delay=None if _is_literal(address) else NAME_DELAY_SECONDS,
            )
        if self.this_users and is_another_users_server(transport.get_extra_info("socket")):
            connection.close()
            raise OSError("a program of another user has its port")
        connection.checked = self.this_users
        # Try this address first from now on: another program may use the same port on another address.
        self._addresses = (address, *(other for other in self._addresses if other != address))
        self._open.add(connection)
        return connection

    def _unreached(self, problem: OSError) -> str:
        if distrust := getattr(problem, "verify_message", ""):
            step = "name the file of its certificate authority in SSL_CERT_FILE or NODE_EXTRA_CA_CERTS"
            return f"has a certificate that is not trusted ({distrust}): {step}"
        if self.proxy is not None and self.origin.scheme == "http":
            return f"cannot be reached through the proxy {self.proxy.shown}: {problem.strerror or problem}"
        if isinstance(problem, ConnectionRefusedError):
            return "refuses connections"
        return f"cannot be reached: {problem.strerror or problem}"

    def _free(self, connection: ClientConnection) -> None:
        if len(self._idle) >= MAX_IDLE:
            connection.close()
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(IDLE_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Close the connections that have been idle for too long."""
        oldest = self._loop.time() - IDLE_SECONDS
        for connection in self._idle:
            if connection.idle_since <= oldest:
                connection.close()
        self._idle = [connection for connection in self._idle if connection.idle_since > oldest]
        self._sweeper = self._loop.call_later(IDLE_SECONDS, self._sweep) if self._idle else None


def named_proxy(origin: Origin) -> HttpProxy | None:
    """The HTTP proxy that the environment names for this server; never one for a server of this machine."""
    if origin.is_loopback or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from .network_settings import proxy_for

    return proxy_for(origin, os.environ)


def _is_literal(address: str) -> bool:
    return ":" in address or address.replace(".", "").isdigit()


def _ascii_host(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        raise ValueError(f"'{host}' is not the name of a host") from None


def _ascii_target(target: str) -> str:
    target = target if target.startswith("/") else "/" + target
    return target if target.isascii() else "".join(c if c.isascii() else _escaped(c) for c in target)


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))
