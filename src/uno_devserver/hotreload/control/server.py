"""Serves the control channel: other programs of this user send requests to the authority and are notified of restarts.

The channel stays reachable if its socket is removed from the temp folder. No peer can delay the authority or another
peer; a restart waits for peers for a limited time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from ... import __version__
from ...protocol.jsonrpc import BUSY, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, error_message, shown
from ...system.event_loop import Tasks, run_in_thread, shielded
from ...system.log import log
from ...system.pipe_clients import is_this_user
from ...system.pipes import Listener, PipeProblem, listen
from ...system.values import Value
from ...workspace.paths import same_place
from ..authority import Authority, RestartResult
from ..watched_package import Role, WatchedPackage
from . import messages
from .channel_name import remove_left_channels
from .line_rpc import LineRpc, RpcLimits

T = TypeVar("T")

CHANGED = "the code of the server has changed"
HIGHEST_PORT = 65_535
_ROOTS = {"mcpServerRoot": Role.SERVER, "extensionPath": Role.EXTENSION}  # the parameters of checkForChanges


class ServedAuthority(Authority, Protocol):
    """The authority as peers use it."""

    def status(self) -> Mapping[str, Any]: ...
    async def mcp_ready(self) -> Mapping[str, Any]: ...


class ControlLimits(Value):
    rpc: RpcLimits = RpcLimits()
    # The most at a time: one per proxy of the workspace, and the IDE's. Those of a refused proxy would run old code, so
    # there may be as many as sessions of a Host; each takes an open file.
    peers: int = 500
    progress_seconds: float = 3.0  # a peer gives up after 10 s of silence
    look_seconds: float = 10.0  # between two checks that the socket still exists
    restart_seconds: float = 120.0  # from the announcement to the end; a start takes 30 s at most


class ControlServer:
    def __init__(
        self,
        name: str,
        authority: ServedAuthority,
        packages: Sequence[WatchedPackage],
        open_inspector: Callable[[int | None], Awaitable[str]],
        limits: ControlLimits | None = None,
    ) -> None:
        """`packages` are those that the authority watches; a check of others is refused.

        `open_inspector` returns the URL of the page, on this port if one is given, or raises RpcError.
        """
        self._name = name
        self._authority = authority
        self._roots = {package.role: package.root for package in packages}
        self._limits = limits or ControlLimits()
        self._open_inspector = open_inspector
        self._listener: Listener | None = None
        self._looking: asyncio.Task[None] | None = None
        self._peers: set[ChannelPeer] = set()
        self._serving = Tasks()
        self._work = Tasks()  # continues if the peer that requested it disconnects
        self._restart: asyncio.Future[RestartResult] | None = None  # the announced restart, until it ends
        self._closed = False

    async def open(self) -> str:
        """Listen; returns the path. Raises PipeProblem."""
        self._listener = await listen(self._name, self._arrived)
        self._looking = asyncio.create_task(self._look_after_socket())
        log.debug(f"the control channel listens on {self._listener.path}")
        return self._listener.path

    async def close(self) -> None:
        """Stop listening, and disconnect all peers."""
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
        if self._listener is not None:
            await self._listener.close()
        self._work.cancel()
        await asyncio.gather(*(peer.connection.close() for peer in self._peers))
        await self._serving.wait(self._limits.rpc.close_seconds)

    async def announce_restart(self, seconds: float) -> None:
        """Announce a restart to all peers; return when none of their calls runs, or after `seconds`.

        `announce_restarted` must follow.
        """
        if self._restart is None:
            self._restart = asyncio.get_running_loop().create_future()
        waited_for = [peer for peer in self._peers if peer.tell_of_restart(CHANGED)]
        if waited_for:
            await asyncio.wait([peer.readiness for peer in waited_for], timeout=seconds)
        late = [peer for peer in waited_for if peer.is_late()]
        if late:
            log.info(
                f"The server is restarted, although {len(late)} peer(s) of the control channel may still run calls."
            )

    def announce_restarted(self, outcome: RestartResult) -> None:
        if self._restart is not None and not self._restart.done():
            self._restart.set_result(outcome)
        self._restart = None
        for peer in self._peers:
            peer.connection.notify(messages.RESTARTED, messages.restart_json(outcome))

    # Connections.

    def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed or not is_this_user(writer):
            writer.transport.abort()
        elif len(self._peers) >= self._limits.peers:
            problem = RpcError(BUSY, f"There are {len(self._peers)} peers already; close a connection, then try again.")
            writer.write(error_message(None, problem) + b"\n")
            writer.close()
        else:
            self._serving.start(self._attend(reader, writer))

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def answer(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
            return await self._answer(peer, method, params)

        peer = ChannelPeer(LineRpc(reader, writer, answer=answer, limits=self._limits.rpc))
        self._peers.add(peer)
        try:
            await peer.connection.serve()
        finally:
            self._peers.discard(peer)
            peer.left()

    async def _look_after_socket(self) -> None:
        """Listen again if a cleaner of the temp folder has removed the socket, which connected peers do not notice.

        The sockets of killed proxies are removed first, because there may be no cleaner.
        """
        assert self._listener
        await run_in_thread(remove_left_channels)
        while True:
            await asyncio.sleep(self._limits.look_seconds)
            if self._listener.reachable:
                continue
            try:
                previous, self._listener = self._listener, await listen(self._name, self._arrived)
                await previous.close()
                log.debug(f"the socket {previous.path} was removed, and was created again")
            except PipeProblem as problem:
                log.debug(f"the control channel is out of reach: {problem}")

    # Requests.

    async def _answer(self, peer: ChannelPeer, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if method == messages.PING:
            return {"pong": True, "version": __version__, "processId": os.getpid()}
        if method == messages.GET_STATUS:
            return self._authority.status()
        if method == messages.MCP_READY:
            return await self._authority.mcp_ready()
        if method == messages.CHECK:
            return await self._check(peer, params)
        if method == messages.READY_TO_RESTART:
            return messages.restart_json(await self._ready(peer))
        if method == messages.OPEN_INSPECTOR:
            return {"url": await self._inspector_url(params.get("port"))}
        known = ", ".join(messages.METHODS)
        raise RpcError(METHOD_NOT_FOUND, f"There is no method '{shown(method)}'; there are {known}.")

    async def _inspector_url(self, port: object) -> str:
        if port is not None and not (type(port) is int and 0 <= port <= HIGHEST_PORT):
            raise RpcError(INVALID_PARAMS, f"'port' is a whole number from 0 to {HIGHEST_PORT}.")
        return await self._finished(partial(self._open_inspector, port))

    async def _check(self, peer: ChannelPeer, params: Mapping[str, Any]) -> Mapping[str, Any]:
        for name, role in _ROOTS.items():
            self._must_be_ours(name, params.get(name), self._roots.get(role))
        peer.takes_part()
        with peer.progress("checking for changes", self._limits.progress_seconds) as tell:
            demand = messages.demand_of(params)
            return messages.check_json(await self._finished(partial(self._authority.check, tell, demand)))

    def _must_be_ours(self, name: str, asked: object, ours: str | None) -> None:
        if asked is None:
            return
        if not isinstance(asked, str):
            raise RpcError(INVALID_PARAMS, f"'{name}' is the absolute path of a folder.")
        if ours is None or not same_place(asked, ours):
            watched = f"this authority watches {ours}" if ours else "this authority watches no such package"
            message = f"'{name}' is {shown(asked)}, but {watched}. Ask without it, or ask the authority of that folder."
            raise RpcError(INVALID_PARAMS, message)

    async def _ready(self, peer: ChannelPeer) -> RestartResult:
        """A request after the announced restart does not cause a second one: the authority knows whether one is due."""
        with peer.progress("restarting", self._limits.progress_seconds), peer.being_ready():
            if self._restart is not None:
                return await self._announced_restart(self._restart)
            return await self._finished(self._authority.ready_to_restart)

    async def _announced_restart(self, restart: asyncio.Future[RestartResult]) -> RestartResult:
        done, _ = await asyncio.wait([restart], timeout=self._limits.restart_seconds)
        if not done:
            raise RpcError(messages.NO_ANSWER, "The announced restart has not finished.")
        return restart.result()

    async def _finished(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of work that continues if the peer disconnects, because other peers may wait for it too."""
        done = await shielded(self._work.start(_outcome(work)))
        if isinstance(done, RpcError):
            raise done
        return done


