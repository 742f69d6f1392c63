"""All targets, by what they read."""

from __future__ import annotations

from ..target import Target
from . import build, edits, wire

TARGETS: tuple[Target, ...] = (*wire.TARGETS, *build.TARGETS, *edits.TARGETS)


def named(name: str) -> Target:
    return next(target for target in TARGETS if target.name == name)
