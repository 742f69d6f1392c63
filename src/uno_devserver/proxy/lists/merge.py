"""Merges the upstream's lists, byte for byte, with our own tools and resource. Pure, and cheap to import."""

from __future__ import annotations

import json

from ...system.values import Value
from ..own_tools import (
    ALWAYS_OURS,
    HEALTH_RESOURCE,
    RELOAD_TOOLS,
    first_tools,
    is_health_uri,
    last_tools,
    unlisted_tools,
)
from ..state import Lists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..own_tools import OwnToolFacts, Tool

    Entries = tuple[tuple[str, bytes], ...]  # the name and the JSON of each


class Offered(Value):
    """The entries of an upstream's lists."""

    tools: Entries = ()
    resources: Entries = ()
    templates: Entries = ()
    prompts: Entries = ()


def merged(offered: Offered, now: OwnToolFacts) -> tuple[Lists, frozenset[str]]:
    """Return the lists to publish, and the names of the tools that we answer; some of them are not listed."""
    named = {name for name, _ in offered.tools}
    theirs = named - ALWAYS_OURS
    # Tools that are not listed any more stay callable: an agent may have been told to call them before.
    answered = now.replace(fallback=True, uno=True, hot_reload=now.hot_reload or not RELOAD_TOOLS & named)
    first = [tool for tool in first_tools(now) if tool["name"] not in theirs]
    last = [tool for tool in last_tools(now) if tool["name"] not in theirs]
    own = (frozenset(tool["name"] for tool in (*first_tools(answered), *last)) | unlisted_tools(now)) - theirs
    lists = Lists(
        _array((*_texts(first), *(text for name, text in offered.tools if name not in own), *_texts(last))),
        _array((*_texts([HEALTH_RESOURCE]), *(text for uri, text in offered.resources if not is_health_uri(uri)))),
        _array(text for _, text in offered.templates),
        _array(text for _, text in offered.prompts),
    )
    return lists, own


def entries(found: Iterable[tuple[str, bytes]]) -> Entries:
    """Return the first entry of each name, as one line."""
    first: dict[str, bytes] = {}
    for name, text in found:
        if name not in first:
            # JSON strings contain no line breaks, and elsewhere in JSON a space means the same.
            first[name] = text.replace(b"\n", b" ").replace(b"\r", b" ") if b"\n" in text or b"\r" in text else text
    return tuple(first.items())


def counted(tools: int) -> str:
    return f"{tools} tool" if tools == 1 else f"{tools} tools"


def _texts(tools: Iterable[Tool]) -> list[bytes]:
    return [json.dumps(tool, separators=(",", ":")).encode("ascii") for tool in tools]


def _array(texts: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(texts) + b"]"
