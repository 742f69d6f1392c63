"""Connections to upstreams, and who still waits for an answer over them: a server may go when nobody does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...protocol.client.connection import Connection


class Line:
    """A connection to the upstream of one generation, and how many requests use it."""

    __slots__ = ("closed", "connection", "generation", "left", "modern", "users")

    def __init__(self, connection: Connection, generation: int) -> None:
        self.connection = connection
        self.generation = generation
        self.modern = connection.server.modern
        self.users = 0
        self.left = False  # nothing new goes over it
        self.closed = False


class Lines:
    """The lines of all clients."""

    def __init__(self) -> None:
        self._users: dict[int, int] = {}  # requests under way, by generation
        self._unused: dict[int, asyncio.Event] = {}  # for those who wait until there are none

    def use(self, line: Line) -> None:
        line.users += 1
        self._users[line.generation] = self._users.get(line.generation, 0) + 1

    def let_go(self, line: Line) -> None:
        line.users -= 1
        self._users[line.generation] -= 1
        if not self._users[line.generation]:
            del self._users[line.generation]
            unused = self._unused.pop(line.generation, None)
            if unused is not None:
                unused.set()

    async def until_unused(self, generation: int) -> None:
        """Until no request waits for this upstream. None waits for ever: one of which nothing is heard is given up."""
        if generation in self._users:
            await self._unused.setdefault(generation, asyncio.Event()).wait()
