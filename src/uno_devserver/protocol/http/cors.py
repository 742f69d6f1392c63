"""What a page of another port of this machine may do here: a WebAssembly app, an inspector. Pure.

Asked only about requests that the guard let pass, so an Origin that comes here is one of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .messages import Headers

METHODS = ("GET", "POST", "DELETE", "OPTIONS")
EXPOSED = "Mcp-Session-Id, MCP-Protocol-Version"  # answer headers that a page's script needs to see
PREFLIGHT_SECONDS = 600  # how long a browser need not ask again

_HEADER_NAMES = re.compile(r"[\w!#$%&'*+.^`|~-]+(?:\s*,\s*[\w!#$%&'*+.^`|~-]+)*", re.ASCII)


def answer_headers(request: Mapping[str, str]) -> Headers:
    """The headers that let the asking page read the answer; none when no page asks."""
    origin = request.get("origin")
    if origin is None:
        return ()
    return (
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Expose-Headers", EXPOSED),
        ("Vary", "Origin"),
    )


def is_preflight(method: str, request: Mapping[str, str]) -> bool:
    """Whether a browser asks if it may ask."""
    return method == "OPTIONS" and "origin" in request and "access-control-request-method" in request


def preflight_refusal(request: Mapping[str, str]) -> str | None:
    method = request["access-control-request-method"]
    if method not in METHODS:
        return f"the method {method!r} is not offered; there are {', '.join(METHODS)}"
    names = request.get("access-control-request-headers", "")
    if names and _HEADER_NAMES.fullmatch(names) is None:
        return f"Access-Control-Request-Headers {names!r} is no list of header names"
    return None


def preflight_headers(request: Mapping[str, str]) -> Headers:
    """What a browser may send, said to a preflight that was not refused."""
    names = request.get("access-control-request-headers", "")
    allowed = (("Access-Control-Allow-Headers", names),) if names else ()
    return (
        ("Access-Control-Allow-Methods", ", ".join(METHODS)),
        *allowed,
        ("Access-Control-Max-Age", str(PREFLIGHT_SECONDS)),
    )
