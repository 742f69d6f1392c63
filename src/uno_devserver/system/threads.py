"""Blocking work beside the event loop, in threads that nobody waits for when the process ends."""

from __future__ import annotations

import _thread
import asyncio
from collections.abc import Callable
from typing import TypeVar

from .event_loop import in_loop

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """What `work` returns or raises. Whoever is cancelled meanwhile does not hear of it; the work goes on."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # also an exit: it would end the thread without a word, and somebody waits
            in_loop(loop, _settle, done, None, error)
        else:
            in_loop(loop, _settle, done, result, None)

    _thread.start_new_thread(run, ())
    return await done


async def run_in_thread_to_end(work: Callable[[Callable[[], bool]], T]) -> T:
    """Like `run_in_thread`, but if the caller is cancelled, it first waits for the end of the work.

    `work` is passed a function that returns False from then on.
    """
    wanted = True
    working = asyncio.ensure_future(run_in_thread(lambda: work(lambda: wanted)))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        wanted = False
        await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # nobody is interested
        raise


async def wait_for_event(event: asyncio.Event, seconds: float) -> None:
    """Sleep, but not longer than until something happens; it can happen again then."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
    event.clear()


def _settle(done: asyncio.Future[T], result: T, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))
