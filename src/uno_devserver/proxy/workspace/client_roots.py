"""The roots of a client: asks for them if the client can be asked, and reads the local folders from its answer."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from typing import TYPE_CHECKING

from ...protocol.versions import MODERN_VERSIONS
from ...system.log import log

if TYPE_CHECKING:
    from ...protocol.peer_info import ClientInfo
    from ...protocol.service import Session

ANSWER_SECONDS = 10.0  # clients answer within milliseconds; until then uno_app_initialize is not listed
MAX_ROOTS = 64  # each is looked up on disk; the first that exists is used


def can_be_asked(client: ClientInfo) -> bool:
    """Whether the client declares roots and answers requests outside a call, which modern clients do not."""
    return isinstance(client.capabilities.get("roots"), dict) and client.protocol_version not in MODERN_VERSIONS


async def ask_roots(session: Session, seconds: float) -> object | None:
    """The client's answer to `roots/list`; None if there is none, and the log says why."""
    try:
        async with asyncio.timeout(seconds):
            return await session.ask("roots/list", {})
    except TimeoutError:
        log.warn(f"The client has roots, but did not answer roots/list within {seconds:g} s.")
    except Exception as error:  # the client refuses, or has gone
        log.warn(f"The client has roots, but did not name them: {error}.")
    return None


def read_roots(answer: object, current: str, platform: str = sys.platform) -> tuple[list[str], list[str]]:
    """The local paths in an answer, and a sentence for each unusable root. Relative paths start at `current`."""
    roots = answer.get("roots") if isinstance(answer, dict) else None
    if not isinstance(roots, list):
        return [], ["The client's answer to roots/list contains no list of roots."]
    paths, problems = [], []
    for root in roots[:MAX_ROOTS]:
        uri = root.get("uri") if isinstance(root, dict) else None
        try:
            paths.append(_local_path(uri, current, platform))
        except ValueError as error:
            problems.append(f"The client's root {uri!r} cannot be used: {error}.")
    return paths, problems


def _local_path(uri: object, current: str, platform: str) -> str:
    """The local path of a root; if it has none, ValueError says why."""
    if not isinstance(uri, str) or not uri.strip():
        raise ValueError("it is not a URI")
    path = _path_of_file(uri[len("file:") :], platform) if uri[:5].lower() == "file:" else uri
    if "\0" in path:
        raise ValueError("it contains a NUL character")
    if path is uri and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", uri):  # a single letter before a colon is a drive
        raise ValueError("only file: URIs name local folders")
    import ntpath  # imported late: the rules of Windows are rarely needed elsewhere
    import posixpath

    if platform == "win32":
        return ntpath.normpath(ntpath.join(current, path))
    return posixpath.normpath(posixpath.join(current, path))


def _path_of_file(rest: str, platform: str) -> str:
    """The path of a `file:` URI. `///a/b`, `//localhost/a/b` and `/a/b` are equal; Windows has drives and servers."""
    from urllib.parse import unquote_to_bytes

    host = ""
    if rest.startswith("//"):
        host, slash, below = rest[2:].partition("/")
        rest = slash + below
    path = os.fsdecode(unquote_to_bytes(rest))
    if host.lower() not in ("", "localhost"):
        if platform != "win32":
            raise ValueError(f"it is on another machine, {host}")
        return f"//{host}{path}"
    if platform == "win32" and re.match(r"/[A-Za-z]:", path):
        return path[1:]
    if not path.startswith("/"):
        raise ValueError("it has no absolute path")
    return path
