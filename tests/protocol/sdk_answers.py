"""How the official SDK's clients answer in tests when a server asks them for something."""

from __future__ import annotations

from typing import Any

import mcp_types
from mcp.client.session import ClientRequestContext


async def _elicit(context: ClientRequestContext, params: Any) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content={"name": f"{params.message} Ada"})


async def _sample(context: ClientRequestContext, params: Any) -> mcp_types.CreateMessageResult:
    return mcp_types.CreateMessageResult(
        role="assistant", model="m", content=mcp_types.TextContent(type="text", text="sampled")
    )


async def _roots(context: ClientRequestContext) -> mcp_types.ListRootsResult:
    return mcp_types.ListRootsResult.model_validate({"roots": [{"uri": "file:///work"}]})


ANSWERS: dict[str, Any] = {
    "elicitation_callback": _elicit,
    "sampling_callback": _sample,
    "list_roots_callback": _roots,
}
