"""The modern era, whatever carries its messages: every request stands for itself."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import Generic, Protocol, TypeVar

from ...system.event_loop import in_loop
from ...system.log import log
from ...system.values import Value
from ..jsonrpc import BUSY, INVALID_PARAMS, INVALID_REQUEST, Id, RpcError, RpcRequest, encode, notification_message
from ..peer_info import ClientInfo
from ..service import Call, Params, Result, Service
from ..versions import (
    INPUT_REQUIRED_METHODS,
    NAMED_BY,
    REMOVED_IN_MODERN,
    Envelope,
    check_client_can,
    discover_result,
    method_not_found,
    modern_error,
    modern_result,
    wants_log,
)
from .call_runner import Answerer, CallAnswer, Outcome, answer_message, run_call, stopped, task_outcome
from .limits import EndpointLimits
from .message_stream import Channel, MessageKind, MessageStream
from .subscriptions import Subscription, Subscriptions, WatchedResources

LISTEN = "subscriptions/listen"


class ModernEra:
    def __init__(self, service: Service, limits: EndpointLimits, watched: WatchedResources) -> None:
        self._service = service
        self._limits = limits
        self._parked: WaitingCalls[ModernCall] = WaitingCalls(limits)
        self._subscriptions = Subscriptions(limits, watched)
        self._calls: set[ModernCall] = set()

    def call(
        self,
        request: RpcRequest,
        envelope: Envelope,
        channel: Channel,
        heard: bool = True,
        answer: Answerer | None = None,
    ) -> ModernCall:
        """Run the call that this request continues, or a new one; it is answered on `channel`.

        `answer`: who answers a new one in place of the service.
        """
        if request.method in REMOVED_IN_MODERN:
            raise method_not_found(request.method)
        state = request.params.get("requestState")
        if state is not None and (self._parked.issued(state) or not self._service.relays):
            waiting = self._parked.take(state, request)
            waiting.go_on(request, envelope, channel, heard)
            return waiting
        if len(self._calls) >= self._limits.calls:
            raise RpcError(BUSY, f"{self._limits.calls} calls run already.")
        call = ModernCall(request, envelope, channel, heard, self._service, self._parked, self._limits)
        self._calls.add(call)
        call.task = asyncio.create_task(run_call(answer or self._answer, call))
        call.task.add_done_callback(partial(self._done, call))
        return call

    async def listen(self, request: RpcRequest, channel: Channel) -> Subscription:
        """Open a subscription, acknowledged; it ends with `unlisten`."""
        return await self._subscriptions.open(request, self._service.capabilities(), channel)

    def unlisten(self, subscription: Subscription) -> None:
        self._subscriptions.remove(subscription)

    def broadcast(self, method: str, params: Params | None) -> None:
        self._subscriptions.broadcast(method, params)

    def resource_updated(self, uri: str) -> None:
        self._subscriptions.resource_updated(uri)

    async def close(self) -> None:
        self._subscriptions.close(self._service.info)
        self._parked.close()
        tasks = {call.task for call in self._calls if call.task is not None}
        for call in self._calls:
            call.why_stopped = stopped()
            call.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._limits.close_seconds)

    def _done(self, call: ModernCall, task: asyncio.Task[Outcome]) -> None:
        self._calls.discard(call)
        call.finish(task_outcome(task, call.why_stopped))

    async def _answer(self, call: Call) -> CallAnswer:
        if call.method == "server/discover":
            return discover_result(self._service.info, self._service.capabilities())
        return await self._service.answer(call)


class ModernSession:
    """The client of one request; there is no connection beyond it."""

    def __init__(self, client: ClientInfo) -> None:
        self.client = client

    def notify(self, method: str, params: Params | None = None) -> None:  # noqa: ARG002
        log.debug(f"'{method}' was dropped: this client listens to its own requests and subscriptions only")

    async def ask(self, method: str, params: Params) -> Result:  # noqa: ARG002
        raise RpcError(INVALID_REQUEST, f"This client can be asked for '{method}' during its own calls only.")


class OpenQuestion(Value):
    method: str
    params: Params
    answer: asyncio.Future[Result]


class ModernCall:
    def __init__(
        self,
        request: RpcRequest,
        envelope: Envelope,
        channel: Channel,
        heard: bool,
        service: Service,
        parked: WaitingCalls[ModernCall],
        limits: EndpointLimits,
    ) -> None:
        self.origin = request
        self.task: asyncio.Task[Outcome] | None = None
        self.why_stopped: RpcError | None = None
        self.error_code: int | None = None  # of the last answer, for the HTTP status
        self._present = request
        self._envelope = envelope
        self._session = ModernSession(envelope.client)
        self._channel = channel
        self._heard = heard  # False: the client takes one JSON answer and nothing else
        self._service = service
        self._parked = parked
        self._limits = limits
        self._brought = input_responses(request)  # by a client that knows the names before it is asked
        self._questions: dict[str, OpenQuestion] = {}
        self._names: set[str] = set()  # that questions of this call have had
        self._meanwhile: MessageStream | None = None  # what is said while there is no request; None: there is one
        self._outcome: Outcome | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def id(self) -> Id:
        return self._present.id

    @property
    def method(self) -> str:
        return self.origin.method

    @property
    def params(self) -> Params:
        return self.origin.params

    @property
    def session(self) -> ModernSession:
        return self._session

    @property
    def log_level(self) -> str | None:
        return self._envelope.log_level

    def notify(self, method: str, params: Params | None = None) -> None:
        if self._heard and wants_log(self.log_level, method, params):
            in_loop(self._loop, self._speak, notification_message(method, self._with_present_token(method, params)))

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        check_client_can(self._envelope.client, method, params)
        if self.method not in INPUT_REQUIRED_METHODS:
            raise RpcError(INVALID_REQUEST, f"The client cannot be asked while it waits for '{self.method}'.")
        if len(self._questions) >= self._limits.questions:
            raise RpcError(BUSY, f"{self._limits.questions} questions of this call wait already.")
        if name in self._brought:
            return self._brought.pop(name)
        encode(params)  # what JSON cannot say fails here, where it was asked, and not on its way
        name = self._free_name(name)
        question = self._questions[name] = OpenQuestion(method, params, self._loop.create_future())
        self._loop.call_soon(self._ask)  # not at once: questions that are asked together travel together
        try:
            return await question.answer
        finally:
            del self._questions[name]

    def close_stream(self) -> None:
        """Nothing: a modern client cannot resume, and would take the closed connection for a cancellation."""

    def finish(self, said: Outcome) -> None:
        """The service is done; the answer goes to the present request, or to the one that is still to come."""
        if self._meanwhile is not None:
            self._outcome = said
        else:
            self._say(said)

    def go_on(self, request: RpcRequest, envelope: Envelope, channel: Channel, heard: bool) -> None:
        """A request has brought answers; it is the present one now."""
        self._present, self._envelope, self._channel, self._heard = request, envelope, channel, heard
        self._session.client = envelope.client
        if self._meanwhile is not None and heard:
            self._meanwhile.pour_into(channel)
        self._meanwhile = None
        if self._outcome is not None:
            self._say(self._outcome)
            return
        for name, answer in input_responses(request).items():
            question = self._questions.get(name)
            if question is not None and not question.answer.done():
                question.answer.set_result(answer)
        self._loop.call_soon(self._ask)  # what it did not answer is asked again

    def withdraw(self) -> None:
        """The client does not want to know any more: nothing is said from now on."""
        self._channel.end()
        self.cancel()

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def _free_name(self, wanted: str | None) -> str:
        """The wanted one, unless a question of this call has had it: its answer could be taken for this one's."""
        name, number = wanted, len(self._names)
        while name is None or name in self._names:
            number += 1
            name = f"question-{number}"
        self._names.add(name)
        return name

    def _speak(self, data: bytes) -> None:
        """To the request that is the present one by now."""
        (self._meanwhile or self._channel).send(data)

    def _with_present_token(self, method: str, params: Params | None) -> Params | None:
        """The service knows the first request's progress token; the client listens for the present one's."""
        if method != "notifications/progress" or params is None or self._present is self.origin:
            return params
        token = _progress_token(self._present)
        if token is None or params.get("progressToken") != _progress_token(self.origin):
            return params
        return {**params, "progressToken": token}

    def _ask(self) -> None:
        open_questions = {name: one for name, one in self._questions.items() if not one.answer.done()}
        if self._meanwhile is not None or not open_questions or self._channel.ended:
            return
        self._meanwhile = MessageStream(self._limits)
        token = self._parked.park(self)
        asked = {name: {"method": one.method, "params": one.params} for name, one in open_questions.items()}
        result = {"resultType": "input_required", "inputRequests": asked, "requestState": token}
        self._answer(modern_result(self.method, result, self._service.info))

    def _say(self, said: Outcome) -> None:
        if isinstance(said, RpcError):
            said = modern_error(said)
            self.error_code = said.code
        elif isinstance(said, dict) and not (self._service.relays and said.get("resultType") == "input_required"):
            said = modern_result(self.method, said, self._service.info)
        self._answer(said)

    def _answer(self, said: Outcome) -> None:
        self._channel.send(answer_message(self.id, said), MessageKind.ANSWER)
        self._channel.end()


