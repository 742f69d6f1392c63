"""An MCP server at a URL as upstream: one that the proxy neither starts nor stops, or one that it has started.

On this machine it counts as ended when nothing listens at its address any more, or when its process has ended. A server
elsewhere is not asked at intervals: it is checked when a connection to it has failed.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...instances.host_kind import HostKind
from ...issues import fatal
from ...protocol.client.connection import ConnectionLost, UnusableServer
from ...protocol.client.credentials import FixedHeaders
from ...protocol.client.http_connect import ANSWER_SECONDS, connect_http
from ...protocol.http.client import named_proxy, split_url
from ...system.event_loop import process_exit, run_in_thread, shielded, wait_for_event
from ...system.processes import how_it_ended
from ...system.text import shown_url
from ...system.values import Value
from .base import Ending, RunningUpstream, StartFailure, Upstream
from .command_process import follow_output

if TYPE_CHECKING:
    from ...instances.bounded_output import BoundedOutput
    from ...instances.child_process import Child
    from ...protocol.client.connection import Connection, Peer
    from ...protocol.client.credentials import Credentials
    from ...protocol.client.http_modern import ToolMarks
    from .command_process import CommandLimits
    from .launcher import UpstreamObserver


ANSWER_POLL_SECONDS = 0.02  # between two requests to a server that starts; each costs it a packet or two
REFUSAL_SECONDS = 3.0  # a server may listen before it has an endpoint for MCP, but not for long


class UrlLimits(Value):
    reach_seconds: float = 5.0  # a remote server takes a few hundred milliseconds; an unused address may never answer
    check_seconds: float = 2.0  # a check costs both sides a packet or two
    check_failures: int = 2  # failed checks in a row; a restarted server listens again within a second


def credentials_of(url: str, headers: Mapping[str, str]) -> Credentials:
    """The credentials for the server at this URL: the headers that the user gave, and the token of a sign-in."""
    if any(name.lower() == "authorization" for name in headers):
        return FixedHeaders(headers)
    from .access_tokens import TokenCredentials  # imported late: servers that the proxy starts need none

    try:
        return TokenCredentials(url, headers)
    except ValueError:  # the URL is not valid, which is told when it is connected to
        return FixedHeaders(headers)


def is_far(url: str) -> bool:
    """Whether the URL is that of another machine."""
    try:
        return not split_url(url)[0].is_loopback
    except ValueError:
        return False


class UrlUpstream(Upstream, RunningUpstream):
    kind = HostKind.COMMAND
    remote = True
    endpoint: str

    def __init__(self, url: str, credentials: Credentials | None = None, limits: UrlLimits | None = None) -> None:
        self.endpoint = url
        self._credentials = credentials or FixedHeaders({})
        self._used: Mapping[str, str] = {}  # by the last connection that was tried
        self._limits = limits or UrlLimits()
        self._check = asyncio.Event()  # set when a check is due now
        self.far = is_far(url)
        self.marks: ToolMarks = {}

    def start(self, observer: UpstreamObserver) -> UrlUpstream:
        shown = shown_url(self.endpoint)
        observer.launching(f"the server at {shown}", None)
        try:
            split_url(self.endpoint)
        except ValueError as error:
            issue = fatal("UpstreamError", f"{error}.", "Start the proxy with the URL of an MCP server.")
            raise StartFailure(issue, final=True) from error
        try:
            problem = self.out_of_reach()
        except ValueError as error:
            issue = fatal("HostUnreachable", f"{error}.", "Correct that variable, and start the proxy again.")
            raise StartFailure(issue, final=True) from error
        if problem is not None:
            message = f"The server at {shown} cannot be reached: {problem}."
            step = "Make sure that the server runs; the proxy keeps trying."
            raise StartFailure(fatal("HostUnreachable", message, step))
        return self

    def out_of_reach(self) -> str | None:
        """Why the address cannot be reached, as the end of a sentence, or None. Blocks.

        Through an HTTP proxy, that is known only when a request is made. ValueError for a bad URL of either.
        """
        origin, _ = split_url(self.endpoint)
        if named_proxy(origin) is not None:
            return None
        try:
            socket.create_connection((origin.host, origin.port), self._limits.reach_seconds).close()
        except TimeoutError:
            return f"no answer within {self._limits.reach_seconds:g} s"
        except (OSError, UnicodeError) as error:  # UnicodeError: the name of the host is too long
            return (error.strerror if isinstance(error, OSError) else None) or str(error)
        return None

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        self._used = self._credentials.headers()
        return await connect_http(
            self.endpoint,
            peer,
            modern_first=modern_first,
            credentials=self._credentials,
            marks=self.marks,
        )

    async def ended(self) -> Ending:
        failures, problem = 0, None
        while failures < self._limits.check_failures:
            if self.far and not failures:
                await self._check.wait()
                self._check.clear()
            else:
                await wait_for_event(self._check, self._limits.check_seconds)
            problem = await run_in_thread(self.out_of_reach)
            failures = failures + 1 if problem else 0
        return Ending(f"it cannot be reached any more: {problem}")

    def check_now(self) -> None:
        self._check.set()

    def has_other_credentials(self) -> bool:
        return self._credentials.headers() != self._used


class UrlProcess(RunningUpstream):
    """The process of a server that was started here and listens at a URL; after `stop`, no part of it runs."""

    kind = HostKind.COMMAND
    owned = True
    endpoint: str
    process_id: int
    log_file: str

    def __init__(
        self, url: str, child: Child, output: BoundedOutput, limits: CommandLimits, credentials: Credentials
    ) -> None:
        self.endpoint = url
        self._credentials = credentials
        self.process_id = child.pid
        self.log_file, self.arrivals = output.path, output.arrivals
        self.startup_seconds = limits.ready_seconds
        self._address = UrlUpstream(url, credentials)
        self._child = child
        self._output = output
        self._limits = limits
        self._deadline = time.monotonic() + limits.ready_seconds
        self._answered = asyncio.Event()
        self._useless = asyncio.Event()  # set when it has not answered in time
        self._ending: asyncio.Future[Ending] | None = None
        self._cleared = False  # whether all its processes are gone; then its process id may be reused

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        """Open a conversation; until the first answer, wait for one as long as a start may take."""
        refusal, patience = None, self._deadline
        while not self._answered.is_set():
            seconds = min(ANSWER_SECONDS, max(0.0, self._deadline - time.monotonic()))
            try:
                connection = await connect_http(
                    self.endpoint,
                    peer,
                    modern_first=modern_first,
                    seconds=seconds,
                    credentials=self._credentials,
                    marks=self._address.marks,
                    this_users=True,
                )
                self._answered.set()
                return connection
            except ConnectionLost:
                pass  # it does not listen yet
            except UnusableServer as problem:
                refusal, patience = problem, min(patience, time.monotonic() + REFUSAL_SECONDS)
            if time.monotonic() >= patience:
                if refusal is not None:
                    raise refusal
                self._useless.set()
            if self._useless.is_set() or self._child.exit_code() is not None:
                ending = await self.ended()
                raise ConnectionLost(f"The server does not answer: {ending.reason}.", sent=False)
            await asyncio.sleep(ANSWER_POLL_SECONDS)
        return await self._address.connect(peer, modern_first=modern_first)

    async def ended(self) -> Ending:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._watch())
        return await shielded(self._ending)

    def check_now(self) -> None:
        self._address.check_now()

    async def stop(self, *, patient: bool = False) -> None:
        seconds = self._limits.patient_seconds if patient else self._limits.input_seconds + self._limits.stop_seconds
        await run_in_thread(lambda: self._child.stop(seconds))
        self._clear()

    def _clear(self) -> None:
        if not self._cleared:
            self._cleared = True
            self._child.end_the_rest()

    async def _watch(self) -> Ending:
        gone = asyncio.ensure_future(process_exit(self.process_id, self._limits.poll_seconds))
        useless = asyncio.ensure_future(self._useless.wait())
        away = asyncio.ensure_future(self._until_away())
        following = asyncio.ensure_future(follow_output(self._output, self._limits))
        try:
            await asyncio.wait((gone, useless, away), return_when=asyncio.FIRST_COMPLETED)
            if not useless.done():  # the address goes a moment before the process, whose end says more
                await asyncio.wait((gone,), timeout=self._limits.exit_seconds)
            if gone.done():
                self._clear()
                reason = how_it_ended(self._child.exit_code())
            else:
                reason = f"it did not answer at {shown_url(self.endpoint)} within {self._limits.ready_seconds:g} s"
                reason = reason if useless.done() else away.result().reason
                await self.stop()
            await run_in_thread(lambda: self._output.wait(self._limits.drain_seconds))
            self._output.flush(ended=True)
            last_lines = tuple(self._child.printed().splitlines())
            return Ending(reason, self._child.exit_code(), last_lines)
        finally:
            for task in (gone, useless, away, following):
                task.cancel()

    async def _until_away(self) -> Ending:
        await self._answered.wait()
        return await self._address.ended()
