"""Prompts: a function that writes the messages, and its arguments, which always come as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol.jsonrpc import INVALID_PARAMS, RpcError
from ...protocol.service import Call
from ...system.values import Value
from .content import Content, Message, user
from .context import context_of
from .running import Work
from .signatures import BadArguments, Parameter, Signature, doc_of, name_of
from .workers import invoke


class Prompt(Value):
    name: str
    function: Callable[..., Any]
    signature: Signature
    description: dict[str, Any]  # as in prompts/list


def make_prompt(
    function: Callable[..., Any],
    signature: Signature,
    *,
    name: str | None,
    title: str | None,
    description: str | None,
) -> Prompt:
    name = name or name_of(function)
    listed: dict[str, Any] = {"name": name}
    if title is not None:
        listed["title"] = title
    if about := description or doc_of(function):
        listed["description"] = about
    if signature.parameters:
        listed["arguments"] = [_argument(signature, parameter) for parameter in signature.parameters]
    return Prompt(name, function, signature, listed)


async def get_prompt(prompt: Prompt, arguments: object, call: Call, addin: str) -> dict[str, Any]:
    """The result of `prompts/get`."""
    try:
        with context_of(call, addin) as context:
            bound = prompt.signature.bind(arguments, context, strict=False)
            value = await invoke(Work(addin, "prompt", prompt.name), prompt.function, **bound)
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
