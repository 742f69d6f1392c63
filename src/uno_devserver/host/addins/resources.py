"""Functions as MCP resources, each under a URI or a URI template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...protocol.jsonrpc import INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError
from ...protocol.service import Call
from ...system.values import Value
from .content import Content, as_json, plain, resource_contents
from .invocation import CallTarget
from .signatures import BadArguments, Signature, call_function

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
VARIABLE = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}")


class Resource(Value):
    uri: str  # a URI, or a URI template
    function: Callable[..., Any]
    signature: Signature
    mime_type: str | None
    description: dict[str, Any]  # as in resources/list or resources/templates/list
    pattern: re.Pattern[str] | None  # matches the URIs of a template; None for a plain URI

    def match(self, uri: str) -> dict[str, str] | None:
        """The template's variables in this URI; None if the URI does not belong to this resource."""
        if self.pattern is None:
            return {} if uri == self.uri else None
        from urllib.parse import unquote

        match = self.pattern.fullmatch(uri)
        return match and {name: unquote(value) for name, value in match.groupdict().items()}


def make_resource(
    uri: str,
    function: Callable[..., Any],
    signature: Signature,
    described: dict[str, Any],
    mime_type: str | None,
    annotations: Mapping[str, Any] | None,
) -> Resource:
    """Create a resource from a function; `described` is the result of `description_of`."""
    if not URI.fullmatch(uri):
        raise ValueError(
            f"'{uri}' cannot be a resource's address: it needs a scheme and no blanks, as in notes://today"
        )
    variables = [found[2] for found in VARIABLE.finditer(uri)]
    _check_variables(uri, variables, signature)
    listed: dict[str, Any] = {"uriTemplate" if variables else "uri": uri, **described}
    if mime_type:
        listed["mimeType"] = mime_type
    if annotations is not None:
        listed["annotations"] = dict(annotations)
    return Resource(uri, function, signature, mime_type, listed, _pattern(uri) if variables else None)


async def read_resource(resource: Resource, variables: Mapping[str, str], uri: str, call: Call, addin: str) -> Any:
    """The result of `resources/read`. If the function returns None, the resource does not exist."""
    try:
        target = CallTarget(addin, "resource", uri)
        value = await call_function(resource.function, resource.signature, variables, call, target, strict=False)
    except BadArguments as error:
        raise RpcError(INVALID_PARAMS, f"{uri}: {error}") from None
    if value is None:
        raise not_found(uri)
    items = value if isinstance(value, (list, tuple)) and any(isinstance(item, Content) for item in value) else [value]
    return {"contents": [_contents(uri, item, resource.mime_type) for item in items]}


def not_found(uri: str) -> RpcError:
    return RpcError(RESOURCE_NOT_FOUND, f"Unknown resource URI: {uri}", {"uri": uri})


def _contents(uri: str, value: Any, mime_type: str | None) -> dict[str, Any]:
    if isinstance(value, Content):
        if value.block.get("type") != "resource":
            raise TypeError("a resource gives text, bytes, data, or embedded(...) contents")
        contents: dict[str, Any] = value.block["resource"]
        return contents
    if isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    if isinstance(value, (str, bytes)):
        return resource_contents(uri, value, mime_type)
    return resource_contents(uri, as_json(plain(value)), mime_type or "application/json")


def _check_variables(uri: str, variables: list[str], signature: Signature) -> None:
    taken = {parameter.name for parameter in signature.parameters}
    required = {parameter.name for parameter in signature.parameters if parameter.required}
    if set("{}") & set(VARIABLE.sub("", uri)) or len(set(variables)) != len(variables):
        usage = "use {name}, or {+name} for a part with slashes, and each name once"
        raise ValueError(f"the template '{uri}' is not supported: {usage}")
    if required - set(variables) or (set(variables) - taken and not signature.open):
        names = ", ".join(variables) or "no arguments"
        raise TypeError(f"the function that reads '{uri}' must take: {names}")


def _pattern(template: str) -> re.Pattern[str]:
    parts, end = [], 0
    for found in VARIABLE.finditer(template):
        parts.append(re.escape(template[end : found.start()]))
        parts.append(f"(?P<{found[2]}>{'.+' if found[1] else '[^/?#]+'})")
        end = found.end()
    return re.compile("".join(parts) + re.escape(template[end:]), re.DOTALL)
