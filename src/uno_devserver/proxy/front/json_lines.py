"""Messages of JSON-RPC from and to a line, with nothing but `json`: faster libraries take too long to import.

Whatever a client writes becomes a value or an RpcError; numbers that Python could not write again are refused.
"""

from __future__ import annotations

import json

from ...protocol.jsonrpc import PARSE_ERROR, RpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any, NoReturn

    from ...protocol.jsonrpc import Id


# Deeper values could be read here, and then be too deep for whoever has to write them.
MAX_DEPTH = 500

_BOM = b"\xef\xbb\xbf"  # Windows programs like to write one before the first line
_TOO_DEEP = "The JSON is nested too deeply."


def decoded(line: bytes) -> Any:
    try:
        value = _DECODER.decode(line.removeprefix(_BOM).decode("utf-8"))
    except RecursionError:
        raise RpcError(PARSE_ERROR, _TOO_DEEP) from None
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"The line is not valid JSON: {error}") from None
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _is_deep(value):
        raise RpcError(PARSE_ERROR, _TOO_DEEP)
    return value


def _is_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)]
    return bool(level)


def _inside(value: Any) -> Collection[Any]:
    inside: Collection[Any] = value.values() if isinstance(value, dict) else value
    return inside


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text} is too large")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"there is no {text} in JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)


def answer_line(request_id: Id, result: Mapping[str, Any], spliced: bytes = b"") -> bytes:
    """`spliced` is a member of the result that is JSON already."""
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
    return json.dumps(value).encode("ascii")  # in escapes, so that a client gets back whatever it has sent


def _encoded(value: Mapping[str, Any]) -> bytes:
    # A file name that is not valid text is half a surrogate pair, which many readers of JSON refuse.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
