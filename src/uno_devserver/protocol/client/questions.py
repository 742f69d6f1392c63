"""What a server says beside its answers. Its questions (handshake era) are answered once, each in its own time."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING

import msgspec

from ...system.log import ERROR, log
from ..jsonrpc import BUSY, INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError, shown
from .messages import Message, answer_bytes, params_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..service import Params, Result
    from .connection import Peer

MAX_OPEN = 100  # more at once is a runaway server
# What clients ask and no server may; methods that nobody knows may be those of an extension, and pass.
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
        "subscriptions/listen",
    }
)


class Questions:
    def __init__(self, reply: Callable[[bytes], Awaitable[None]]) -> None:
        self._reply = reply  # takes a message to the server; may fail as it likes
        self._open: dict[str, asyncio.Task[None]] = {}

    def hear(self, message: Message, peer: Peer) -> None:
        """Anything but the answer to a request of ours."""
        if message.is_question:
            self.ask(message, peer)
        elif message.is_notification:
            params = params_of(message)
            if message.method == "notifications/cancelled":
                self.take_back(params)  # and no more: `peer` knows its questions by other ids
            else:
                tell(peer, message.method or "", params)
        else:
            log.debug("the server answered something that nobody waits for (any more)")

    def ask(self, question: Message, peer: Peer) -> None:
        """Have it answered by `peer`, and the answer sent."""
        key = _key(question.id)
        if key in self._open:
            log.debug(f"the server asked '{shown(question.method or '')}' twice by the same id")
            return
        task = asyncio.ensure_future(self._answer(question, peer, busy=len(self._open) >= MAX_OPEN))
        self._open[key] = task
        task.add_done_callback(lambda _: self._open.pop(key, None))

    def take_back(self, params: Params) -> None:
        """The server does not want to know any more."""
        task = self._open.get(repr(params.get("requestId")))
        if task is not None:
            task.cancel()

    def close(self) -> None:
        for task in list(self._open.values()):
            task.cancel()

    async def _answer(self, question: Message, peer: Peer, *, busy: bool) -> None:
        said = RpcError(BUSY, f"{MAX_OPEN} questions wait already.") if busy else await _said(question, peer)
        try:
            await self._reply(answer_bytes(question.id, said))
        except Exception as error:  # the server is gone, and its question with it
            log.debug(f"the answer to '{shown(question.method or '')}' could not be sent: {error}")


def _key(question_id: msgspec.Raw) -> str:
    """As the server names it when it takes it back: 1 is not "1"."""
    try:
        return repr(msgspec.json.decode(question_id))
    except (msgspec.DecodeError, RecursionError):  # a number that no float can hold, for instance
        return bytes(question_id).decode()


def tell(peer: Peer, method: str, params: Params) -> None:
    """Pass a notification on; whoever gets it cannot break the conversation by failing on it."""
    try:
        peer.notify(method, params)
    except Exception:
        log.write(ERROR, f"'{shown(method)}' of the server could not be passed on:\n{traceback.format_exc()}")


async def ask(peer: Peer, method: str, params: Params, name: str | None = None) -> Result:
    """The answer of `peer` to what a server may ask; RpcError for anything else."""
    if method in ASKED_OF_SERVERS:
        raise RpcError(METHOD_NOT_FOUND, f"'{method}' is what a client asks a server, and not the other way round.")
    return await peer.ask(method, params, name)


async def _said(question: Message, peer: Peer) -> Result | RpcError:
    method = question.method or ""
    if method == "ping":
        return {}
    try:
        return await ask(peer, method, params_of(question))
    except RpcError as refusal:
        return refusal
    except Exception:
        log.write(ERROR, f"the question '{shown(method)}' of the server failed here:\n{traceback.format_exc()}")
        return RpcError(INTERNAL_ERROR, "The client failed on this question.")
