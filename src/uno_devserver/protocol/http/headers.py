"""HTTP headers: the head of an answer as bytes, checks of a handler's headers, and the headers of a request."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from ...system.values import Value
from .messages import Headers

REASONS = {
    200: "OK",
    202: "Accepted",
    204: "No Content",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    417: "Expectation Failed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}  # a status without a reason is valid; `http.HTTPStatus` would cost an import
BODILESS = (204, 304)
# Set by the server alone: a second one could make client and server disagree about the end of an answer.
RESERVED = frozenset({"connection", "content-length", "date", "transfer-encoding", "upgrade"})

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")  # strftime would use the user's language
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_dated = (-1, b"")


def response_head(status: int, headers: Headers, framing: bytes, extra: bytes = b"", keep_alive: bool = True) -> bytes:
    """The head with its final empty line; `framing` says where the body ends, `extra` are encoded header lines."""
    return b"".join(
        (
            b"HTTP/1.1 %d %s\r\n" % (status, REASONS.get(status, "").encode()),
            framing,
            date_header(int(time.time())),
            b"" if keep_alive else b"Connection: close\r\n",
            header_lines(headers),
            extra,
            b"\r\n",
        )
    )


def check_headers(headers: Headers) -> None:
    """Raise ValueError for headers that are invalid, or that a handler must not set."""
    for name, value in headers:
        if HEADER_NAME.fullmatch(name) is None:
            raise ValueError(f"HTTP does not allow a header with the name {name!r}")
        if _VALUE.fullmatch(value) is None:  # the value is not shown, because it may be secret
            raise ValueError(f"the value of the header {name!r} has characters that HTTP does not allow")
        if name.lower() in RESERVED:
            raise ValueError(f"the header {name!r} is set by the server alone")


def header_lines(headers: Headers) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers]).encode("latin-1")


def date_header(now: int) -> bytes:
    """The Date header line, made once per second."""
    global _dated
    if _dated[0] != now:
        at = time.gmtime(now)
        text = time.strftime("%d {} %Y %H:%M:%S GMT", at).format(_MONTHS[at.tm_mon - 1])
        _dated = (now, f"Date: {_DAYS[at.tm_wday]}, {text}\r\n".encode())
    return _dated[1]


JSON = "application/json"


class Accepts(Value):
    json: bool
    events: bool


def accepted_types(headers: Mapping[str, str]) -> Accepts:
    """The kinds of answer that the client accepts; both, if there is no Accept header."""
    listed = headers.get("accept")
    if listed is None:
        return Accepts(json=True, events=True)
    kinds = {kind.partition(";")[0].strip().lower() for kind in listed.split(",")}
    return Accepts(
        json=not kinds.isdisjoint({JSON, "application/*", "*/*"}),
        events=not kinds.isdisjoint({"text/event-stream", "text/*", "*/*"}),
    )


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether the Content-Type is JSON. Web pages can send some other types, or none, without a preflight."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == JSON


def joined_headers(fields: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Received headers by their names in lower case; repeated ones are joined by ", "."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
