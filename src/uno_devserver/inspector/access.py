"""Access to the inspector page: only for programs that have its token, and not for other web sites.

Browsers name the site that sends a request (Origin, Sec-Fetch-Site); other ports of this machine are other sites. A
link from another site to the page is allowed, because nothing is shown without the token, and reading changes nothing.
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
    from _operator import _compare_digest as same  # compares in constant time; `hmac` would load a few MB of OpenSSL
except ImportError:  # not CPython
    from hmac import compare_digest as same  # type: ignore[no-redef]

OWN_SITES = ("same-origin", "none")  # values of Sec-Fetch-Site; "none" if the user typed the address
_IN_QUERY = re.compile(r"(?:^|&)token=([^&]*)")
_IN_PATH = re.compile(r"/mcp/([^/]+)/?", re.IGNORECASE)  # for MCP clients that drop the query of a URL
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


def page_refusal(headers: Mapping[str, str]) -> str | None:
    """Why a request with these headers (names in lower case) is refused; None if it is allowed."""
    reason = misdirected(headers)
    if reason is not None:
        return reason
    origin, host = headers.get("origin"), headers["host"]
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        return f"requests of the origin {origin!r} are not served; only this page itself may ask"
    if headers.get("sec-fetch-site", "none").lower() not in OWN_SITES and not _follows_link(headers):
        return "requests of other web sites are not served; only this page itself may ask"
    return None


def is_known(request: Request, token: str) -> bool:
    """Whether the request has the token: as `Authorization: Bearer`, after `?token=`, or after `/mcp/`."""
    bearer = _BEARER.fullmatch(request.headers.get("authorization", ""))
    sent = bearer or _IN_QUERY.search(request.query) or _IN_PATH.fullmatch(request.path)
    return sent is not None and same(sent[1].encode("utf-8", "replace"), token.encode())


def _follows_link(headers: Mapping[str, str]) -> bool:
    """Whether the browser requests a page for a tab, not for a frame or a script."""
    return headers.get("sec-fetch-mode", "").lower() == "navigate" and headers.get("sec-fetch-dest") == "document"


TOKEN_FOLDER = "inspector"  # noqa: S105
RANDOM_BYTES = 24  # 192 bits cannot be guessed
MAX_BYTES = 64 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")


def token_for(state: str, folder: str) -> str:
    """The token of the workspace in `folder`, created and stored if there is none. Blocks on the disk."""
    path = os.path.join(state, TOKEN_FOLDER, f"{name_for(folder)}.json")
    place = os.path.normcase(os.path.realpath(folder))
    missing = False
    try:
        if token := _read_token(path, place):
            return token
    except FileNotFoundError:
        missing = True
    token = urlsafe_b64encode(os.urandom(RANDOM_BYTES)).decode()
    try:
        # Another process may have written a missing file meanwhile; an unusable file is replaced.
        write_atomic(path, json.dumps({"folder": place, "token": token}).encode(), new=missing)
    except FileExistsError:
        return token_for(state, folder)
    except OSError as error:
        log.debug(f"The inspector's token could not be stored: {error}")
    return token


def _read_token(path: str, place: str) -> str | None:
    """The stored token; None if the file is unusable or for another folder, FileNotFoundError if there is none."""
    try:
        kept = parse(read_bytes(path, MAX_BYTES))
    except (FileProblem, JsonProblem):
        return None
    token = kept.get("token") if isinstance(kept, dict) and kept.get("folder") == place else None
    return token if isinstance(token, str) and _TOKEN.fullmatch(token) else None
