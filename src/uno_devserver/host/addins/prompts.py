"""Functions as MCP prompts and as completions. The arguments of prompts are always text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ...protocol.jsonrpc import INVALID_PARAMS, RpcError
from ...protocol.service import Call
from ...system.values import Value
from .content import Content, Message, sendable, user
from .invocation import CallTarget, invoke
from .signatures import BadArguments, Parameter, Signature, call_function, label_of

SHOWN_VALUES = 100  # the protocol's limit


class Prompt(Value):
    name: str
    function: Callable[..., Any]
    signature: Signature
    description: dict[str, Any]  # as in prompts/list


def make_prompt(function: Callable[..., Any], signature: Signature, listed: dict[str, Any]) -> Prompt:
    """Create a prompt from a function; `listed` is the result of `description_of`."""
    if signature.parameters:
        listed["arguments"] = [_argument(signature, parameter) for parameter in signature.parameters]
    return Prompt(listed["name"], function, signature, listed)


async def get_prompt(prompt: Prompt, arguments: object, call: Call, addin: str) -> dict[str, Any]:
    """The result of `prompts/get`."""
    try:
        target = CallTarget(addin, "prompt", prompt.name)
        value = await call_function(prompt.function, prompt.signature, arguments, call, target, strict=False)
    except BadArguments as error:
        raise RpcError(INVALID_PARAMS, f"Prompt '{prompt.name}': {error}") from None
    items = value if isinstance(value, (list, tuple)) else [value]
    result: dict[str, Any] = {"messages": [_message(item) for item in items]}
    if "description" in prompt.description:
        result["description"] = prompt.description["description"]
    return result


def _argument(signature: Signature, parameter: Parameter) -> dict[str, Any]:
    argument: dict[str, Any] = {"name": parameter.name}
    if about := signature.schema["properties"][parameter.name].get("description"):
        argument["description"] = about
    argument["required"] = parameter.required
    return argument


def _message(item: Any) -> dict[str, Any]:
    if isinstance(item, (str, Content)):
        item = user(item)
    if not isinstance(item, Message):
        raise TypeError(f"a prompt gives text, content or messages, not {type(item).__name__}")
    return {"role": item.role, "content": item.content.block}


class Completion(Value):
    reference: str  # the name of a prompt, or a URI template
    argument: str
    function: Callable[..., Any]
    wants_others: bool  # whether the function also takes the other arguments


def make_completion(reference: str, argument: str, function: Callable[..., Any]) -> Completion:
    count = len(inspect.signature(function).parameters)
    if count not in (1, 2):
        raise TypeError(f"{label_of(function)} must take the text so far, and may take the other arguments")
    return Completion(reference, argument, function, count == 2)


async def complete(completion: Completion, value: str, others: Mapping[str, str], addin: str) -> dict[str, Any]:
    """The result of `completion/complete`."""
    given = (value, dict(others)) if completion.wants_others else (value,)
    values = await invoke(CallTarget(addin, "completion", completion.reference), completion.function, *given)
    return completed([sendable(str(item)) for item in values])


def completed(values: list[str]) -> dict[str, Any]:
    more = len(values) > SHOWN_VALUES
    return {"completion": {"values": values[:SHOWN_VALUES], "total": len(values), "hasMore": more}}
