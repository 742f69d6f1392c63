"""A fuzz target: what is tried, what is promised of it, and where the tries begin."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from uno_devserver.system.log import NONE, log
from uno_devserver.system.values import Value

# What an input may cost. Of the processor, not of the clock: other programs run beside.
MAX_SECONDS = 2.0


class Target(Value):
    name: str
    promise: str  # what holds for every input
    check: Callable[[bytes], None]  # raises where it does not hold
    seeds: Callable[[], Sequence[bytes]]
    words: tuple[str | bytes, ...] = ()  # what the language is made of
    max_bytes: int = 2048


class TooSlow(Exception):
    """An input took longer than any may."""


class SaysNothing(Exception):
    """Something was refused without a reason."""


def told(refusal: Exception, *words: str) -> None:
    """A refusal that is documented is an answer if it says why, with these words."""
    if not str(refusal) or not all(word in str(refusal) for word in words):
        raise SaysNothing(f"{type(refusal).__name__}: {refusal}") from refusal


def attempt(target: Target, data: bytes) -> None:
    """One input; raises where the promise is broken, whatever it is that comes."""
    begin, level = time.process_time(), log.level
    log.level = NONE  # a million inputs, a million warnings
    try:
        target.check(data)
    finally:
        log.level = level
    took = time.process_time() - begin
    if took > MAX_SECONDS:
        raise TooSlow(f"{took:.1f} s for {len(data):,} bytes")
