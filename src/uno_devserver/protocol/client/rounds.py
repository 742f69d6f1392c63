"""A modern server's questions, for a client that is asked and does not call again: `input_required` in rounds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..eras import MODERN_VERSIONS
from ..jsonrpc import INTERNAL_ERROR, RpcError, shown
from .connection import Lost
from .messages import object_in
from .questions import ask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import msgspec

    from ..service import Params, Result
    from .connection import Peer

MAX_ROUNDS = 100  # each may be a person's answer; a server that asks on and on is stuck
# A server without a question wants to be asked again later: soon at first, for long work every few seconds.
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 5.0
_MARK = b'"input_required"'


async def completed(params: Params, peer: Peer, send: Callable[[Params], Awaitable[msgspec.Raw]]) -> msgspec.Raw:
    """Call until the result is complete, with the answers of `peer` to what the server asks in between.

    `send` makes the call with the params that it is given. A modern client calls again by itself, and gets the first
    result. RpcError of a question that was refused ends the call.
    """
    result = await send(params)
    if peer.client.protocol_version in MODERN_VERSIONS:
        return result
    pause = FIRST_PAUSE_SECONDS
    for _ in range(MAX_ROUNDS):
        wanted = _wanted(result)
        if wanted is None:
            return result
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
        except Lost as lost:
            raise Lost(str(lost), sent=True) from None  # the server has seen the call, if not this round of it
    raise RpcError(INTERNAL_ERROR, f"The server asked for more input {MAX_ROUNDS} times in a row.")


def _wanted(result: msgspec.Raw) -> dict[str, Any] | None:
    """The result, if it is `input_required`; others, which may be long, are not decoded to learn that."""
    if _MARK not in bytes(result):
        return None
    said = object_in(result)
    return said if said is not None and said.get("resultType") == "input_required" else None


async def _answers(questions: dict[str, Any], peer: Peer) -> dict[str, Result]:
    """All at once: a person sees them together. The first refusal ends the others."""
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
    return await ask(peer, method, params if isinstance(params, dict) else {}, name)
