"""Everything the add-ins offer, as one server: lists in the order of loading, and each call to the one it is for.

An add-in that fails while it answers fails that answer only; a list leaves out what cannot be listed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from ...protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError
from ...protocol.service import Call, Result
from ...system.log import log
from ...system.values import Value
from .collection import AddIns
from .completions import complete, completed
from .entry import Entry
from .failures import log_failure, sentence
from .offer import Offer
from .prompts import get_prompt
from .resources import not_found, read_resource
from .tools import ToolError, call_tool

if TYPE_CHECKING:
    from .sdk import SdkServer

# How servers say that something is not theirs; the next one is asked.
NOT_MINE = (INVALID_PARAMS, RESOURCE_NOT_FOUND, METHOD_NOT_FOUND)


class Kind(Value):
    """One of the lists of MCP."""

    name: str  # as names are claimed
    method: str
    key: str  # of the list in the result
    identity: str  # the field that tells its items apart


TOOLS = Kind("tool", "tools/list", "tools", "name")
RESOURCES = Kind("resource", "resources/list", "resources", "uri")
TEMPLATES = Kind("resource", "resources/templates/list", "resourceTemplates", "uriTemplate")
PROMPTS = Kind("prompt", "prompts/list", "prompts", "name")


async def listed(addins: AddIns, kind: Kind, call: Call) -> list[dict[str, Any]]:
    items: dict[str, dict[str, Any]] = {}
    for entry in addins.live:
        for item in _own(entry.offer, kind):
            items.setdefault(item[kind.identity], item)
        for server in entry.offer.servers:
            for item in await _served(entry, server, kind, call):
                items.setdefault(item[kind.identity], item)
    return list(items.values())


async def call_named_tool(addins: AddIns, name: str, call: Call) -> Result:
    for entry in addins.live:
        tool = entry.offer.tools.get(name)
        if tool is not None:
            return await call_tool(tool, call, call.params.get("arguments"), entry.name)
    server = await _server_of(addins, (TOOLS,), name, call)
    if server is None:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: '{name}'")
    return await server.request(call)


async def read(addins: AddIns, uri: str, call: Call) -> Result:
    for templates in (False, True):  # an address of its own comes before a template that also fits
        for entry in addins.live:
            for resource in list(entry.offer.resources.values()):
                if (resource.pattern is not None) is not templates:
                    continue
                variables = resource.match(uri)
                if variables is not None:
                    what = f"resource {resource.uri}"
                    return await _guarded(entry, what, read_resource(resource, variables, uri, call, entry.name))
    for entry in addins.live:
        for server in entry.offer.servers:
            try:
                return await server.request(call)
            except RpcError as error:
                if error.code not in NOT_MINE:
                    raise
    raise not_found(uri)


async def prompt(addins: AddIns, name: str, call: Call) -> Result:
    for entry in addins.live:
        found = entry.offer.prompts.get(name)
        if found is not None:
            what = f"prompt {name}"
            return await _guarded(entry, what, get_prompt(found, call.params.get("arguments"), call, entry.name))
    server = await _server_of(addins, (PROMPTS,), name, call)
    if server is None:
        raise RpcError(INVALID_PARAMS, f"Unknown prompt: '{name}'")
    return await server.request(call)


async def completion(addins: AddIns, reference: str, argument: Mapping[str, str], call: Call) -> Result:
    """`reference` is a prompt's name or a template."""
    context = call.params.get("context")
    known = context.get("arguments") if isinstance(context, Mapping) else None
    others = known if isinstance(known, Mapping) else {}
    for entry in addins.live:
        found = entry.offer.completions.get((reference, argument["name"]))
        if found is not None:
            answer = complete(found, argument["value"], others, entry.name)
            return await _guarded(entry, f"completion of {reference}", answer)
        if reference in entry.offer.prompts or reference in entry.offer.resources:
            return completed([])
    server = await _server_of(addins, (PROMPTS, TEMPLATES), reference, call)
    if server is None:
        message = f"Nothing to complete: there is no prompt or resource template '{reference}'"
        raise RpcError(INVALID_PARAMS, message)
    return await server.request(call)


def _own(offer: Offer, kind: Kind) -> list[dict[str, Any]]:
    if kind is TOOLS:
        return [tool.description for tool in list(offer.tools.values())]
    if kind is PROMPTS:
        return [prompt.description for prompt in list(offer.prompts.values())]
    resources = list(offer.resources.values())
    return [found.description for found in resources if (found.pattern is not None) is (kind is TEMPLATES)]


async def _served(entry: Entry, server: SdkServer, kind: Kind, call: Call) -> list[dict[str, Any]]:
    try:
        items = await server.items(kind.method, kind.key, call)
    except RpcError as error:
        if error.code != METHOD_NOT_FOUND:
            log.warn(f"[{entry.name}] {kind.method} failed: {error.message}")
        return []
    return [item for item in items if entry.claim(kind.name, str(item.get(kind.identity)))]


async def _server_of(addins: AddIns, kinds: tuple[Kind, ...], name: str, call: Call) -> SdkServer | None:
    """The server that offers a name: by what it listed last, or, for a new name, what it lists now."""
    for entry in addins.live:
        for server in entry.offer.servers:
            for kind in kinds:
                if name not in server.known.get(kind.method, ()):
                    items = await _served(entry, server, kind, call)
                    server.known[kind.method] = frozenset(str(item[kind.identity]) for item in items)
                if name in server.known[kind.method]:
                    return server
    return None


async def _guarded(entry: Entry, what: str, answer: Awaitable[Result]) -> Result:
    try:
        return await answer
    except RpcError:
        raise
    except ToolError as error:
        raise RpcError(INVALID_PARAMS, str(error)) from None
    except Exception as error:
        log_failure(entry.name, what, error)
        raise RpcError(INTERNAL_ERROR, sentence(error)) from None
