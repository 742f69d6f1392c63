"""Plain HTTP answers with a JSON-RPC message, or nothing, in them."""

from __future__ import annotations

from .http.messages import Headers, Response
from .jsonrpc import Id, RpcError, error_message
from .media import JSON

JSON_HEADERS: Headers = (("Content-Type", JSON),)
ACCEPTED = Response(202)


def plain(message: bytes, status: int = 200, headers: Headers = ()) -> Response:
    return Response(status, message, JSON_HEADERS + headers)


def refusal(status: int, error: RpcError, request_id: Id | None = None) -> Response:
    return plain(error_message(request_id, error), status)
