"""Guesses tomorrow's weather from the pressure."""

from __future__ import annotations

from .sensors import Reading

FALLING = -1.5  # hectopascal per hour; below this, rain is likely


def forecast(before: Reading, now: Reading, hours: float) -> str:
    # HACK: a single pair of readings; good enough until we keep a history
    change = (now.hectopascal - before.hectopascal) / hours
    if change < FALLING:
        return "rain"
    # TODO(grace): tell fog from clouds
    return "clouds" if now.hectopascal < 1010 else "sun"
