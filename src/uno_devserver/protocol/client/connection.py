"""The seam between a connection to a server and its users.

A `Connection` speaks the era of its server; its users see one kind of request. Payloads are passed on as bytes: a
result is a `msgspec.Raw`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ...system.values import Value
from ..jsonrpc import INTERNAL_ERROR, RpcError
from ..versions import MODERN_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from ..peer_info import ClientInfo
    from ..service import Params, Result
    from .raw_messages import RawMessage


class Peer(Protocol):
    """The client on whose behalf a connection speaks: for one request, or for messages that belong to none."""

    @property
    def client(self) -> ClientInfo: ...

    @property
    def log_level(self) -> str | None:
        """The least severe level of log messages that the client wants; None for no log messages."""

    def notify(self, method: str, params: Params) -> None: ...

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        """The client's answer to a question of the server (sampling, elicitation, roots, ping); RpcError refuses.

        `name` is the name that a modern server has given the question.
        """


class PendingCall(Peer, Protocol):
    """A call that waits for its answer without a task of its own."""

    data: bytes  # the line that is sent, on pipes
    sent: bool  # whether the server may have seen it; then its outcome is unknown if no answer comes
    progress_token: bytes  # as its client wrote it; empty if no progress is wanted
    ticket: object  # the connection's key for it

    def settle(self, outcome: RawMessage | ConnectionLost | AccessDenied | RpcError) -> None:
        """Called once, with the answer or the reason why there is none."""

    def turn_over(self, *, more: bool = False) -> None:
        """Called when all answers that came together are settled: what was collected for the client can be written.

        With `more`, other answers may follow in the same turn of the loop.
        """


class ConnectionLost(Exception):
    """The server, or the connection to it, is gone; there will be no answer.

    `sent` says whether the server may have seen the request; then the outcome of the request is unknown.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


MAX_ANSWER_MIB = 64  # over any transport; a screenshot has a few, a large file 16
TOO_LONG = f"is longer than {MAX_ANSWER_MIB} MiB, which is the most that is passed on"
ASK_FOR_LESS = "Ask for less at once, such as a part or a page, or have the server write a file and return its path."


class AnswerTooLong(RpcError):
    """The server has answered, and its answer was too long to be kept."""

    def __init__(self) -> None:
        super().__init__(INTERNAL_ERROR, f"The server has answered, but its answer {TOO_LONG}. {ASK_FOR_LESS}")


class UnusableServer(Exception):
    """The other side is not an MCP server that we can talk to; the message says what it did instead.

    `status` is the status of its HTTP answer, if there was one, e.g. 404 from a server without such an endpoint.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Denial(Value):
    status: int  # 401 or 403
    url: str  # of the server, without secrets
    fixed: bool = False  # whether the user gave an `Authorization` header


class AccessDenied(UnusableServer):
    """The server answered 401, also after the credentials were renewed, or 403. It has not run the request."""

    def __init__(self, message: str, denial: Denial) -> None:
        super().__init__(message, status=denial.status)
        self.denial = denial


STDIO, STREAMABLE_HTTP, HTTP_SSE = "stdio", "Streamable HTTP", "HTTP+SSE"  # the transports of MCP


class ServerDescription(Value):
    """How a server describes itself."""

    info: Mapping[str, Any]  # its serverInfo, unchanged
    capabilities: Mapping[str, Any]
    instructions: str | None
    version: str  # the agreed version of MCP
    transport: str = STREAMABLE_HTTP

    @property
    def modern(self) -> bool:
        return self.version in MODERN_VERSIONS


class Connection(Protocol):
    """A conversation with a server on behalf of one client."""

    @property
    def server(self) -> ServerDescription: ...

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        """Send a request and return its result. RpcError for an error; ConnectionLost if there will be no answer.

        Notifications and questions that come meanwhile go to `peer`. Cancelling this coroutine cancels the request.
        `params` are sent as they are, except for the `_meta` of a modern request, which describes `peer`, and a
        progress token that two clients could both use.

        If a modern server answers `input_required`, a modern `peer.client` gets that as the result. For others the
        questions go to `peer.ask`, and the call is repeated with the answers.
        """

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:
        """Make a `tools/call` without waiting; `params` are the client's own bytes, of the server's era.

        On pipes, `flush` writes it. Returns False, and sends nothing, if the call cannot be made this way now.
        """

    def flush(self) -> None:
        """Write the calls that `send` has queued."""

    def cancel(self, call: PendingCall) -> None:
        """Cancel a call that was made with `send`; its `settle` is not called."""

    async def notify(self, method: str, params: Params) -> None:
        """Send a notification; it is dropped if the server's era does not have it."""

    async def watch(self, uris: frozenset[str]) -> Mapping[str, RpcError]:
        """Have the connection's peer notified of changes of all lists and of these resources from now on.

        Returns the resources that the server refuses, with its errors.
        """

    async def set_level(self, level: str) -> None:
        """Set the least severe level of log messages that belong to no request."""

    async def close(self) -> None:
        """End the conversation, in bounded time. Requests that still wait fail with ConnectionLost."""
