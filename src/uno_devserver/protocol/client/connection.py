"""The seam between speaking MCP as a client and having somebody to speak for.

A connection knows one server and speaks its era; whoever uses it sees one kind of request. Payloads that nobody has to
look into pass as the bytes that came: a result is a `msgspec.Raw`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ...system.values import Value
from ..versions import MODERN_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from ..jsonrpc import RpcError
    from ..peer_info import ClientInfo
    from ..service import Params, Result
    from .raw_messages import RawMessage


class Peer(Protocol):
    """For whom a connection speaks, and who hears what the server says: for one request, or beside all of them."""

    @property
    def client(self) -> ClientInfo: ...

    @property
    def log_level(self) -> str | None:
        """The least severe log message that is wanted; None: none."""

    def notify(self, method: str, params: Params) -> None: ...

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        """The client's answer to a question of the server (sampling, elicitation, roots, ping); RpcError refuses.

        `name` is what the question is called, where the server has given it a name.
        """


class PendingCall(Peer, Protocol):
    """A call that waits for its answer without a task of its own: it hears what comes of it, once."""

    data: bytes  # the line that is sent, on pipes
    sent: bool  # the server may have seen it; only then its outcome is unknown
    progress_token: bytes  # as its client wrote it; empty: it wants no progress
    ticket: object  # by which the connection knows it

    def settle(self, outcome: RawMessage | ConnectionLost | RpcError) -> None:
        """The answer, or why there is none."""

    def turn_over(self, *, more: bool = False) -> None:
        """All that came together with its answer has been settled: what was gathered for the client may be written.

        `more`: other answers may follow in the same turn of the loop.
        """


class ConnectionLost(Exception):
    """The server is gone, or the way to it; there will be no answer.

    `sent` tells whether the server may have seen the request. Only then its outcome is unknown.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class UnusableServer(Exception):
    """What answers there is no MCP server that we can talk to; the message says what it did instead.

    `status` is that of HTTP, where it answered by HTTP: 404 for a server that has no such endpoint.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServerDescription(Value):
    """What a server says of itself."""

    info: Mapping[str, Any]  # its serverInfo, as it came
    capabilities: Mapping[str, Any]
    instructions: str | None
    version: str  # of the protocol, as agreed

    @property
    def modern(self) -> bool:
        return self.version in MODERN_VERSIONS


class Connection(Protocol):
    """One client's conversation with a server."""

    @property
    def server(self) -> ServerDescription: ...

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        """The result as it came.

        RpcError for an error answer, Lost where no answer can come any more. What the server says meanwhile goes to
        `peer`; so do its questions, and the answers to them go back. Cancelling this tells the server. `params` are
        sent as they are, but for what the era demands (`_meta` of a modern request, from `peer`) and the transport
        (a progress token that two clients could both use).

        A modern server's `input_required` is passed on as the result it is where `peer.client` is modern, too; else
        its questions are asked one by one (`peer.ask`), and the call is made again with the answers.
        """

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:
        """Make a `tools/call` without waiting; `params` are the client's own bytes, of the server's era.

        On pipes it goes out with `flush`. False: it cannot be made this way now, and nothing goes out.
        """

    def flush(self) -> None:
        """Write the calls that were sent since the last time."""

    def cancel(self, call: PendingCall) -> None:
        """Tell the server that nobody waits for it; `call` hears nothing any more."""

    async def notify(self, method: str, params: Params) -> None:
        """Tell the server something; what a server of its era does not know (initialized, …) is left out."""

    async def watch(self, uris: frozenset[str]) -> Mapping[str, RpcError]:
        """Hear of changes of all lists, and of these resources, from now on; the peer of the connection is told.

        What the server refuses of them is returned, with its reason.
        """

    async def set_level(self, level: str) -> None:
        """From which level on log messages are wanted that belong to no request."""

    async def close(self) -> None:
        """Say goodbye, within a bound. Requests that still wait are Lost."""
