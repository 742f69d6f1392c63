"""Handshake-era sessions: who is connected, what they follow, and what still waits for them.

A session ends when its client says so, when it has been idle for long, or to make room: the longest idle one first,
never one that a call or a connection keeps busy.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .eras import LOG_LEVELS, wants_log
from .jsonrpc import BUSY, INVALID_PARAMS, RpcError, RpcResponse, notification_message
from .parties import ClientInfo
from .policy import Policy
from .running import in_loop
from .service import Params
from .streams import Stream

if TYPE_CHECKING:
    from .calls import HandshakeCall

STANDING = "s"  # the name of the stream for what belongs to no request


class Session:
    """One client from `initialize` on."""

    def __init__(self, client: ClientInfo, policy: Policy) -> None:
        self.id = os.urandom(16).hex()
        self.client = client
        self.policy = policy
        self.log_level: str | None = "info"  # until the client chooses
        self.watched: set[str] = set()
        self.standing = Stream(policy, STANDING)
        self.asks: dict[str, asyncio.Future[RpcResponse]] = {}
        self.calls: set[HandshakeCall] = set()
        self.touched = 0.0
        self._loop = asyncio.get_running_loop()
        self._streams: dict[str, Stream] = {STANDING: self.standing}
        self._kept: dict[str, asyncio.TimerHandle] = {}
        self._ended = False
        self._last_stream = 0
        self._last_ask = 0

    @property
    def busy(self) -> bool:
        return bool(self.calls) or any(stream.connected for stream in self._streams.values())

    def notify(self, method: str, params: Params | None = None) -> None:
        if wants_log(self.log_level, method, params):
            in_loop(self._loop, self.standing.send, notification_message(method, params))

    def set_level(self, level: object) -> None:
        if level not in LOG_LEVELS:
            raise RpcError(INVALID_PARAMS, f"The level must be one of {', '.join(LOG_LEVELS)}.")
        self.log_level = str(level)

    def watch(self, uri: object, wanted: bool) -> None:
        """Follow a resource, or no longer."""
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "The uri of a resource is a string.")
        if not wanted:
            self.watched.discard(uri)
        elif uri not in self.watched and len(self.watched) >= self.policy.watched:
            raise RpcError(BUSY, f"A session can watch {self.policy.watched} resources; unsubscribe from some.")
        else:
            self.watched.add(uri)

    def next_ask(self) -> tuple[str, asyncio.Future[RpcResponse]]:
        """An id that no client uses for its own requests, and what becomes its answer."""
        self._last_ask += 1
        name = f"server-{self._last_ask}"
        self.asks[name] = self._loop.create_future()
        return name, self.asks[name]

    def open_stream(self, needs_connection: bool) -> Stream:
        self._last_stream += 1
        stream = Stream(self.policy, str(self._last_stream), needs_connection)
        self._streams[str(self._last_stream)] = stream
        return stream

    def stream(self, name: str) -> Stream | None:
        return self._streams.get(name)

    def settle(self, stream: Stream) -> None:
        """A stream has ended: keep its answer for a client that has lost the connection, within bounds."""
        assert stream.name is not None
        if self._ended or not (stream.needs_connection and stream.answered):
            self.forget(stream)
            return
        self._kept[stream.name] = self._loop.call_later(self.policy.keep_answer_seconds, self.forget, stream)
        while len(self._kept) > 1 and (
            len(self._kept) > self.policy.kept_answers
            or sum(self._streams[name].size for name in self._kept) > self.policy.stream_bytes
        ):
            self.forget(self._streams[next(iter(self._kept))])

    def forget(self, stream: Stream) -> None:
        """Nobody can resume it."""
        assert stream.name is not None
        self._streams.pop(stream.name, None)
        timer = self._kept.pop(stream.name, None)
        if timer is not None:
            timer.cancel()

    def stop(self, why: RpcError) -> None:
        """End the streams, and the calls with `why` as their answer."""
        self._ended = True
        for call in self.calls:
            call.stop(why)
        for timer in self._kept.values():
            timer.cancel()
        self.standing.end()


class Sessions:
    """All of them, by id, the longest untouched first."""

    def __init__(self, policy: Policy, ended: Callable[[Session], None]) -> None:
        self._policy = policy
        self._ended = ended
        self._by_id: dict[str, Session] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._by_id.values()))

    def add(self, session: Session) -> bool:
        """Take it in; False when all places are taken by busy ones."""
        if len(self._by_id) >= self._policy.sessions:
            idle = next((other for other in self if not other.busy), None)
            if idle is None:
                return False
            self.remove(idle)
        self._by_id[session.id] = session
        self._touch(session)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self._policy.sweep_seconds, self._sweep)
        return True

    def get(self, session_id: str) -> Session | None:
        session = self._by_id.get(session_id)
        if session is not None:
            self._touch(session)
        return session

    def remove(self, session: Session) -> None:
        if self._by_id.pop(session.id, None) is not None:
            self._ended(session)

    def _touch(self, session: Session) -> None:
        session.touched = asyncio.get_running_loop().time()
        self._by_id[session.id] = self._by_id.pop(session.id)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        for session in self:
            if session.busy:
                self._touch(session)
            elif loop.time() - session.touched >= self._policy.session_idle_seconds:
                self.remove(session)
        self._sweeper = loop.call_later(self._policy.sweep_seconds, self._sweep) if self._by_id else None

    def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
