"""The handshake era, whatever carries its messages: sessions, and the calls that they make of the service."""

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
from ..service import Call, Params, Result, Service
from ..service import Session as AnySession
from ..versions import (
    LOG_LEVELS,
    QUESTIONS,
    can_poll,
    check_client_can,
    initialize_result,
    initializing_client,
    wants_log,
)
from .call_runner import FAILURES, Answerer, CallAnswer, Outcome, answer_message, run_call, tell_service, why_cancelled
from .limits import EndpointLimits
from .message_stream import Channel, MessageKind
from .subscriptions import WatchedResources

WATCHING = ("resources/subscribe", "resources/unsubscribe")


class HandshakeEra:
    def __init__(self, service: Service, limits: EndpointLimits, watched: WatchedResources) -> None:
        self._service = service
        self._limits = limits
        self._watched = watched
        self._tasks = Tasks()

    def initialize(self, request: RpcRequest) -> tuple[ClientInfo, Result]:
        """Who introduces itself, and what it is answered."""
        client = initializing_client(request.params)
        return client, initialize_result(client.protocol_version, self._service.info, self._service.capabilities())

    def opened(self, session: HandshakeSession) -> None:
        tell_service(self._service.opened, session)

    def ended(self, session: HandshakeSession, why: RpcError) -> None:
        """It is over; calls that still run are answered with `why`."""
        session.stop(why)
        for uri in session.watched:
            self._watched.end(uri)
        session.watched.clear()
        tell_service(self._service.closed, session)

    def start(self, calls: list[HandshakeCall], all_said: Callable[[], None], answerer: Answerer | None = None) -> None:
        """Run calls that were made together. Each is answered on its channel, unless its client does not want that.

        `answerer`: who answers in place of the session and the service.
        """
        waiting = set(calls)
        for call in calls:
            answer = (answerer or self._answer) if len(call.session.calls) < self._limits.calls else self._refuse
            call.session.calls.add(call)
            over = partial(self._over, call, waiting, all_said)
            call.task = self._tasks.start(_run(answer, call, over))
            call.task.add_done_callback(partial(_tell_if_cancelled, call, over))
        if not waiting:
            all_said()

    def take(self, session: HandshakeSession, message: RpcNotification | RpcResponse) -> None:
        """What the client says without waiting for an answer; cancelling is up to whoever knows the calls."""
        if isinstance(message, RpcResponse):
            if not session.answered(message):
                log.debug(f"a client answered {shown(repr(message.id))}, which nobody asked (any more)")
        else:
            self.notified(session, message)

    def notified(self, session: AnySession, message: RpcNotification) -> None:
        if message.method != "notifications/initialized":
            self._tasks.start(self._notified(session, message))

    def broadcast(self, sessions: Iterable[HandshakeSession], data: bytes) -> None:
        for session in sessions:
            session.announce(data)

    def resource_updated(self, sessions: Iterable[HandshakeSession], uri: str) -> None:
        data = notification_message("notifications/resources/updated", {"uri": uri})
        for session in sessions:
            if uri in session.watched:
                session.announce(data)

    async def close(self) -> None:
        """Wait for what was stopped, within a bound."""
        await self._tasks.wait(self._limits.close_seconds)

    def _over(
        self, call: HandshakeCall, waiting: set[HandshakeCall], all_said: Callable[[], None], said: Outcome
    ) -> None:
        call.session.calls.discard(call)
        if not call.unwanted:
            call.channel.send(answer_message(call.id, said), MessageKind.ANSWER)
        waiting.discard(call)
        if not waiting:
            all_said()

    async def _notified(self, session: AnySession, message: RpcNotification) -> None:
        try:
            await self._service.notified(session, message.method, message.params)
        except FAILURES as error:
            log.warn(f"'{shown(message.method)}' could not be handled: {error!r}")

    async def _refuse(self, call: Call) -> CallAnswer:  # noqa: ARG002
        raise RpcError(BUSY, f"{self._limits.calls} calls of this session run already.")

    async def _answer(self, call: Call) -> CallAnswer:
        """What the session itself can answer, else what the service says."""
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
        """Let the session follow a resource, or no longer."""
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "The uri of a resource is a string.")
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
        if uri in session.watched:  # the client asked twice, and the other one was faster
            self._watched.end(uri)
        session.watched.add(uri)


