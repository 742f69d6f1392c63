"""An MCP server at a URL as upstream: the proxy neither starts nor stops it.

It counts as ended when nothing listens at its address any more.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from ...instances.host_kind import HostKind
from ...issues import fatal
from ...protocol.client.streamable_http import connect_http
from ...protocol.http.client import split_url
from ...system.event_loop import run_in_thread, wait_for_event
from ...system.text import shown_url
from ...system.values import Value
from .base import Ending, RunningUpstream, StartFailure, Upstream

if TYPE_CHECKING:
    from ...protocol.client.connection import Connection, Peer
    from .launcher import UpstreamObserver


class UrlLimits(Value):
    reach_seconds: float = 5.0  # a remote server takes a few hundred milliseconds; an unused address may never answer
    check_seconds: float = 2.0  # a check costs both sides a packet or two
    check_failures: int = 2  # failed checks in a row; a restarted server listens again within a second


class UrlUpstream(Upstream, RunningUpstream):
    kind = HostKind.COMMAND
    endpoint: str

    def __init__(self, url: str, limits: UrlLimits | None = None) -> None:
        self.endpoint = url
        self._limits = limits or UrlLimits()
        self._check = asyncio.Event()  # set when a check is due now

    def start(self, observer: UpstreamObserver) -> UrlUpstream:
        shown = shown_url(self.endpoint)
        observer.launching(f"the server at {shown}", None)
        try:
            problem = self.out_of_reach()
        except ValueError as error:
            issue = fatal("UpstreamError", f"{error}.", "Start the proxy with the URL of an MCP server.")
            raise StartFailure(issue, final=True) from error
        if problem is not None:
            message = f"The server at {shown} cannot be reached: {problem}."
            step = "Make sure that the server runs; the proxy keeps trying."
            raise StartFailure(fatal("HostUnreachable", message, step))
        return self

    def out_of_reach(self) -> str | None:
        """Why the address cannot be reached, as the end of a sentence, or None. ValueError for a bad URL. Blocks."""
        origin, _ = split_url(self.endpoint)
        try:
            socket.create_connection((origin.host, origin.port), self._limits.reach_seconds).close()
        except TimeoutError:
            return f"no answer within {self._limits.reach_seconds:g} s"
        except (OSError, UnicodeError) as error:  # UnicodeError: the name of the host is too long
            return (error.strerror if isinstance(error, OSError) else None) or str(error)
        return None

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        return await connect_http(self.endpoint, peer, modern_first=modern_first)

    async def ended(self) -> Ending:
        failures, problem = 0, None
        while failures < self._limits.check_failures:
            await wait_for_event(self._check, self._limits.check_seconds)
            problem = await run_in_thread(self.out_of_reach)
            failures = failures + 1 if problem else 0
        return Ending(f"it cannot be reached any more: {problem}")

    def check_now(self) -> None:
        self._check.set()
