"""Sessions of the handshake era over HTTP, with the streams that a client can resume.

A session ends when its client ends it, when it has been idle for too long, or, if it has been idle longest, to make
room for a new one. A session with a running call or an open connection is not ended for being idle.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator

from ..http.transport import MemoryBudget
from ..jsonrpc import RpcError
from ..peer_info import ClientInfo
from .handshake import HandshakeSession
from .limits import EndpointLimits
from .message_stream import MessageStream

STANDING = "s"  # the name of the stream for messages that belong to no request


class HttpSession(HandshakeSession):
    """A session that keeps the streams of its calls, so that a client can resume them over another connection."""

    def __init__(
        self, client: ClientInfo, limits: EndpointLimits, kept_answers: MemoryBudget, *, relayed: bool
    ) -> None:
        self._kept_answers = kept_answers  # of all sessions
        self.id = os.urandom(16).hex()
        self.standing = MessageStream(limits, STANDING)
        self.touched = 0.0
        self._streams: dict[str, MessageStream] = {STANDING: self.standing}
        self._kept: dict[str, asyncio.TimerHandle] = {}
        self._ended = False
        self._last_stream = 0
        super().__init__(client, limits, self.standing, relayed=relayed)

    @property
    def busy(self) -> bool:
        return bool(self.calls) or any(stream.connected for stream in self._streams.values())

    def open_stream(self, needs_connection: bool) -> MessageStream:
        self._last_stream += 1
        stream = MessageStream(self.limits, str(self._last_stream), needs_connection)
        self._streams[str(self._last_stream)] = stream
        return stream

    def stream(self, name: str) -> MessageStream | None:
        return self._streams.get(name)

    def settle(self, stream: MessageStream) -> None:
        """End a stream. Its answer is kept, within limits, for a client that has lost the connection."""
        assert stream.name is not None
        stream.end()
        if self._ended or not (stream.needs_connection and stream.answered):
            self.forget(stream)
            return
        self._kept[stream.name] = self.loop.call_later(self.limits.keep_answer_seconds, self.forget, stream)
        while len(self._kept) > 1 and (
            len(self._kept) > self.limits.kept_answers or self.size > self.limits.stream_bytes
        ):
            self.forget(self._streams[next(iter(self._kept))])
        self._kept_answers.keep(self)

    @property
    def size(self) -> int:
        """The bytes of the answers that are kept."""
        return sum(self._streams[name].size for name in self._kept)

    def give_up(self) -> None:
        """Forget the answers that are kept, because other sessions need the memory."""
        for name in list(self._kept):
            self.forget(self._streams[name])

    def forget(self, stream: MessageStream) -> None:
        assert stream.name is not None
        self._streams.pop(stream.name, None)
        timer = self._kept.pop(stream.name, None)
        if timer is not None:
            timer.cancel()
            self._kept_answers.keep(self)

    def stop(self, why: RpcError) -> None:
        self._ended = True
        super().stop(why)
        self.give_up()


class HttpSessions:
    """All sessions by id, the least recently used one first."""

    def __init__(self, limits: EndpointLimits, ended: Callable[[HttpSession], None]) -> None:
        self._limits = limits
        self._ended = ended
        self._by_id: dict[str, HttpSession] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter(list(self._by_id.values()))

    def add(self, session: HttpSession) -> bool:
        """Add a session; return False if there are too many, and all are busy."""
        if len(self._by_id) >= self._limits.sessions:
            idle = next((other for other in self if not other.busy), None)
            if idle is None:
                return False
            self.remove(idle)
        self._by_id[session.id] = session
        self._touch(session)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self._limits.sweep_seconds, self._sweep)
        return True

    def get(self, session_id: str) -> HttpSession | None:
        session = self._by_id.get(session_id)
        if session is not None:
            self._touch(session)
        return session

    def remove(self, session: HttpSession) -> None:
        if self._by_id.pop(session.id, None) is not None:
            self._ended(session)

    def close(self) -> None:
        """End all sessions."""
        for session in self:
            self.remove(session)
        if self._sweeper is not None:
            self._sweeper.cancel()

    def _touch(self, session: HttpSession) -> None:
        session.touched = asyncio.get_running_loop().time()
        self._by_id[session.id] = self._by_id.pop(session.id)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        for session in self:
            if session.busy:
                self._touch(session)
            elif loop.time() - session.touched >= self._limits.session_idle_seconds:
                self.remove(session)
        self._sweeper = loop.call_later(self._limits.sweep_seconds, self._sweep) if self._by_id else None
