"""A call in the queue of the pipeline: it is granted its turn, answered without one, or cancelled; once.

ReloadQuery the authority without depending on it: whatever it does, there is an answer within a bound, or None.

That it failed is logged once for each question, until that is answered again. Nobody waits a second time for a question
that is still open.

Where tool calls meet hot reload: one queue, one look at the code for each batch of calls, one restart per change.

Every call is either run, once, or answered with what became of it instead; calls leave the queue in the order in which
they came. A batch ends when nothing waits and nothing runs. The first call of a batch has the code checked, and so has
one that comes while it is known that a source was changed; the others wait for that and are not checked again. Requests
that are no calls wait for the newest code, too, but not for a turn, and are told nothing. An authority that fails or is
silent stops nobody. Everything happens in the engine's loop.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from ...protocol.running import Tasks
from ...system.log import log
from ...workspace.config import Strategy
from . import reload_messages as messages
from .failure_answers import NoAnswer
from .progress import QUEUE_STEP, Progress
from .reload_messages import Note, State, told
from .result_notes import ResultNotes
from .upstream_link import DEFAULT_LIMITS, CallLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    import msgspec

    from ...hotreload.authority import Authority, CheckResult, Restarted
    from ...protocol.service import Call, Result
    from ..inspection.call_recorder import Observer

    Execute = Callable[[], Awaitable[Result | msgspec.Raw]]


class WaitingCall:
    def __init__(self, call: Call) -> None:
        self.call = call
        self.turn: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()  # None: to be run
        self.progress = Progress(call, QUEUE_STEP)
        self.checked = False  # the code was looked at since it came, or need not be
        self.granted = False
        self.notes: list[Note] = []  # for its own result

    @property
    def waits(self) -> bool:
        """Neither answered, nor granted, nor cancelled: the last is known here before its task hears of it."""
        return not self.turn.done()

    def grant(self, note: Note | None) -> None:
        self.granted = True
        if note is not None:
            self.notes.append(note)
        self.turn.set_result(None)


T = TypeVar("T")

_NEWS = "whether sources were changed"
_CHECK = "whether the code is newer than what runs"
_RESTART = "to have the server replaced"


class ReloadQuery:
    def __init__(self, authority: Authority, limits: CallLimits) -> None:
        self._authority = authority
        self._limits = limits
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
        return await self._answer(_CHECK, lambda: self._authority.check(heard), self._limits.check_seconds, heard)

    async def restart(self) -> Restarted | None:
        return await self._answer(_RESTART, self._authority.ready_to_restart, self._limits.restart_seconds, None)

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


MOST_LOOKS = 2  # that one request waits for: one that was under way, and one of its own
_ITS_TURN = "Waiting for its turn."


class CallQueue:
    def __init__(
        self,
        authority: Authority,
        *,
        concurrency: int | None,
        strategy: Strategy,
        waits: Callable[[], bool],
        name: str,
        serves: Callable[[], bool] = lambda: True,
        observer: Callable[[], Observer | None] = lambda: None,
        source: str | None = None,
        status_seconds: float | None = None,
        limits: CallLimits = DEFAULT_LIMITS,
    ) -> None:
        """`waits`: whether calls wait for a server (--wait-calls) instead of being told that it restarts. `name` is
        what the server is called in sentences, `source` where its code is. `serves`: whether there is one at the
        moment. `status_seconds`: how long mcpStatus waits, where the config says so.
        """
        self.name = name
        self.source = source
        self.status_seconds = limits.status_seconds if status_seconds is None else status_seconds
        self._observer = observer  # who looks on; told only where a call has to wait
        self._asking = ReloadQuery(authority, limits)
        self._limit = inf if concurrency is None else concurrency
        self._swaps = strategy is Strategy.SWAP
        self._waits = waits
        self._serves = serves
        self._limits = limits
        self._tasks = Tasks()  # of their own: a client that cancels its call cancels nothing for the others
        self._queue: dict[WaitingCall, None] = {}  # in the order of coming
        self._running = 0
        self._idle: list[asyncio.Future[None]] = []  # who waits until nothing runs
        self._checking = False
        self._check_task: asyncio.Task[None] | None = None
        self._over = False
        self._replacing = False  # by ourselves: from the check that wants it to the server that answers
        self._paused = False  # by others
        self._holding = False  # those who come meanwhile wait; else they are told
        self._open = asyncio.Event()  # neither replacing nor paused
        self._tidings = ResultNotes()
        self._at = _ITS_TURN  # what those in the queue wait for
        self._reminder: asyncio.TimerHandle | None = None
        self._plain = True  # nothing is out of the ordinary, see `_settle`
        self._settle()

    def enter(self) -> bool:
        """Whether a call may run at once: nothing is out of the ordinary, and the code has not changed. If so, it
        counts as running until `leave`.
        """
        if self._plain and self._running < self._limit and self._asking.news() is False:
            self._running += 1
            return True
        return False

    def leave(self) -> None:
        """A call that had entered is over."""
        self._running -= 1
        if self._queue or self._idle:
            self._settle()

    async def run(self, call: Call, execute: Execute) -> Result | msgspec.Raw:
        """What comes of the call: of `execute`, or what is told instead."""
        if self.enter():
            try:
                return await execute()
            finally:
                self.leave()
        waiting = WaitingCall(call)
        self._enter(waiting)
        try:
            answer = await waiting.turn
        except asyncio.CancelledError:
            self._withdraw(waiting)
            raise
        if answer is None and (observer := self._observer()) is not None:
            observer.goes_on(call)
        return await self._carry_out(waiting, execute) if answer is None else answer

    async def current(self) -> None:
        """Returns when the newest code answers, or is known not to: for what needs no turn, and cannot be told."""
        looks = 0
        while not self._over:
            if self._checking and self._check_task is not None:
                await asyncio.wait([self._check_task])
                looks += 1
            elif self._is_closed:
                # The restart waits for a call that may need this first. A swap does not, but the owner of a Host may.
                if self._running and (self._idle or not self._swaps):
                    return
                await self._open.wait()
            elif looks < MOST_LOOKS and self._needs_look(first=not looks):
                self._begin_check(None)
            else:
                return

    def _needs_look(self, *, first: bool) -> bool:
        news = self._asking.news()
        if news is True or self._running or not first:
            return news is True
        return news is None or (self._tidings.not_built and not self._serves())

    def look(self) -> None:
        """Nobody waits for it: if the code is known to have changed, let it be built and started."""
        if not (self._checking or self._is_closed or self._over) and self._asking.news() is True:
            self._begin_check(None)

    async def pause(self, *, hold: bool) -> None:
        """The server is about to be replaced: from now on no call is begun. Those that wait, and come, are told, or
        held. Returns when nothing runs any more; if they are held, at once. Once more does no harm.
        """
        self._paused = True
        self._tidings.restart_begins()
        if not self._replacing:
            self._close_for(hold or self._holds)
        if not hold:
            await self.drained()

    def hold(self) -> None:
        """The new server is there, but not all that belongs to its start is done: whoever comes now waits for that."""
        self._holding = True

    def resume(self) -> None:
        """The server is there again, or will not come."""
        self._paused = False
        self._settle()

    async def drained(self) -> None:
        """Returns when nothing runs."""
        if self._running:
            idle = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await idle

    @property
    def failing(self) -> tuple[State, str] | None:
        """That the code on disk is not what answers, for it cannot be built or started; and why."""
        lasting = self._tidings.lasting
        return (lasting.state, self._tidings.why) if lasting is not None else None

    @property
    def extension_error(self) -> str | None:
        """What the build of the extension printed, where it fails."""
        return self._tidings.extension_error

    @property
    def awaited_calls(self) -> int:
        """How many calls a restart waits for."""
        return self._running if self._is_closed else 0

    async def settled(self, seconds: float) -> bool:
        """Whether no restart is due, now or within that time."""
        try:
            async with asyncio.timeout(seconds):
                await self._open.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Nothing is reloaded any more: whatever waits is run. A restart that is under way comes to its end."""
        self._over = True
        if self._check_task is not None:
            self._check_task.cancel()
        self._asking.close()
        self._limit = inf
        self._checking = self._replacing = self._paused = False
        for waiting in self._queue:
            waiting.checked = True
        self._settle()

    # The queue.

    def _enter(self, waiting: WaitingCall) -> None:
        if self._is_closed and not self._holding:
            self._tell_of_restart(waiting, [messages.queued(self.name)])
            return
        self._queue[waiting] = None
        self._show((waiting,))
        self._remind_later()
        if self._is_closed:
            waiting.progress.tell(self._at)
        elif not self._checking:
            news = self._asking.news()
            begins = not self._running and len(self._queue) == 1  # a batch
            # Each batch builds again while the build fails: that may not be the fault of the code.
            if news is True or (begins and (news is None or self._tidings.not_built)):
                self._begin_check(waiting)
            else:
                waiting.checked = True
                self._settle()

    def _tell_of_restart(self, waiting: WaitingCall, notes: list[Note]) -> None:
        if (observer := self._observer()) is not None:
            observer.waits(waiting.call, f"Told that {self.name} is restarted.", restarting=True)
        self._tell(waiting, notes)

    def _tell(self, waiting: WaitingCall, notes: list[Note]) -> None:
        """Answer it instead of running it."""
        self._queue.pop(waiting, None)
        if waiting.waits:
            waiting.turn.set_result(told(notes))

    def _withdraw(self, waiting: WaitingCall) -> None:
        """Its client has cancelled it."""
        self._queue.pop(waiting, None)
        if waiting.granted:
            self._running -= 1
            self._settle()

    async def _carry_out(self, waiting: WaitingCall, execute: Execute) -> Result | msgspec.Raw:
        run = True
        try:
            result = await execute()
        except NoAnswer as none:
            if not any(note.text for note in (*waiting.notes, *self._tidings.next)):
                raise
            result, run = none.told("tools/call"), none.may_have_run
            if none.has_reasons:
                self._tidings.failed_start_told()
        finally:
            self._running -= 1
            self._settle()
        carrying = self._tidings.put_on(result, waiting.notes, run=run)
        self._settle()
        return carrying

    @property
    def _is_closed(self) -> bool:
        """The server is replaced, or is about to be."""
        return self._paused or self._replacing

    @property
    def _holds(self) -> bool:
        """Whether calls wait for a new server, and are not told of it."""
        return self._swaps or self._waits()

    def _settle(self) -> None:
        """Something has changed: let everybody go on who can."""
        if not self._running:
            for idle in self._idle:
                if not idle.done():  # whoever waited may have been cancelled
                    idle.set_result(None)
            self._idle.clear()
        if self._is_closed:
            self._open.clear()
        else:
            self._open.set()
            moved = self._at != _ITS_TURN and not self._checking
            self._at = _ITS_TURN if moved else self._at
            self._begin_calls()
            if moved:
                self._show(self._queue)
        self._plain = not (self._is_closed or self._checking or self._tidings.lasting or self._tidings.next)

    def _begin_calls(self) -> None:
        while self._queue and self._running < self._limit and not self._checking:
            first = next(iter(self._queue))
            if first.checked:
                del self._queue[first]
                if first.waits:
                    self._running += 1
                    first.grant(self._tidings.lasting)
            elif self._asking.news() is True:  # it came after the last check had begun, and perhaps after an edit
                self._begin_check(first)
            else:
                for waiting in self._queue:
                    waiting.checked = True

    # Checking.

    def _begin_check(self, trigger: WaitingCall | None) -> None:
        for waiting in self._queue:
            waiting.checked = True  # when it is over
        self._checking, self._plain = True, False
        self._hear(f"Checking whether the code of {self.name} has changed.")
        self._check_task = self._tasks.start(self._check(trigger))

    async def _check(self, trigger: WaitingCall | None) -> None:
        result = await self._asking.check(self._hear)
        self._checking = False
        if result is None:
            for waiting in self._queue:
                waiting.checked = True  # who came meanwhile would ask in vain, too
        else:
            self._take(result, trigger)
        self._settle()

    def _take(self, result: CheckResult, trigger: WaitingCall | None) -> None:
        if trigger is None or not trigger.waits:  # it was cancelled, and the next takes its place
            trigger = next((waiting for waiting in self._queue if waiting.waits), None)
        tidings, about_extension = self._tidings, self._tidings.of_extension(result)
        output = result.server_build_error
        if result.restart_due:
            tidings.ready()
            self._replace(trigger, about_extension)
            return
        if output is not None:
            if tidings.build_failed(self.name, result, output) and trigger is not None:
                tidings.shown(result, output)
                note = messages.build_failed(self.name, output, serves=self._serves())
                self._tell(trigger, [note, *about_extension])
                return
        elif result.server_digest is not None:
            tidings.not_started(self.name, serves=self._serves())
        else:
            tidings.current()
        tidings.next += about_extension

    def _hear(self, message: str) -> None:
        self._at = message
        self._show(self._queue)

    # Restarter.

    def _replace(self, trigger: WaitingCall | None, about_extension: list[Note]) -> None:
        self._replacing = True
        hold = self._holds
        if trigger is not None and not hold:
            self._tell_of_restart(trigger, [messages.restarting(self.name), *about_extension])
        else:
            self._tidings.next += about_extension
        self._close_for(hold)
        self._tasks.start(self._replace_server())

    def _close_for(self, hold: bool) -> None:
        """From now on; hold or tell all who wait."""
        self._holding = hold
        self._at = f"Waiting for the new code of {self.name}."
        for waiting in tuple(self._queue):
            if hold:
                waiting.progress.tell(self._at)
            else:
                self._tell_of_restart(waiting, [messages.queued(self.name)])
        self._show(self._queue)
        self._settle()

    async def _replace_server(self) -> None:
        if not self._swaps:
            await self.drained()
        if self._over:
            return
        restarted = await self._asking.restart()
        self._replacing = False
        if restarted is not None:
            self._heed(restarted)
        self._settle()

    def _heed(self, restarted: Restarted) -> None:
        self._tidings.restarted(self.name, restarted)
        if restarted.ok:
            for waiting in self._queue:
                waiting.notes.append(Note(State.SWAPPED if self._swaps else State.RELOADED))

    # Beside it.

    def _show(self, queued: Iterable[WaitingCall]) -> None:
        """To whoever looks on: what they wait for."""
        if (observer := self._observer()) is not None:
            for waiting in queued:
                observer.waits(waiting.call, self._at, restarting=self._is_closed)

    def _remind_later(self) -> None:
        if self._reminder is None:
            loop = asyncio.get_running_loop()
            self._reminder = loop.call_later(self._limits.progress_seconds, self._remind)

    def _remind(self) -> None:
        self._reminder = None
        for waiting in self._queue:
            waiting.progress.tell(self._at)
        if self._queue:
            self._remind_later()
