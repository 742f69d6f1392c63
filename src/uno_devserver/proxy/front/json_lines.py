"""Decodes and encodes lines of JSON-RPC with the standard `json`: faster libraries take too long to import.

Every line becomes a value or an RpcError; numbers that Python could not write again are refused.
"""

from __future__ import annotations

import json

from ...protocol.jsonrpc import PARSE_ERROR, TOO_DEEP, RpcError, is_deep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from ...protocol.jsonrpc import Id


MAX_DEPTH = 500  # `json` can read deeper values, but may fail to write them

_BOM = b"\xef\xbb\xbf"  # some Windows programs write it before the first line


def decoded(line: bytes) -> Any:
    if is_deep(line, MAX_DEPTH):
        raise RpcError(PARSE_ERROR, TOO_DEEP)
    try:
        return _DECODER.decode(line.removeprefix(_BOM).decode("utf-8"))
    except RecursionError:
        raise RpcError(PARSE_ERROR, TOO_DEEP) from None
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"The line is not valid JSON: {error}") from None


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text} is too large")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not valid JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)


def answer_line(request_id: Id, result: Mapping[str, Any], spliced: bytes = b"") -> bytes:
    """The line of an answer. `spliced`: a further member of the result, which is JSON already."""
    body = _encoded(result)
    if spliced:
        body = body[:-1] + (b"," if result else b"") + spliced + b"}"
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (_id(request_id), body)


def error_line(request_id: Id | None, error: RpcError) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (_id(request_id), _encoded(error_body(error)))


def error_body(error: RpcError) -> dict[str, Any]:
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return body


def _id(value: Id | None) -> bytes:
    return json.dumps(value).encode("ascii")  # escaped, so that any id comes back as it was sent


def _encoded(value: Mapping[str, Any]) -> bytes:
    # Lone surrogates, from file names that are not valid text, are replaced, because many JSON readers refuse them.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
