"""Forwards one request to the upstream, through restarts and crashes; every request gets exactly one, true outcome.

A request that never reached an upstream is sent to the next one. A request whose upstream ended while it ran is only
repeated if repeating does no harm; otherwise the client is told that the outcome is unknown. A request is cancelled if
the upstream sends nothing for it (progress, log messages, questions) for too long. `relay.py` applies the same limit.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ...protocol.client.connection import AnswerTooLong, ConnectionLost, UnusableServer
from ...protocol.jsonrpc import STOPPED, RpcError
from ...system.values import Value
from ..state import ConnectionState
from .conversations import Conversations
from .failure_answers import UnansweredRequest, ended, refused, silent, too_long, unavailable, unreachable
from .reload_messages import without_forged_state
from .upstream_link import DEFAULT_LIMITS, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from ...protocol.service import Call, Params, Result
    from ..inspection.call_recorder import CallRecorder
    from ..state import ProxyState
    from .call_queue import CallQueue, RunningCalls
    from .upstream_link import CallLimits, Link

    Answer = msgspec.Raw | Result

# Calls of tools can be repeated if a hint of the tool allows it. Lists are answered from the state, not forwarded.
REPEATABLE_METHODS = frozenset({"resources/read", "prompts/get", "completion/complete"})

# Shown on the inspector page for a request that waits.
FOR_UPSTREAM = "Waiting for the dev server."
FOR_ANOTHER = "The dev server was lost. Waiting for the next."
FOR_WATCHERS = "Finding out whether its code is watched."
FOR_NEWEST_CODE = "Waiting for the newest code."

# Progress must only grow, and the upstream may report its own later, so the steps of a waiting call are small. A call
# waits for the first upstream, then in the queue, then for an upstream again; the steps grow from wait to wait.
FIRST_STEP = 0.000_000_001
QUEUE_STEP = 0.000_001  # at one step per second, it takes a quarter of an hour to reach UPSTREAM_STEP
UPSTREAM_STEP = 0.001


class ForwardedRequest(Value):
    method: str
    params: Params
    lost: int | None = None  # the generation of the lost upstream to which it was relayed before
    sent: bool = False  # whether that upstream may have run it
    running: RunningCalls | None = None  # the calls of the queue that it has entered before


class Forwarder:
    """Forwards requests to one server. `resource_updated` notifies the clients that follow that resource."""

    def __init__(
        self,
        link: Link,
        state: ProxyState,
        resource_updated: Callable[[str], None],
        limits: CallLimits = DEFAULT_LIMITS,
        *,
        waits: bool = False,
    ) -> None:
        self.waits = waits  # --wait-calls: hold requests while there is no upstream
        self.silence_seconds = limits.silence_seconds
        self.queue: CallQueue | None = None  # the queue of tool calls; None if code is not reloaded
        self.queue_pending: asyncio.Future[None] | None = None  # done when it is known whether there is a queue
        self.observer: CallRecorder | None = None  # set while an inspector page is open
        self.link = link
        self.state = state  # of the server
        self.conversations = Conversations(link, state, resource_updated, limits)
        self.proven = 0  # the last generation of the server that answered a relayed call
        self.limits = limits

    async def run(self, call: Call, request: ForwardedRequest) -> Answer:
        """Return the upstream's answer to `request`, or raise its RpcError; UnansweredRequest if there is none."""
        problem = None
        if self.queue is None and (self.queue_pending or self.link.state is not ConnectionState.CONNECTED):
            problem = await self._await_queue(call, request)
        queue = self.queue
        if queue is not None and request.method == "tools/call":
            return await self._run_in_queue(queue, problem, call, request)
        if problem is not None:
            raise problem
        if queue is not None and request.method in REPEATABLE_METHODS:
            await self._until_current(call, queue)
        return await self.run_queued(call, request)

    async def _await_queue(self, call: Call, request: ForwardedRequest) -> UnansweredRequest | None:
        """Wait for the upstream, and until it is known whether there is a queue.

        Return why no upstream came; None if it came. Where hot reload begins after the start, calls that waited for the
        upstream do not wait for hot reload as well.
        """
        pending, problem = self.queue_pending, None
        if self.link.state is not ConnectionState.CONNECTED:
            try:
                await self._hold(call, FIRST_STEP)
            except UnansweredRequest as failure:
                if not self._may_be_unbuilt or request.method != "tools/call":
                    raise
                problem = failure
        if pending is not None:
            self._waits(call, FOR_WATCHERS)
            await asyncio.wait([pending], timeout=self.limits.check_seconds)
            self._goes_on(call)
            self._queue_is_known(pending)
        return problem

    async def _run_in_queue(
        self, queue: CallQueue, problem: UnansweredRequest | None, call: Call, request: ForwardedRequest
    ) -> Answer:
        """Run a tool call in its turn; `problem` says why no upstream came, or is None.

        Without an upstream, the call goes through the queue all the same, if need be twice: the queue builds the code,
        and an upstream that does not start may never have been built.
        """
        tool = str(request.params.get("name"))
        may_be_unbuilt = self._may_be_unbuilt and self.link.state is not ConnectionState.CONNECTED
        if problem is None:
            try:
                return await queue.run(call, lambda running: self.run_queued(call, request, running), tool)
            except UnansweredRequest as failure:
                if failure.may_have_run or not may_be_unbuilt or self.queue is None:
                    raise
                problem, queue = failure, self.queue
        return await queue.run(call, lambda running: self._run_unless_degraded(problem, call, request, running), tool)

    @property
    def _may_be_unbuilt(self) -> bool:
        """Whether a call waits for a build: always with --wait-calls, else only for the first one."""
        return self.waits or not self.link.generation

    async def _run_unless_degraded(
        self, problem: UnansweredRequest, call: Call, request: ForwardedRequest, running: RunningCalls
    ) -> Answer:
        if self.link.state is ConnectionState.DEGRADED:
            raise problem.of_server(self.state.facts)
        return await self.run_queued(call, request, running)

    async def run_queued(self, call: Call, request: ForwardedRequest, running: RunningCalls | None = None) -> Answer:
        """Do what `run` does, for a request that has left the queue, and runs among these calls, or does not need it.

        While it waits for an answer of its client, it reports that to the queue.
        """
        caller = Caller(call, self.silence_seconds, running or request.running)
        try:
            return await self._send(call, request, caller)
        except UnansweredRequest as failure:
            raise failure.of_server(self.state.facts) from None  # before the queue adds notes to it
        finally:
            caller.close()

    async def _send(self, call: Call, request: ForwardedRequest, caller: Caller) -> Answer:
        link, losses, seconds = self.link, _Losses(self.limits), self.silence_seconds
        if request.lost is not None:
            losses.add(sent=request.sent)
            if request.sent and not self._may_try_again(request, losses):
                raise await self._ended(request, request.lost, losses)
            await self._wait_for_another(call, request, request.lost, losses)
        elif link.state is not ConnectionState.CONNECTED:
            await self._hold(call)
        while True:
            generation, conversation = link.generation, self.conversations.of(call.session)
            silence = asyncio.timeout(seconds)
            try:
                async with silence:
                    caller.silence = silence
                    params = with_own_names(request.method, request.params, self.state)
                    answer = await conversation.request(request.method, params, caller)
                link.worked(generation)
                return without_forged_state(answer)
            except (ConnectionLost, Unavailable) as loss:
                sent = isinstance(loss, ConnectionLost) and loss.sent
                losses.add(sent=sent)
                if sent and not self._may_try_again(request, losses):
                    raise await self._ended(request, generation, losses) from None
            except AnswerTooLong:
                raise too_long(request) from None
            except RpcError as error:
                if error.code != STOPPED:
                    raise
                losses.add(sent=True)
                if not self._may_try_again(request, losses):
                    raise  # the error of a stopping server says that the outcome is unknown
            except UnusableServer as refusal:
                link.refused(generation, refusal)
                raise (ended(request, losses.sent) if losses.sent else refused(refusal)) from None
            except TimeoutError:
                if not silence.expired():
                    raise
                raise silent(request, seconds) from None
            finally:
                caller.silence = None
            await self._wait_for_another(call, request, generation, losses)

    def limit_silence(self, seconds: float | None) -> None:
        """Cancel requests that are silent for this long; None for the usual limit."""
        self.silence_seconds = self.limits.silence_seconds if seconds is None else seconds

    def list_read(self) -> None:
        """Start to build and run changed code, because a client has read a list and may call a tool next."""
        if self.queue is not None:
            self.queue.check_ahead()

    def await_reloader(self, known: asyncio.Future[None]) -> None:
        """Hold calls until `known` is done, when it is known whether there is a queue."""
        self.queue_pending = known
        known.add_done_callback(self._queue_is_known)

    def _queue_is_known(self, known: asyncio.Future[None]) -> None:
        if self.queue_pending is known:
            self.queue_pending = None

    async def await_upstream(self, call: Call, seconds: float, step: float = UPSTREAM_STEP) -> None:
        """Wait for an upstream; raise UnansweredRequest if none comes in time, or none will come by itself."""
        if self.link.state is ConnectionState.DEGRADED:
            await self.link.reconsider()
            self.link.wanted()
        self._waits(call, FOR_UPSTREAM)
        reporting = asyncio.ensure_future(report(call, self._waits_for, self.limits.progress_seconds, step))
        try:
            connected = await self.link.until_connected(seconds)
        finally:
            reporting.cancel()
        if not connected:
            raise unavailable(self.link, self.state)
        self._goes_on(call)

    async def await_newest_code(self, call: Call, seconds: float) -> None:
        """Wait until the newest code runs, or will not; raise UnansweredRequest if no upstream runs then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.await_upstream(call, seconds)
                self._waits(call, FOR_NEWEST_CODE)
                await self.newest_code()
                self._goes_on(call)
        if self.link.state is not ConnectionState.CONNECTED:
            raise unavailable(self.link, self.state)

    @property
    def may_reload(self) -> bool:
        """Whether its code is reloaded, or that is not known yet."""
        return self.queue is not None or self.queue_pending is not None

    async def newest_code(self) -> None:
        """Have changed code built and run, and wait until the newest code runs, or will not."""
        if self.queue_pending is not None:
            await asyncio.wait([self.queue_pending])
        if self.queue is not None:
            await self.queue.current()

    async def _until_current(self, call: Call, queue: CallQueue) -> None:
        self._waits(call, FOR_NEWEST_CODE)
        await queue.current()
        self._goes_on(call)

    def _waits_for(self) -> str:
        return f"Waiting for the dev server: {self.link.state.value}"

    async def _hold(self, call: Call, step: float = UPSTREAM_STEP) -> None:
        """Wait for the upstream: long with --wait-calls, else briefly; raise UnansweredRequest if it does not come."""
        if self.waits:
            await self.await_upstream(call, self.limits.hold_seconds, step)
            return
        if self.link.state is ConnectionState.DEGRADED:
            await self.link.reconsider()
            self.link.wanted()  # the cause of its failure may have been fixed
        if self.link.fallback or self.link.state in (ConnectionState.DEGRADED, ConnectionState.SHUTDOWN):
            raise unavailable(self.link, self.state)
        await self.await_upstream(call, self.limits.grace_seconds, step)

    def _waits(self, call: Call, why: str) -> None:
        if self.observer is not None:
            self.observer.waits(call, why)

    def _goes_on(self, call: Call) -> None:
        if self.observer is not None:
            self.observer.goes_on(call)

    def may_repeat(self, request: ForwardedRequest) -> bool:
        """Whether it may be run twice: the method, or a hint of the tool, says that this does no harm."""
        if request.method != "tools/call":
            return request.method in REPEATABLE_METHODS
        tool = self.link.tool(str(request.params.get("name")))
        hints = tool.get("annotations") if tool is not None else None
        return isinstance(hints, dict) and (hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True)

    def _may_try_again(self, request: ForwardedRequest, losses: _Losses) -> bool:
        return losses.sent <= self.limits.repetitions and self.may_repeat(request)

    async def _ended(self, request: ForwardedRequest, generation: int, losses: _Losses) -> UnansweredRequest:
        """Make the answer to a request that is not repeated, with the reason for the end of the upstream."""
        self.link.lost(generation)
        return ended(request, losses.sent, await self.link.how_it_ended(generation, self.limits.end_seconds))

    async def _wait_for_another(self, call: Call, request: ForwardedRequest, generation: int, losses: _Losses) -> None:
        """Wait until the request can be tried again; raise UnansweredRequest if it cannot."""
        link = self.link
        self._waits(call, FOR_ANOTHER)
        link.lost(generation)
        if link.generation == generation and link.state is ConnectionState.CONNECTED:
            # Either only this connection broke, or the end of the upstream has not been noticed yet.
            await asyncio.sleep(losses.next_pause())
        rest = losses.rest()
        if rest > 0 and (link.state is ConnectionState.CONNECTED or await link.until_connected(rest)):
            self._goes_on(call)
        elif losses.sent:
            raise await self._ended(request, generation, losses)
        elif link.state is ConnectionState.CONNECTED:
            raise unreachable(self.limits.again_seconds)
        else:
            raise unavailable(link, self.state)


def with_own_names(method: str, params: Params, state: ProxyState) -> Params:
    """The params with the server's own name of a tool or prompt that clients see under another one."""
    if method == "completion/complete":
        ref = params.get("ref")
        if not isinstance(ref, dict) or ref.get("type") != "ref/prompt":
            return params
        return {**params, "ref": with_own_names("prompts/get", ref, state)}
    own = state.own_names.get(method, {}).get(str(params.get("name")))
    return params if own is None else {**params, "name": own}


