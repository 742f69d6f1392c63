"""The seam between speaking MCP and having something to say.

An endpoint (Streamable HTTP, or lines) owns connections, sessions and eras; a `Service` owns tools, resources and
prompts. A service sees one kind of call, whatever the era of the client.
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
    """A client's connection, as long as it lasts; a modern request has one of its own."""

    @property
    def client(self) -> ClientInfo: ...

    def notify(self, method: str, params: Params | None = None) -> None:
        """Send a notification outside any request; dropped when the client does not listen."""

    async def ask(self, method: str, params: Params) -> Result:
        """Ask the client outside any request, and wait. RpcError when it refuses, cannot be asked, or went away."""


class Call(Protocol):
    """One request that waits for its answer."""

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
        """The least severe level the client wants to see, or None for none (modern: from the request)."""

    def notify(self, method: str, params: Params | None = None) -> None:
        """Send a notification that belongs to this request (progress, log). Safe from any thread."""

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        """Ask the client (sampling, elicitation, roots) and wait.

        Handshake era: a request on this call's stream. Modern era: the call's result is `input_required`, this
        coroutine stays parked, and goes on when the client calls again with the answer. There the question is called
        `name`, if no other of this call is, and a client that knows the name may bring the answer with its first
        request. RpcError when the client refuses, lacks the capability, or went away.
        """

    def close_stream(self) -> None:
        """End the connection that carries this call's answer; the client resumes it by its last event id."""


class Service(Protocol):
    @property
    def info(self) -> ServerInfo: ...

    @property
    def relays(self) -> bool:
        """Whether there is a server behind it: a `requestState` that the endpoint does not know may be that one's."""

    def capabilities(self) -> dict[str, Any]:
        """As in the result of `initialize`."""

    async def answer(self, call: Call) -> Result | msgspec.Raw:
        """The result of a request; RpcError for an error. Cancelled when the client cancels.

        A `msgspec.Raw` is a complete result of the client's era, and is written as it is.
        """

    async def notified(self, session: Session, method: str, params: Params) -> None:
        """A notification that the endpoint does not handle itself (roots/list_changed, …)."""

    async def watched(self, uri: str, wanted: bool) -> None:
        """A first client begins to watch a resource, or the last one ceased; RpcError refuses."""

    async def log_level_set(self, session: Session, level: str) -> None:
        """A handshake-era client has chosen the level of the log messages that it wants."""

    def opened(self, session: Session) -> None: ...

    def closed(self, session: Session) -> None: ...
