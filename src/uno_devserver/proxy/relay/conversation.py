"""One client's conversation with the upstream, opened when it is first needed.

It outlives the upstream: when that is replaced, the next request goes over a connection to the new one. No request is
ever sent over a connection to an older one, and no answer of an older one is taken for that of a new request.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ...instances.health_report import ConnectionState
from ...protocol.client.connection import Lost, Refusal
from ...protocol.eras import LOG_LEVELS, MODERN_VERSIONS
from ...protocol.jsonrpc import RpcError, shown
from ...system.log import log
from .line import Line
from .link import Unavailable
from .translation import error_for_handshake_client, for_handshake_client, for_handshake_server, for_modern_client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import msgspec

    from ...protocol.parties import ClientInfo
    from ...protocol.running import Tasks
    from ...protocol.service import Params, Result, Session
    from .caller import Caller
    from .line import Lines
    from .link import Link
    from .policy import RelayPolicy

# Why the upstream may not be reached.
UNREACHED = (Lost, Refusal, Unavailable, TimeoutError)


class Conversation:
    """Implements `protocol.client.connection.Peer` for what the upstream says beside all requests."""

    def __init__(
        self,
        session: Session,
        link: Link,
        noticed: Callable[[str, Params], bool],
        lines: Lines,
        tasks: Tasks,
        policy: RelayPolicy,
    ) -> None:
        """`noticed` takes what concerns everybody, and says whether it did."""
        self.log_level: str | None = None  # that the client has chosen; a modern one with its requests
        self._session = session
        self._modern = session.client.protocol_version in MODERN_VERSIONS
        self._link = link
        self._noticed = noticed
        self._lines = lines
        self._tasks = tasks
        self._policy = policy
        self._line: Line | None = None
        self._opening: asyncio.Task[None] | None = None
        self._opening_for = 0  # the generation
        self._begun = self._ended = False
        self._callers: dict[Caller, None] = {}  # in the order in which they came

    @property
    def client(self) -> ClientInfo:
        return self._session.client

    @property
    def idle(self) -> bool:
        return not self._callers

    async def request(self, method: str, params: Params, caller: Caller) -> msgspec.Raw | Result:
        """The upstream's result as its client understands it; RpcError, Lost, Unavailable or Refusal."""
        self._callers[caller] = None
        try:
            line = self._line
            if line is None or line.generation != self._link.generation:
                line = await self._open()
            self._lines.use(line)
            try:
                if line.modern is self._modern:
                    return await line.connection.request(method, params, caller)
                return await self._translated(line, method, params, caller)
            except Lost:
                self._leave(line)
                raise
            finally:
                self._lines.let_go(line)
                if line.left and not line.users:
                    self._close(line)
        finally:
            del self._callers[caller]

    async def tell(self, method: str, params: Params) -> None:
        """Pass a notification on, if there is anybody to hear it."""
        if self._link.state is ConnectionState.CONNECTED:
            await self._aside(partial(self._tell, method, params), method)

    async def set_level(self, level: str) -> None:
        """Now, and on each connection that is still to come."""
        self.log_level = level
        if self._line is not None and self._line.generation == self._link.generation:
            await self._aside(partial(self._line.connection.set_level, level), "logging/setLevel")

    async def follow(self, uris: frozenset[str]) -> Mapping[str, RpcError]:
        """Hear of changes of these from now on; those that the upstream refuses. UNREACHED."""
        async with asyncio.timeout(self._policy.aside_seconds):
            line = await self._open()
            try:
                return await line.connection.follow(uris)
            except Lost:
                self._leave(line)
                raise

    def renew(self, *, old_answers: bool = False) -> None:
        """The upstream is another one, or gone. Who has spoken to the old one hears the new one from the start.

        `old_answers`: what was sent to the old one is still answered there.
        """
        connected = self._link.state is ConnectionState.CONNECTED
        generation = self._link.generation if connected else None
        if self._opening is not None and self._opening_for != generation:
            self._opening.cancel()
        if self._line is not None and self._line.generation != generation:
            if old_answers:
                self._leave(self._line)
            else:
                # Whoever still waits for an answer must learn that there will be none.
                self._close(self._line)
                self._line = None
        if connected and self._begun and self._line is None and not self._modern:
            self._tasks.start(self._aside(self._open, "a new connection"))

    def end(self) -> None:
        """The client has gone."""
        self._ended = True
        if self._opening is not None:
            self._opening.cancel()
        if self._line is not None:
            self._leave(self._line)

    # What the upstream says.

    def notify(self, method: str, params: Params) -> None:
        if not self._noticed(method, params):
            self.pass_on(method, params)

    def pass_on(self, method: str, params: Params) -> None:
        """To the client, and nobody else. A modern one listens to its requests only."""
        listener = self._last_caller() if self._modern else None
        (listener or self._session).notify(method, params)

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        # A request that runs is likely what the question is about, and its client surely listens there.
        caller = self._last_caller()
        if caller is not None:
            return await caller.ask(method, params, name)
        return await self._session.ask(method, params)

    def _last_caller(self) -> Caller | None:
        return next(reversed(self._callers), None)

    async def _translated(self, line: Line, method: str, params: Params, caller: Caller) -> Result:
        if self._modern:
            await self._want_logs(caller.log_level)
            return for_modern_client(await line.connection.request(method, for_handshake_server(params), caller))
        try:
            return for_handshake_client(await line.connection.request(method, params, caller), method)
        except RpcError as error:
            raise error_for_handshake_client(error, method, params) from None

    async def _want_logs(self, level: str | None) -> None:
        """A handshake server knows one level for all requests, of which each hears what it wants."""
        if level is not None and (self.log_level is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(self.log_level)):
            await self.set_level(level)

    async def _tell(self, method: str, params: Params) -> None:
        await (await self._open()).connection.notify(method, params)

    async def _aside(self, work: Callable[[], Awaitable[object]], what: str) -> None:
        """Something that no request waits for, within a bound."""
        try:
            async with asyncio.timeout(self._policy.aside_seconds):
                await work()
        except (*UNREACHED, RpcError) as error:
            log.debug(f"'{shown(what)}' did not reach the upstream: {error}")

    async def _open(self) -> Line:
        """The connection to the present upstream, opened once for all who wait."""
        if self._ended:
            raise _gone()
        while self._line is None or self._line.generation != self._link.generation:
            generation, opening = self._link.generation, self._opening
            if opening is None or opening.done() or self._opening_for != generation:
                if opening is not None:
                    opening.cancel()
                opening = self._opening = self._tasks.start(self._connect(generation))
                self._opening_for = generation
            try:
                await asyncio.shield(opening)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if opening.cancelled() and task is not None and not task.cancelling():
                    raise _gone() from None  # not who waits was cancelled, but what they wait for
                raise
        return self._line

    async def _connect(self, generation: int) -> None:
        try:
            connection = await self._link.connect(self, modern_first=self._modern)
        except Lost as lost:
            raise Lost(str(lost), sent=False) from None  # the greeting may have been sent, but no request
        line = Line(connection, generation)
        if self._line is not None:
            self._leave(self._line)
        self._line, self._begun = line, True
        if self.log_level is not None:
            await self._aside(partial(connection.set_level, self.log_level), "logging/setLevel")

    def _leave(self, line: Line) -> None:
        """Nothing new goes over it; it is closed when those who use it are done."""
        line.left = True
        if self._line is line:
            self._line = None
        if not line.users:
            self._close(line)

    def _close(self, line: Line) -> None:
        if not line.closed:
            line.closed = True
            self._tasks.start(self._aside(line.connection.close, "a goodbye"))


def _gone() -> Lost:
    return Lost("Upstream or client had gone before there was a connection between them.", sent=False)