async def _outcome(work: Callable[[], Awaitable[T]]) -> T | RpcError:
    """The result or the failure as a value, so that no exception stays unretrieved if the peer has disconnected."""
    try:
        return await work()
    except RpcError as error:
        return error
    except Exception as error:
        log.debug(f"the authority has no answer for a peer: {error!r}")
        return RpcError(messages.NO_ANSWER, f"The authority has no answer: {error or type(error).__name__}")


class ChannelPeer:
    def __init__(self, connection: LineRpc) -> None:
        self.connection = connection
        self.readiness: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # for the announced restart
        self._is_waited_for: bool | None = None  # None: it has neither requested a check nor been late for a restart
        self._ready = 0  # the number of the peer's open readyToRestart requests

    def takes_part(self) -> None:
        """Note that the peer has requested a check; it runs calls, so restarts wait for it."""
        if self._is_waited_for is None:
            self._is_waited_for = True

    def tell_of_restart(self, reason: str) -> bool:
        """Announce a restart, unless the peer already waits for it; return whether the restart waits for the peer."""
        if self._ready:
            return False
        self.readiness = asyncio.get_running_loop().create_future()
        self.connection.notify(messages.RESTARTING, {"reason": reason})
        return self._is_waited_for is True and not self.connection.ended

    def is_late(self) -> bool:
        """Whether the peer has not answered the announcement; if so, later restarts do not wait for it."""
        late = not self.readiness.done()
        if late:
            self._is_waited_for = False
        return late

    @contextlib.contextmanager
    def being_ready(self) -> Iterator[None]:
        """Mark the peer as ready, and during this block as waiting for the restart."""
        self._is_waited_for = True
        self._settle()
        self._ready += 1
        try:
            yield
        finally:
            self._ready -= 1

    def left(self) -> None:
        self._settle()

    def _settle(self) -> None:
        if not self.readiness.done():
            self.readiness.set_result(None)

    @contextlib.contextmanager
    def progress(self, message: str, seconds: float) -> Iterator[Callable[[str], None]]:
        """Send progress every `seconds` during this block, so that the peer does not give up."""
        progress = _PeerProgress(self.connection, message, seconds)
        try:
            yield progress.say
        finally:
            progress.stop()


class _PeerProgress:
    """Sends progress to a peer, and repeats the last message if there is no other for `seconds`."""

    def __init__(self, connection: LineRpc, message: str, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(seconds, self.say, message)

    def say(self, message: str) -> None:
        if self._timer is not None:  # otherwise the request has been answered
            self._timer.cancel()
            self._timer = self._loop.call_later(self._seconds, self.say, message)
            self._connection.notify(messages.PROGRESS, {"message": message})

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
