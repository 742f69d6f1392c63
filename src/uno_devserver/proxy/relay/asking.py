"""Asking the authority without depending on it: whatever it does, there is an answer within a bound, or None.

That it failed is logged once for each question, until that is answered again. Nobody waits a second time for a question
that is still open.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from ...system.log import log

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ...hotreload.authority import Authority, CheckResult, Restarted
    from .policy import RelayPolicy

T = TypeVar("T")

_NEWS = "whether sources were changed"
_CHECK = "whether the code is newer than what runs"
_RESTART = "to have the server replaced"


class Asking:
    def __init__(self, authority: Authority, policy: RelayPolicy) -> None:
        self._authority = authority
        self._policy = policy
        self._complaints: set[str] = set()  # the questions that were not answered the last time
        self._open: dict[str, asyncio.Task[Any]] = {}  # those that somebody waited for in vain

    def news(self) -> bool | None:
        try:
            news = self._authority.news()
        except Exception as error:
            self._complain(_NEWS, _reason(error))
            return None
        self._complaints.discard(_NEWS)
        return news

    async def check(self, tell: Callable[[str], None]) -> CheckResult | None:
        """Given up when nothing is heard of it for a while: a build is heard of."""
        heard = _Heard(tell)
        return await self._answer(_CHECK, lambda: self._authority.check(heard), self._policy.check_seconds, heard)

    async def restart(self) -> Restarted | None:
        return await self._answer(_RESTART, self._authority.ready_to_restart, self._policy.restart_seconds, None)

    def close(self) -> None:
        for task in self._open.values():
            task.cancel()

    async def _answer(
        self, question: str, ask: Callable[[], Coroutine[Any, Any, T]], seconds: float, heard: _Heard | None
    ) -> T | None:
        if question in self._open:
            return None
        loop = asyncio.get_running_loop()
        asked, begun = loop.create_task(ask()), loop.time()
        try:
            while not asked.done():
                rest = (heard.last if heard else begun) + seconds - loop.time()
                if rest <= 0:
                    self._complain(question, f"nothing was heard of it for {seconds:g} s")
                    self._leave_open(question, asked)
                    return None
                await asyncio.wait([asked], timeout=rest)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        try:
            result = asked.result()
        except asyncio.CancelledError:
            self._complain(question, "it was cancelled")
            return None
        except Exception as error:
            self._complain(question, _reason(error))
            return None
        self._complaints.discard(question)
        return result

    def _leave_open(self, question: str, asked: asyncio.Task[Any]) -> None:
        """Its answer comes too late, but then it can be asked again."""
        self._open[question] = asked

        def close(task: asyncio.Task[Any]) -> None:
            del self._open[question]
            if not task.cancelled():
                task.exception()  # or asyncio would complain that nobody has looked at it

        asked.add_done_callback(close)

    def _complain(self, question: str, why: str) -> None:
        if question not in self._complaints:
            self._complaints.add(question)
            log.warn(f"Hot reload was asked {question}, and gave no answer: {why}. Calls are made all the same.")


class _Heard:
    """Remembers when something was said last."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self.last = self._loop.time()

    def __call__(self, message: str) -> None:
        self.last = self._loop.time()
        self._tell(message)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ").rstrip(".")