def _progress_token(request: RpcRequest) -> object:
    meta = request.params.get("_meta")
    return meta.get("progressToken") if isinstance(meta, dict) else None


class Waiting(Protocol):
    """A call that can be taken up again."""

    @property
    def origin(self) -> RpcRequest:
        """The request that started it."""

    def cancel(self) -> None: ...


W = TypeVar("W", bound=Waiting)


class WaitingCalls(Generic[W]):
    def __init__(self, limits: EndpointLimits) -> None:
        self._limits = limits
        self._mark = os.urandom(8).hex()  # by which we know our own tokens, also when they are used up
        self._places: dict[str, tuple[W, asyncio.TimerHandle]] = {}

    def park(self, call: W) -> str:
        """Keep it; the token that gets it back. The one that has waited longest makes room."""
        if len(self._places) >= self._limits.waiting_calls:
            self._abandon(next(iter(self._places)))
        token = f"{self._mark}-{os.urandom(24).hex()}"
        timer = asyncio.get_running_loop().call_later(self._limits.waiting_seconds, self._abandon, token)
        self._places[token] = (call, timer)
        return token

    def issued(self, token: object) -> bool:
        """Whether it is one of these, and not that of a server behind this one."""
        return isinstance(token, str) and token.startswith(f"{self._mark}-")

    def take(self, token: object, request: RpcRequest) -> W:
        """The call that `request` continues; RpcError when it is gone, or was another one."""
        place = self._places.get(token) if isinstance(token, str) else None
        if place is None:
            minutes = self._limits.waiting_seconds / 60
            raise RpcError(
                INVALID_PARAMS,
                "The call that waited for this answer is gone: each requestState works once and for "
                f"{minutes:g} minutes, until the server stops. Call again without requestState.",
            )
        call, timer = place
        origin = call.origin
        name = NAMED_BY.get(origin.method, "")
        if (request.method, request.params.get(name)) != (origin.method, origin.params.get(name)):
            raise RpcError(INVALID_PARAMS, f"This requestState belongs to another call of '{origin.method}'.")
        input_responses(request)  # ill-formed ones are refused before the token is used up
        del self._places[str(token)]
        timer.cancel()
        return call

    def close(self) -> None:
        for token in list(self._places):
            self._abandon(token)

    def _abandon(self, token: str) -> None:
        place = self._places.pop(token, None)
        if place is not None:
            call, timer = place
            timer.cancel()
            call.cancel()


def input_responses(request: RpcRequest) -> dict[str, Result]:
    """The answers that a request brings, by the names of the questions."""
    brought = request.params.get("inputResponses")
    if brought is None:
        return {}
    if not isinstance(brought, dict) or not all(isinstance(answer, dict) for answer in brought.values()):
        raise RpcError(INVALID_PARAMS, "inputResponses must be an object of objects, one per question.")
    return brought
