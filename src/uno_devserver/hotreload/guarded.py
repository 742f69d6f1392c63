"""Programs that end with this process, whatever ends that."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_GUARD = os.path.join(os.path.dirname(__file__), "client_guard.py")


def guarded(line: Sequence[str]) -> tuple[str, ...]:
    """To be run instead, with an input that is a pipe: the program ends, with its group, when that does."""
    return (sys.executable, "-IS", _GUARD, *line)
