"""The Host as an MCP service: name, capabilities, and the entry to `mcp_requests`.

`mcp_requests` is a module of its own, and imported late, so that `initialize` is answered without loading it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..protocol.peer_info import ServerInfo
from ..protocol.service import Call, Params, Result, Session
from .addins.manager import AddInManager


class HostService:
    """Implements `protocol.service.Service`. `health` creates the health report, and is called on the event loop."""

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
        """The capabilities, the same before and after add-ins are loaded, because clients ask only once."""
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
        """Ignored: roots are requested when an add-in needs them."""

    async def watched(self, uri: str, wanted: bool) -> None:
        """Ignored: add-ins announce every change, and the endpoint knows the subscribers."""

    async def log_level_set(self, session: Session, level: str) -> None:
        """Ignored: `Context.log` filters by the level of the call."""

    def opened(self, session: Session) -> None:
        """Ignored: the Host keeps no state per session."""

    def closed(self, session: Session) -> None:
        """Ignored, like `opened`."""
