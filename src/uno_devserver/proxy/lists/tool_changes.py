"""Compares two lists of tools: what is new, gone and changed, and which tool was probably renamed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...hotreload.authority import ToolChanges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...hotreload.authority import ToolVerdict
    from .merge import Entries

SIMILAR = 0.6  # the ratio of difflib from which two names are similar; 'get_user' and 'fetch_user' have 0.67


class _Named(msgspec.Struct):
    name: str


_named = msgspec.json.Decoder(_Named).decode
_raw_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


def entries_of(tools: bytes) -> Entries:
    """The names and the JSON of the tools in a published list."""
    return tuple((_named(raw).name, bytes(raw)) for raw in _raw_list(tools))


def compare_tools(before: Entries, after: Entries) -> ToolChanges:
    """The difference between the old and the new tools, for clients that have read the old ones."""
    old, new = dict(before), dict(after)
    verdicts = {name: _verdict(old[name], new[name]) for name in new if name in old}
    return ToolChanges(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        grown=tuple(name for name, verdict in verdicts.items() if verdict == "grown"),
        changed=tuple(name for name, verdict in verdicts.items() if verdict == "changed"),
    )


def _verdict(before: bytes, after: bytes) -> ToolVerdict:
    if before == after:
        return "same"
    try:
        old, new = msgspec.json.decode(before), msgspec.json.decode(after)
        if old == new:  # the members of an object have no order
            return "same"
        properties, more = _take_properties(old), _take_properties(new)
    except (ValueError, RecursionError):  # JSON that msgspec does not accept, or no schema
        return "changed"
    # "grown": the only differences are new properties, none of them required.
    return "grown" if old == new and properties.items() <= more.items() else "changed"


def _take_properties(tool: Any) -> dict[str, Any]:
    """Remove and return the properties of the tool's input schema; ValueError if it has no readable schema."""
    schema = tool.setdefault("inputSchema", {}) if isinstance(tool, dict) else None
    properties = schema.pop("properties", None) or {} if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        raise ValueError("a tool without a schema")
    return properties


def renamed_tools(before: Entries, after: Entries) -> dict[str, str]:
    """The probable new names of tools that are gone: one new tool has the same schema, or a similar name."""
    old, new = dict(before), dict(after)
    added = [name for name in new if name not in old]
    found = {}
    for name in old:
        fitting = [other for other in added if name not in new and _fits(name, old[name], other, new[other])]
        if len(fitting) == 1:
            found[name] = fitting[0]
    claims = list(found.values())
    return {name: other for name, other in found.items() if claims.count(other) == 1}


def still_gone(gone: Mapping[str, str | None], before: Entries, after: Entries) -> dict[str, str | None]:
    """The tools that are gone after one more reload, each with its probable new name; `gone`: those before it."""
    names, renamed = {name for name, _ in after}, renamed_tools(before, after)
    known = {name: renamed.get(new, new if new in names else None) if new else None for name, new in gone.items()}
    removed = {name: renamed.get(name) for name, _ in before}
    return {name: new for name, new in {**known, **removed}.items() if name not in names}


def _fits(name: str, text: bytes, other: str, other_text: bytes) -> bool:
    from difflib import SequenceMatcher  # few proxies need it

    schema = _schema(text)
    same_schema = bool(schema and schema.get("properties")) and schema == _schema(other_text)
    return same_schema or SequenceMatcher(None, name.lower(), other.lower()).ratio() >= SIMILAR


def _schema(text: bytes) -> dict[str, Any] | None:
    try:
        tool = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    schema = tool.get("inputSchema") if isinstance(tool, dict) else None
    return schema if isinstance(schema, dict) else None
