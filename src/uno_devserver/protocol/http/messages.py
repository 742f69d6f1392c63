"""The arguments and results of an HTTP handler: it gets a request, and returns one of three kinds of answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ...system.values import Value

if TYPE_CHECKING:
    import asyncio

    from .transport import UsedMessage

Headers = tuple[tuple[str, str], ...]


class Request(Value):
    """A request with its whole body."""

    method: str
    path: str  # as sent, still percent-encoded, without the query
    query: str
    headers: Mapping[str, str]  # names in lower case; repeated ones joined by ", "
    body: bytes
    used: UsedMessage | None = None  # None if the body is small

    def keep_until(self, done: asyncio.Future[Any]) -> None:
        """Count the memory of the body until then, even if that is after the answer."""
        if self.used is not None:
            self.used.keep_until(done)


class Response(Value):
    """A complete answer."""

    status: int
    body: bytes = b""
    headers: Headers = ()


class Sink(Protocol):
    async def write(self, data: bytes) -> None:
        """Send a chunk; waits while the client reads slowly. ConnectionError if the client is gone."""


class Streaming(Value):
    """An answer that is written in chunks. `run` is cancelled if the client leaves or the server stops."""

    status: int
    headers: Headers
    run: Callable[[Sink], Awaitable[None]]


class WebSocket(Protocol):
    async def receive(self) -> bytes | None:
        """Wait for the next message, text as UTF-8; None if the other side has closed the WebSocket or is gone.

        The memory of the message counts until the next one is asked for.
        """

    def keep(self, size: int) -> None:
        """Count the memory of a received message until `handled`, although the next one is asked for before."""

    def handled(self, size: int) -> None:
        """Report that a message of `size` bytes is not kept any more."""

    async def send(self, data: bytes) -> None:
        """Send a binary message; ConnectionError if the other side is gone."""

    async def close(self, code: int = 1000) -> None: ...


class Upgrade(Value):
    """Turn the connection into a WebSocket; 400 if the client did not ask for one.

    `run` is cancelled if the server stops; it need not send the close frame.
    """

    run: Callable[[WebSocket], Awaitable[None]]


Answer = Response | Streaming | Upgrade
Handler = Callable[[Request], Awaitable[Answer]]
