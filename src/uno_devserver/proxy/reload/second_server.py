"""Servers that are started beside the serving one: to replace it by its new code, or to stand by for its crash."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...hotreload.authority import RestartResult
from ...protocol.client.connection import ServerDescription, UnusableServer
from ...protocol.jsonrpc import INVALID_REQUEST, RpcError
from ...system.event_loop import Tasks
from ...system.log import log
from ..upstream.launcher import Launcher, LaunchFailed, Launching, Ready
from ..upstream.supervision import SupervisedUpstream, UpstreamLists

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.client.connection import Peer
    from ...protocol.peer_info import ClientInfo
    from ...protocol.service import Params, Result
    from ..upstream.base import RunningUpstream, Upstream
    from ..upstream.keeper import Keeper
    from ..upstream.launcher import Report
    from ..upstream.supervision import Event

    Take = Callable[[SupervisedUpstream, UpstreamLists], None]

FIRST_CALLS_SECONDS = 0.2  # a standby is started after the calls that waited for the serving one


class SecondServer:
    """Starts a server beside the serving one, and hands it over when its lists were read.

    A server that does not become ready is stopped with all its processes; the serving one is not affected.
    """

    def __init__(self, keeper: Keeper, upstream: Upstream, take: Take, peer: Peer | None = None) -> None:
        """`take` gets the server that is ready. `peer`: represents all clients to it, if not as usual."""
        self._keeper = keeper
        self._upstream = upstream
        self._take = take
        self._peer = peer
        self._launcher = Launcher(keeper.proxy_state.timeline)
        self._loop = asyncio.get_running_loop()
        self._attempt = 0
        self._started: asyncio.Future[RunningUpstream | None] = self._loop.create_future()  # None: the start failed
        self._failure: asyncio.Future[RestartResult | None] = self._loop.create_future()  # None: it was handed over
        self._candidate: SupervisedUpstream | None = None
        self._listed: UpstreamLists | None = None
        self._stray_line = ""  # the last line of the new server that is no message
        self._tasks = Tasks()

    async def run(self) -> RestartResult | None:
        """Return None when the new server was handed over, or the failure when it was stopped."""
        limits = self._keeper.limits
        seconds = limits.swap_seconds + limits.additional_seconds(self._upstream.startup_seconds)
        self._launcher.report_to(self._loop, self._on_report)
        if not self._failure.done():  # it may have been aborted before it began
            self._start()
        await asyncio.wait((self._failure,), timeout=seconds)
        self.abort(f"The new server was not ready within {seconds:g} s.")
        failure = self._failure.result()
        return failure and failure.replace(last_lines=await self.stop() or failure.last_lines)

    def abort(self, problem: str, last_lines: tuple[str, ...] = ()) -> None:
        """Fail for this reason, unless there is an outcome."""
        if not self._failure.done():
            self._failure.set_result(RestartResult(False, problem, last_lines, kept=True))

    def _start(self) -> None:
        self._attempt += 1
        self._launcher.start(self._attempt, self._upstream)

    def _on_report(self, report: Report) -> None:
        if isinstance(report, Ready):
            self._on_ready(report.running)
        elif isinstance(report, LaunchFailed):
            if not self._started.done():
                self._started.set_result(None)
            ending = report.failure.ending
            self.abort(str(report.failure), ending.last_lines if ending else ())
        elif isinstance(report, Launching):
            log.info(f"Started {report.what} (process {report.process_id}) beside the one that serves.")
        elif report.attempt == self._attempt:
            log.debug(f"the new server wrote a line that is not a message: {report.line}")
            self._stray_line = report.line
            self._report_stray_line()

    def _on_ready(self, running: RunningUpstream) -> None:
        if self._started.done():  # too late: the swap has failed
            self._tasks.start(running.stop())
            return
        self._started.set_result(running)
        if not self._failure.done():
            self._candidate = SupervisedUpstream(self._keeper, running, self._on_event, peer=self._peer)
            self._candidate.start()

    def _on_event(self, candidate: SupervisedUpstream, event: Event) -> None:
        if self._failure.done():
            return
        if isinstance(event, UpstreamLists):
            self._listed = event
        elif isinstance(event, ServerDescription):
            if self._listed is None or "tools" not in self._listed.lists:
                self.abort("The new server answers, but its tools cannot be listed.")
            else:
                self._failure.set_result(None)
                self._take(candidate, self._listed)
                self._report_stray_line()
        elif isinstance(event, UnusableServer):
            self.abort(f"The new server cannot be used over MCP: {str(event).rstrip('.')}.")
        # Its next start begins with `initialize`, or may succeed because something else has ended this one.
        elif self._attempt == 1 and (event.other_era_next or not event.is_by_code):
            candidate.release()
            self._tasks.start(candidate.running.stop())
            self._candidate, self._started, self._stray_line = None, self._loop.create_future(), ""
            self._start()
        else:
            self.abort(f"The new server did not start: {event.reason}.", event.last_lines)

    def _report_stray_line(self) -> None:
        """Publish the last line that is not a message, if the new server is the serving one."""
        candidate = self._candidate
        if candidate is not None and candidate.running is self._keeper.running and self._stray_line:
            self._keeper.proxy_state.report_stray_line(self._stray_line)

    async def stop(self) -> tuple[str, ...]:
        """Stop the new server; return the last lines that it printed."""
        self._launcher.give_up()
        if self._candidate is not None:
            self._candidate.release()
        seconds = self._keeper.limits.last_words_seconds
        await asyncio.wait((self._started,), timeout=seconds)
        if not self._started.done():
            self._started.set_result(None)
        running = self._started.result()
        if running is None:
            return ()
        await running.stop()
        try:
            async with asyncio.timeout(seconds):
                return (await running.ended()).last_lines
        except TimeoutError:
            return ()


class Standby:
    """Keeps a second server ready, which has the code of the serving one and takes over when that crashes."""

    def __init__(self, keeper: Keeper, upstream: Upstream) -> None:
        self._keeper = keeper
        self._peer = _WaitingPeer(keeper.owner.shared_peer, self._lists_changed)
        self._second = SecondServer(keeper, upstream, self._started, self._peer)
        self._server: SupervisedUpstream | None = None
        self._listed: UpstreamLists | None = None
        self._ready_at: float | None = None  # set when it may take over
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._tasks.start(self._run())

    async def _run(self) -> None:
        keeper = self._keeper
        await asyncio.sleep(FIRST_CALLS_SECONDS)
        failure = await self._second.run()
        if failure is not None:
            log.warn(f"{failure.problem} So no second server stands by; after a crash a new one is started.")
        elif not await keeper.owner.runs_current_code():
            await self._second.stop()  # the next call has the new code started, and another standby after it
        elif self._server is not None:
            self._ready_at = self._loop.time()
            keeper.proxy_state.learn(standby=self._server.running.process_id)

    def take(self) -> tuple[SupervisedUpstream, UpstreamLists] | None:
        """The server and its lists, if it is ready; from now on its messages reach the clients."""
        if self._ready_at is None or self._server is None or self._listed is None:
            return None
        self._peer.serves = True
        return self._server, self._listed

    async def stop(self) -> None:
        self._tasks.cancel()
        self._second.abort("It is not needed any more.")
        await self._second.stop()

    def _started(self, server: SupervisedUpstream, listed: UpstreamLists) -> None:
        server.report, self._server, self._listed = self._on_event, server, listed

    def _on_event(self, server: SupervisedUpstream, event: Event) -> None:
        if isinstance(event, UpstreamLists):
            self._listed = event
        elif not isinstance(event, ServerDescription):
            lasted = 0.0 if self._ready_at is None else self._loop.time() - self._ready_at
            self._server, self._ready_at = None, None
            self._tasks.start(server.running.stop())
            self._keeper.standby_ended(again=lasted > self._keeper.limits.stable_seconds)

    def _lists_changed(self) -> None:
        if self._server is not None and self._server.reader is not None:
            self._server.reader.outdated()


class _WaitingPeer:
    """All clients, as a standby sees them. Until it serves, nothing reaches users: what it tells is dropped, and it may
    only ask what clients answer by themselves. Implements `Peer`.
    """

    def __init__(self, clients: Peer, lists_changed: Callable[[], None]) -> None:
        self.serves = False
        self._clients = clients
        self._lists_changed = lists_changed

    @property
    def client(self) -> ClientInfo:
        return self._clients.client

    @property
    def log_level(self) -> str | None:
        return self._clients.log_level

    def notify(self, method: str, params: Params) -> None:
        if self.serves:
            self._clients.notify(method, params)
        elif method.endswith("/list_changed"):
            self._lists_changed()

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        if not self.serves and method not in ("ping", "roots/list"):
            raise RpcError(INVALID_REQUEST, f"Nobody can be asked for '{method}' yet: this server only stands by.")
        return await self._clients.ask(method, params, name)
