"""Merges the lists of all servers, byte for byte except for ambiguous names, with our own tools and resource.

Pure, and cheap to import.
"""

from __future__ import annotations

import json
from binascii import crc32

from ...system.values import Value, field_names
from ..own_tools import (
    ALWAYS_OURS,
    HEALTH_RESOURCE,
    MAIN,
    OWN_TOOLS,
    RELOAD_TOOLS,
    first_tools,
    is_health_uri,
    last_tools,
    unlisted_tools,
)
from ..state import Lists, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..own_tools import OwnToolFacts, Tool

    Entries = tuple[tuple[str, bytes], ...]  # the name and the JSON of each
    # By list and the name that clients see: the server ("" for the main one), and its own name for it.
    GivenNames = dict[tuple[str, str], tuple[str, str]]


class Offered(Value):
    """The entries of an upstream's lists."""

    tools: Entries = ()
    resources: Entries = ()
    templates: Entries = ()
    prompts: Entries = ()


class ServerOffer(Value):
    """What one of several servers offers, under its own names."""

    name: str
    offered: Offered = Offered()
    prefix: bool = False  # whether all its names get a prefix, not only ambiguous ones
    instructions: str | None = None


MAX_TOOL_NAME = 64  # of a tool with a prefix: several clients and model APIs refuse longer names


def combined(
    main: Offered, others: Iterable[ServerOffer], given: GivenNames | None = None
) -> tuple[Offered, Routes, tuple[str, ...]]:
    """Return the lists of all servers, which server answers what, and the URIs that another server offers, too.

    The main server comes first, then the others in their order. A name that another server has gets the server's name
    as a prefix; of resources with the same URI, the first one counts. `given` has the names of earlier lists, and gets
    the new ones: a name stays with the server that had it first, even if that does not offer it at the moment.
    """
    given = {} if given is None else given
    found: dict[str, dict[str, bytes]] = {kind: {} for kind in field_names(Offered)}
    named: dict[str, dict[str, tuple[str, str]]] = {"tools": {}, "prompts": {}}
    located: dict[str, dict[str, str]] = {"resources": {}, "templates": {}}
    hidden = []
    for server in (ServerOffer("", main), *others):
        for kind, to in named.items():
            for name, text in getattr(server.offered, kind):
                public = _public(server, name, kind, given)
                entry = text if public == name else _renamed(text, public)
                if entry:
                    found[kind][public], to[public] = entry, (server.name, name)
        for kind, at in located.items():
            for uri, text in getattr(server.offered, kind):
                if given.setdefault((kind, uri), (server.name, uri))[0] == server.name:
                    found[kind][uri], at[uri] = text, server.name
                else:
                    hidden.append(uri)
    lists = (tuple(each.items()) for each in found.values())
    routes = Routes(named["tools"], named["prompts"], located["resources"], located["templates"])
    return Offered(*lists), routes, tuple(hidden)


def _public(server: ServerOffer, name: str, kind: str, given: GivenNames) -> str:
    """The name that clients see: the server's own, else one with a prefix, else one with a digest of both names."""
    prefixed = f"{server.name or MAIN}_{name}"
    digest = f"_{crc32(f'{server.name}/{name}'.encode('utf-8', 'surrogatepass')):08x}"
    reserved = kind == "tools" and name in OWN_TOOLS and server.name
    candidates = [] if server.prefix or reserved else [name]
    if len(prefixed) <= MAX_TOOL_NAME:
        candidates.append(prefixed)
    for candidate in candidates:
        if given.setdefault((kind, candidate), (server.name, name)) == (server.name, name):
            return candidate
    return prefixed[: MAX_TOOL_NAME - len(digest)] + digest


def _renamed(text: bytes, name: str) -> bytes:
    """The entry with another name; empty if Python cannot read it."""
    try:
        return json.dumps({**json.loads(text), "name": name}, separators=(",", ":")).encode("ascii")
    except (ValueError, RecursionError, TypeError):
        return b""


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
