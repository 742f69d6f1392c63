"""A modern call: one request, or several in a row when the client is asked in between.

Each of these requests has its own channel. Asking ends the present one with the questions as its result; the call goes
on when a later request brings the answers, and speaks on that one's channel from then on.
"""

from __future__ import annotations

import asyncio

from ..system.log import log
from ..system.values import Value
from .channel import Channel, Kind
from .eras import INPUT_REQUIRED_METHODS, Envelope, check_client_can, modern_error, modern_result, wants_log
from .jsonrpc import BUSY, INVALID_REQUEST, Id, RpcError, RpcRequest, encode, notification_message
from .parked import Parked, answers
from .parties import ClientInfo
from .policy import Policy
from .running import Outcome, answer_message, in_loop
from .service import Params, Result, Service
from .streams import Stream


class ModernSession:
    """The client of one request; there is no connection beyond it."""

    def __init__(self, client: ClientInfo) -> None:
        self.client = client

    def notify(self, method: str, params: Params | None = None) -> None:  # noqa: ARG002
        log.debug(f"'{method}' was dropped: this client listens to its own requests and subscriptions only")

    async def ask(self, method: str, params: Params) -> Result:  # noqa: ARG002
        raise RpcError(INVALID_REQUEST, f"This client can be asked for '{method}' during its own calls only.")


class Question(Value):
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
        parked: Parked[ModernCall],
        policy: Policy,
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
        self._policy = policy
        self._brought = answers(request)  # by a client that knows the names before it is asked
        self._questions: dict[str, Question] = {}
        self._names: set[str] = set()  # that questions of this call have had
        self._meanwhile: Stream | None = None  # what is said while there is no request; None: there is one
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
        if len(self._questions) >= self._policy.asks:
            raise RpcError(BUSY, f"{self._policy.asks} questions of this call wait already.")
        if name in self._brought:
            return self._brought.pop(name)
        encode(params)  # what JSON cannot say fails here, where it was asked, and not on its way
        name = self._free_name(name)
        question = self._questions[name] = Question(method, params, self._loop.create_future())
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
        for name, answer in answers(request).items():
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
        self._meanwhile = Stream(self._policy)
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
        self._channel.send(answer_message(self.id, said), Kind.ANSWER)
        self._channel.end()


def _progress_token(request: RpcRequest) -> object:
    meta = request.params.get("_meta")
    return meta.get("progressToken") if isinstance(meta, dict) else None
