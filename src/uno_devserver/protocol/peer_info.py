"""Who talks to whom: the two ends of an MCP conversation. Cheap to import: the proxy's first answer needs it."""

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
    """Who asks: from `initialize`, or from the request itself in the modern era."""

    name: str | None
    version: str | None
    capabilities: Mapping[str, Any]
    protocol_version: str
