"""The handshake era, whatever carries its messages: sessions, and the calls that they make of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from ..system.log import log
from .calls import HandshakeCall
from .channel import Kind
from .eras import initialize_result, initializing_client
from .followed import Followed
from .jsonrpc import (
    BUSY,
    INVALID_PARAMS,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    notification_message,
    shown,
)
from .parties import ClientInfo
from .policy import Policy
from .running import FAILURES, Answer, Answerer, Outcome, Tasks, answer_message, outcome, tell, why_cancelled
from .service import Call, Result, Service
from .service import Session as AnySession
from .session import Session

WATCHING = ("resources/subscribe", "resources/unsubscribe")


class Handshake:
    def __init__(self, service: Service, policy: Policy, followed: Followed) -> None:
        self._service = service
        self._policy = policy
        self._followed = followed
        self._tasks = Tasks()

    def initialize(self, request: RpcRequest) -> tuple[ClientInfo, Result]:
        """Who introduces itself, and what it is answered."""
        client = initializing_client(request.params)
        return client, initialize_result(client.protocol_version, self._service.info, self._service.capabilities())

    def opened(self, session: Session) -> None:
        tell(self._service.opened, session)

    def ended(self, session: Session, why: RpcError) -> None:
        """It is over; calls that still run are answered with `why`."""
        session.stop(why)
        for uri in session.watched:
            self._followed.end(uri)
        session.watched.clear()
        tell(self._service.closed, session)

    def start(self, calls: list[HandshakeCall], all_said: Callable[[], None], answerer: Answerer | None = None) -> None:
        """Run calls that were made together. Each is answered on its channel, unless its client does not want that.

        `answerer`: who answers in place of the session and the service.
        """
        waiting = set(calls)
        for call in calls:
            answer = (answerer or self._answer) if len(call.session.calls) < self._policy.calls else self._refuse
            call.session.calls.add(call)
            over = partial(self._over, call, waiting, all_said)
            call.task = self._tasks.start(_run(answer, call, over))
            call.task.add_done_callback(partial(_tell_if_cancelled, call, over))
        if not waiting:
            all_said()

    def take(self, session: Session, message: RpcNotification | RpcResponse) -> None:
        """What the client says without waiting for an answer; cancelling is up to whoever knows the calls."""
        if isinstance(message, RpcResponse):
            if not session.answered(message):
                log.debug(f"a client answered {shown(repr(message.id))}, which nobody asked (any more)")
        else:
            self.notified(session, message)

    def notified(self, session: AnySession, message: RpcNotification) -> None:
        if message.method != "notifications/initialized":
            self._tasks.start(self._notified(session, message))

    def broadcast(self, sessions: Iterable[Session], data: bytes) -> None:
        for session in sessions:
            session.announce(data)

    def resource_updated(self, sessions: Iterable[Session], uri: str) -> None:
        data = notification_message("notifications/resources/updated", {"uri": uri})
        for session in sessions:
            if uri in session.watched:
                session.announce(data)

    async def close(self) -> None:
        """Wait for what was stopped, within a bound."""
        await self._tasks.wait(self._policy.close_seconds)

    def _over(
        self, call: HandshakeCall, waiting: set[HandshakeCall], all_said: Callable[[], None], said: Outcome
    ) -> None:
        call.session.calls.discard(call)
        if not call.unwanted:
            call.channel.send(answer_message(call.id, said), Kind.ANSWER)
        waiting.discard(call)
        if not waiting:
            all_said()

    async def _notified(self, session: AnySession, message: RpcNotification) -> None:
        try:
            await self._service.notified(session, message.method, message.params)
        except FAILURES as error:
            log.warn(f"'{shown(message.method)}' could not be handled: {error!r}")

    async def _refuse(self, call: Call) -> Answer:  # noqa: ARG002
        raise RpcError(BUSY, f"{self._policy.calls} calls of this session run already.")

    async def _answer(self, call: Call) -> Answer:
        """What the session itself can answer, else what the service says."""
        session, method = call.session, call.method
        assert isinstance(session, Session)
        if method == "ping":
            return {}
        if method == "logging/setLevel" and "logging" in self._service.capabilities():
            await self._service.levelled(session, session.set_level(call.params.get("level")))
            return {}
        if method in WATCHING and self._service.capabilities().get("resources", {}).get("subscribe"):
            await self._watch(session, call.params.get("uri"), method == "resources/subscribe")
            return {}
        return await self._service.answer(call)

    async def _watch(self, session: Session, uri: object, wanted: bool) -> None:
        """Let the session follow a resource, or no longer."""
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "The uri of a resource is a string.")
        if not wanted:
            if uri in session.watched:
                session.watched.remove(uri)
                self._followed.end(uri)
            return
        if uri in session.watched:
            return
        if len(session.watched) >= self._policy.watched:
            raise RpcError(BUSY, f"A session can watch {self._policy.watched} resources; unsubscribe from some.")
        await self._followed.begin(uri)
        if uri in session.watched:  # the client asked twice, and the other one was faster
            self._followed.end(uri)
        session.watched.add(uri)


async def _run(answer: Answerer, call: HandshakeCall, over: Callable[[Outcome], None]) -> None:
    """In the call's own task to the end: whatever runs behind it runs a turn of the event loop later."""
    over(await outcome(answer, call))


def _tell_if_cancelled(call: HandshakeCall, over: Callable[[Outcome], None], task: asyncio.Task[None]) -> None:
    """It may not even have begun."""
    if task.cancelled():
        over(why_cancelled(call.why_stopped))
