"""Forwards one request to the upstream, through restarts and crashes: it has exactly one outcome, and a true one.

A request that never reached an upstream goes to the next. One that did, and whose upstream ended, is only repeated if
doing it twice is as good as doing it once; else its client is told that the outcome is unknown.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ...protocol.client.connection import Lost, Refusal
from ...protocol.jsonrpc import STOPPED, RpcError
from ...system.values import Value
from ..state import ConnectionState
from .failure_answers import NoAnswer, ended, refused, silent, unavailable, unreachable
from .silence_timeout import Caller, SilenceWatch
from .upstream_link import Unavailable
from .waiting_progress import report

if TYPE_CHECKING:
    from collections.abc import Coroutine

    import msgspec

    from ...protocol.service import Call, Params, Result
    from ..inspection.call_recorder import Recorder
    from ..state import ProxyState
    from .call_queue import CallQueue
    from .conversations import Conversations
    from .upstream_link import CallLimits, Link

# Besides calls of tools that say so of themselves. Lists do not come here: they are answered from the state.
REPEATABLE_METHODS = frozenset({"resources/read", "prompts/get", "completion/complete"})

# What people who look on read of a request that waits.
FOR_UPSTREAM = "Waiting for the dev server."
FOR_ANOTHER = "The dev server was lost. Waiting for the next."
FOR_WATCHERS = "Finding out whether its code is watched."
FOR_NEWEST_CODE = "Waiting for the newest code."


class Request(Value):
    method: str
    params: Params
    lost: int | None = None  # the generation of the upstream that it was relayed to, and that is gone
    sent: int = 0  # how many upstreams had it when they ended


class Forwarding:
    def __init__(
        self, link: Link, state: ProxyState, conversations: Conversations, limits: CallLimits, *, waits: bool = False
    ) -> None:
        self.waits = waits  # --wait-calls: hold requests while there is no upstream
        self.queue: CallQueue | None = None  # where code is reloaded: all calls of tools pass it
        self.arranging: asyncio.Future[None] | None = None  # it is being found out whether it is
        self.observer: Recorder | None = None  # who looks on; told only where a request has to wait
        self._link = link
        self._state = state
        self._conversations = conversations
        self._limits = limits
        self._silence = SilenceWatch(limits.silence_seconds)

    def run(self, call: Call, request: Request) -> Coroutine[Any, Any, msgspec.Raw | Result]:
        """The upstream's answer to `request`, made for `call`; RpcError is the upstream's, too. Else NoAnswer."""
        queue = self.queue
        if queue is None:
            ready = self._link.state is ConnectionState.CONNECTED and self.arranging is None
            return self._run(call, request) if ready else self._run_first(call, request)
        if request.method == "tools/call":
            if self.waits and self._link.state is not ConnectionState.CONNECTED:
                return self._run_built(queue, call, request)
            return queue.run(call, lambda: self._run(call, request))
        if request.method in REPEATABLE_METHODS:
            return self._run_current(queue, call, request)
        return self._run(call, request)

    def run_lost(self, call: Call, request: Request) -> Coroutine[Any, Any, msgspec.Raw | Result]:
        """Go on with a call that has passed the queue, and whose upstream is gone."""
        return self._run(call, request)

    def list_read(self) -> None:
        """A client has read a list."""
        if self.queue is not None:
            self.queue.look()

    def use_queue(self, queue: CallQueue | None) -> None:
        """From now on all calls of tools pass it; None: code is not reloaded."""
        self.queue = queue

    def observe(self, observer: Recorder | None) -> None:
        """Record calls from now on, or no longer; calls that are under way are not recorded."""
        self.observer = observer

    def await_reloader(self, known: asyncio.Future[None]) -> None:
        """Calls wait until this is done: then it is known whether there is a queue."""
        self.arranging = known
        known.add_done_callback(self._reloader_is_known)

    def _reloader_is_known(self, known: asyncio.Future[None]) -> None:
        if self.arranging is known:
            self.arranging = None

    async def _run_first(self, call: Call, request: Request) -> msgspec.Raw | Result:
        """Wait until it is known whether code is reloaded, so as not to run on old code.

        Where hot reload begins only when there is an upstream, calls that waited for one do not wait for it, too.
        """
        arranging = self.arranging
        problem = None
        if self._link.state is not ConnectionState.CONNECTED:
            try:
                await self._hold(call)
            except NoAnswer as none:
                if not self.waits or request.method != "tools/call":
                    raise
                problem = none
        if arranging is not None:
            self._waits(call, FOR_WATCHERS)
            await asyncio.wait([arranging], timeout=self._limits.check_seconds)
            self._goes_on(call)
            self.arranging = None
        if problem is not None:
            return await self._run_unless(problem, self.queue, call, request)
        return await (self.run if self.queue is not None else self._run)(call, request)

    async def _run_built(self, queue: CallQueue, call: Call, request: Request) -> msgspec.Raw | Result:
        """Through the queue, and once more if the upstream has given up meanwhile."""
        try:
            return await queue.run(call, lambda: self._run(call, request))
        except NoAnswer as problem:
            if problem.may_have_run:
                raise
            return await self._run_unless(problem, self.queue, call, request)

    async def _run_unless(
        self, problem: NoAnswer, queue: CallQueue | None, call: Call, request: Request
    ) -> msgspec.Raw | Result:
        """Pass the queue, which builds the code first: an upstream that does not start may never have been built."""

        async def run() -> msgspec.Raw | Result:
            if self._link.state is ConnectionState.DEGRADED:
                raise problem
            return await self._run(call, request)

        if queue is None:
            raise problem
        return await queue.run(call, run)

    async def _run_current(self, queue: CallQueue, call: Call, request: Request) -> msgspec.Raw | Result:
        self._waits(call, FOR_NEWEST_CODE)
        await queue.current()
        self._goes_on(call)
        return await self._run(call, request)

    async def _run(self, call: Call, request: Request) -> msgspec.Raw | Result:
        link, method, params = self._link, request.method, request.params
        losses = None if request.lost is None else _Losses(self._limits, request.sent)
        if losses is not None and request.lost is not None:
            await self._wait_for_another(call, request.lost, losses, method, params)
        elif link.state is not ConnectionState.CONNECTED:
            await self._hold(call)
        caller = Caller(call)
        while True:
            generation = link.generation
            self._silence.watch(caller)
            try:
                answer = await self._conversations.of(call.session).request(method, params, caller)
                link.worked(generation)
                return answer
            except (Lost, Unavailable) as loss:
                losses = losses or _Losses(self._limits)
                if isinstance(loss, Lost) and loss.sent:
                    losses.one_more_sent()
                    if losses.sent > self._limits.repetitions or not self.may_repeat(method, params):
                        raise ended(method, params, losses.sent) from None
            except RpcError as error:
                if error.code != STOPPED or not self.may_repeat(method, params):
                    raise  # a server that stops says itself that the outcome is unknown
                losses = losses or _Losses(self._limits)
                losses.one_more_sent()
                if losses.sent > self._limits.repetitions:
                    raise
            except Refusal as refusal:
                if losses is not None and losses.sent:
                    raise ended(method, params, losses.sent) from None
                raise refused(str(refusal)) from None
            except asyncio.CancelledError:
                if not caller.gave_up():
                    raise
                raise silent(method, params, self._limits.silence_seconds) from None
            finally:
                self._silence.forget(caller)
            await self._wait_for_another(call, generation, losses, method, params)

    async def await_upstream(self, call: Call, seconds: float) -> None:
        """Wait for an upstream; NoAnswer if there is none in time, or none will come by itself."""
        if self._link.state is ConnectionState.DEGRADED:
            await self._link.reconsider()
            self._link.wanted()
        self._waits(call, FOR_UPSTREAM)
        reporting = asyncio.ensure_future(report(call, self._waiting_for, self._limits.progress_seconds))
        try:
            connected = await self._link.until_connected(seconds)
        finally:
            reporting.cancel()
        if not connected:
            raise unavailable(self._link, self._state)
        self._goes_on(call)

    async def _hold(self, call: Call) -> None:
        """Wait for the upstream as long as calls wait; NoAnswer if it does not come."""
        if self._link.state is ConnectionState.DEGRADED:
            await self._link.reconsider()
        seconds = self._limits.hold_seconds if self.waits else self._grace()
        if not seconds:
            problem = unavailable(self._link, self._state)
            self._link.wanted()
            raise problem
        await self.await_upstream(call, seconds)

    def _grace(self) -> float:
        """How long a call waits for an upstream that is on its way, be it the first one or the next."""
        comes = self._link.state not in (ConnectionState.DEGRADED, ConnectionState.SHUTDOWN)
        return self._limits.grace_seconds if comes and not self._link.fallback else 0.0

    def _waits(self, call: Call, why: str) -> None:
        if self.observer is not None:
            self.observer.waits(call, why)

    def _goes_on(self, call: Call) -> None:
        if self.observer is not None:
            self.observer.goes_on(call)

    def _waiting_for(self) -> str:
        return f"Waiting for the dev server: {self._link.state.value}"

    def may_repeat(self, method: str, params: Params) -> bool:
        """Whether doing it twice is as good as doing it once."""
        if method != "tools/call":
            return method in REPEATABLE_METHODS
        tool = self._link.tool(str(params.get("name")))
        hints = tool.get("annotations") if tool is not None else None
        return isinstance(hints, dict) and (hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True)

    async def _wait_for_another(
        self, call: Call, generation: int, losses: _Losses, method: str, params: Params
    ) -> None:
        """Wait until the request can be tried again; NoAnswer if it cannot."""
        link = self._link
        self._waits(call, FOR_ANOTHER)
        link.lost(generation)
        if link.generation == generation and link.state is ConnectionState.CONNECTED:
            # Perhaps only this connection broke; perhaps the end of the upstream has not been noticed yet.
            await asyncio.sleep(losses.pause())
        rest = losses.rest()
        if rest > 0 and (link.state is ConnectionState.CONNECTED or await link.until_connected(rest)):
            self._goes_on(call)
            return
        raise self._given_up(losses, method, params)

    def _given_up(self, losses: _Losses, method: str, params: Params) -> NoAnswer:
        if losses.sent:
            return ended(method, params, losses.sent)
        if self._link.state is ConnectionState.CONNECTED:
            return unreachable(self._limits.again_seconds)
        return unavailable(self._link, self._state)


class _Losses:
    """The failed tries of one request, and how long it waits for the next."""

    def __init__(self, limits: CallLimits, sent: int = 0) -> None:
        self.sent = sent  # how many upstreams had the request when they ended
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._until, self._pause = self._afresh()

    def one_more_sent(self) -> None:
        self.sent += 1
        self._until, self._pause = self._afresh()

    def rest(self) -> float:
        return self._until - self._loop.time()

    def pause(self) -> float:
        """Seconds until the next try, longer each time."""
        pause, self._pause = self._pause, min(2 * self._pause, self._limits.longest_pause_seconds)
        return pause

    def _afresh(self) -> tuple[float, float]:
        return self._loop.time() + self._limits.again_seconds, self._limits.first_pause_seconds
