"""Asks the authority of hot reload; every request returns in bounded time, with None if there is no answer.

A failure is logged once, until the same request succeeds again. While an abandoned request is still open, the same
request returns None at once.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ...hotreload.authority import Demand
from ...system.log import log

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ...hotreload.authority import Authority, CheckResult, RestartResult
    from .upstream_link import CallLimits

# The requests to the authority, as the log names them.
_NEWS = "whether sources were changed"
_CHECK = "whether the code is newer than what runs"
_RESTART = "to have the server replaced"

T = TypeVar("T")


class ReloadQuery:
    def __init__(self, authority: Authority, limits: CallLimits) -> None:
        self._authority = authority
        self._limits = limits
        self._heard_at = 0.0  # when the authority last sent something for the current request
        self._failing: set[str] = set()  # the requests that failed the last time
        self._abandoned: dict[str, asyncio.Task[Any]] = {}  # the abandoned requests that are still open

    def news(self) -> bool | None:
        try:
            news = self._authority.news()
        except Exception as error:
            self._log_failure(_NEWS, _reason(error))
            return None
        self._failing.discard(_NEWS)
        return news

    async def check(self, show: Callable[[str], None], demand: Demand = Demand.NEW_CODE) -> CheckResult | None:
        """Check the code; None if nothing is heard for too long. A running build sends messages."""

        def hear(message: str) -> None:
            self._heard_at = asyncio.get_running_loop().time()
            show(message)

        return await self._ask(_CHECK, lambda: self._authority.check(hear, demand), self._limits.check_seconds)

    async def restart(self) -> RestartResult | None:
        return await self._ask(_RESTART, self._authority.ready_to_restart, self._limits.restart_seconds)

    def close(self) -> None:
        for task in self._abandoned.values():
            task.cancel()

    async def _ask(self, request: str, ask: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T | None:
        """Return the answer; None if the request fails, or nothing is heard for `seconds`."""
        if request in self._abandoned:
            return None
        loop = asyncio.get_running_loop()
        self._heard_at = loop.time()
        task = loop.create_task(ask())
        try:
            while not task.done():
                rest = self._heard_at + seconds - loop.time()
                if rest <= 0:
                    self._abandoned[request] = task
                    task.add_done_callback(partial(self._close, request))
                    self._log_failure(request, f"nothing was heard for {seconds:g} s")
                    return None
                await asyncio.wait([task], timeout=rest)
        except asyncio.CancelledError:
            task.cancel()
            raise
        try:
            answer = task.result()
        except (asyncio.CancelledError, Exception) as error:
            self._log_failure(request, _reason(error))
            return None
        self._failing.discard(request)
        return answer

    def _close(self, request: str, task: asyncio.Task[Any]) -> None:
        """Ignore the answer to an abandoned request, which can be made again from now on."""
        del self._abandoned[request]
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs that the exception was never retrieved

    def _log_failure(self, request: str, why: str) -> None:
        if request not in self._failing:
            self._failing.add(request)
            log.warn(f"Hot reload was asked {request}, but did not answer: {why}. Calls are run without the answer.")


def _reason(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "it was cancelled"
    return f"{type(error).__name__}: {error}".rstrip(": ").rstrip(".")
