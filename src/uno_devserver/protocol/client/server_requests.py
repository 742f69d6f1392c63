"""The questions of a server to its client: requests (handshake era) and `input_required` results (modern era)."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Any

import msgspec

from ...system.log import ERROR, log
from ..jsonrpc import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RpcError,
    error_message,
    result_message,
    shown,
)
from ..versions import CANCELLED, LISTEN, MODERN_VERSIONS
from .connection import ConnectionLost
from .raw_messages import MAX_DECODED_BYTES, RawMessage, is_decoded, object_in, params_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..service import Params, Result
    from .connection import Peer

MAX_OPEN = 100  # a server that asks more at once is out of control
# The requests of clients, which a server must not send. Unknown methods are allowed: they may belong to an extension.
ASKED_OF_SERVERS = frozenset(
    {
        "initialize",
        "server/discover",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        LISTEN,
    }
)


class ServerQuestions:
    """The open requests of a server of the handshake era; each is answered once."""

    def __init__(self, reply: Callable[[bytes], Awaitable[None]]) -> None:
        self._reply = reply  # sends a message to the server; may raise anything
        self._open: dict[str, asyncio.Task[None]] = {}

    def take(self, message: RawMessage, peer: Peer) -> None:
        """Handle any message that is not the answer to a request of ours."""
        if message.is_question:
            self.ask(message, peer)
        elif message.is_notification:
            params = params_of(message)
            if message.method == CANCELLED:
                self.cancel(params)  # it is not passed on: `peer` knows its questions by other ids
            else:
                notify_peer(peer, message.method or "", params)
        else:
            log.debug("the server answered a request that does not wait for an answer")

    def ask(self, question: RawMessage, peer: Peer) -> None:
        """Have `peer` answer the question, and send the answer."""
        key = _key(question.id)
        if key in self._open:
            log.debug(f"the server asked '{shown(question.method or '')}' twice with the same id")
            return
        task = asyncio.ensure_future(self._answer(question, peer, busy=len(self._open) >= MAX_OPEN))
        self._open[key] = task
        task.add_done_callback(lambda _: self._open.pop(key, None))

    def cancel(self, params: Params) -> None:
        """The server has cancelled a question."""
        task = self._open.get(repr(params.get("requestId")))
        if task is not None:
            task.cancel()

    def close(self) -> None:
        for task in list(self._open.values()):
            task.cancel()

    async def _answer(self, question: RawMessage, peer: Peer, *, busy: bool) -> None:
        answer = RpcError(BUSY, f"{MAX_OPEN} questions wait already.") if busy else await _answer(question, peer)
        try:
            if isinstance(answer, RpcError):
                await self._reply(error_message(question.id, answer))
            else:
                await self._reply(result_message(question.id, answer))
        except Exception as error:  # the server is gone, and its question with it
            log.debug(f"the answer to '{shown(question.method or '')}' could not be sent: {error}")


def _key(question_id: msgspec.Raw) -> str:
    """The id as `CANCELLED` names it: 1 is not "1"."""
    try:
        return repr(msgspec.json.decode(question_id))
    except (msgspec.DecodeError, RecursionError):  # e.g. a number that no float can hold
        return bytes(question_id).decode()


def notify_peer(peer: Peer, method: str, params: Params) -> None:
    """Pass a notification on. A failure of the peer is logged, and does not break the conversation."""
    try:
        peer.notify(method, params)
    except Exception:
        log.write(ERROR, f"'{shown(method)}' of the server could not be passed on:\n{traceback.format_exc()}")


async def ask_peer(peer: Peer, method: str, params: Params, name: str | None = None) -> Result:
    """The answer of `peer` to a question; RpcError for a method that a server must not ask."""
    if method in ASKED_OF_SERVERS:
        raise RpcError(METHOD_NOT_FOUND, f"'{method}' is what a client asks a server, and not the other way round.")
    return await peer.ask(method, params, name)


async def _answer(question: RawMessage, peer: Peer) -> Result | RpcError:
    method = question.method or ""
    if method == "ping":
        return {}
    if not is_decoded(question.params):
        return RpcError(INVALID_PARAMS, f"A question has {MAX_DECODED_BYTES >> 20} MiB at most.")
    try:
        return await ask_peer(peer, method, params_of(question))
    except RpcError as refusal:
        return refusal
    except Exception:
        log.write(ERROR, f"the question '{shown(method)}' of the server failed here:\n{traceback.format_exc()}")
        return RpcError(INTERNAL_ERROR, "The client failed to answer this question.")


MAX_ROUNDS = 100  # each may be a person's answer; a server that asks more often is stuck
# A result without a question means "call again later": soon at first, every few seconds for long work.
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 5.0
_MARK = b'"input_required"'


async def call_until_complete(
    params: Params, peer: Peer, send: Callable[[Params], Awaitable[msgspec.Raw]]
) -> msgspec.Raw:
    """Call until the result is complete, with the answers of `peer` to the questions of the server.

    `send` makes the call with the given params. A modern client repeats the call itself, and gets the first result. A
    question that is refused ends the call with its RpcError.
    """
    result = await send(params)
    if peer.client.protocol_version in MODERN_VERSIONS:
        return result
    pause = FIRST_PAUSE_SECONDS
    rounds = 0
    while (wanted := _wanted(result)) is not None:
        rounds += 1
        if rounds > MAX_ROUNDS:
            raise RpcError(INTERNAL_ERROR, f"The server asked for more input {MAX_ROUNDS} times in a row.")
        again = dict(params)
        questions = wanted.get("inputRequests")
        if isinstance(questions, dict) and questions:
            again["inputResponses"] = await _answers(questions, peer)
            pause = FIRST_PAUSE_SECONDS
        else:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        if "requestState" in wanted:
            again["requestState"] = wanted["requestState"]
        try:
            result = await send(again)
        except ConnectionLost as lost:
            raise ConnectionLost(str(lost), sent=True) from None  # the server has seen at least the first round
    return result


def _wanted(result: msgspec.Raw) -> dict[str, Any] | None:
    """The result, if it is `input_required`. Others are not decoded: they may be long."""
    if _MARK not in bytes(result):
        return None
    decoded = object_in(result)
    return decoded if decoded is not None and decoded.get("resultType") == "input_required" else None


async def _answers(questions: dict[str, Any], peer: Peer) -> dict[str, Result]:
    """The answers to all questions, asked together. The first refusal cancels the others."""
    asked = [asyncio.ensure_future(_ask(name, question, peer)) for name, question in questions.items()]
    try:
        return dict(zip(questions, await asyncio.gather(*asked), strict=True))
    finally:
        for answer in asked:
            answer.cancel()


async def _ask(name: str, question: object, peer: Peer) -> Result:
    method = question.get("method") if isinstance(question, dict) else None
    if not isinstance(question, dict) or not isinstance(method, str):
        raise RpcError(INTERNAL_ERROR, f"The server's question '{shown(name)}' has no method.")
    params = question.get("params")
    return await ask_peer(peer, method, params if isinstance(params, dict) else {}, name)
