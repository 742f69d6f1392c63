"""The client's roots: whether it has any, the `roots/list` request, and the local paths that an answer names."""

from __future__ import annotations

import asyncio
import ntpath
import os
import posixpath
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...protocol.eras import MODERN_VERSIONS
from ...system.log import log

if TYPE_CHECKING:
    from ...protocol.parties import ClientInfo
    from ...protocol.service import Session


METHOD = "roots/list"

MAX_ROOTS = 64  # each is looked up on disk; the first that exists counts anyway


def can_be_asked(client: ClientInfo) -> bool:
    """Whether the client declares roots and answers requests outside a call, which modern clients do not."""
    return isinstance(client.capabilities.get("roots"), Mapping) and client.protocol_version not in MODERN_VERSIONS


async def ask_roots(session: Session, seconds: float) -> object | None:
    """The client's answer to `roots/list`; None, and a line in the log, without one."""
    try:
        async with asyncio.timeout(seconds):
            return await session.ask(METHOD, {})
    except TimeoutError:
        log.warn(f"The client has roots, but did not answer {METHOD} within {seconds:g} s.")
    except Exception as error:  # the client refuses, or has gone
        log.warn(f"The client has roots, but did not name them: {error}.")
    return None


def read_roots(answer: object, current: str, platform: str = sys.platform) -> tuple[list[str], list[str]]:
    """The local paths that an answer names, in its order, and a sentence for each root that is not a local path.

    `current` is the folder that relative paths start from.
    """
    roots = answer.get("roots") if isinstance(answer, Mapping) else None
    if not isinstance(roots, list):
        return [], [f"The client's answer to {METHOD} holds no list of roots."]
    paths, problems = [], []
    for root in roots[:MAX_ROOTS]:
        uri = root.get("uri") if isinstance(root, Mapping) else None
        try:
            paths.append(_local_path(uri, current, platform))
        except ValueError as error:
            problems.append(f"The client's root {uri!r} cannot be used: {error}.")
    return paths, problems


def _local_path(uri: object, current: str, platform: str) -> str:
    """ValueError says why the URI is not a local path."""
    if not isinstance(uri, str) or not uri.strip():
        raise ValueError("it is no URI")
    path = _path_of_file(uri[len("file:") :], platform) if uri[:5].lower() == "file:" else uri
    if "\0" in path:
        raise ValueError("it holds a NUL character")
    # One letter before a colon is a drive.
    if path is uri and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", uri):
        raise ValueError("only file: URIs name local folders")
    if platform == "win32":
        return ntpath.normpath(ntpath.join(current, path))
    return posixpath.normpath(posixpath.join(current, path))


def _path_of_file(rest: str, platform: str) -> str:
    """The path of a `file:` URI: `///a/b`, `//localhost/a/b` and `/a/b` are equal; Windows has drives and servers."""
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
