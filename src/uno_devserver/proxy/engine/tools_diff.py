"""A server's new tools against its old ones, for whoever has read the old ones: same, grown or changed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ...system.values import Value

if TYPE_CHECKING:
    from ..lists import Entries

Verdict = Literal["same", "grown", "changed"]
NAMED = 5  # tools that are named in a sentence; nobody reads more


class Difference(Value):
    """The names of tools, each in one of these."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()  # they take what they took before, and more
    changed: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """`grown`: whoever knows the old tools can go on as before."""
        if self.removed or self.changed:
            return "changed"
        return "grown" if self.added or self.grown else "same"

    def __str__(self) -> str:
        kinds = {"new": self.added, "gone": self.removed, "with more options": self.grown, "changed": self.changed}
        told = [f"{len(names)} {kind} ({_listed(names)})" for kind, names in kinds.items() if names]
        return f"the tools: {', '.join(told)}" if told else "the tools are the same"


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


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
