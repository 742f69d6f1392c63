"""The Host's answers to MCP requests: its own health, and everything its add-ins offer.

The health is answered at once, whatever the add-ins do; everything else waits for them, within a bound.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from ..protocol.service import Call, Result
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
OWN: dict[Kind, list[dict[str, Any]]] = {TOOLS: [HEALTH_TOOL], RESOURCES: [HEALTH_RESOURCE], TEMPLATES: [], PROMPTS: []}
LISTS = {kind.method: kind for kind in OWN}

Health = Callable[[], dict[str, Any]]


async def answer(call: Call, addins: AddIns, health: Health) -> Result:
    """The result of a request; RpcError for an error."""
    if call.method in LISTS:
        return await _list(LISTS[call.method], call, addins)
    if call.method == "tools/call" and call.params.get("name") == HEALTH_TOOL["name"]:
        return await _call_health(call, addins, health)
    # The scheme and the host of an address ignore case.
    if call.method == "resources/read" and str(call.params.get("uri")).lower() == HEALTH_RESOURCE["uri"]:
        return await _read_health(call, addins, health)
    method = METHODS.get(call.method)
    if method is None:
        raise RpcError(METHOD_NOT_FOUND, f"Method '{call.method}' is not available.")
    return await method(call, addins)


async def _list(kind: Kind, call: Call, addins: AddIns) -> Result:
    if call.params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "The cursor is unknown: every list here is one page.")
    await addins.ready()
    return {kind.key: OWN[kind] + await catalogue.listed(addins, kind, call)}


async def _call_health(call: Call, addins: AddIns, health: Health) -> Result:
    if call.params.get("arguments"):
        return {"content": [text("uno_health takes no arguments.").block], "isError": True}
    await addins.check()
    report = health()
    return {"content": [text(as_json(report)).block], "structuredContent": report}


async def _read_health(call: Call, addins: AddIns, health: Health) -> Result:
    await addins.check()
    contents = {"uri": call.params["uri"], "mimeType": HEALTH_RESOURCE["mimeType"], "text": as_json(health())}
    return {"contents": [contents]}


async def _call_tool(call: Call, addins: AddIns) -> Result:
    name = _text(call.params, "name")
    await addins.ready()
    return await catalogue.call_named_tool(addins, name, call)


async def _read(call: Call, addins: AddIns) -> Result:
    uri = _text(call.params, "uri")
    await addins.ready()
    return await catalogue.read(addins, uri, call)


async def _prompt(call: Call, addins: AddIns) -> Result:
    name = _text(call.params, "name")
    await addins.ready()
    return await catalogue.prompt(addins, name, call)


async def _complete(call: Call, addins: AddIns) -> Result:
    reference, argument = call.params.get("ref"), call.params.get("argument")
    if not isinstance(reference, Mapping) or not isinstance(argument, Mapping):
        raise RpcError(INVALID_PARAMS, "completion/complete needs 'ref' and 'argument'.")
    asked = {"name": _text(argument, "name"), "value": _text(argument, "value")}
    target = _text(reference, "uri" if reference.get("type") == "ref/resource" else "name")
    await addins.ready()
    return await catalogue.completion(addins, target, asked, call)


METHODS: dict[str, Callable[[Call, AddIns], Awaitable[Result]]] = {
    "tools/call": _call_tool,
    "resources/read": _read,
    "prompts/get": _prompt,
    "completion/complete": _complete,
}


def _text(params: Mapping[str, Any], key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"'{key}' is missing, or not text.")
    return value
