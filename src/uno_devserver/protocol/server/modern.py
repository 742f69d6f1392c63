"""The modern era, over any transport: requests are independent, without a session.

A call that asks its client a question answers `input_required` with a random token (`requestState`), and waits. A
request with that token, which can be used once, continues the call with the client's answers.
"""

from __future__ import annotations

import asyncio
import os

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
    meta_of,
    method_not_found,
    modern_error,
    modern_result,
    wants_log,
)
from .call_runner import Answerer, CallAnswer, Outcome, answer_message, run_call, stopped, why_cancelled
from .limits import EndpointLimits
from .message_stream import Channel, MessageKind, MessageStream
from .subscriptions import Subscription, Subscriptions, WatchedResources


class ModernEra:
    def __init__(self, service: Service, limits: EndpointLimits, watched: WatchedResources) -> None:
        self.service = service
        self.limits = limits
        self.waiting = WaitingCalls(limits)
        self.calls: set[ModernCall] = set()
        self.subscriptions = Subscriptions(limits, watched)

    def call(
        self,
        request: RpcRequest,
        envelope: Envelope,
        channel: Channel,
        heard: bool = True,
        answer: Answerer | None = None,
    ) -> ModernCall:
        """Continue the waiting call that this request names, or run a new one. It is answered on `channel`.

        `answer` replaces the service for a new call. `heard`: whether the client accepts messages before the answer.
        """
        if request.method in REMOVED_IN_MODERN:
            raise method_not_found(request.method)
        state = request.params.get("requestState")
        if state is not None and (self.waiting.issued(state) or not self.service.relays):
            waiting = self.waiting.take(state, request)
            waiting.go_on(request, envelope, channel, heard)
            return waiting
        if len(self.calls) >= self.limits.calls:
            raise RpcError(BUSY, f"{self.limits.calls} calls run already.")
        return ModernCall(self, request, envelope, channel, heard, answer or self._answer)

    async def listen(self, request: RpcRequest, channel: Channel) -> Subscription:
        """Open a subscription and acknowledge it."""
        return await self.subscriptions.open(request, self.service.capabilities(), channel)

    async def close(self) -> None:
        self.subscriptions.close(self.service.info)
        self.waiting.close()
        tasks = {call.task for call in self.calls}
        for call in self.calls:
            call.cancel(stopped())
        if tasks:
            await asyncio.wait(tasks, timeout=self.limits.close_seconds)

    async def _answer(self, call: Call) -> CallAnswer:
        if call.method == "server/discover":
            return discover_result(self.service.info, self.service.capabilities())
        return await self.service.answer(call)


class ModernSession:
    """The client of one request; nothing connects it with other requests."""

    def __init__(self, client: ClientInfo) -> None:
        self.client = client

    def notify(self, method: str, params: Params | None = None) -> None:  # noqa: ARG002
        log.debug(f"'{method}' was dropped: a modern client listens to its own requests and subscriptions only")

    async def ask(self, method: str, params: Params) -> Result:  # noqa: ARG002
        raise RpcError(INVALID_REQUEST, f"This client can be asked for '{method}' during its own calls only.")


class OpenQuestion(Value):
    method: str
    params: Params
    answer: asyncio.Future[Result]


