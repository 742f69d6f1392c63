"""Everything the add-ins offer, as one server: lists in the order of loading, and each call to the one it is for.

An add-in that fails while it answers fails that answer only; a list leaves out what cannot be listed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError
from ..protocol.peer_info import ClientInfo
from ..protocol.service import Call, Params, Result
from ..protocol.versions import NEWEST_HANDSHAKE
from ..system.log import log
from ..system.values import Value
from .addins.addin import Registrations
from .addins.content import as_json, text
from .addins.failures import log_failure, sentence
from .addins.loaded_addin import LoadedAddIn
from .addins.manager import AddInManager
from .addins.prompts import complete, completed, get_prompt
from .addins.resources import not_found, read_resource
from .addins.tools import ToolError, call_tool

if TYPE_CHECKING:
    from .addins.sdk import SdkServer

# How servers say that something is not theirs; the next one is asked.
NOT_MINE = (INVALID_PARAMS, RESOURCE_NOT_FOUND, METHOD_NOT_FOUND)


class ListKind(Value):
    """One of the lists of MCP."""

    name: str  # as names are claimed
    method: str
    key: str  # of the list in the result
    identity: str  # the field that tells its items apart


TOOLS = ListKind("tool", "tools/list", "tools", "name")
RESOURCES = ListKind("resource", "resources/list", "resources", "uri")
TEMPLATES = ListKind("resource", "resources/templates/list", "resourceTemplates", "uriTemplate")
PROMPTS = ListKind("prompt", "prompts/list", "prompts", "name")


async def listed(addins: AddInManager, kind: ListKind, call: Call) -> list[dict[str, Any]]:
    items: dict[str, dict[str, Any]] = {}
    for entry in addins.live:
        for item in _own(entry.offer, kind):
            items.setdefault(item[kind.identity], item)
        for server in entry.offer.servers:
            for item in await _served(entry, server, kind, call):
                items.setdefault(item[kind.identity], item)
    return list(items.values())


async def call_named_tool(addins: AddInManager, name: str, call: Call) -> Result:
    for entry in addins.live:
        tool = entry.offer.tools.get(name)
        if tool is not None:
            return await call_tool(tool, call, call.params.get("arguments"), entry.name)
    server = await _server_of(addins, (TOOLS,), name, call)
    if server is None:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: '{name}'")
    return await server.request(call)


async def read(addins: AddInManager, uri: str, call: Call) -> Result:
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


async def prompt(addins: AddInManager, name: str, call: Call) -> Result:
    for entry in addins.live:
        found = entry.offer.prompts.get(name)
        if found is not None:
            what = f"prompt {name}"
            return await _guarded(entry, what, get_prompt(found, call.params.get("arguments"), call, entry.name))
    server = await _server_of(addins, (PROMPTS,), name, call)
    if server is None:
        raise RpcError(INVALID_PARAMS, f"Unknown prompt: '{name}'")
    return await server.request(call)


async def completion(addins: AddInManager, reference: str, argument: Mapping[str, str], call: Call) -> Result:
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


def _own(offer: Registrations, kind: ListKind) -> list[dict[str, Any]]:
    if kind is TOOLS:
        return [tool.description for tool in list(offer.tools.values())]
    if kind is PROMPTS:
        return [prompt.description for prompt in list(offer.prompts.values())]
    resources = list(offer.resources.values())
    return [found.description for found in resources if (found.pattern is not None) is (kind is TEMPLATES)]


async def _served(entry: LoadedAddIn, server: SdkServer, kind: ListKind, call: Call) -> list[dict[str, Any]]:
    try:
        items = await server.items(kind.method, kind.key, call)
    except RpcError as error:
        if error.code != METHOD_NOT_FOUND:
            log.warn(f"[{entry.name}] {kind.method} failed: {error.message}")
        return []
    return [item for item in items if entry.claim(kind.name, str(item.get(kind.identity)))]


async def _server_of(addins: AddInManager, kinds: tuple[ListKind, ...], name: str, call: Call) -> SdkServer | None:
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


async def _guarded(entry: LoadedAddIn, what: str, answer: Awaitable[Result]) -> Result:
    try:
        return await answer
    except RpcError:
        raise
    except ToolError as error:
        raise RpcError(INVALID_PARAMS, str(error)) from None
    except Exception as error:
        log_failure(entry.name, what, error)
        raise RpcError(INTERNAL_ERROR, sentence(error)) from None


class HostSession:
    client = ClientInfo("uno-devserver", None, {}, NEWEST_HANDSHAKE)

    def notify(self, method: str, params: Params | None = None) -> None:
        pass

    async def ask(self, method: str, params: Params) -> Result:  # noqa: ARG002
        raise _no_answer(method)


class HostCall:
    """Implements `protocol.service.Call`."""

    id = 0
    session = HostSession()
    log_level = None

    def __init__(self, method: str) -> None:
        self.method = method
        self.params: Params = {}

    def notify(self, method: str, params: Params | None = None) -> None:
        pass

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        raise _no_answer(method)

    def close_stream(self) -> None:
        pass


def _no_answer(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"The Host has no answer to '{method}'.")


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
OWN: dict[ListKind, list[dict[str, Any]]] = {
    TOOLS: [HEALTH_TOOL],
    RESOURCES: [HEALTH_RESOURCE],
    TEMPLATES: [],
    PROMPTS: [],
}
LISTS = {kind.method: kind for kind in OWN}

Health = Callable[[], dict[str, Any]]


async def answer(call: Call, addins: AddInManager, health: Health) -> Result:
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


async def _list(kind: ListKind, call: Call, addins: AddInManager) -> Result:
    if call.params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "The cursor is unknown: every list here is one page.")
    await addins.ready()
    return {kind.key: OWN[kind] + await listed(addins, kind, call)}


async def _call_health(call: Call, addins: AddInManager, health: Health) -> Result:
    if call.params.get("arguments"):
        return {"content": [text("uno_health takes no arguments.").block], "isError": True}
    await addins.check()
    report = health()
    return {"content": [text(as_json(report)).block], "structuredContent": report}


async def _read_health(call: Call, addins: AddInManager, health: Health) -> Result:
    await addins.check()
    contents = {"uri": call.params["uri"], "mimeType": HEALTH_RESOURCE["mimeType"], "text": as_json(health())}
    return {"contents": [contents]}


async def _call_tool(call: Call, addins: AddInManager) -> Result:
    name = _text(call.params, "name")
    await addins.ready()
    return await call_named_tool(addins, name, call)


async def _read(call: Call, addins: AddInManager) -> Result:
    uri = _text(call.params, "uri")
    await addins.ready()
    return await read(addins, uri, call)


async def _prompt(call: Call, addins: AddInManager) -> Result:
    name = _text(call.params, "name")
    await addins.ready()
    return await prompt(addins, name, call)


async def _complete(call: Call, addins: AddInManager) -> Result:
    reference, argument = call.params.get("ref"), call.params.get("argument")
    if not isinstance(reference, Mapping) or not isinstance(argument, Mapping):
        raise RpcError(INVALID_PARAMS, "completion/complete needs 'ref' and 'argument'.")
    asked = {"name": _text(argument, "name"), "value": _text(argument, "value")}
    target = _text(reference, "uri" if reference.get("type") == "ref/resource" else "name")
    await addins.ready()
    return await completion(addins, target, asked, call)


METHODS: dict[str, Callable[[Call, AddInManager], Awaitable[Result]]] = {
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
