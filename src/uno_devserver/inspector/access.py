"""Who may see the page and call tools through it: whoever has its URL, on this machine, and no other web site. Pure.

A browser says which site asks (Origin, Sec-Fetch-Site); another port of this machine is another site. A link to the
page may stand anywhere, because nothing is shown without the token, and nothing is changed by looking.
"""

from __future__ import annotations

import json
import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from ..protocol.http.guard import misdirected
from ..protocol.http.messages import Request
from ..system.files import FileProblem, read_bytes, write_atomic
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.state_files import name_for

try:
    from _operator import _compare_digest as same  # in constant time; `hmac` would load OpenSSL for it, some MB
except ImportError:  # another Python than CPython
    from hmac import compare_digest as same  # type: ignore[no-redef]

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


TOKEN_FOLDER = "inspector"  # noqa: S105
RANDOM_BYTES = 24  # 192 bits: nobody guesses them
MAX_BYTES = 64 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")


def token_for(state: str, folder: str) -> str:
    """The token of the workspace in `folder`. Waits for the disk."""
    path = os.path.join(state, TOKEN_FOLDER, f"{name_for(folder)}.json")
    place = os.path.normcase(os.path.realpath(folder))
    missing = False
    try:
        known = _read_token(path, place)
    except FileNotFoundError:
        known, missing = None, True
    if known is not None:
        return known
    token = urlsafe_b64encode(os.urandom(RANDOM_BYTES)).decode()
    try:
        # Where there is none, another process may be faster; what is there and cannot be used may go.
        write_atomic(path, json.dumps({"folder": place, "token": token}).encode(), new=missing)
    except FileExistsError:
        return token_for(state, folder)
    except OSError as error:
        log.debug(f"the inspector's token is not kept: {error}")
    return token


def _read_token(path: str, place: str) -> str | None:
    """None: it cannot be used, or is another folder's. FileNotFoundError: there is none."""
    try:
        kept = parse(read_bytes(path, MAX_BYTES))
    except (FileProblem, JsonProblem):
        return None
    token = kept.get("token") if isinstance(kept, dict) and kept.get("folder") == place else None
    return token if isinstance(token, str) and _TOKEN.fullmatch(token) else None
