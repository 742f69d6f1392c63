"""Who looks on while calls are made: the seam, and the recorder of calls behind it.

Calls are followed only while there is an observer; what it does never changes what becomes of them. The last calls are
remembered, and all that are under way; what is kept of each is short.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from ...protocol.jsonrpc import RpcError
from .abridged import arguments_of, cut, name_of, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    import msgspec

    from ...protocol.service import Call, Params, Result

    Answering = Coroutine[Any, Any, Result | msgspec.Raw]

REMEMBERED = 200  # calls
TELL_SECONDS = 0.05  # what happens to a call within that time is told at once: people see no difference
LONGEST_CLIENT = 100  # characters
BARELY_SECONDS = 0.001  # a call that has to wait is known to within that time, and was not run before

QUEUED, RUNNING, RESTARTING = "queued", "running", "restarting"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"


class Observer(Protocol):
    """In the engine's loop. Calls that it does not follow are of no interest to it."""

    def follow(self, call: Call, answering: Answering) -> Answering:
        """What comes of `answering`, unchanged."""

    def waits(self, call: Call, why: str, *, restarting: bool = False) -> None:
        """It is not run for the moment. `restarting`: it is held for, or told of, a server that is being replaced."""

    def goes_on(self, call: Call) -> None:
        """It is run."""


class Recorder:
    """Tells each call as a document, whenever something has become of it, while `live`."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._live = False
        self._last_id = 0
        self._under_way: dict[int, _Record] = {}  # by the identity of the call
        self._ended: deque[_Record] = deque(maxlen=REMEMBERED)
        self._news: dict[int, _Record] = {}  # what is to be told
        self._timer: asyncio.TimerHandle | None = None

    @property
    def live(self) -> bool:
        return self._live

    @live.setter
    def live(self, wanted: bool) -> None:
        self._live = wanted
        if not wanted and self._timer is not None:
            self._timer.cancel()
            self._tell_news()

    def documents(self) -> list[dict[str, Any]]:
        """The last calls, newest last; all that are under way are among them."""
        room = max(0, REMEMBERED - len(self._under_way))
        ended = list(self._ended)[-room:] if room else []
        records = sorted([*ended, *self._under_way.values()], key=lambda record: record.id)
        return [record.document(self._loop.time()) for record in records]

    async def follow(self, call: Call, answering: Answering) -> Result | msgspec.Raw:
        self._last_id += 1
        record = _Record(self._last_id, call, self._loop.time())
        self._under_way[id(call)] = record
        self._changed(record)
        try:
            result = await answering
        except RpcError as error:
            self._end(call, record, FAILED, f"{error.message} ({error.code})")
            raise
        except asyncio.CancelledError:
            self._end(call, record, CANCELLED if _is_cancelled() else FAILED, "")
            raise
        except BaseException as error:
            self._end(call, record, FAILED, f"The proxy failed: {type(error).__name__}. Its log says more.")
            raise
        self._end(call, record, RESTARTING if record.state == RESTARTING else DONE, result)
        return result

    def waits(self, call: Call, why: str, *, restarting: bool = False) -> None:
        self._move(call, RESTARTING if restarting else QUEUED, why)

    def goes_on(self, call: Call) -> None:
        self._move(call, RUNNING, "")

    def _move(self, call: Call, state: str, why: str) -> None:
        record = self._under_way.get(id(call))
        if record is not None and (record.state, record.why) != (state, why):
            record.move(state, why, self._loop.time())
            self._changed(record)

    def _end(self, call: Call, record: _Record, state: str, outcome: str | Result | msgspec.Raw) -> None:
        del self._under_way[id(call)]
        record.end(state, outcome, self._loop.time())
        self._ended.append(record)
        self._changed(record)

    def _changed(self, record: _Record) -> None:
        if not self._live:
            record.shorten()
            return
        self._news[record.id] = record
        if self._timer is None:
            self._timer = self._loop.call_later(TELL_SECONDS, self._tell_news)

    def _tell_news(self) -> None:
        self._timer = None
        news, self._news = self._news, {}
        now = self._loop.time()
        for record in news.values():
            self._tell(record.document(now))


class _Record:
    """One call. Its texts are made when they are first told: until then it runs as fast as without."""

    __slots__ = (
        "_arguments",
        "_outcome",
        "_ran",
        "_since",
        "_total",
        "_waited",
        "at",
        "client",
        "id",
        "method",
        "name",
        "state",
        "why",
    )

    def __init__(self, number: int, call: Call, now: float) -> None:
        self.id = number
        self.method = call.method
        self.name = name_of(call.method, call.params)
        self.client = cut(call.session.client.name or "unknown", LONGEST_CLIENT)
        self.at = time.time()
        self.state = RUNNING
        self.why = ""
        self._since = now  # when it came into this state
        self._waited = 0.0
        self._ran: float | None = None  # None: it was never run
        self._total: float | None = None  # None: it is under way
        self._arguments: str | Params = call.params
        self._outcome: str | Result | msgspec.Raw = ""

    def move(self, state: str, why: str, now: float) -> None:
        before = self._ran
        self._waited, self._ran = self._times(now)
        if before is None and state in (QUEUED, RESTARTING) and now - self._since < BARELY_SECONDS:
            self._ran = None
        self._since = now
        self.state, self.why = state, why

    def end(self, state: str, outcome: str | Result | msgspec.Raw, now: float) -> None:
        self.move(state, self.why if state == RESTARTING else "", now)
        if state == RESTARTING:  # it was told to come again, and never run: all of that was its way there
            self._waited, self._ran = self._waited + (self._ran or 0.0), None
        self._total = self._waited + (self._ran or 0.0)
        self._outcome = outcome

    def shorten(self) -> None:
        """Keep only the texts of what it was given and answered."""
        if not isinstance(self._arguments, str):
            self._arguments = arguments_of(self.method, self._arguments)
        if not isinstance(self._outcome, str):
            is_error, self._outcome = outcome_of(self._outcome)
            if is_error and self.state == DONE:
                self.state = FAILED

    def document(self, now: float) -> dict[str, Any]:
        self.shorten()
        waited, ran = self._times(now)
        return {
            "id": self.id,
            "method": cut(self.method, LONGEST_CLIENT),
            "name": self.name,
            "client": self.client,
            "state": self.state,
            "why": self.why,
            "at": self.at,
            "queuedMs": _ms(waited),
            "runningMs": None if ran is None else _ms(ran),
            "totalMs": None if self._total is None else _ms(self._total),
            "arguments": self._arguments,
            "outcome": self._outcome,
        }

    def _times(self, now: float) -> tuple[float, float | None]:
        """How long it has waited, and run, until now."""
        if self._total is not None:
            return self._waited, self._ran
        spent = now - self._since
        if self.state != RUNNING:
            return self._waited + spent, self._ran
        return self._waited, (self._ran or 0.0) + spent


def _is_cancelled() -> bool:
    """By whoever made the call, and not by something inside it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