async def _run(answer: Answerer, call: HandshakeCall, over: Callable[[Outcome], None]) -> None:
    """In the call's own task to the end: whatever runs behind it runs a turn of the event loop later."""
    over(await run_call(answer, call))


def _tell_if_cancelled(call: HandshakeCall, over: Callable[[Outcome], None], task: asyncio.Task[None]) -> None:
    """It may not even have begun."""
    if task.cancelled():
        over(why_cancelled(call.why_stopped))


class HandshakeCall:
    """What the service sees of a request; speaks on the channel that carries its answer."""

    def __init__(self, session: HandshakeSession, request: RpcRequest, channel: Channel, heard: bool = True) -> None:
        self.session = session
        self.channel = channel
        self.task: asyncio.Task[None] | None = None
        self.why_stopped: RpcError | None = None
        self.unwanted = False  # the client cancelled it
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

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        self.session.check_can(method, params)
        if not self._heard:
            raise RpcError(INVALID_REQUEST, "The client accepts JSON only, so it cannot be asked during this call.")
        return await self.session.ask_on(self.channel, method, params)

    def stop(self, why: RpcError | None) -> None:
        """Cancel it. With a reason it is answered by that; without one, as the client wished, not at all."""
        if self.unwanted:  # its client has cancelled it before
            return
        self.why_stopped = why
        self.unwanted = why is None
        if self.task is not None:
            self.task.cancel()

    def close_stream(self) -> None:
        if self._heard and can_poll(self.session.client.protocol_version):
            in_loop(self.session.loop, self.channel.hang_up)


class HandshakeSession:
    """`standing` is the channel for what belongs to no request."""

    def __init__(self, client: ClientInfo, limits: EndpointLimits, standing: Channel, *, relayed: bool) -> None:
        self.client = client
        self.limits = limits
        self.log_level: str | None = "info"  # until the client chooses
        self.watched: set[str] = set()
        self.calls: set[HandshakeCall] = set()
        self._standing = standing
        self._relayed = relayed  # what it is asked comes from another server, which may know more than we do
        self.loop = asyncio.get_running_loop()
        self._asks: dict[str, asyncio.Future[RpcResponse]] = {}
        self._last_ask = 0

    def notify(self, method: str, params: Params | None = None) -> None:
        if wants_log(self.log_level, method, params):
            in_loop(self.loop, self._standing.send, notification_message(method, params))

    def announce(self, data: bytes) -> None:
        """Something changed."""
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
        """RpcError when it is of no use to ask the client that."""
        if method in QUESTIONS or not self._relayed:
            check_client_can(self.client, method, params)

    async def ask_on(self, channel: Channel, method: str, params: Params) -> Result:
        if len(self._asks) >= self.limits.questions:
            raise RpcError(BUSY, f"{self.limits.questions} questions wait for this client already.")
        self._last_ask += 1
        ask_id = f"server-{self._last_ask}"  # no client calls its own requests so
        answer = self._asks[ask_id] = self.loop.create_future()
        try:
            channel.send(request_message(ask_id, method, params), MessageKind.REQUEST)
            async with asyncio.timeout(self.limits.question_seconds):
                return result_of(await answer)
        except TimeoutError:
            seconds = self.limits.question_seconds
            raise RpcError(UNANSWERED, f"The client did not answer '{method}' in {seconds:g} s.") from None
        finally:
            del self._asks[ask_id]
            if not answer.done() or answer.cancelled():
                channel.send(notification_message("notifications/cancelled", {"requestId": ask_id}))

    def answered(self, response: RpcResponse) -> bool:
        """Hand the client's answer to whoever asked; False when nobody (any more) waits for it."""
        answer = self._asks.get(response.id) if isinstance(response.id, str) else None
        if answer is None or answer.done():
            return False
        answer.set_result(response)
        return True

    def stop(self, why: RpcError) -> None:
        """It is over: calls and questions end with `why`."""
        for call in self.calls:
            call.stop(why)
        for ask_id, answer in self._asks.items():
            if not answer.done():  # it belongs to no call
                answer.set_result(RpcResponse(ask_id, None, {"code": why.code, "message": why.message}))
        self._standing.end()
