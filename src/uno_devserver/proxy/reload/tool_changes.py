"""Compares the tools of a restarted server with the old ones: which are new, gone, changed, or only take more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...hotreload.difference import Difference

if TYPE_CHECKING:
    from ...hotreload.difference import Verdict
    from ..lists.merge import Entries


def compare(before: Entries, after: Entries) -> Difference:
    """The difference between the old tools and the new ones, for clients that have read the old ones."""
    old, new = dict(before), dict(after)
    verdicts = {name: _verdict(old[name], new[name]) for name in new if name in old}
    return Difference(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        grown=tuple(name for name, verdict in verdicts.items() if verdict == "grown"),
        changed=tuple(name for name, verdict in verdicts.items() if verdict == "changed"),
    )


def _verdict(before: bytes, after: bytes) -> Verdict:
    if before == after:
        return "same"
    try:
        old, new = msgspec.json.decode(before), msgspec.json.decode(after)
        if old == new:  # the members of an object have no order
            return "same"
        properties, more = _take_properties(old), _take_properties(new)
    except (ValueError, RecursionError):  # JSON that other readers accept, but not this one; or no schema
        return "changed"
    # New properties, none of which is required, are all that may differ.
    return "grown" if old == new and properties.items() <= more.items() else "changed"


def _take_properties(tool: Any) -> dict[str, Any]:
    """Remove the properties of its input schema, and return them; raises ValueError where there are none to be read."""
    schema = tool.setdefault("inputSchema", {}) if isinstance(tool, dict) else None
    properties = schema.pop("properties", None) or {} if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        raise ValueError("a tool without a schema")
    return properties
