"""The two ends of an MCP conversation, as they describe themselves. Cheap to import: the first answer waits for it."""

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
    """A client, as it describes itself in `initialize` or, in the modern era, in each request."""

    name: str | None
    version: str | None
    capabilities: Mapping[str, Any]
    protocol_version: str
