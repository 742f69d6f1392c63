"""What the Host has to say over MCP: its health, and everything its add-ins offer.

The health is answered at once, whatever the add-ins do; everything else waits for them, within a bound.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from ..protocol.service import Call, Params, Result, ServerInfo, Session
from .addins import catalogue
from .addins.catalogue import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Kind
from .addins.collection import AddIns
from .addins.content import as_json, text

HEALTH_TOOL: dict[str, Any] = {
    "name": "uno_health",
    "title": "Host health",
    "description": (
        "Reports whether this Host works: its version, every add-in with the reason if one could not be loaded, and "
        "whether an IDE is connected. Answers at once, even while add-ins are loading."
    ),
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}
HEALTH_RESOURCE: dict[str, Any] = {
    "uri": "uno://health",
    "name": "Uno DevServer Health",
    "description": "The report of uno_health as a resource.",
    "mimeType": "application/json",
}


class HostService:
    """Implements `protocol.service.Service`. `health` makes the report; it is called on the event loop."""

    def __init__(self, addins: AddIns, info: ServerInfo, health: Callable[[], dict[str, Any]]) -> None:
        self._addins = addins
        self._info = info
        self._health = health
        self._methods: dict[str, Callable[[Call], Awaitable[Result]]] = {
            "tools/list": lambda call: self._list(TOOLS, call, [HEALTH_TOOL]),
            "tools/call": self._call_tool,
            "resources/list": lambda call: self._list(RESOURCES, call, [HEALTH_RESOURCE]),
            "resources/templates/list": lambda call: self._list(TEMPLATES, call, []),
            "resources/read": self._read,
            "prompts/list": lambda call: self._list(PROMPTS, call, []),
            "prompts/get": self._prompt,
            "completion/complete": self._complete,
        }

    @property
    def info(self) -> ServerInfo:
        return self._info

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
        method = self._methods.get(call.method)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method '{call.method}' is not available.")
        return await method(call)

    async def notified(self, session: Session, method: str, params: Params) -> None:
        """Nothing here depends on what clients announce: roots are asked for when they are needed."""

    def opened(self, session: Session) -> None:
        pass

    def closed(self, session: Session) -> None:
        pass

    async def _list(self, kind: Kind, call: Call, own: list[dict[str, Any]]) -> Result:
        if call.params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "The cursor is unknown: every list here is one page.")
        await self._addins.ready()
        return {kind.key: own + await catalogue.listed(self._addins, kind, call)}

    async def _call_tool(self, call: Call) -> Result:
        name = _text(call.params, "name")
        if name == HEALTH_TOOL["name"]:
            return await self._call_health(call)
        await self._addins.ready()
        return await catalogue.call_named_tool(self._addins, name, call)

    async def _call_health(self, call: Call) -> Result:
        if call.params.get("arguments"):
            return {"content": [text("uno_health takes no arguments.").block], "isError": True}
        report = await self._report()
        return {"content": [text(as_json(report)).block], "structuredContent": report}

    async def _read(self, call: Call) -> Result:
        uri = _text(call.params, "uri")
        if uri.lower() == HEALTH_RESOURCE["uri"]:  # scheme and host of an address ignore case
            report = as_json(await self._report())
            return {"contents": [{"uri": uri, "mimeType": "application/json", "text": report}]}
        await self._addins.ready()
        return await catalogue.read(self._addins, uri, call)

    async def _prompt(self, call: Call) -> Result:
        name = _text(call.params, "name")
        await self._addins.ready()
        return await catalogue.prompt(self._addins, name, call)

    async def _complete(self, call: Call) -> Result:
        reference, argument = call.params.get("ref"), call.params.get("argument")
        if not isinstance(reference, Mapping) or not isinstance(argument, Mapping):
            raise RpcError(INVALID_PARAMS, "completion/complete needs 'ref' and 'argument'.")
        asked = {"name": _text(argument, "name"), "value": _text(argument, "value")}
        target = _text(reference, "uri" if reference.get("type") == "ref/resource" else "name")
        await self._addins.ready()
        return await catalogue.completion(self._addins, target, asked, call)

    async def _report(self) -> dict[str, Any]:
        await self._addins.check()
        return self._health()


def _text(params: Mapping[str, Any], key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"'{key}' is missing, or not text.")
    return value
