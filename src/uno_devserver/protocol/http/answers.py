"""What a request is answered: no for strangers, what a browser's preflight asks, else what the handler says."""

from __future__ import annotations

import asyncio

from ...system.log import log
from . import cors
from .guard import Guard
from .heads import check
from .messages import Answer, Handler, Request, Response, Upgrade


async def respond(request: Request, guard: Guard, handler: Handler) -> Answer:
    """The answer to a request. A handler that fails is one too: 500, with the reason in the log alone."""
    headers = request.headers
    if (reason := guard(headers)) is not None:
        return refused(403, reason)
    if cors.is_preflight(request.method, headers):
        answer = _preflight(request)
    else:
        answer = await _handled(request, handler)
    if "origin" in headers and not isinstance(answer, Upgrade):
        return answer.replace(headers=cors.answer_headers(headers) + answer.headers)
    return answer


def refused(status: int, reason: str) -> Response:
    import json  # errors are rare, and it is not needed otherwise

    body = json.dumps({"error": reason}, ensure_ascii=False).encode("utf-8", "replace")
    return Response(status, body, (("Content-Type", "application/json"),))


def log_failure(what: str, error: BaseException) -> None:
    """A handler's failure: a line for everybody, the traceback for those who look for it."""
    import traceback

    log.warn(f"{what} failed: {type(error).__name__}: {error}")
    log.debug("".join(traceback.format_exception(error)).rstrip())


def _preflight(request: Request) -> Answer:
    reason = cors.preflight_refusal(request.headers)
    if reason is not None:
        return refused(403, reason)
    return Response(204, b"", cors.preflight_headers(request.headers))


async def _handled(request: Request, handler: Handler) -> Answer:
    try:
        answer = await handler(request)
        if not isinstance(answer, Upgrade):
            check(answer.headers)
        return answer
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # the server stops
        failure: BaseException = error  # something that the handler waited for was cancelled: its own affair
    except Exception as error:
        failure = error
    log_failure(f"{request.method} {request.path}", failure)
    return refused(500, "the request failed; the server's log has the reason")
