"""The token in the URL of the page: random, made once per workspace, readable by its user alone.

It stays the same, so that a page finds the next proxy of its workspace again. Where it cannot be kept, the one that is
returned counts for this process.
"""

from __future__ import annotations

import json
import os
import re
from base64 import urlsafe_b64encode

from ..system.files import FileProblem, read_bytes, write_atomic
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.naming import name_for

try:
    from _operator import _compare_digest as same  # in constant time; `hmac` would load OpenSSL for it, some MB
except ImportError:  # another Python than CPython
    from hmac import compare_digest as same  # type: ignore[no-redef]

__all__ = ["same", "token_for"]

FOLDER = "inspector"
RANDOM_BYTES = 24  # 192 bits: nobody guesses them
MAX_BYTES = 64 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")


def token_for(state: str, folder: str) -> str:
    """The token of the workspace in `folder`. Waits for the disk."""
    path = os.path.join(state, FOLDER, f"{name_for(folder)}.json")
    place = os.path.normcase(os.path.realpath(folder))
    missing = False
    try:
        known = _read(path, place)
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


def _read(path: str, place: str) -> str | None:
    """None: it cannot be used, or is another folder's. FileNotFoundError: there is none."""
    try:
        kept = parse(read_bytes(path, MAX_BYTES))
    except (FileProblem, JsonProblem):
        return None
    token = kept.get("token") if isinstance(kept, dict) and kept.get("folder") == place else None
    return token if isinstance(token, str) and _TOKEN.fullmatch(token) else None
