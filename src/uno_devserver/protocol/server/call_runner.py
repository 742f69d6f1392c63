"""Runs one call of a service; every failure of the service becomes an error for the client."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from ...system.log import ERROR, log
from ..jsonrpc import INTERNAL_ERROR, STOPPED, Id, RpcError, error_message, result_message, shown
from ..service import Call, Result

CallAnswer = Result | msgspec.Raw
Outcome = CallAnswer | RpcError
Answerer = Callable[[Call], Awaitable[CallAnswer]]
T = TypeVar("T")

# What the code of an add-in may raise: sys.exit() in a tool must not end the server; a group may contain anything.
FAILURES = (Exception, SystemExit, BaseExceptionGroup)


async def run_call(answer: Answerer, call: Call) -> Outcome:
    """Return the result or the error of a call. Raises CancelledError only if the call itself was cancelled."""
    result: object = await attempt(answer(call), call.method)
    if not isinstance(result, dict | msgspec.Raw | RpcError):  # add-ins are not type-checked
        log.write(ERROR, f"'{call.method}' was answered with {type(result).__name__}, not with an object.")
        return _failed_on(f"'{shown(call.method)}'")
    return result


async def attempt(work: Awaitable[T], method: str) -> T | RpcError:
    """Return the result of the service's work for `method`, or an RpcError if it fails."""
    try:
        return await work
    except RpcError as error:
        return error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return failure(f"'{shown(method)}'")  # something inside the work was cancelled
    except FAILURES:
        return failure(f"'{shown(method)}'")


def failure(what: str) -> RpcError:
    """Log the present exception, and return the error that the client gets for it."""
    log.write(ERROR, f"{what} failed:\n{traceback.format_exc()}")
    return _failed_on(what)


def _failed_on(what: str) -> RpcError:
    return RpcError(INTERNAL_ERROR, f"The server failed on {what}; its log says why.")


def why_cancelled(why_stopped: RpcError | None) -> RpcError:
    """The error for a call that was cancelled; `why_stopped` is None if the service has cancelled it itself."""
    return why_stopped or RpcError(INTERNAL_ERROR, "The call was cancelled from inside the server.")


def stopped() -> RpcError:
    """The error for a call that still runs when the server stops."""
    return RpcError(STOPPED, "The server stopped before the call was done; its outcome is unknown.")


def answer_message(request_id: Id, outcome: Outcome) -> bytes:
    """The outcome as a message; a result that JSON cannot express becomes an error that says so."""
    try:
        if isinstance(outcome, RpcError):
            return error_message(request_id, outcome)
        return result_message(request_id, outcome)
    except Exception as error:  # any value can fail in its own way, and the client waits for an answer
        if isinstance(outcome, RpcError):
            return error_message(request_id, RpcError(outcome.code, str(outcome.message)))
        log.write(ERROR, f"A result cannot be written as JSON: {error!r}")
        return error_message(request_id, RpcError(INTERNAL_ERROR, "The server's result cannot be written as JSON."))


def tell_service(function: Callable[[Any], None], about: object) -> None:
    """Call a method of the service that has no answer; its failure is logged."""
    try:
        function(about)
    except FAILURES:
        log.write(ERROR, f"the service failed:\n{traceback.format_exc()}")
