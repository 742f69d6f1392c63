"""Modern calls that wait for their client to come back with answers.

The service's coroutine simply stays where it is. The client gets a token that nobody can guess; whoever brings it back
in time, for the same tool, prompt or resource, goes on with that call. Each token works once, and both time and number
are bounded.
"""

from __future__ import annotations

import asyncio
import os
from typing import Generic, Protocol, TypeVar

from .eras import NAMED_BY
from .jsonrpc import INVALID_PARAMS, RpcError, RpcRequest
from .policy import Policy
from .service import Result


class Waiting(Protocol):
    """A call that can be taken up again."""

    @property
    def origin(self) -> RpcRequest:
        """The request that started it."""

    def cancel(self) -> None: ...


W = TypeVar("W", bound=Waiting)


class Parked(Generic[W]):
    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._mark = os.urandom(8).hex()  # by which we know our own tokens, also when they are used up
        self._places: dict[str, tuple[W, asyncio.TimerHandle]] = {}

    def park(self, call: W) -> str:
        """Keep it; the token that gets it back. The one that has waited longest makes room."""
        if len(self._places) >= self._policy.parked:
            self._abandon(next(iter(self._places)))
        token = f"{self._mark}-{os.urandom(24).hex()}"
        timer = asyncio.get_running_loop().call_later(self._policy.parked_seconds, self._abandon, token)
        self._places[token] = (call, timer)
        return token

    def issued(self, token: object) -> bool:
        """Whether it is one of these, and not that of a server behind this one."""
        return isinstance(token, str) and token.startswith(f"{self._mark}-")

    def take(self, token: object, request: RpcRequest) -> W:
        """The call that `request` continues; RpcError when it is gone, or was another one."""
        place = self._places.get(token) if isinstance(token, str) else None
        if place is None:
            minutes = self._policy.parked_seconds / 60
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
        answers(request)  # ill-formed ones are refused before the token is used up
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


def answers(request: RpcRequest) -> dict[str, Result]:
    """The answers that a request brings, by the names of the questions."""
    brought = request.params.get("inputResponses")
    if brought is None:
        return {}
    if not isinstance(brought, dict) or not all(isinstance(answer, dict) for answer in brought.values()):
        raise RpcError(INVALID_PARAMS, "inputResponses must be an object of objects, one per question.")
    return brought
