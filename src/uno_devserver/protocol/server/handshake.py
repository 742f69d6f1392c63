"""The handshake era, over any transport: sessions of clients, and the calls that they make to the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from ...system.event_loop import Tasks, in_loop
from ...system.log import log
from ..jsonrpc import (
    BUSY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    UNANSWERED,
    Id,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    notification_message,
    request_message,
    result_of,
    shown,
)
from ..peer_info import ClientInfo
from ..service import Call, Params, Result, Service, Session
from ..versions import (
    CANCELLED,
    INITIALIZED,
    LOG_LEVELS,
    QUESTIONS,
    RESOURCE_UPDATED,
    can_poll,
    check_client_can,
    initialize_result,
    initializing_client,
    wants_log,
)
from .call_runner import FAILURES, Answerer, CallAnswer, Outcome, answer_message, run_call, tell_service, why_cancelled
from .limits import EndpointLimits
from .message_stream import Channel, MessageKind
from .subscriptions import WatchedResources, check_uri

WATCHING = ("resources/subscribe", "resources/unsubscribe")


class HandshakeEra:
    def __init__(self, service: Service, limits: EndpointLimits, watched: WatchedResources) -> None:
        self._service = service
        self._limits = limits
        self._watched = watched
        self._tasks = Tasks()

    def initialize(self, request: RpcRequest) -> tuple[ClientInfo, Result]:
        """The client that sent `initialize`, and the result for it; RpcError for ill-formed params."""
        client = initializing_client(request.params)
        return client, initialize_result(client.protocol_version, self._service.info, self._service.capabilities())

    def opened(self, session: HandshakeSession) -> None:
        tell_service(self._service.opened, session)

    def ended(self, session: HandshakeSession, why: RpcError) -> None:
        """End a session: its calls that still run are answered with `why`, and the service is notified."""
        session.stop(why)
        for uri in session.watched:
            self._watched.end(uri)
        session.watched.clear()
        tell_service(self._service.closed, session)

    def start(self, calls: list[HandshakeCall], all_done: Callable[[], None], answerer: Answerer | None = None) -> None:
        """Run calls that came together; each is answered on its channel, unless its client cancels it.

        `answerer` answers instead of the session and the service. `all_done` is called after the last answer.
        """
        waiting = set(calls)
        for call in calls:
            answer = (answerer or self._answer) if len(call.session.calls) < self._limits.calls else self._refuse
            call.start(self._tasks, answer, partial(_done, call, waiting, all_done))
        if not waiting:
            all_done()

    def take(self, session: HandshakeSession, message: RpcNotification | RpcResponse) -> asyncio.Task[None] | None:
        """Handle a message that has no answer, in the task that is returned or at once.

        Cancellations are handled by the transport, which knows the calls.
        """
        if isinstance(message, RpcNotification):
            return self.notified(session, message)
        if not session.answered(message):
            log.debug(f"a client answered {shown(repr(message.id))}, but no question with this id is open")
        return None

    def notified(self, session: Session, message: RpcNotification) -> asyncio.Task[None] | None:
        return None if message.method == INITIALIZED else self._tasks.start(self._notified(session, message))

    def resource_updated(self, sessions: Iterable[HandshakeSession], uri: str) -> None:
        data = notification_message(RESOURCE_UPDATED, {"uri": uri})
        for session in sessions:
            if uri in session.watched:
                session.announce(data)

    async def close(self) -> None:
        """Wait, for a bounded time, for the calls that were stopped."""
        await self._tasks.wait(self._limits.close_seconds)

    async def _notified(self, session: Session, message: RpcNotification) -> None:
        try:
            await self._service.notified(session, message.method, message.params)
        except FAILURES as error:
            log.warn(f"'{shown(message.method)}' could not be handled: {error!r}")

    async def _refuse(self, call: Call) -> CallAnswer:  # noqa: ARG002
        raise RpcError(BUSY, f"{self._limits.calls} calls of this session run already.")

    async def _answer(self, call: Call) -> CallAnswer:
        """Answer for the session where it can; otherwise the service answers."""
        session, method = call.session, call.method
        assert isinstance(session, HandshakeSession)
        if method == "ping":
            return {}
        if method == "logging/setLevel" and "logging" in self._service.capabilities():
            await self._service.log_level_set(session, session.set_level(call.params.get("level")))
            return {}
        if method in WATCHING and self._service.capabilities().get("resources", {}).get("subscribe"):
            await self._watch(session, call.params.get("uri"), method == "resources/subscribe")
            return {}
        return await self._service.answer(call)

    async def _watch(self, session: HandshakeSession, uri: object, wanted: bool) -> None:
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "The uri of a resource is a string.")
        check_uri(uri, self._limits)
        if not wanted:
            if uri in session.watched:
                session.watched.remove(uri)
                self._watched.end(uri)
            return
        if uri in session.watched:
            return
        if len(session.watched) >= self._limits.watched:
            raise RpcError(BUSY, f"A session can watch {self._limits.watched} resources; unsubscribe from some.")
        await self._watched.begin(uri)
        if uri in session.watched:  # a second request for the same resource was faster
            self._watched.end(uri)
        session.watched.add(uri)


def _done(call: HandshakeCall, waiting: set[HandshakeCall], all_done: Callable[[], None], outcome: Outcome) -> None:
    call.session.calls.discard(call)
    if not call.unwanted:
        call.channel.send(answer_message(call.id, outcome), MessageKind.ANSWER)
    waiting.discard(call)
    if not waiting:
        all_done()


class HandshakeCall:
    """A request as the service sees it. Its messages go to the channel that carries its answer."""

    task: asyncio.Task[None]  # from `start` on

    def __init__(self, session: HandshakeSession, request: RpcRequest, channel: Channel, heard: bool = True) -> None:
        self.session = session
        self.channel = channel
        self.unwanted = False  # whether the client has cancelled it
        self._why_stopped: RpcError | None = None
        self._threads_speak = False  # whether messages came from other threads, by way of the loop
        self._request = request
        self._heard = heard  # False: the client takes one JSON answer and nothing else

    @property
    def id(self) -> Id:
        return self._request.id

    @property
    def method(self) -> str:
        return self._request.method

    @property
    def params(self) -> Params:
        return self._request.params

    @property
    def log_level(self) -> str | None:
        return self.session.log_level

    def notify(self, method: str, params: Params | None = None) -> None:
        if self._heard and not self.unwanted and wants_log(self.log_level, method, params):
            in_loop(self.session.loop, self.channel.send, notification_message(method, params))
            self._threads_speak |= asyncio._get_running_loop() is not self.session.loop

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        self.session.check_can(method, params)
        if not self._heard:
            raise RpcError(INVALID_REQUEST, "The client accepts JSON only, so it cannot be asked during this call.")
        return await self.session.ask_on(self.channel, method, params)

    def start(self, tasks: Tasks, answer: Answerer, done: Callable[[Outcome], None]) -> None:
        self.session.calls.add(self)
        self.task = tasks.start(self._run(answer, done))
        self.task.add_done_callback(partial(self._ended, done))

    def stop(self, why: RpcError | None) -> None:
        """Cancel the call. It is answered with `why`, or not at all if that is None: then the client cancelled it."""
        if self.unwanted:
            return
        self._why_stopped = why
        self.unwanted = why is None
        self.task.cancel()

    def close_stream(self) -> None:
        if self._heard and can_poll(self.session.client.protocol_version):
            in_loop(self.session.loop, self.channel.hang_up)

    async def _run(self, answer: Answerer, done: Callable[[Outcome], None]) -> None:
        # `done` is called in the task, because a done callback would run one turn of the loop later.
        outcome = await run_call(answer, self)
        if self._threads_speak:  # what they have said waits in the loop, and comes before the answer
            await asyncio.sleep(0)
        done(outcome)

    def _ended(self, done: Callable[[Outcome], None], task: asyncio.Task[None]) -> None:
        if task.cancelled():  # even before its first step, so `_run` may not have begun
            done(why_cancelled(self._why_stopped))


class HandshakeSession:
    """One client. `standing` is the channel for messages that belong to no request."""

    def __init__(self, client: ClientInfo, limits: EndpointLimits, standing: Channel, *, relayed: bool) -> None:
        self.client = client
        self.limits = limits
        self.log_level: str | None = "info"  # until the client chooses
        self.watched: set[str] = set()
        self.calls: set[HandshakeCall] = set()
        self._standing = standing
        self._relayed = relayed  # whether its questions come from another server, which may know methods that we do not
        self.loop = asyncio.get_running_loop()
        self._questions: dict[str, asyncio.Future[RpcResponse]] = {}
        self._last_question = 0

    def notify(self, method: str, params: Params | None = None) -> None:
        if wants_log(self.log_level, method, params):
            in_loop(self.loop, self._standing.send, notification_message(method, params))

    def announce(self, data: bytes) -> None:
        """Send a notification of a change, unless the same one still waits to be written."""
        self._standing.send_once(data)

    def set_level(self, level: object) -> str:
        if level not in LOG_LEVELS:
            raise RpcError(INVALID_PARAMS, f"The level must be one of {', '.join(LOG_LEVELS)}.")
        self.log_level = str(level)
        return self.log_level

    async def ask(self, method: str, params: Params) -> Result:
        """Ask the client outside any call."""
        self.check_can(method, params)
        return await self.ask_on(self._standing, method, params)

    def check_can(self, method: str, params: Params) -> None:
        """Raise RpcError if the client cannot answer this question."""
        if method in QUESTIONS or not self._relayed:
            check_client_can(self.client, method, params)

    async def ask_on(self, channel: Channel, method: str, params: Params) -> Result:
        if len(self._questions) >= self.limits.questions:
            raise RpcError(BUSY, f"{self.limits.questions} questions wait for this client already.")
        self._last_question += 1
        question_id = f"server-{self._last_question}"  # no client gives its own requests such an id
        answer = self._questions[question_id] = self.loop.create_future()
        try:
            channel.send(request_message(question_id, method, params), MessageKind.REQUEST)
            async with asyncio.timeout(self.limits.question_seconds):
                return result_of(await answer)
        except TimeoutError:
            seconds = self.limits.question_seconds
            raise RpcError(UNANSWERED, f"The client did not answer '{method}' in {seconds:g} s.") from None
        finally:
            del self._questions[question_id]
            if not answer.done() or answer.cancelled():
                channel.send(notification_message(CANCELLED, {"requestId": question_id}))

    def answered(self, response: RpcResponse) -> bool:
        """Pass the client's answer to the question that waits for it; return False if no open question has its id."""
        answer = self._questions.get(response.id) if isinstance(response.id, str) else None
        if answer is None or answer.done():
            return False
        answer.set_result(response)
        return True

    def stop(self, why: RpcError) -> None:
        """End its calls and questions with `why`."""
        for call in self.calls:
            call.stop(why)
        for question_id, answer in self._questions.items():
            if not answer.done():  # a question outside any call
                answer.set_result(RpcResponse(question_id, None, {"code": why.code, "message": why.message}))
        self._standing.end()
