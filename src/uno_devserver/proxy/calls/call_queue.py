"""The queue of tool calls where code is reloaded: one check for all calls that wait, one restart per change.

Every call is either run once or answered with the reason why it was not run; calls leave the queue in the order in
which they came. A call has the code checked unless the code is known to be unchanged; calls that come during a check
wait for it, and for another one if a source is known to have changed meanwhile. Other requests also wait for the newest
code, but need no turn and get no notes. An authority that fails or does not answer does not stop calls.

No call waits for a call that it may have been made to answer. While a running call waits for an answer of its client
(sampling, elicitation), it does not count against the limit, and a restart that waits for it lets the calls pass that
come meanwhile: they run on the old server, and their results say so. Everything runs in the engine's loop.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING

from ...hotreload.authority import Demand, RestartResult
from ...protocol.jsonrpc import RpcError
from ...system.event_loop import Tasks
from ...workspace.config import Strategy
from ..lists.tool_changes import still_gone
from . import reload_messages as messages
from .failure_answers import OUTCOME_UNKNOWN, UnansweredRequest
from .forwarder import QUEUE_STEP, Progress
from .reload_messages import ReloadNote, ReloadState, ResultNotes, not_run
from .reload_query import ReloadQuery
from .upstream_link import DEFAULT_LIMITS, CallLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    import msgspec

    from ...hotreload.authority import Authority, CheckResult
    from ...protocol.service import Call, Result
    from ..inspection.call_recorder import CallRecorder
    from ..lists.merge import Entries

    Execute = Callable[["RunningCalls"], Awaitable[Result | msgspec.Raw]]

MAX_CHECKS = 2  # one request waits for a check that was already running, and for its own
_FOR_ITS_TURN = "Waiting for its turn."


class RunningCalls:
    """The calls that run on one server; a call leaves the calls that it entered, also after its server was swapped."""

    __slots__ = ("_advance", "asking", "awaited", "count")

    def __init__(self, advance: Callable[[], None]) -> None:
        self._advance = advance  # lets the queue act on a change
        self.count = 0
        self.asking = 0  # how many of them wait for an answer of their client
        self.awaited = False  # whether the queue has to know when one leaves

    def leave(self) -> None:
        """Report that a call is over; one with an open question has to report `answered` before."""
        self.count -= 1
        if self.awaited:
            self._advance()

    def asks(self) -> None:
        """Report that a call waits for an answer of its client."""
        self.asking += 1
        self._advance()

    def answered(self) -> None:
        """Report that a call goes on, at once: it may exceed the limit until another call is over."""
        self.asking -= 1
        self._advance()


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
        generation: Callable[[], int] = lambda: 1,
        tools: Callable[[], Entries] = tuple,
        observer: Callable[[], CallRecorder | None] = lambda: None,
        source: str | None = None,
        status_seconds: float | None = None,
        limits: CallLimits = DEFAULT_LIMITS,
    ) -> None:
        """`waits`: whether calls wait during a restart (--wait-calls); otherwise they are answered unrun. `serves`:
        whether a server answers at the moment; `generation`: how many have been connected so far; `tools`: its tools,
        as last read. `name`: the server in sentences; `source`: the folder of its code. `status_seconds`: how long
        mcpStatus waits; None for the usual time.
        """
        self.name = name
        self.source = source
        self.status_seconds = limits.status_seconds if status_seconds is None else status_seconds
        self._observer = observer
        self._authority = ReloadQuery(authority, limits)
        self._limit = inf if concurrency is None else concurrency
        self._swaps = strategy is Strategy.SWAP
        self._waits = waits
        self._serves = serves
        self._generation = generation
        self._tools = tools
        self._limits = limits
        self._tasks = Tasks()  # checks and restarts, which go on when a client cancels its call
        self._queue: dict[WaitingCall, None] = {}  # in the order in which they came
        self._running = RunningCalls(self._advance)
        self._idle: asyncio.Event | None = None  # set when no call runs any more; None while nothing waits for that
        self._check_task: asyncio.Task[None] | None = None  # while a check runs
        self._replacing = False  # from the check that found new code until the new server answers
        self._paused = False  # from `pause` to `resume`
        self._holds_calls = False  # whether new calls wait during a restart; otherwise they are answered unrun
        self._changed = asyncio.Event()  # set, and replaced, when a task that waits should check its condition
        self._closed = False
        self.unchecked = False  # whether the last check had no answer
        self.notes = ResultNotes()
        self._waits_for = _FOR_ITS_TURN  # why calls wait, for the inspector page and progress messages
        self._reminder: asyncio.TimerHandle | None = None
        self._before: Entries = ()  # the tools of the server before the restart
        self._known = generation()  # that of the last server that has answered
        self.replaced = 0  # how often a new server has taken over
        self._gone: dict[str, str | None] = {}  # the tools that reloads have removed, and their probable new names
        self._is_ordinary = True  # whether no restart, check or note is due; set by `_advance`
        self._advance()

    # Used by calls and other requests.

    def enter(self, tool: str) -> RunningCalls | None:
        """If a call of this tool may run at once, count it as running until it leaves the returned calls.

        It may if no restart, check or note is due, the code has not changed, and the limit of calls is not reached.
        """
        running = self._running
        if (
            self._is_ordinary
            and running.count - running.asking < self._limit
            and tool not in self._gone
            and self._authority.news() is False
        ):
            running.count += 1
            return running
        return None

    async def run(self, call: Call, execute: Execute, tool: str = "") -> Result | msgspec.Raw:
        """Run `execute` when it is the call's turn and return its result; or return the answer that it was not run."""
        running = self.enter(tool) if self._serves() else None  # the next server may have lost the memory
        if running is not None:
            try:
                return await execute(running)
            finally:
                running.leave()
        waiting = WaitingCall(call, tool, may_answer=self._running.asking > 0)
        self._add(waiting)
        try:
            answer = await waiting.turn
        except asyncio.CancelledError:
            self._queue.pop(waiting, None)
            if waiting.running is not None:
                waiting.running.leave()
            raise
        if answer is not None:
            return answer
        if (observer := self._observer()) is not None:
            observer.goes_on(call)
        return await self._execute(waiting, execute)

    async def current(self) -> None:
        """Wait until the newest code runs, or cannot run; for requests that need no turn and get no notes."""
        checks = 0
        while not self._closed:
            if self._check_task is not None:
                await asyncio.wait([self._check_task])
                checks += 1
            elif self._restart_due:
                # The restart waits for a running call, which may depend on this request. A swap does not wait for
                # calls, but the owner of a shared Host may.
                if self._running.count and (self._idle or not self._swaps):
                    return
                await self._changed.wait()
            elif checks < MAX_CHECKS and self._needs_check(again=checks > 0):
                self._begin_check(None)
            else:
                return

    def check_ahead(self) -> None:
        """Unless the code is known to be unchanged, start to check, build and restart without waiting for it."""
        if not (self._check_task or self._restart_due or self._closed) and self._needs_check():
            self._begin_check(None)

    # Used by the reloader.

    async def pause(self, *, hold: bool, finish: bool | None = None) -> None:
        """Begin no more calls, because the server is about to be replaced; hold them, or answer that it restarts.

        Returns when no call runs, or at once without `finish`; by default, held calls wait for no running call. May be
        called again during a pause.
        """
        finish = not hold if finish is None else finish
        self._paused = True
        self.notes.restart_begins()
        if finish:
            self._expect_idle()
        if self._replacing:
            self._advance()
        else:
            self._begin_restart(hold=hold or self._holds)
        if finish:
            await self._until_idle()

    def hold(self) -> None:
        """Hold new calls from now on, because the new server runs, but its start is not complete."""
        self._holds_calls = True

    def connected(self, *, is_ours: bool) -> None:
        """Record that a server answers which no restart has started; if it is ours, the one before it has ended."""
        known, self._known = self._known, self._generation()
        if is_ours and 0 < known < self._known:
            self.notes.restarted(self.name, RestartResult(True), lost_memory=True)
            self._advance()

    def resume(self, outcome: RestartResult | None = None) -> None:
        """End the pause, because the server answers again, or will not start.

        `outcome`: that of the restart, if it is known; the queue knows the outcome of a restart that it has requested.
        """
        if self._paused and outcome is not None and not self._replacing:
            self._server_replaced(outcome)
        self._paused = False
        self._advance()

    def close(self) -> None:
        """Stop checking the code and run every waiting call. A restart that has begun is completed."""
        self._closed = True
        if self._check_task is not None:
            self._check_task.cancel()
            self._check_task = None
        self._authority.close()
        self._limit = inf
        self._replacing = self._paused = False
        self._mark_checked()
        self._advance()

    # Used by mcpStatus and mcpRestart.

    @property
    def awaits(self) -> str:
        """What calls wait for, as the end of a sentence; empty if they do not wait for new code."""
        count = self._running.count
        if self._restart_due and count:
            return f"it waits for {'a call that still runs' if count == 1 else f'{count} calls that still run'}"
        if self._check_task is not None:
            return self._waits_for[:1].lower() + self._waits_for[1:].rstrip(".")
        return ""

    @property
    def awaits_answer(self) -> bool:
        """Whether a restart waits for a call that waits for an answer of its client."""
        return self._restart_due and self._idle is not None and self._running.asking > 0

    @property
    def is_settled(self) -> bool:
        """Whether the next call would run at once on the code that was checked last."""
        return not (self._check_task or self._restart_due or self.knows_news)

    @property
    def knows_news(self) -> bool:
        """Whether a source has changed since the last check, and another check may tell more."""
        return not self.unchecked and self._authority.news() is True

    async def refreshed(self, demand: Demand) -> bool:
        """Check the code as a call does, and meet the demand; return when no check and no restart is due any more.

        Returns False if a restart waits for a call that waits for an answer of its client: the client may wait for us.
        The caller limits the time.
        """
        fails = self.notes.failure is not None or self.notes.extension_error is not None
        demanded = demand is not Demand.RESTART and not fails and self._authority.news() is False
        while not self._closed:
            if self._check_task is not None:
                await asyncio.wait([self._check_task])
            elif self._restart_due:
                if self.awaits_answer:
                    return False
                demanded = demanded or demand is Demand.RESTART  # this is the restart
                await self._changed.wait()
            elif not demanded:
                demanded = True
                self._begin_check(None, demand)
            elif self.knows_news:
                self._begin_check(None)
            else:
                break
        return True

    # The queue.

    def _add(self, waiting: WaitingCall) -> None:
        if self._restart_due and not self._holds_calls and not self._passes(waiting):
            self._answer(waiting, [messages.queued(self.name)])
            return
        self._queue[waiting] = None
        self._show((waiting,))
        if self._reminder is None:
            loop = asyncio.get_running_loop()
            self._reminder = loop.call_later(self._limits.progress_seconds, self._remind)
        if self._restart_due:
            waiting.progress.send(self._waits_for)
            self._advance()
        elif self._check_task is None:
            if self._needs_check():
                self._begin_check(waiting)
            else:
                waiting.checked = True
                self._advance()

    def _passes(self, waiting: WaitingCall) -> bool:
        """Whether the call may be part of an answer for which a running call waits, and with it the restart."""
        return waiting.may_answer and self.awaits_answer

    def _needs_check(self, *, again: bool = False) -> bool:
        """Whether a request needs a check: the code has changed, or that is unknown; `again`: only if it has."""
        news = self._authority.news()
        return news is True or (news is None and not again)

    def _answer(self, waiting: WaitingCall, notes: list[ReloadNote]) -> None:
        """Answer the call instead of running it."""
        if notes[0].state is ReloadState.RESTARTING and (observer := self._observer()) is not None:
            observer.waits(waiting.call, f"Answered that {self.name} is restarting.", restarting=True)
        self._queue.pop(waiting, None)
        if waiting.waits:
            waiting.turn.set_result(not_run(notes))

    async def _execute(self, waiting: WaitingCall, execute: Execute) -> Result | msgspec.Raw:
        assert waiting.running is not None
        run, tells_failed_start, tells_loss = True, False, False
        try:
            result = await execute(waiting.running)
        except UnansweredRequest as failure:
            if not any(note.text for note in (*waiting.notes, *self.notes.pending)):
                raise
            result, run = failure.answer("tools/call"), failure.may_have_run
            tells_failed_start, tells_loss = failure.has_reasons, failure.code == OUTCOME_UNKNOWN
        except RpcError as error:
            gone = next((note.text for note in waiting.notes if note.state is ReloadState.TOOL_GONE), None)
            if gone is None:
                raise
            raise RpcError(error.code, f"{error.message.rstrip('.')}. {gone}", error.data) from None
        finally:
            waiting.running.leave()
        if run and waiting.unchecked == self._generation():  # a later server was started with the code on disk
            waiting.notes.append(messages.unchecked(self.name))
        noted = self.notes.attach(
            result, waiting.notes, run=run, tells_failed_start=tells_failed_start, tells_loss=tells_loss
        )
        self._advance()
        return noted

    def _advance(self) -> None:
        """Act on a change of state: wake what waits for idleness or a restart, and begin every call that may run."""
        if self._idle is not None and not self._running.count:
            self._idle.set()
            self._idle = None
        if self._restart_due:
            self._settle_waiting()
        else:
            only_turn = self._waits_for != _FOR_ITS_TURN and self._check_task is None
            if only_turn:
                self._waits_for = _FOR_ITS_TURN
            self._begin_calls()
            if only_turn:
                self._show(self._queue)
        self._is_ordinary = not (self._restart_due or self._check_task or self.notes.failure or self.notes.pending)
        self._running.awaited = bool(self._queue or self._idle)
        self._changed.set()
        self._changed = asyncio.Event()

    def _settle_waiting(self) -> None:
        """During a restart: begin the calls that may pass, and answer the others unless they are held."""
        for waiting in tuple(self._queue):
            if self._passes(waiting):
                if self._has_room:
                    waiting.notes.append(messages.before_restart(self.name))
                    self._begin(waiting)
            elif not self._holds_calls:
                self._answer(waiting, [messages.queued(self.name)])

    @property
    def _has_room(self) -> bool:
        return self._running.count - self._running.asking < self._limit

    def _begin_calls(self) -> None:
        while self._queue and self._has_room and self._check_task is None:
            first = next(iter(self._queue))
            if first.checked:
                self._begin(first)
            elif self._authority.news() is True:  # the code has changed since the last check
                self._begin_check(first)
            else:
                self._mark_checked()

    def _begin(self, waiting: WaitingCall) -> None:
        del self._queue[waiting]
        if waiting.waits:
            waiting.running = self._running
            waiting.running.count += 1
            if waiting.tool in self._gone:
                waiting.notes.append(messages.tool_gone(self.name, waiting.tool, self._gone[waiting.tool]))
            waiting.notes += [self.notes.failure] if self.notes.failure else []
            waiting.unchecked = self._generation() if self.unchecked else None
            waiting.turn.set_result(None)

    def _mark_checked(self) -> None:
        for waiting in self._queue:
            waiting.checked = True

    def _expect_idle(self) -> None:
        if self._running.count:
            self._idle = self._idle or asyncio.Event()

    async def _until_idle(self) -> None:
        self._expect_idle()
        self._running.awaited = True
        if self._idle is not None:
            await self._idle.wait()

    # Checking the code.

    def _begin_check(self, trigger: WaitingCall | None, demand: Demand = Demand.NEW_CODE) -> None:
        self._mark_checked()  # of all waiting calls, which this check covers; none runs before it is over
        self._is_ordinary = False
        self._set_waits_for(f"Checking whether the code of {self.name} has changed.")
        self._check_task = self._tasks.start(self._check(trigger, demand))

    async def _check(self, trigger: WaitingCall | None, demand: Demand) -> None:
        result = await self._authority.check(self._set_waits_for, demand)
        self._check_task = None
        self.unchecked = result is None
        if result is None:
            self._mark_checked()  # a check for the calls that came meanwhile would fail as well
        else:
            self._take(result, trigger)
        self._advance()

    def _take(self, result: CheckResult, trigger: WaitingCall | None) -> None:
        if trigger is None or not trigger.waits:  # if the call was cancelled, the next one gets the answer
            trigger = next((waiting for waiting in self._queue if waiting.waits), None)
        notes, about_extension = self.notes, self.notes.extension_notes(result)
        output = result.server_build_error
        if result.restart_due:
            notes.code_built()
            if result.server_old_output is not None:
                notes.not_built_again(self.name, result.server_old_output)
            self._replace(trigger, about_extension)
            return
        if output is not None:
            if notes.build_failed(self.name, result, output, reports=trigger is not None) and trigger is not None:
                of_failed = result.server_of_failed_build
                note = messages.build_failed(self.name, output, serves=self._serves(), of_failed_build=of_failed)
                self._answer(trigger, [note, *about_extension])
                return
        elif result.refusal is not None:
            notes.not_agreed(result.refusal)
        elif result.server_digest is not None:
            notes.not_started(self.name, serves=self._serves())
        else:
            notes.code_runs()
            if result.server_old_output is not None:
                notes.not_built_again(self.name, result.server_old_output)
        notes.pending += about_extension

    # Replacing the server.

    @property
    def _restart_due(self) -> bool:
        """Whether the server is being replaced, or is about to be."""
        return self._paused or self._replacing

    @property
    def _holds(self) -> bool:
        """Whether calls wait during a restart. All wait for the first server, which is no restart to them."""
        return self._swaps or self._waits() or not self._generation()

    def _replace(self, trigger: WaitingCall | None, about_extension: list[ReloadNote]) -> None:
        self._replacing = True
        hold = self._holds
        if not self._swaps:
            self._expect_idle()
        if trigger is not None and not hold and not self._passes(trigger):
            old = self.notes.reason if self.notes.failure is not None else None
            self._answer(trigger, [messages.restarting(self.name, old), *about_extension])
        else:
            self.notes.pending += about_extension
        self._begin_restart(hold=hold)
        self._tasks.start(self._replace_server())

    def _begin_restart(self, *, hold: bool) -> None:
        """Hold all waiting calls, or answer that the server restarts."""
        self._holds_calls = hold
        self._before = self._tools()
        self._waits_for = f"Waiting for the new code of {self.name}."
        if hold:
            for waiting in self._queue:
                waiting.progress.send(self._waits_for)
        self._advance()
        self._show(self._queue)

    async def _replace_server(self) -> None:
        if not self._swaps:
            await self._until_idle()
        if self._closed:
            return
        restarted = await self._authority.restart()
        self._replacing = False
        if restarted is not None:
            self._server_replaced(restarted)
        self._advance()

    def _server_replaced(self, outcome: RestartResult) -> None:
        self.notes.restarted(self.name, outcome, swapped=self._swaps, lost_memory=self._known > 0)
        if outcome.ok:
            self._known = self._generation()
            self.replaced += 1
            self._running = RunningCalls(self._advance)  # nothing waits for the calls of the old server any more
            self._gone = still_gone(self._gone, self._before, self._tools())
            for waiting in self._queue:
                waiting.notes.append(ReloadNote(ReloadState.SWAPPED if self._swaps else ReloadState.RELOADED))

    # Showing why calls wait.

    def _set_waits_for(self, message: str) -> None:
        self._waits_for = message
        self._show(self._queue)

    def _show(self, queued: Iterable[WaitingCall]) -> None:
        if (observer := self._observer()) is not None:
            for waiting in queued:
                observer.waits(waiting.call, self._waits_for, restarting=self._restart_due)

    def _remind(self) -> None:
        """Send progress at intervals while a call waits."""
        for waiting in self._queue:
            waiting.progress.send(self._waits_for)
        loop = asyncio.get_running_loop()
        self._reminder = loop.call_later(self._limits.progress_seconds, self._remind) if self._queue else None


class WaitingCall:
    """A call in the queue. It ends in one of three ways: it gets its turn, is answered without one, or is cancelled."""

    def __init__(self, call: Call, tool: str, *, may_answer: bool) -> None:
        """`may_answer`: whether a running call waited for an answer of its client when this one came."""
        self.call = call
        self.tool = tool
        self.may_answer = may_answer
        # The answer to the call, or None if it is to be run.
        self.turn: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()
        self.progress = Progress(call, QUEUE_STEP)
        self.checked = False  # whether the code was checked after the call came, or need not be
        self.running: RunningCalls | None = None  # the calls that it has entered, when it got its turn
        self.notes: list[ReloadNote] = []  # for its own result
        self.unchecked: int | None = None  # the generation of the server whose code could not be checked

    @property
    def waits(self) -> bool:
        """Whether the call still waits; False as soon as it is cancelled, even before its task runs again."""
        return not self.turn.done()
