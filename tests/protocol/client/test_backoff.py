"""How often a server is asked again that has stopped talking."""

from __future__ import annotations

import asyncio

from support.virtual_time import virtual
from uno_devserver.protocol.client.backoff import LONGEST_PAUSE_SECONDS, STEADY_SECONDS, Backoff


async def pauses(backoff: Backoff, attempts: int, seconds: float) -> list[float]:
    """Before each of so many attempts, each of which ends after these seconds."""
    taken = []
    for _ in range(attempts):
        taken.append(backoff.next())
        await asyncio.sleep(taken[-1] + seconds)
    return taken


@virtual
async def test_pauses_grow_while_attempts_end_soon() -> None:
    taken = await pauses(Backoff(), 10, STEADY_SECONDS / 2)

    assert taken[:4] == [0.1, 0.2, 0.4, 0.8]
    assert taken[-1] == LONGEST_PAUSE_SECONDS


@virtual
async def test_a_pause_is_short_again_after_an_attempt_that_lasted() -> None:
    backoff = Backoff()
    await pauses(backoff, 10, 0)
    await asyncio.sleep(STEADY_SECONDS)

    assert await pauses(backoff, 3, 0) == [0.1, 0.2, 0.4]
