"""The resources that anybody watches, in one endpoint: the service hears of the first who does, and of the last.

What the service is told follows what is wanted: for each resource one thing at a time, and the last word is right,
whoever comes and goes meanwhile.
"""

from __future__ import annotations

import asyncio

from ..system.log import log
from .jsonrpc import RpcError, shown
from .running import Tasks, attempt
from .service import Service

METHODS = {True: "resources/subscribe", False: "resources/unsubscribe"}


class Followed:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._resources: dict[str, _Resource] = {}
        self._tasks = Tasks()

    async def begin(self, uri: str) -> None:
        """One more watches; RpcError when the service refuses, and then it does not."""
        resource = self._resources.setdefault(uri, _Resource())
        resource.watchers += 1
        try:
            await self._tell(uri, resource, True)
        except BaseException:
            self.end(uri)
            raise

    def end(self, uri: str) -> None:
        """One watches no longer."""
        resource = self._resources[uri]
        resource.watchers -= 1
        if not resource.watchers:
            self._tasks.start(self._tell_the_end(uri, resource))

    async def close(self, seconds: float) -> None:
        """Wait until the service has heard of the last ones, within a bound."""
        await self._tasks.wait(seconds)

    async def _tell(self, uri: str, resource: _Resource, wanted: bool) -> None:
        async with resource.telling:
            if resource.told == wanted or (resource.watchers > 0) != wanted:
                return
            resource.told = wanted  # before: if this is cancelled, the service may have heard of it
            refused = await attempt(self._service.followed(uri, wanted), METHODS[wanted])
            if isinstance(refused, RpcError):
                resource.told = False
                raise refused

    async def _tell_the_end(self, uri: str, resource: _Resource) -> None:
        try:
            await self._tell(uri, resource, False)
        except RpcError as error:
            log.warn(f"The server could not be told that nobody watches '{shown(uri)}' any more: {error.message}")
        if not resource.watchers and not resource.told and self._resources.get(uri) is resource:
            del self._resources[uri]


class _Resource:
    def __init__(self) -> None:
        self.watchers = 0
        self.told = False  # that it is watched
        self.telling = asyncio.Lock()
