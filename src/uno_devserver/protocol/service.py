"""The interface between an endpoint and the service behind it.

An endpoint (Streamable HTTP, or lines) handles connections, sessions and the two eras of MCP (handshake and modern); a
`Service` has tools, resources and prompts, and sees one kind of call for clients of both eras.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from .peer_info import ClientInfo, ServerInfo

if TYPE_CHECKING:
    import msgspec

Params = Mapping[str, Any]
Result = dict[str, Any]


class Session(Protocol):
    """A client for as long as it is connected. Each modern request has a session of its own."""

    @property
    def client(self) -> ClientInfo: ...

    def notify(self, method: str, params: Params | None = None) -> None:
        """Send a notification outside any request; it is dropped if the client does not listen."""

    async def ask(self, method: str, params: Params) -> Result:
        """Ask the client outside any request. RpcError if it refuses, cannot be asked, or is gone."""


class Call(Protocol):
    """A request that waits for its answer."""

    @property
    def id(self) -> int | str: ...
    @property
    def method(self) -> str: ...
    @property
    def params(self) -> Params: ...
    @property
    def session(self) -> Session: ...
    @property
    def log_level(self) -> str | None:
        """The least severe level of log messages that the client wants; None for no log messages."""

    def notify(self, method: str, params: Params | None = None) -> None:
        """Send a notification that belongs to this request (progress, log). Safe from any thread."""

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        """Ask the client (sampling, elicitation, roots). RpcError if it refuses, cannot be asked, or is gone.

        Handshake era: a request on this call's stream. Modern era: the call is answered with `input_required`, and
        this coroutine continues when the client calls again with the answer. There the question gets the name `name`,
        if it is still free in this call; a client may send the answer of that name with its first request.
        """

    def close_stream(self) -> None:
        """End the connection that carries this call's answer; the client resumes with another one."""


class Service(Protocol):
    @property
    def info(self) -> ServerInfo: ...

    @property
    def relays(self) -> bool:
        """Whether it relays to another server, which may use a `requestState` that the endpoint does not know."""

    def capabilities(self) -> dict[str, Any]:
        """The capabilities as in the result of `initialize`."""

    async def answer(self, call: Call) -> Result | msgspec.Raw:
        """Return the result of a request; raise RpcError for an error. Cancelled if the client cancels the request.

        A `msgspec.Raw` is a complete result of the client's era, and is written as it is.
        """

    async def notified(self, session: Session, method: str, params: Params) -> None:
        """Called with each notification that the endpoint does not handle itself (roots/list_changed, …)."""

    async def watched(self, uri: str, wanted: bool) -> None:
        """Called when the first client begins to watch a resource, or the last one stops; RpcError refuses."""

    async def log_level_set(self, session: Session, level: str) -> None:
        """Called when a client of the handshake era has set the level of the log messages that it wants."""

    def opened(self, session: Session) -> None: ...

    def closed(self, session: Session) -> None: ...
