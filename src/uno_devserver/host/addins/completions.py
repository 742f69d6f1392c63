"""Completions: what may stand in a prompt's argument or a template's variable, as the user types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ...system.values import Value
from .content import sendable
from .running import Work
from .signatures import label_of
from .workers import invoke

SHOWN_VALUES = 100  # the protocol's limit


class Completion(Value):
    reference: str  # a prompt's name or a template
    argument: str
    function: Callable[..., Any]
    wants_others: bool  # takes the arguments that are known already, beside the text


def make_completion(reference: str, argument: str, function: Callable[..., Any]) -> Completion:
    count = len(inspect.signature(function).parameters)
    if count not in (1, 2):
        raise TypeError(f"{label_of(function)} must take the text so far, and may take the other arguments")
    return Completion(reference, argument, function, count == 2)


async def complete(completion: Completion, value: str, others: Mapping[str, str], addin: str) -> dict[str, Any]:
    """The result of `completion/complete`."""
    given = (value, dict(others)) if completion.wants_others else (value,)
    values = await invoke(Work(addin, "completion", completion.reference), completion.function, *given)
    return completed([sendable(str(item)) for item in values])


def completed(values: list[str]) -> dict[str, Any]:
    more = len(values) > SHOWN_VALUES
    return {"completion": {"values": values[:SHOWN_VALUES], "total": len(values), "hasMore": more}}
