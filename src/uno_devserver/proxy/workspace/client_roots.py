"""The folders that a client works in: whether it can name them, how it is asked, and what its answer means.

The rules are pure, with the platform as a parameter. Asking delays nobody: the answer is waited for in the background,
within a bound, and one that is of no use changes nothing.
"""

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
from ...system.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.parties import ClientInfo
    from ...protocol.service import Session


METHOD = "roots/list"

# Clients answer in milliseconds. One that has not by then never will, and its user should see uno_app_initialize.
ANSWER_SECONDS = 10.0
MAX_ROOTS = 64  # each is looked up on disk; the first that exists counts anyway


def has_roots(client: ClientInfo) -> bool:
    """The capability as such is what counts; `listChanged` inside it says something else."""
    return isinstance(client.capabilities.get("roots"), Mapping)


def can_be_asked(client: ClientInfo) -> bool:
    """A modern client answers questions only inside a call of its own, and its folders are wanted before any call."""
    return has_roots(client) and client.protocol_version not in MODERN_VERSIONS


def falls_back(*, forced: bool, resolved: bool, roots: bool, started: bool) -> bool:
    """Whether the workspace has to be told by uno_app_initialize.

    Where the user wants it so, or nothing else will tell: `roots` is False also for a client that has them and named
    none that can be used.
    """
    return forced or not (resolved or roots or started)


class Named(Value):
    """What an answer names: local paths, in its order, and a sentence for each root that is none."""

    paths: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def read_roots(answer: object, current: str, platform: str = sys.platform) -> Named:
    """`current` is the folder that relative paths start from."""
    roots = answer.get("roots") if isinstance(answer, Mapping) else None
    if not isinstance(roots, list):
        return Named((), (f"The client's answer to {METHOD} holds no list of roots.",))
    paths, problems = [], []
    for root in roots[:MAX_ROOTS]:
        uri = root.get("uri") if isinstance(root, Mapping) else None
        try:
            paths.append(_local_path(uri, current, platform))
        except ValueError as error:
            problems.append(f"The client's root {uri!r} cannot be used: {error}.")
    return Named(tuple(paths), tuple(problems))


def _local_path(uri: object, current: str, platform: str) -> str:
    """ValueError says why there is none."""
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
    """`///a/b`, `//localhost/a/b` and `/a/b` are one path; Windows has drives behind the slash, and servers."""
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


class RootsInquiry:
    """One question at a time, in the background."""

    def __init__(self, seconds: float = ANSWER_SECONDS) -> None:
        self._seconds = seconds
        self._task: asyncio.Task[None] | None = None

    def ask(self, session: Session, take: Callable[[object | None], None]) -> None:
        """`take` gets the answer, or None where there is none. A question that still waits is given up for this one."""
        self.close()
        self._task = asyncio.get_running_loop().create_task(self._wait(session, take))

    def close(self) -> None:
        """Nobody wants an answer any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _wait(self, session: Session, take: Callable[[object | None], None]) -> None:
        answer: object | None = None
        try:
            async with asyncio.timeout(self._seconds):
                answer = await session.ask(METHOD, {})
        except TimeoutError:
            log.warn(f"The client has roots, but did not answer {METHOD} within {self._seconds:g} s.")
        except Exception as error:  # it refuses, or has gone
            log.warn(f"The client has roots, but did not name them: {error}.")
        take(answer)
