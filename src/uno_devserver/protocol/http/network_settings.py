"""The network settings of the environment: the HTTP proxy on the way to a server, and the trusted certificates.

Imported only for servers of other machines. Credentials of a proxy appear in no message.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import socket
import sys
from typing import TYPE_CHECKING

from ...system.text import shown_url
from ...system.values import Value

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from .client import Origin

MAX_ANSWER = 64 * 1024  # of a proxy to CONNECT
# Files of certificates that are trusted in addition to those of the system; OpenSSL itself reads SSL_CERT_FILE and
# SSL_CERT_DIR, which replace those of the system.
CERTIFICATE_VARIABLES = ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")

_PROXY = re.compile(
    r"(?:http://)?(?:(?P<user>[^/?#@]*)@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^/?#@:\[\]\s]+)(?::(?P<port>\d{1,5}))?/?",
    re.IGNORECASE,
)


class ProxyRefusal(OSError):
    """The HTTP proxy does not connect us; the text is the end of a sentence."""


class HttpProxy(Value):
    """An HTTP proxy between us and a server."""

    host: str
    port: int
    authorization: bytes  # a header line; empty if the proxy needs none
    shown: str

    async def tunnel(self, origin: Origin) -> socket.socket:
        """A connection to the server through the proxy; ProxyRefusal or another OSError if there is none."""
        loop = asyncio.get_running_loop()
        problem: OSError = ProxyRefusal(f"the proxy {self.shown} has no address")
        for family, kind, protocol, _, address in await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
            connected = socket.socket(family, kind, protocol)
            try:
                connected.setblocking(False)
                await loop.sock_connect(connected, address)
                await self._ask(loop, connected, origin)
                return connected
            except BaseException as error:
                connected.close()
                if not isinstance(error, OSError) or isinstance(error, ProxyRefusal):
                    raise
                # asyncio's text repeats the address; an error of Windows has no number that `strerror` knows.
                of_windows = sys.platform == "win32" or not error.errno
                why = (error.strerror or error) if of_windows else os.strerror(error.errno or 0)
                problem = ProxyRefusal(f"the proxy {self.shown} cannot be reached: {why}")
        raise problem

    async def _ask(self, loop: asyncio.AbstractEventLoop, connected: socket.socket, origin: Origin) -> None:
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        target = f"{host}:{origin.port}".encode()
        request = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (target, target, self.authorization)
        await loop.sock_sendall(connected, request)
        answer = b""
        while b"\r\n\r\n" not in answer:  # the server itself says nothing before our first message
            data = await loop.sock_recv(connected, MAX_ANSWER)
            answer += data
            if not data or len(answer) > MAX_ANSWER:
                raise ProxyRefusal(f"the proxy {self.shown} does not answer as a proxy does")
        found = re.match(rb"HTTP/1\.[01] (\d{3})\b", answer)
        status = int(found[1]) if found else 0
        if status == 407:
            raise ProxyRefusal(refused_credentials(self))
        if not 200 <= status < 300:
            raise ProxyRefusal(f"the proxy {self.shown} does not connect to it (HTTP {status})")


def refused_credentials(proxy: HttpProxy) -> str:
    what = "does not accept the credentials of its URL" if proxy.authorization else "asks for credentials"
    return f"the proxy {proxy.shown} {what} (HTTP 407): write them into the variable, as in http://user:password@host"


def proxy_for(origin: Origin, environ: Mapping[str, str]) -> HttpProxy | None:
    """The proxy that the environment names for this server; None if there is none. ValueError if it is not usable.

    The lower-case form of a variable has precedence, as in curl.
    """
    variable, url = f"{origin.scheme}_proxy", _value(environ, f"{origin.scheme}_proxy")
    if not url:
        variable, url = "all_proxy", _value(environ, "all_proxy")
    if not url or _is_excepted(origin, _value(environ, "no_proxy")):
        return None
    found = _PROXY.fullmatch(url)
    port = int(found["port"] or 80) if found else 0
    if found is None or not 0 < port < 65536:
        raise ValueError(
            f"The proxy '{shown_url(url)}' of {variable.upper()} cannot be used: it must be an HTTP proxy, "
            "as in http://proxy.example:3128"
        )
    host = found["host"].strip("[]")
    shown = f"http://{found['host']}:{port}"
    return HttpProxy(host, port, _authorization(found["user"]), shown)


def _value(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _authorization(user: str | None) -> bytes:
    if not user:
        return b""
    from base64 import b64encode
    from urllib.parse import unquote_to_bytes

    return b"Proxy-Authorization: Basic %b\r\n" % b64encode(unquote_to_bytes(user))


def _is_excepted(origin: Origin, exceptions: str) -> bool:
    """Whether NO_PROXY names the server: by its name or that of its domain, its address, a network, or `*`."""
    for entry in re.split(r"[,\s]+", exceptions.lower()):
        name, _, port = entry.rpartition(":") if re.search(r"[^:]:\d+$", entry) else (entry, "", "")
        if port and int(port) != origin.port:
            continue
        name = name.strip("[]").removeprefix("*.").removeprefix(".")
        if name == "*" or (name and (origin.host == name or origin.host.endswith(f".{name}"))):
            return True
        if "/" in name and _is_in_network(origin.host, name):
            return True
    return False


def _is_in_network(host: str, network: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def tls_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """The context for connections to servers. OSError, whose text names the variable, if a file cannot be read."""
    _complete_asyncio()
    named = ("SSL_CERT_FILE", "SSL_CERT_DIR", *CERTIFICATE_VARIABLES)
    return _context(tuple((name, environ.get(name, "")) for name in named))


@functools.lru_cache(maxsize=8)
def _context(named: tuple[tuple[str, str], ...]) -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context()
    for name, path in named:
        if not path:
            continue
        if not os.path.exists(path):  # OpenSSL would ignore it, and trust nothing
            raise OSError(f"{name} names {path}, which does not exist")
        if name in CERTIFICATE_VARIABLES:
            try:
                context.load_verify_locations(**{"capath" if os.path.isdir(path) else "cafile": path})
            except OSError as error:
                raise OSError(f"the certificates in {path}, which {name} names, cannot be read") from error
    return context


def _complete_asyncio() -> None:
    """Give asyncio the TLS that `proxy/main.py` has kept from it to start sooner."""
    import importlib
    import ssl
    from asyncio import base_events, selector_events, sslproto

    if getattr(sslproto, "ssl", None) is None:
        importlib.reload(sslproto)
        for module in (base_events, selector_events):
            module.ssl = ssl  # type: ignore[attr-defined]
