"""Opens a conversation with the server at a URL, in an era of MCP that it speaks, over Streamable HTTP.

If the server refuses that as a client's mistake, the older HTTP+SSE is tried, as the specification says.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ...system.log import log
from ..jsonrpc import RpcError, shown
from .connection import AccessDenied, ConnectionLost, UnusableServer
from .http_endpoint import Endpoint, NotMcp, StreamCut
from .http_handshake import HandshakeConnection
from .http_modern import ModernConnection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .connection import Connection, Peer
    from .credentials import Credentials
    from .http_modern import ToolMarks

ANSWER_SECONDS = 30.0  # for the first answer of a server that is still loading


async def connect_http(
    url: str,
    peer: Peer,
    *,
    modern_first: bool,
    seconds: float = ANSWER_SECONDS,
    credentials: Credentials | None = None,
    marks: ToolMarks | None = None,
    this_users: bool = False,
) -> Connection:
    """A connection on behalf of `peer`. UnusableServer if there is no MCP server, ConnectionLost if it does not answer.

    AccessDenied, an UnusableServer, if the server does not accept the credentials.

    `marks`: of the server's tools, which its connections share, so that each knows what the others have read.
    `this_users`: whether to send nothing to a server of another user of this machine, where that is known.
    The eras are tried one after the other: a server that is busy with the first request must not get a second one.
    """
    try:
        endpoint = Endpoint(url, credentials, this_users=this_users)
    except ValueError as error:
        raise UnusableServer(f"{error}.") from None
    try:
        async with asyncio.timeout(seconds):
            return await _open(endpoint, peer, marks, modern_first=modern_first)
    except TimeoutError:
        endpoint.close()
        raise ConnectionLost(f"The server at {endpoint.url} did not answer within {seconds:g} s.", sent=True) from None
    except BaseException:
        endpoint.close()
        raise


async def _open(endpoint: Endpoint, peer: Peer, marks: ToolMarks | None, *, modern_first: bool) -> Connection:
    openings: list[tuple[str, Callable[[Endpoint, Peer], Awaitable[Connection]]]] = [
        ("server/discover", partial(ModernConnection.open, marks=marks)),
        ("initialize", HandshakeConnection.open),
    ]
    refusals: dict[str, UnusableServer] = {}
    for method, opening in openings if modern_first else reversed(openings):
        try:
            return await opening(endpoint, peer)
        except StreamCut as cut:
            raise ConnectionLost(str(cut), sent=True) from None
        except AccessDenied:
            raise
        except (RpcError, NotMcp, UnusableServer) as error:
            refusals[method] = _refusal(endpoint, method, error)
    refusal = refusals["initialize"]
    if refusal.status is not None and 400 <= refusal.status < 500:
        from .http_sse import SseConnection  # few servers still need it

        try:
            return await SseConnection.open(endpoint, peer)
        except (RpcError, NotMcp) as error:
            log.debug(f"{endpoint.url} does not speak HTTP+SSE, either: it {error}")
    raise refusal  # every server is expected to know `initialize`, so its refusal says most


def _refusal(endpoint: Endpoint, method: str, error: Exception) -> UnusableServer:
    where = f"The server at {endpoint.url}"
    if isinstance(error, NotMcp):
        return UnusableServer(f"{where} does not speak MCP: asked for '{method}', it {error}.", status=error.status)
    if isinstance(error, RpcError):
        return UnusableServer(f"{where} refuses '{method}': {shown(error.message)} (code {error.code})")
    return UnusableServer(f"{where} cannot be used: {error}.")
