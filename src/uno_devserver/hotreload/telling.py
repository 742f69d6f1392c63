"""Telling those who wait for a check what it is at; again and again where it takes long: silence looks like failure."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPEAT_SECONDS = 1.0


class Telling:
    def __init__(self) -> None:
        self._hearers: list[Callable[[str], None]] = []
        self._doing = ""

    @contextlib.contextmanager
    def to(self, hearer: Callable[[str], None]) -> Iterator[None]:
        self._hearers.append(hearer)
        try:
            yield
        finally:
            self._hearers.remove(hearer)

    def say(self, message: str) -> None:
        self._doing = message
        self._pass_on(message)

    @contextlib.contextmanager
    def during(self, message: str) -> Iterator[None]:
        """Something that may take long; what is said meanwhile is repeated in its place."""
        self.say(message)
        repeating = asyncio.create_task(self._repeat())
        try:
            yield
        finally:
            repeating.cancel()

    async def _repeat(self) -> None:
        begun = time.monotonic()
        while True:
            await asyncio.sleep(REPEAT_SECONDS)
            self._pass_on(f"{self._doing} ({time.monotonic() - begun:.0f} s)")

    def _pass_on(self, message: str) -> None:
        for hearer in tuple(self._hearers):
            hearer(message)
