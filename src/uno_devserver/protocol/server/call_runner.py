"""Run one call of a service to its outcome, whatever the service does."""

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

# What somebody else's code may raise: sys.exit() in a tool ends the tool, not the server; a group may hold anything.
FAILURES = (Exception, SystemExit, BaseExceptionGroup)


async def run_call(answer: Answerer, call: Call) -> Outcome:
    """The result or the error; CancelledError only when the call itself was cancelled."""
    result: object = await attempt(answer(call), call.method)
    if not isinstance(result, dict | msgspec.Raw | RpcError):  # add-ins are not type-checked
        log.write(ERROR, f"'{call.method}' was answered with {type(result).__name__}, not with an object.")
        return _told(call.method)
    return result


async def attempt(work: Awaitable[T], method: str) -> T | RpcError:
    """What comes of something that the service does for `method`, an error also where it just fails."""
    try:
        return await work
    except RpcError as error:
        return error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _failure(method)  # something inside it was cancelled
    except FAILURES:
        return _failure(method)


def _failure(method: str) -> RpcError:
    log.write(ERROR, f"'{method}' failed:\n{traceback.format_exc()}")
    return _told(method)


def _told(method: str) -> RpcError:
    return RpcError(INTERNAL_ERROR, f"The server failed while it worked on '{shown(method)}'; its log says why.")


def task_outcome(task: asyncio.Task[Outcome], why_stopped: RpcError | None) -> Outcome:
    """What came of a call."""
    return why_cancelled(why_stopped) if task.cancelled() else task.result()


def why_cancelled(why_stopped: RpcError | None) -> RpcError:
    """If there is no reason, it was the call's own doing, and somebody waits."""
    return why_stopped or RpcError(INTERNAL_ERROR, "The call was cancelled from inside the server.")


def answer_message(request_id: Id, said: Outcome) -> bytes:
    """The outcome as a message; a result that JSON cannot express is the server's failure, told as such."""
    if isinstance(said, RpcError):
        return _error_message(request_id, said)
    try:
        return result_message(request_id, said)
    except Exception as error:  # whatever it is made of, the client waits for an answer
        log.write(ERROR, f"A result cannot be written as JSON: {error!r}")
        return error_message(request_id, RpcError(INTERNAL_ERROR, "The server's result cannot be written as JSON."))


def _error_message(request_id: Id, error: RpcError) -> bytes:
    try:
        return error_message(request_id, error)
    except Exception:
        return error_message(request_id, RpcError(error.code, str(error.message)))


def stopped() -> RpcError:
    """The answer to a call that is still running when there is nothing left to run it."""
    return RpcError(STOPPED, "The server stopped before the call was done; its outcome is unknown.")


def tell_service(function: Callable[[Any], None], about: object) -> None:
    """Tell the service of something; its failure is its own."""
    try:
        function(about)
    except FAILURES:
        log.write(ERROR, f"the service failed:\n{traceback.format_exc()}")
