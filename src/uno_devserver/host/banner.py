"""The lines that a Host writes to standard output; launchers and their logs search for them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..system.text import visible

TITLE = "Uno Platform DevServer"


def say(text: str) -> None:
    """Write a line without buffering; failures to write are ignored."""
    try:
        if sys.stdout is not None:
            sys.stdout.write(visible(text) + "\n")
            sys.stdout.flush()
    except (OSError, ValueError):
        # Otherwise Python would try to flush the rest at exit, and fail with its own message and exit code.
        sys.stdout = None


def banner(facts: Sequence[tuple[str, str]]) -> str:
    """The lines of a box that shows the facts."""
    width = max(len(key) for key, _ in facts)
    lines = [f" {key:<{width}} : {value} " for key, value in facts]
    inside = max(len(line) for line in (*lines, TITLE))
    edge = f"+{'=' * inside}+"
    return "\n".join(
        (edge, f"|{TITLE:^{inside}}|", f"+{'-' * inside}+", *(f"|{line:<{inside}}|" for line in lines), edge)
    )
