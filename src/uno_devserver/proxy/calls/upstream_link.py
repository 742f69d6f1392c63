"""The interface between calls and the keeper of the upstream, and all limits of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ...system.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...protocol.client.connection import Connection, Peer, UnusableServer
    from ..state import ConnectionState
    from ..upstream.base import Ending


class CallLimits(Value):
    """The limits of calls, each with its reason. Tests replace single values."""

    # A call that is silent for this long is taken for hung: builds and restores take minutes, and the .NET proxy, which
    # instructions of agents rely on, gives up after the same time. Progress, log messages and questions reset it.
    silence_seconds: float = 300.0
    repetitions: int = 2  # a read-only call that ended the server three times will end it again
    again_seconds: float = 30.0  # wait after losing a server: it is back within seconds, and clients wait a minute
    # Between attempts while the end of the server has not been noticed, which takes longer for an adopted Host.
    first_pause_seconds: float = 0.02
    longest_pause_seconds: float = 1.0

    end_seconds: float = 0.5  # until it is known how a lost server ended; usually within milliseconds

    grace_seconds: float = 2.0  # without --wait-calls: most servers start in a second or two
    hold_seconds: float = 300.0  # --wait-calls: as long as a call may be silent; progress shows that it is not lost
    progress_seconds: float = 1.0
    tools_seconds: float = 30.0  # --mcp-wait-tools-list: what clients allow for their start
    discover_seconds: float = 60.0  # uno_discover_tools: a first start may have to find and launch a Host
    aside_seconds: float = 30.0  # subscriptions, levels, notifications: a working server answers at once

    check_seconds: float = 10.0  # reading all sources takes a fraction of this; a running build sends messages
    restart_seconds: float = 120.0  # three attempts of 30 s each, and the end of the server before
    status_seconds: float = 60.0  # mcpStatus: as long as most clients wait for an answer

    modern_clients: int = 16  # conversations kept for modern clients, which do not close them; each is a session
    close_seconds: float = 0.2  # to close conversations at the end: the proxy must exit soon after its client


DEFAULT_LIMITS = CallLimits()


class Unavailable(Exception):
    """There is no upstream at the moment; the message is a sentence."""


class Link(Protocol):
    """The keeper of the upstream, as calls see it. Everything must be called in the engine's loop."""

    @property
    def state(self) -> ConnectionState: ...

    @property
    def generation(self) -> int:
        """The number of upstreams that were connected so far; connections to older ones are not used any more."""

    @property
    def fallback(self) -> bool:
        """Whether the proxy waits for uno_app_initialize to learn its workspace."""

    def tool(self, name: str) -> Mapping[str, Any] | None:
        """The upstream's tool of that name in the lists that were last read; None if there is none."""

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        """Connect one client to the present upstream; raise Unavailable, ConnectionLost or UnusableServer."""

    async def until_connected(self, seconds: float) -> bool:
        """Wait for an upstream; return False if none comes in time, or none will come by itself."""

    async def reconsider(self) -> None:
        """Check whether the user has removed what kept the upstream from starting, because a call needs it."""

    def wanted(self) -> None:
        """Make one new attempt to start if Degraded, because a call needs the upstream."""

    def retry_due_in(self) -> float:
        """Return the seconds until `wanted` makes another attempt, when Degraded."""

    def worked(self, generation: int) -> None:
        """Report that the upstream of that generation answered a request: its start has not failed."""

    def lost(self, generation: int) -> None:
        """Report that a connection to the upstream of that generation broke, to have the upstream checked at once."""

    async def how_it_ended(self, generation: int, seconds: float) -> Ending | None:
        """Return how the upstream of that generation ended; None if it was stopped, or that is not known in time."""

    def refused(self, generation: int, refusal: UnusableServer) -> None:
        """Report that the upstream of that generation refused a request or a connection."""

    def lists_changed(self) -> None:
        """Have the upstream's lists read again; several calls in a row lead to one read."""

    async def set_workspace(self, directory: str, solution: str | None) -> dict[str, Any]:
        """Return the result of uno_app_initialize, after waiting, in bounded time, until the upstream is ready."""

    async def select_solution(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        """Return the result of uno_app_select_solution."""
