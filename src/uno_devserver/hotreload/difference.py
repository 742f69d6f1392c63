"""What a reload has made of a server's tools, by their names."""

from __future__ import annotations

from typing import Literal

from ..system.values import Value

Verdict = Literal["same", "grown", "changed"]
NAMED = 5  # tools that are named in a sentence; nobody reads more
LISTED = 20  # of each kind, in a history of many reloads that agents read, too


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

    def to_json(self) -> dict[str, list[str]]:
        kinds = {"added": self.added, "removed": self.removed, "grown": self.grown, "changed": self.changed}
        return {kind: list(names[:LISTED]) for kind, names in kinds.items()}


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
