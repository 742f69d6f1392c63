"""The headers with which a modern request over HTTP repeats its body, so that gateways need not read that.

`Mcp-Method` and `Mcp-Name` always; `Mcp-Param-…` where the schema of a tool marks one of its arguments for it.
"""

from __future__ import annotations

import binascii
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..eras import NAMED_BY
from ..http.client import encode_headers
from ..jsonrpc import INVALID_REQUEST, RpcError, shown

MARK = "x-mcp-header"  # beside the type of an argument in a schema
MAX_DEPTH = 20  # of the objects in which marks are looked for

# Where an argument is in its object, and what its header is called.
Marks = tuple[tuple[tuple[str, ...], str], ...]

_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_WRAPPED = re.compile(r"=\?base64\?.*\?=")
_TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)


def routing_headers(method: str, params: Mapping[str, Any]) -> bytes:
    """What every request has. RpcError for a method that no header can carry."""
    name = params.get(NAMED_BY[method]) if method in NAMED_BY else None
    return _routing(method, name if isinstance(name, str) else None)


@functools.lru_cache(maxsize=1024)
def _routing(method: str, name: str | None) -> bytes:
    if _PLAIN.fullmatch(method) is None:
        raise RpcError(INVALID_REQUEST, f"The method '{shown(method)}' cannot be sent over HTTP.")
    named = {} if name is None else {"Mcp-Name": header_value(name)}
    return encode_headers({"Mcp-Method": method, **named})


def header_value(text: str) -> str:
    """Text as a header can carry it; `eras.decoded_header` is the way back."""
    if _PLAIN.fullmatch(text) and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{binascii.b2a_base64(text.encode('utf-8', 'replace'), newline=False).decode()}?="


def marks_in(schema: object) -> Marks:
    """The arguments of a tool that are repeated in headers; {} in a list, or behind a choice, cannot be."""
    return tuple(_marked(schema, ()))


def _marked(schema: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(schema, dict) or len(path) > MAX_DEPTH:
        return
    name = schema.get(MARK)
    if path and isinstance(name, str) and _TOKEN.fullmatch(name):
        yield path, name
    inner = schema.get("properties")
    if isinstance(inner, dict):
        for key, each in inner.items():
            yield from _marked(each, (*path, key))


def argument_headers(marks: Marks, params: Mapping[str, Any]) -> bytes:
    headers = {}
    for path, name in marks:
        value = params.get("arguments")
        if isinstance(value, msgspec.Raw):
            value = msgspec.json.decode(value)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, bool):
            headers[f"Mcp-Param-{name}"] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            headers[f"Mcp-Param-{name}"] = header_value(str(value))
    return encode_headers(headers)
