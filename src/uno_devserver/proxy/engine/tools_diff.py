"""A server's new tools against its old ones, for whoever has read the old ones: same, grown or changed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...hotreload.difference import Difference

if TYPE_CHECKING:
    from ...hotreload.difference import Verdict
    from ..lists import Entries


def compare(before: Entries, after: Entries) -> Difference:
    old, new = dict(before), dict(after)
    both = [name for name in new if name in old]
    grown = {name: _growth(old[name], new[name]) for name in both}
    return Difference(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        grown=tuple(name for name in both if grown[name] == "grown"),
        changed=tuple(name for name in both if grown[name] == "changed"),
    )


def _growth(before: bytes, after: bytes) -> Verdict:
    if before == after:
        return "same"
    try:
        old, new = msgspec.json.decode(before), msgspec.json.decode(after)
        if old == new:  # the members of an object have no order
            return "same"
        return "grown" if _takes_more(old, new) else "changed"
    except (ValueError, RecursionError):  # valid for others, but not for this reader
        return "changed"


def _takes_more(old: Any, new: Any) -> bool:
    """Whether all that is new are properties that nobody has to give."""
    taken, takes = _schema(old), _schema(new)
    before, after = taken.pop("properties", None) or {}, takes.pop("properties", None) or {}
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    same_but_for_these = {**old, "inputSchema": taken} == {**new, "inputSchema": takes}
    return same_but_for_these and before == {name: schema for name, schema in after.items() if name in before}


def _schema(tool: Any) -> dict[str, Any]:
    """A copy; ValueError: it is none."""
    schema = tool.get("inputSchema", {}) if isinstance(tool, dict) else None
    if not isinstance(schema, dict):
        raise ValueError("a tool without a schema")
    return dict(schema)
