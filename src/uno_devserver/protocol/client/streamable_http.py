"""Streamable HTTP, the client's end: a conversation with the server at a URL, in an era that it speaks.

`connect_http` returns a connection or raises the reason why there is none: `UnusableServer` for what is no MCP server,
with the HTTP status, and `ConnectionLost` for what does not answer. Nothing is left open then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..jsonrpc import RpcError, shown
from .connection import ConnectionLost, UnusableServer
from .http_endpoint import Endpoint, NotMcp, StreamCut
from .http_handshake import HandshakeConnection
from .http_modern import ModernConnection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .connection import Connection, Peer

ANSWER_SECONDS = 30.0  # a server that still loads something may need that long for its first answer


async def connect_http(
    url: str,
    peer: Peer,
    *,
    modern_first: bool,
    seconds: float = ANSWER_SECONDS,
    headers: Mapping[str, str] | None = None,
) -> Connection:
    """Begin a conversation for `peer`; close it when it is not needed any more.

    One era after the other: a server that is still busy with the first question must not be asked the second.
    """
    try:
        endpoint = Endpoint(url, headers)
    except ValueError as error:
        raise UnusableServer(f"{error}.") from None
    try:
        async with asyncio.timeout(seconds):
            return await _open(endpoint, peer, modern_first=modern_first)
    except TimeoutError:
        endpoint.close()
        raise ConnectionLost(f"The server at {endpoint.url} did not answer within {seconds:g} s.", sent=True) from None
    except BaseException:
        endpoint.close()
        raise


async def _open(endpoint: Endpoint, peer: Peer, *, modern_first: bool) -> Connection:
    if not modern_first:
        try:
            return await _handshake(endpoint, peer)
        except UnusableServer as refused:
            try:
                return await _modern(endpoint, peer)
            except UnusableServer:
                raise refused from None  # every server is expected to know `initialize`: that is what tells
    try:
        return await _modern(endpoint, peer)
    except UnusableServer:
        return await _handshake(endpoint, peer)


async def _handshake(endpoint: Endpoint, peer: Peer) -> Connection:
    try:
        return await HandshakeConnection.open(endpoint, peer)
    except StreamCut as cut:
        raise ConnectionLost(str(cut), sent=True) from None
    except (RpcError, NotMcp, UnusableServer) as error:
        raise _refusal(endpoint, "initialize", error) from error


async def _modern(endpoint: Endpoint, peer: Peer) -> Connection:
    try:
        return await ModernConnection.open(endpoint, peer)
    except (RpcError, NotMcp, UnusableServer) as error:
        raise _refusal(endpoint, "server/discover", error) from error


def _refusal(endpoint: Endpoint, method: str, error: Exception) -> UnusableServer:
    where = f"The server at {endpoint.url}"
    if isinstance(error, NotMcp):
        return UnusableServer(f"{where} is none of MCP: asked for '{method}', it {error}.", status=error.status)
    if isinstance(error, RpcError):
        return UnusableServer(f"{where} refuses '{method}': {shown(error.message)} (code {error.code})")
    return UnusableServer(f"{where} cannot be used: {error}.")
