"""All clients' conversations with the upstream, and what any of them follows there.

A handshake client has one for its session. A modern client has no session, but says with each request who it is: all
who say the same share one, within a number, because none of them says goodbye.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ...instances.health_report import ConnectionState
from ...protocol.eras import MODERN_VERSIONS
from ...protocol.jsonrpc import INVALID_REQUEST, RpcError, shown
from ...protocol.parties import ClientInfo
from ...protocol.running import Tasks
from ...protocol.subscriptions import KINDS
from ...system.log import log
from .conversation import UNREACHED, Conversation
from .line import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ...protocol.service import Params, Result, Session
    from ..board import Board
    from .link import Link
    from .policy import RelayPolicy

LIST_CHANGES = frozenset(method for _, method, _ in KINDS)
Who = tuple[str | None, str | None, bytes]


class Connections:
    def __init__(self, link: Link, board: Board, resource_updated: Callable[[str], None], policy: RelayPolicy) -> None:
        self._link = link
        self._resource_updated = resource_updated
        self._policy = policy
        self._tasks = Tasks()
        self.lines = Lines()
        self._sessions: dict[Session, Conversation] = {}
        self._modern: dict[Who, Conversation] = {}  # the one that was longest not used first
        self.own_client = ClientInfo(board.server.name, board.server.version, {}, MODERN_VERSIONS[0])
        self._watch = self._begin(_Watcher(self.own_client))
        self._followed: dict[str, int] = {}  # how many endpoints have somebody who follows it
        self._following = asyncio.Lock()  # the upstream is told one thing after the other, and the last is right

    def of(self, session: Session) -> Conversation:
        """The one of this session's client."""
        found = self._sessions.get(session)
        if found is not None:
            return found
        if session.client.protocol_version in MODERN_VERSIONS:
            return self._of_modern(session)
        found = self._sessions[session] = self._begin(session)
        return found

    def end(self, session: Session) -> None:
        conversation = self._sessions.pop(session, None)
        if conversation is not None:
            conversation.end()

    def renew(self, *, old_answers: bool = False) -> None:
        """The upstream is another one, or gone. `old_answers`: what was sent to the old one is still answered there."""
        for conversation in (*self.all(), self._watch):
            conversation.renew(old_answers=old_answers)
        if self._followed and self._link.state is ConnectionState.CONNECTED:
            self._tasks.start(self._follow_again())

    async def follow(self, uri: str, wanted: bool) -> None:
        """Kept while there is no upstream; RpcError when there is one and it refuses."""
        before = self._followed.get(uri, 0)
        self._count(uri, before + (1 if wanted else -1))
        if bool(before) == bool(self._followed.get(uri)) or self._link.state is not ConnectionState.CONNECTED:
            return
        try:
            refusals = await self._follow()
        except UNREACHED as error:
            log.debug(f"the upstream hears later of the resources that are followed: {error}")
            return
        if wanted and uri in refusals:
            self._count(uri, self._followed.get(uri, 0) - 1)
            raise refusals[uri]

    def noticed(self, method: str, params: Params) -> bool:
        """Whether a notification of the upstream concerned everybody, and has been passed on."""
        if method in LIST_CHANGES:
            self._link.lists_changed()
        elif method == "notifications/resources/updated":
            self._resource_updated(str(params.get("uri")))
        else:
            return False
        return True

    def all(self) -> Iterator[Conversation]:
        """The sessions' first, in the order in which they came."""
        yield from (*self._sessions.values(), *self._modern.values())

    async def close(self) -> None:
        for conversation in (*self.all(), self._watch):
            conversation.end()
        await self._tasks.wait(self._policy.close_seconds)

    def _of_modern(self, session: Session) -> Conversation:
        client = session.client
        who = (client.name, client.version, msgspec.json.encode(client.capabilities))
        conversation = self._modern.pop(who, None)
        if conversation is None:
            self._make_room()
            conversation = self._begin(session)
        self._modern[who] = conversation
        return conversation

    def _make_room(self) -> None:
        surplus = len(self._modern) + 1 - self._policy.modern_clients
        for who in [who for who, conversation in self._modern.items() if conversation.idle][: max(surplus, 0)]:
            self._modern.pop(who).end()

    def _begin(self, session: Session) -> Conversation:
        return Conversation(session, self._link, self.noticed, self.lines, self._tasks, self._policy)

    async def _follow_again(self) -> None:
        try:
            for uri, refusal in (await self._follow()).items():
                log.warn(f"The dev server does not tell any more when '{shown(uri)}' changes: {refusal}")
        except UNREACHED as error:
            log.warn(f"The dev server does not tell any more of the resources that are followed: {error}")

    async def _follow(self) -> Mapping[str, RpcError]:
        async with self._following:
            return await self._watch.follow(frozenset(self._followed))

    def _count(self, uri: str, number: int) -> None:
        if number > 0:
            self._followed[uri] = number
        else:
            self._followed.pop(uri, None)


class _Watcher:
    """The client that follows resources for all others."""

    def __init__(self, client: ClientInfo) -> None:
        self.client = client

    def notify(self, method: str, params: Params | None = None) -> None:  # noqa: ARG002
        log.debug(f"'{method}' was dropped: it is for nobody")

    async def ask(self, method: str, params: Params) -> Result:  # noqa: ARG002
        raise RpcError(INVALID_REQUEST, f"There is nobody to ask for '{method}'.")
