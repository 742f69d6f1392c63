"""What the Host is over MCP: its name, what it can do, and the way to its answers.

Only what `initialize` needs is imported here; the first real request brings the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..protocol.peer_info import ServerInfo
from ..protocol.service import Call, Params, Result, Session
from .addins.manager import AddInManager


class HostService:
    """Implements `protocol.service.Service`. `health` makes the report; it is called on the event loop."""

    def __init__(self, addins: AddInManager, info: ServerInfo, health: Callable[[], dict[str, Any]]) -> None:
        self._addins = addins
        self._info = info
        self._health = health

    @property
    def info(self) -> ServerInfo:
        return self._info

    @property
    def relays(self) -> bool:
        return False

    def capabilities(self) -> dict[str, Any]:
        """The same before and after add-ins are loaded: clients ask once."""
        return {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "completions": {},
            "logging": {},
        }

    async def answer(self, call: Call) -> Result:
        from .mcp_requests import answer

        return await answer(call, self._addins, self._health)

    async def notified(self, session: Session, method: str, params: Params) -> None:
        """Nothing here depends on what clients announce: roots are asked for when they are needed."""

    async def watched(self, uri: str, wanted: bool) -> None:
        """Add-ins tell of every change, whether anybody watches or not."""

    async def log_level_set(self, session: Session, level: str) -> None:
        """The endpoint leaves out what the client does not want."""

    def opened(self, session: Session) -> None:
        """Sessions have no state here."""

    def closed(self, session: Session) -> None:
        """Sessions have no state here."""
