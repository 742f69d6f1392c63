"""Upstreams that have to go: some at once, some when they have answered what they were asked. None is forgotten."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...protocol.running import Tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..upstream.upstream import Running


class Departures:
    def __init__(self, stop_seconds: float) -> None:
        """`stop_seconds`: what takes longer to end, hangs, and is not waited for."""
        self._stop_seconds = stop_seconds
        self._stops = Tasks()
        self._leaving = Tasks()
        self._over = asyncio.Event()

    def stop(self, running: Running, *, patient: bool = False) -> None:
        """End it, if it is ours. `patient`: it works, so it gets the time that it needs to end well."""
        self._stops.start(running.stop(patient=patient))

    def see_off(self, running: Running, unused: Callable[[], Awaitable[object]]) -> None:
        """Another has its place: end it when nobody waits for its answers any more. However it ends, it is no crash."""
        self._leaving.start(self._see_off(running, unused))

    async def done(self) -> None:
        """Until those are gone that have to go at once, within a bound."""
        await self._stops.wait(self._stop_seconds)

    def hurry(self) -> None:
        """All is over: those that had still to answer go at once, too."""
        self._over.set()

    async def close(self) -> None:
        """Until all of them are gone, within a bound."""
        self.hurry()
        await self.done()
        await self._leaving.wait(self._stop_seconds)

    async def _see_off(self, running: Running, unused: Callable[[], Awaitable[object]]) -> None:
        waits = [asyncio.ensure_future(one) for one in (unused(), running.ended(), self._over.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        await running.stop(patient=not self._over.is_set())
