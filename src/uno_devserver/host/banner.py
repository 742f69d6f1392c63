"""What the Host says on standard output: who it is and where it listens. Launchers and their logs look for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..system.text import visible

TITLE = "Uno Platform DevServer"


def say(text: str) -> None:
    """A line on standard output, at once. Nobody has to read it: an output that takes nothing is no error."""
    try:
        if sys.stdout is not None:
            sys.stdout.write(visible(text) + "\n")
            sys.stdout.flush()
    except (OSError, ValueError):
        # What is left in its buffer would fail once more at the end, with a message and an exit code of its own.
        sys.stdout = None


def banner(facts: Sequence[tuple[str, str]]) -> str:
    """The facts in a box."""
    width = max(len(key) for key, _ in facts)
    lines = [f" {key:<{width}} : {value} " for key, value in facts]
    inside = max(len(line) for line in (*lines, TITLE))
    edge = f"+{'=' * inside}+"
    return "\n".join(
        (edge, f"|{TITLE:^{inside}}|", f"+{'-' * inside}+", *(f"|{line:<{inside}}|" for line in lines), edge)
    )