class ModernCall:
    def __init__(
        self,
        era: ModernEra,
        request: RpcRequest,
        envelope: Envelope,
        channel: Channel,
        heard: bool,
        answer: Answerer,
    ) -> None:
        self.origin = request  # the request that started it
        self.error_code: int | None = None  # the code of the last answer, for the HTTP status
        self._era = era
        self._present = request  # the request that waits for the answer now
        self._envelope = envelope
        self._session = ModernSession(envelope.client)
        self._channel = channel
        self._heard = heard  # False: the client takes one JSON answer and nothing else
        self._early_answers = input_responses(request)  # from a client that knows the names before it is asked
        self._questions: dict[str, OpenQuestion] = {}
        self._names: set[str] = set()  # the names of all questions of this call, answered ones too
        self._meanwhile: MessageStream | None = None  # takes messages while no request waits; None while one does
        self._outcome: Outcome | None = None  # the answer to the next request, if the call ends before it
        self._why_stopped: RpcError | None = None
        self._loop = asyncio.get_running_loop()
        era.calls.add(self)
        self.task = asyncio.create_task(run_call(answer, self))
        self.task.add_done_callback(self._done)

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
            in_loop(self._loop, self._send, notification_message(method, self._with_present_token(method, params)))

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        check_client_can(self._envelope.client, method, params)
        if self.method not in INPUT_REQUIRED_METHODS:
            raise RpcError(INVALID_REQUEST, f"The client cannot be asked while it waits for '{self.method}'.")
        limit = self._era.limits.questions
        if len(self._questions) >= limit:
            raise RpcError(BUSY, f"{limit} questions of this call wait already.")
        if name in self._early_answers:
            return self._early_answers.pop(name)
        encode(params)  # raises here, in the service's own code, if JSON cannot express them
        name = self._free_name(name)
        question = self._questions[name] = OpenQuestion(method, params, self._loop.create_future())
        self._loop.call_soon(self._ask)  # not at once: questions that are asked together are sent together
        try:
            return await question.answer
        finally:
            del self._questions[name]

    def close_stream(self) -> None:
        """Do nothing: a modern client cannot resume, and closing the connection would cancel the call."""

    def go_on(self, request: RpcRequest, envelope: Envelope, channel: Channel, heard: bool) -> None:
        """Continue with a request that contains answers; it gets the messages of the call from now on."""
        self._present, self._envelope, self._channel, self._heard = request, envelope, channel, heard
        self._session.client = envelope.client
        if self._meanwhile is not None and heard:
            self._meanwhile.pour_into(channel)
        self._meanwhile = None
        if self._outcome is not None:
            self._answer(self._outcome)
            return
        for name, answer in input_responses(request).items():
            question = self._questions.get(name)
            if question is not None and not question.answer.done():
                question.answer.set_result(answer)
        self._loop.call_soon(self._ask)  # ask again for the answers that are missing

    def withdraw(self) -> None:
        """Cancel the call for its client: send nothing from now on."""
        self._channel.end()
        self.cancel()

    def cancel(self, why: RpcError | None = None) -> None:
        self._why_stopped = why or self._why_stopped
        self.task.cancel()

    def _done(self, task: asyncio.Task[Outcome]) -> None:
        self._era.calls.discard(self)
        outcome = why_cancelled(self._why_stopped) if task.cancelled() else task.result()
        if self._meanwhile is None:
            self._answer(outcome)
        else:
            self._outcome = outcome

    def _free_name(self, wanted: str | None) -> str:
        """The wanted name, or another one if a question of this call has had it: answers must not be confused."""
        name, number = wanted, len(self._names)
        while name is None or name in self._names:
            number += 1
            name = f"question-{number}"
        self._names.add(name)
        return name

    def _send(self, data: bytes) -> None:
        (self._meanwhile or self._channel).send(data)

    def _with_present_token(self, method: str, params: Params | None) -> Params | None:
        """Replace the progress token of the first request, which the service uses, by that of the present one."""
        if method != "notifications/progress" or params is None or self._present is self.origin:
            return params
        token = meta_of(self._present.params).get("progressToken")
        if token is None or params.get("progressToken") != meta_of(self.params).get("progressToken"):
            return params
        return {**params, "progressToken": token}

    def _ask(self) -> None:
        open_questions = {name: one for name, one in self._questions.items() if not one.answer.done()}
        if self._meanwhile is not None or not open_questions or self._channel.ended:
            return
        self._meanwhile = MessageStream(self._era.limits)
        token = self._era.waiting.add(self)
        asked = {name: {"method": one.method, "params": one.params} for name, one in open_questions.items()}
        result = {"resultType": "input_required", "inputRequests": asked, "requestState": token}
        self._send_answer(modern_result(self.method, result, self._era.service.info))

    def _answer(self, outcome: Outcome) -> None:
        service = self._era.service
        if isinstance(outcome, RpcError):
            outcome = modern_error(outcome)
            self.error_code = outcome.code
        elif isinstance(outcome, dict) and not (service.relays and outcome.get("resultType") == "input_required"):
            outcome = modern_result(self.method, outcome, service.info)
        self._send_answer(outcome)

    def _send_answer(self, outcome: Outcome) -> None:
        self._channel.send(answer_message(self.id, outcome), MessageKind.ANSWER)
        self._channel.end()


class WaitingCalls:
    """Calls that wait for their client's answers, by their tokens."""

    def __init__(self, limits: EndpointLimits) -> None:
        self._limits = limits
        self._mark = os.urandom(8).hex()  # begins each of our tokens, so that used ones are recognised too
        self._waiting: dict[str, tuple[ModernCall, asyncio.TimerHandle]] = {}

    def add(self, call: ModernCall) -> str:
        """Keep the call, and return its token. If there are too many, the oldest one is cancelled."""
        if len(self._waiting) >= self._limits.waiting_calls:
            self._abandon(next(iter(self._waiting)))
        token = f"{self._mark}-{os.urandom(24).hex()}"
        timer = asyncio.get_running_loop().call_later(self._limits.waiting_seconds, self._abandon, token)
        self._waiting[token] = (call, timer)
        return token

    def issued(self, token: object) -> bool:
        """Whether the token is one of ours; otherwise a server behind this one may have issued it."""
        return isinstance(token, str) and token.startswith(f"{self._mark}-")

    def take(self, token: object, request: RpcRequest) -> ModernCall:
        """Remove and return the call that `request` continues; RpcError if it is gone, or is a different call."""
        waiting = self._waiting.get(token) if isinstance(token, str) else None
        if waiting is None:
            minutes = self._limits.waiting_seconds / 60
            raise RpcError(
                INVALID_PARAMS,
                "The call that waited for this answer is gone: each requestState works once and for "
                f"{minutes:g} minutes, until the server stops. Call again without requestState.",
            )
        call, timer = waiting
        origin = call.origin
        name = NAMED_BY.get(origin.method, "")
        if (request.method, request.params.get(name)) != (origin.method, origin.params.get(name)):
            raise RpcError(INVALID_PARAMS, f"This requestState belongs to another call of '{origin.method}'.")
        input_responses(request)  # raises for ill-formed answers before the token is used up
        del self._waiting[str(token)]
        timer.cancel()
        return call

    def close(self) -> None:
        for token in list(self._waiting):
            self._abandon(token)

    def _abandon(self, token: str) -> None:
        waiting = self._waiting.pop(token, None)
        if waiting is not None:
            call, timer = waiting
            timer.cancel()
            call.cancel()


def input_responses(request: RpcRequest) -> dict[str, Result]:
    """The answers in a request, by the names of the questions; RpcError if they are ill-formed."""
    answers = request.params.get("inputResponses")
    if answers is None:
        return {}
    if not isinstance(answers, dict) or not all(isinstance(answer, dict) for answer in answers.values()):
        raise RpcError(INVALID_PARAMS, "inputResponses must be an object of objects, one per question.")
    return answers
