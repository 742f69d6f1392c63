"""CORS headers for pages that another port of this machine serves, such as a WebAssembly app or an inspector. Pure.

Used only for requests that the guard has let pass, so every Origin here is a page that may read the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .headers import HEADER_NAME
from .messages import Headers

METHODS = ("GET", "POST", "DELETE", "OPTIONS")
EXPOSED = "Mcp-Session-Id, MCP-Protocol-Version"  # the headers of an answer that scripts of a page may read
PREFLIGHT_SECONDS = 600  # how long a browser may rely on the answer to a preflight

_HEADER_NAMES = re.compile(rf"{HEADER_NAME.pattern}(?:\s*,\s*{HEADER_NAME.pattern})*", re.ASCII)


def answer_headers(request: Mapping[str, str]) -> Headers:
    """The headers that let a page read the answer; none if the request does not come from a page."""
    origin = request.get("origin")
    if origin is None:
        return ()
    return (
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Expose-Headers", EXPOSED),
        ("Vary", "Origin"),
    )


def is_preflight(method: str, request: Mapping[str, str]) -> bool:
    """Whether this is a preflight: the request by which a browser asks whether a page's request is allowed."""
    return method == "OPTIONS" and "origin" in request and "access-control-request-method" in request


def preflight_refusal(request: Mapping[str, str]) -> str | None:
    method = request["access-control-request-method"]
    if method not in METHODS:
        return f"the method {method!r} is not offered; use one of {', '.join(METHODS)}"
    names = request.get("access-control-request-headers", "")
    if names and _HEADER_NAMES.fullmatch(names) is None:
        return f"Access-Control-Request-Headers {names!r} is not a list of header names"
    return None


def preflight_headers(request: Mapping[str, str]) -> Headers:
    """The headers of the answer to a preflight that is not refused: what the page may send."""
    names = request.get("access-control-request-headers", "")
    allowed = (("Access-Control-Allow-Headers", names),) if names else ()
    return (
        ("Access-Control-Allow-Methods", ", ".join(METHODS)),
        *allowed,
        ("Access-Control-Max-Age", str(PREFLIGHT_SECONDS)),
    )