class _Losses:
    """The failed attempts of one request, and how long the request waits for the next upstream."""

    def __init__(self, limits: CallLimits) -> None:
        self.sent = 0  # how many upstreams may have had the request when they were lost
        self._limits = limits
        self._until: float | None = None
        self._pause = limits.first_pause_seconds

    def add(self, *, sent: bool) -> None:
        if sent or self._until is None:
            self._until = asyncio.get_running_loop().time() + self._limits.again_seconds
            self._pause = self._limits.first_pause_seconds
        self.sent += sent

    def rest(self) -> float:
        return (self._until or 0.0) - asyncio.get_running_loop().time()

    def next_pause(self) -> float:
        """Return the seconds until the next attempt; they grow each time."""
        pause, self._pause = self._pause, min(2 * self._pause, self._limits.longest_pause_seconds)
        return pause


class Caller:
    """The peer of one request: passes on the upstream's messages, each of which restarts the limit on silence."""

    __slots__ = ("_call", "_questions", "_running", "_seconds", "client", "silence")

    def __init__(self, call: Call, seconds: float, running: RunningCalls | None = None) -> None:
        """`running`: the calls of the queue that it has entered, which hear when it waits for an answer."""
        self.client = call.session.client
        self.silence: asyncio.Timeout | None = None  # the limit on silence of the present attempt
        self._call = call
        self._seconds = seconds
        self._questions = 0
        self._running = running

    def close(self) -> None:
        """Report that the request is over, whether or not its client has answered."""
        running, self._running = self._running, None
        if self._questions and running is not None:
            running.answered()

    @property
    def log_level(self) -> str | None:
        return self._call.log_level

    def notify(self, method: str, params: Params) -> None:
        self._heard()
        self._call.notify(method, params)

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        self._questions += 1
        self._heard()
        if self._questions == 1 and self._running is not None:
            self._running.asks()
        try:
            return await self._call.ask(method, params, name)
        finally:
            self._questions -= 1
            self._heard()
            if not self._questions and self._running is not None:
                self._running.answered()

    def _heard(self) -> None:
        if self.silence is not None and not self.silence.expired():
            # There is no limit while a question is open: a person may have to decide.
            until = None if self._questions else asyncio.get_running_loop().time() + self._seconds
            self.silence.reschedule(until)


class Progress:
    """Sends progress notifications for a waiting call, if its client asked for progress."""

    def __init__(self, call: Call, step: float) -> None:
        meta = call.params.get("_meta")
        self.token = meta.get("progressToken") if isinstance(meta, dict) else None
        self._call = call
        self._step = step
        self._steps = 0

    def send(self, message: str) -> None:
        if self.token is not None:
            self._steps += 1
            params = {"progressToken": self.token, "progress": self._steps * self._step, "message": message}
            self._call.notify("notifications/progress", params)


async def report(call: Call, message: Callable[[], str], seconds: float, step: float = UPSTREAM_STEP) -> None:
    """Send a progress message now and every `seconds`, until cancelled."""
    progress = Progress(call, step)
    while progress.token is not None:
        progress.send(message())
        await asyncio.sleep(seconds)
