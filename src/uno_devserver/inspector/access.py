"""Who may see the page and call tools through it: whoever has its URL, on this machine, and no other web site. Pure.

A browser says which site asks (Origin, Sec-Fetch-Site); another port of this machine is another site. A link to the
page may stand anywhere, because nothing is shown without the token, and nothing is changed by looking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..protocol.http.guard import misdirected
from ..protocol.http.messages import Request
from .token import same

OWN = ("same-origin", "none")  # of Sec-Fetch-Site; none: the user typed the address
_IN_QUERY = re.compile(r"(?:^|&)token=([^&]*)")
_IN_PATH = re.compile(r"/mcp/([^/]+)/?", re.IGNORECASE)  # for MCP clients, of which some lose the query of a URL
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


def stranger(headers: Mapping[str, str]) -> str | None:
    """Why a request with these headers (names in lower case) is refused, whatever it asks for; None: it is not."""
    reason = misdirected(headers)
    if reason is not None:
        return reason
    origin, host = headers.get("origin"), headers["host"]
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        return f"requests of the origin {origin!r} are not served; only this page itself may ask"
    if headers.get("sec-fetch-site", "none").lower() not in OWN and not _follows_link(headers):
        return "requests of other web sites are not served; only this page itself may ask"
    return None


def is_known(request: Request, token: str) -> bool:
    """Whether it brings the token: as `Authorization: Bearer`, behind `?token=`, or behind `/mcp/`."""
    bearer = _BEARER.fullmatch(request.headers.get("authorization", ""))
    sent = bearer or _IN_QUERY.search(request.query) or _IN_PATH.fullmatch(request.path)
    return sent is not None and same(sent[1].encode("utf-8", "replace"), token.encode())


def _follows_link(headers: Mapping[str, str]) -> bool:
    """A whole page that the user opens, and no frame."""
    return headers.get("sec-fetch-mode", "").lower() == "navigate" and headers.get("sec-fetch-dest") == "document"
