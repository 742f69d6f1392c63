"""Answers MCP requests, by the Host itself or by the add-in that offers the name.

The add-ins appear as one server: lists are in the order of loading, and each call goes to the add-in that offers the
name. A failing add-in fails only the request that it answers; a list leaves out what cannot be listed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError
from ..protocol.peer_info import ClientInfo
from ..protocol.service import Call, Params, Result
from ..protocol.versions import NEWEST_HANDSHAKE
from ..system.values import Value
from .addins.addin import Registrations
from .addins.content import as_json, text
from .addins.failures import log_failure, sentence
from .addins.loaded_addin import LoadedAddIn
from .addins.manager import HEALTH_RESOURCE_URI, HEALTH_TOOL_NAME, AddInManager
from .addins.prompts import complete, completed, get_prompt
from .addins.resources import not_found, read_resource
from .addins.tools import ToolError, call_tool

if TYPE_CHECKING:
    from .addins.sdk import SdkServer

# With these errors a server reports that it does not have a resource; then the next server is asked.
NOT_MINE = (INVALID_PARAMS, RESOURCE_NOT_FOUND, METHOD_NOT_FOUND)


class ListKind(Value):
    """One of the lists of MCP."""

    name: str  # the kind in `NameClaims`
    method: str
    key: str  # the member of the result that contains the list
    identity: str  # the field that identifies an item


TOOLS = ListKind("tool", "tools/list", "tools", "name")
RESOURCES = ListKind("resource", "resources/list", "resources", "uri")
TEMPLATES = ListKind("resource", "resources/templates/list", "resourceTemplates", "uriTemplate")
PROMPTS = ListKind("prompt", "prompts/list", "prompts", "name")

HEALTH_TOOL: dict[str, Any] = {
    "name": HEALTH_TOOL_NAME,
    "title": "Host health",
    "description": (
        "Reports whether this Host works: its version, every add-in with the reason if one could not be loaded, and "
        "whether an IDE is connected. Answers at once, even while add-ins are loading."
    ),
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}
HEALTH_RESOURCE: dict[str, Any] = {
    "uri": HEALTH_RESOURCE_URI,
    "name": "Uno DevServer Health",
    "description": "The report of uno_health as a resource.",
    "mimeType": "application/json",
}
# What the Host itself offers, before the add-ins.
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
    if call.method == "tools/call" and call.params.get("name") == HEALTH_TOOL_NAME:
        return await _call_health(call, addins, health)
    # The scheme and host of a URI ignore case.
    if call.method == "resources/read" and str(call.params.get("uri")).lower() == HEALTH_RESOURCE_URI:
        return await _read_health(call, addins, health)
    method = METHODS.get(call.method)
    if method is None:
        raise RpcError(METHOD_NOT_FOUND, f"Method '{call.method}' is not available.")
    return await method(call, addins)


async def count_tools(addins: AddInManager) -> int:
    """The number of tools of all add-ins, as a client would be shown them."""
    return len(await _listed(addins, TOOLS, HostCall(TOOLS.method)))


async def _list(kind: ListKind, call: Call, addins: AddInManager) -> Result:
    if call.params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "The cursor is unknown: every list here is one page.")
    await addins.ready()
    return {kind.key: OWN[kind] + await _listed(addins, kind, call)}


async def _listed(addins: AddInManager, kind: ListKind, call: Call) -> list[dict[str, Any]]:
    items: dict[str, dict[str, Any]] = {}
    for addin in addins.live:
        for item in _registered(addin.registrations, kind):
            items.setdefault(item[kind.identity], item)
        for server in addin.registrations.servers:
            for item in await server.items(kind, call):
                items.setdefault(item[kind.identity], item)
    return list(items.values())


def _registered(registrations: Registrations, kind: ListKind) -> list[dict[str, Any]]:
    if kind is TOOLS:
        return [tool.description for tool in list(registrations.tools.values())]
    if kind is PROMPTS:
        return [prompt.description for prompt in list(registrations.prompts.values())]
    resources = list(registrations.resources.values())
    return [found.description for found in resources if (found.pattern is not None) is (kind is TEMPLATES)]


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
    for addin in addins.live:
        tool = addin.registrations.tools.get(name)
        if tool is not None:
            return await call_tool(tool, call, call.params.get("arguments"), addin.name)
    server = await _server_of(addins, (TOOLS,), name, call)
    if server is None:
        raise _unknown("tool", name, addins)
    return await server.request(call)


def _unknown(what: str, name: str, addins: AddInManager) -> RpcError:
    """The error for a tool or prompt that no add-in has; one that failed to load may have had it."""
    failed = [f"{addin.name}: {addin.error.rstrip('.')}" for addin in addins.status.addins if addin.error]
    message = f"Unknown {what}: '{name}'"
    if failed:
        lost = f"AddInLoadFailed: {'; '.join(failed)}"
        message += f". It may belong to an add-in that could not be loaded. {lost}. Call uno_health for the next step."
    return RpcError(INVALID_PARAMS, message)


async def _read_resource(call: Call, addins: AddInManager) -> Result:
    uri = _text(call.params, "uri")
    await addins.ready()
    for templates in (False, True):  # a resource with exactly this URI precedes a template that matches
        for addin in addins.live:
            for resource in list(addin.registrations.resources.values()):
                if (resource.pattern is not None) is not templates:
                    continue
                variables = resource.match(uri)
                if variables is not None:
                    result = read_resource(resource, variables, uri, call, addin.name)
                    return await _guarded(addin, f"resource {resource.uri}", result)
    for addin in addins.live:
        for server in addin.registrations.servers:
            try:
                return await server.request(call)
            except RpcError as error:
                if error.code not in NOT_MINE:
                    raise
    raise not_found(uri)


async def _get_prompt(call: Call, addins: AddInManager) -> Result:
    name = _text(call.params, "name")
    await addins.ready()
    for addin in addins.live:
        prompt = addin.registrations.prompts.get(name)
        if prompt is not None:
            result = get_prompt(prompt, call.params.get("arguments"), call, addin.name)
            return await _guarded(addin, f"prompt {name}", result)
    server = await _server_of(addins, (PROMPTS,), name, call)
    if server is None:
        raise _unknown("prompt", name, addins)
    return await server.request(call)


async def _complete(call: Call, addins: AddInManager) -> Result:
    ref, argument, context = (call.params.get(key) for key in ("ref", "argument", "context"))
    if not isinstance(ref, Mapping) or not isinstance(argument, Mapping):
        raise RpcError(INVALID_PARAMS, "completion/complete needs 'ref' and 'argument'.")
    name, value = _text(argument, "name"), _text(argument, "value")
    reference = _text(ref, "uri" if ref.get("type") == "ref/resource" else "name")  # a prompt's name, or a template
    given = context.get("arguments") if isinstance(context, Mapping) else None
    others = given if isinstance(given, Mapping) else {}
    await addins.ready()
    for addin in addins.live:
        registrations = addin.registrations
        completion = registrations.completions.get((reference, name))
        if completion is not None:
            result = complete(completion, value, others, addin.name)
            return await _guarded(addin, f"completion of {reference}", result)
        if reference in registrations.prompts or reference in registrations.resources:
            return completed([])
    server = await _server_of(addins, (PROMPTS, TEMPLATES), reference, call)
    if server is None:
        message = f"Nothing to complete: there is no prompt or resource template '{reference}'"
        raise RpcError(INVALID_PARAMS, message)
    return await server.request(call)


METHODS: dict[str, Callable[[Call, AddInManager], Awaitable[Result]]] = {
    "tools/call": _call_tool,
    "resources/read": _read_resource,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
}


def _text(params: Mapping[str, Any], key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"'{key}' is missing, or not text.")
    return value


async def _server_of(addins: AddInManager, kinds: tuple[ListKind, ...], name: str, call: Call) -> SdkServer | None:
    for addin in addins.live:
        for server in addin.registrations.servers:
            for kind in kinds:
                if await server.offers(kind, name, call):
                    return server
    return None


async def _guarded(addin: LoadedAddIn, what: str, result: Awaitable[Result]) -> Result:
    """The result of an add-in's function; if it fails, the failure is logged and RpcError raised."""
    try:
        return await result
    except RpcError:
        raise
    except ToolError as error:
        raise RpcError(INVALID_PARAMS, str(error)) from None
    except Exception as error:
        log_failure(addin.name, what, error)
        raise RpcError(INTERNAL_ERROR, sentence(error)) from None


class HostCall:
    """A call that the Host itself makes, without a client. Implements `protocol.service.Call` and its `Session`."""

    id = 0
    client = ClientInfo("uno-devserver", None, {}, NEWEST_HANDSHAKE)
    log_level = None

    def __init__(self, method: str) -> None:
        self.method = method
        self.params: Params = {}

    @property
    def session(self) -> HostCall:
        return self

    def notify(self, method: str, params: Params | None = None) -> None:
        pass

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        raise RpcError(METHOD_NOT_FOUND, f"The Host has no answer to '{method}'.")

    def close_stream(self) -> None:
        pass
