"""The upstream as calls see it, and every limit of what becomes of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ...system.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...protocol.client.connection import Connection, Peer
    from ..state import ConnectionState


class CallLimits(Value):
    """Each with its reason. Tests replace single values."""

    # A call that has been silent for this long hangs: builds and restores take minutes, and the .NET proxy, whose
    # agents' instructions rely on it, gives up after as many. Progress, log messages and questions are signs of life.
    silence_seconds: float = 300.0
    repetitions: int = 2  # a read-only call that ended the server three times will end it again
    # How long a call that has lost its server waits for the next, which is back within seconds; clients wait a minute.
    again_seconds: float = 30.0
    # Between tries while the end of the server has not been noticed, which takes longer for an adopted Host.
    first_pause_seconds: float = 0.02
    longest_pause_seconds: float = 1.0

    # Without --wait-calls, a call waits so long for a server that starts, or starts again: most need a second or two.
    grace_seconds: float = 2.0
    hold_seconds: float = 300.0  # --wait-calls: as long as a call may be silent; progress shows that it is not lost
    progress_seconds: float = 1.0
    tools_seconds: float = 30.0  # --mcp-wait-tools-list: what clients allow for their start, and no more
    discover_seconds: float = 60.0  # uno_discover_tools: a first start may have to find and launch a Host
    aside_seconds: float = 30.0  # subscriptions, levels, notifications: a server that works answers at once

    check_seconds: float = 10.0  # to read all sources takes a fraction of this; a build says that it is at work
    restart_seconds: float = 120.0  # three attempts of 30 s each, and the end of the server before
    status_seconds: float = 60.0  # mcpStatus: as long as clients wait for an answer, as a rule

    modern_clients: int = 16  # conversations kept for clients that do not say goodbye; each is an upstream's session
    close_seconds: float = 0.2  # goodbyes when the proxy ends: it must be gone soon after its client


DEFAULT_LIMITS = CallLimits()


class Unavailable(Exception):
    """There is no upstream at the moment; the message says so in a sentence."""


class Link(Protocol):
    """The keeper of the upstream, as calls see it. Everything here is used in the engine's loop."""

    @property
    def state(self) -> ConnectionState: ...

    @property
    def generation(self) -> int:
        """Counts the upstreams that were connected; a connection of an older one is of no use."""

    @property
    def fallback(self) -> bool:
        """Whether the proxy waits for uno_app_initialize to learn its workspace."""

    def tool(self, name: str) -> Mapping[str, Any] | None:
        """The upstream's tool of that name, from the lists last seen."""

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        """A conversation with the present upstream for one client; Unavailable, Lost or Refusal."""

    async def until_connected(self, seconds: float) -> bool:
        """Wait for an upstream; False when there is none in time, or none will come by itself."""

    async def reconsider(self) -> None:
        """A call needs the upstream, and there is none: see whether the user has settled what stood in its way."""

    def wanted(self) -> None:
        """A call needs the upstream: when Degraded, one new attempt is due."""

    def retry_due_in(self) -> float:
        """The seconds until `wanted` has an effect, when Degraded."""

    def worked(self, generation: int) -> None:
        """The upstream of that generation has answered a request: when it ends, it has not just failed to start."""

    def lost(self, generation: int) -> None:
        """A connection to the upstream of that generation broke: look at once whether it still works."""

    def lists_changed(self) -> None:
        """The upstream says that its lists have changed, or they may have: read them again, once for many."""

    async def set_workspace(self, directory: str, solution: str | None) -> dict[str, Any]:
        """uno_app_initialize: the result object; waits until it is ready, within its bound."""

    async def select_solution(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        """uno_app_select_solution: the result object."""
