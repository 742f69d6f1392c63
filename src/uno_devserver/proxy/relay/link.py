"""The seam between relaying calls and keeping something to relay them to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...instances.health_report import ConnectionState
    from ...protocol.client.connection import Connection, Peer


class Unavailable(Exception):
    """There is no upstream at the moment; the message says so in a sentence, and `remedy` what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


class Link(Protocol):
    """The engine, as the relay sees it. Everything here is used in the engine's loop."""

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
        """Somebody needs the upstream, and there is none: see whether the user has settled what stood in its way."""

    def wanted(self) -> None:
        """Somebody needs the upstream: when Degraded, one new attempt is due."""

    def worked(self, generation: int) -> None:
        """The upstream of that generation has answered a request: when it ends, it has not just failed to start."""

    def lost(self, generation: int) -> None:
        """A connection to the upstream of that generation broke: look whether it still works, and not in a while."""

    def lists_changed(self) -> None:
        """The upstream says so (or may have): have them read again, once for many."""

    async def set_workspace(self, directory: str, solution: str | None) -> dict[str, Any]:
        """uno_app_initialize: the result object; waits until it is ready, within its bound."""

    async def select_solution(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        """uno_app_select_solution: the result object."""
