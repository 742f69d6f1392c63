"""Typed functions as MCP tools.

A call always has a result: wrong arguments and failures are results with `isError` and a sentence that a model can
act on. The traceback goes to the log, never to the client.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ...protocol.jsonrpc import RpcError
from ...protocol.service import Call
from ...protocol.versions import MISSING_CAPABILITY, MODERN_VERSIONS
from ...system.values import Value
from .content import Content, ToolResult, as_content, as_json, as_path, plain, text
from .failures import log_failure, sentence
from .invocation import CallTarget
from .signatures import BadArguments, Signature, call_function, object_schema

NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")  # the rule of MCP 2025-11-25, and `/`, which older servers use
SHOWN_CHARACTERS = 4000  # the longest error message: enough for a compiler's output, not for a dump


class ToolError(Exception):
    """Raised by a tool to report a failure to the caller, who is shown the text unchanged."""


class Tool(Value):
    name: str
    function: Callable[..., Any]
    signature: Signature
    description: dict[str, Any]  # as in tools/list
    returns: Any  # the type of a structured result, or None


def make_tool(
    function: Callable[..., Any],
    signature: Signature,
    listed: dict[str, Any],
    hints: Mapping[str, bool | None],
    input_schema: Mapping[str, Any] | None,
    output_schema: Mapping[str, Any] | None,
    meta: Mapping[str, Any] | None,
) -> Tool:
    """Create a tool from a function; `listed` is the result of `description_of`."""
    name = listed["name"]
    if not NAME.fullmatch(name):
        raise ValueError(f"'{name}' cannot be a tool's name: use 1 to 128 letters, digits, '_', '-', '.' or '/'")
    returned = None if signature.returns in (inspect.Signature.empty, None) else object_schema(signature.returns)
    shown_output = dict(output_schema) if output_schema is not None else returned
    annotations = {key: value for key, value in hints.items() if value is not None}
    listed["inputSchema"] = dict(input_schema) if input_schema is not None else signature.schema
    if shown_output is not None:
        listed["outputSchema"] = shown_output
    if annotations:
        listed["annotations"] = annotations
    if meta is not None:
        listed["_meta"] = dict(meta)
    return Tool(name, function, signature, listed, signature.returns if returned else None)


async def call_tool(tool: Tool, call: Call, arguments: object, addin: str) -> dict[str, Any]:
    """The result of `tools/call`."""
    try:
        target = CallTarget(addin, "tool", tool.name)
        return _result(tool, await call_function(tool.function, tool.signature, arguments, call, target))
    except (BadArguments, ToolError) as error:
        return _failure(str(error) or "The tool failed without saying why.")
    except RpcError as error:
        # Modern clients get the error, which names what they must declare; older ones can use only its text.
        if error.code == MISSING_CAPABILITY and call.session.client.protocol_version in MODERN_VERSIONS:
            raise
        return _failure(error.message)
    except Exception as error:
        log_failure(addin, f"tool {tool.name}", error)
        return _failure(sentence(error)[:SHOWN_CHARACTERS])


def _result(tool: Tool, value: Any) -> dict[str, Any]:
    if isinstance(value, ToolResult):
        return _whole(value)
    if tool.returns is not None:
        return _structured(tool, plain(value))
    if value is None:
        return {"content": []}
    if isinstance(value, str):
        return {"content": [text(value).block]}
    if isinstance(value, Content):
        return {"content": [value.block]}
    if isinstance(value, (list, tuple)) and any(isinstance(item, Content) for item in value):
        return {"content": [as_content(item).block for item in value]}
    return _structured(tool, plain(value))


def _whole(result: ToolResult) -> dict[str, Any]:
    # A str is a sequence of strings in Python, but means one block here.
    items = [result.content] if isinstance(result.content, (str, Content)) else result.content
    answer: dict[str, Any] = {"content": [as_content(item).block for item in items]}
    if result.structured is not None:
        answer["structuredContent"] = plain(result.structured)
    if result.is_error:
        answer["isError"] = True
    if result.meta is not None:
        answer["_meta"] = plain(result.meta)
    return answer


def _structured(tool: Tool, value: Any) -> dict[str, Any]:
    """The result with the value as JSON text, for every client, and as structured content if it is an object."""
    shown = as_json(value)
    if tool.returns is not None:
        try:  # check what the client will read: NaN is a float here, but null in JSON
            msgspec.json.decode(shown, type=tool.returns, dec_hook=as_path)
        except msgspec.ValidationError as error:
            raise TypeError(f"the tool returned something else than it declares: {error}") from None
    answer: dict[str, Any] = {"content": [text(shown).block]}
    if isinstance(value, dict):
        answer["structuredContent"] = value
    return answer


def _failure(message: str) -> dict[str, Any]:
    return {"content": [text(message).block], "isError": True}
