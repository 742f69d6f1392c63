"""The two ends of an MCP conversation. A module of its own because the proxy's first answer imports it."""

from __future__ import annotations

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class ServerInfo(Value):
    name: str
    version: str
    title: str | None = None
    instructions: str | None = None


class ClientInfo(Value):
    """A client, as described in `initialize` or, in the modern era, in each request."""

    name: str | None
    version: str | None
    capabilities: Mapping[str, Any]
    protocol_version: str
