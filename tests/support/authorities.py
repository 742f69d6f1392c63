"""A hot reload authority whose answers a test gives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uno_devserver.hotreload.authority import CheckResult, Demand, RestartResult
from uno_devserver.proxy.calls.call_queue import CallQueue

CHANGED = CheckResult(server_changed=True, server_rebuilt=True)


def failed_build(output: str, digest: str | None = None) -> CheckResult:
    return CheckResult(server_changed=True, server_build_error=output, server_digest=digest)


class ScriptedAuthority:
    def __init__(self, news: bool | None = None) -> None:
        self.known: bool | Exception | None = news
        self.checks: list[asyncio.Future[CheckResult]] = []  # each waits for what the test makes of it
        self.tells: list[Callable[[str], None]] = []
        self.demands: list[Demand] = []
        self.restarts: list[asyncio.Future[RestartResult]] = []
        self.restarting: Callable[[], object] = lambda: None  # what happens when a restart is asked for

    def news(self) -> bool | None:
        if isinstance(self.known, Exception):
            raise self.known
        return self.known

    async def check(self, tell: Callable[[str], None], demand: Demand = Demand.NEW_CODE) -> CheckResult:
        self.tells.append(tell)
        self.demands.append(demand)
        self.checks.append(asyncio.get_running_loop().create_future())
        return await self.checks[-1]

    async def ready_to_restart(self) -> RestartResult:
        self.restarting()
        self.restarts.append(asyncio.get_running_loop().create_future())
        return await self.restarts[-1]


async def settled(queue: CallQueue, seconds: float) -> bool:
    """Wait until no restart is due; False if that takes longer."""
    try:
        async with asyncio.timeout(seconds):
            while queue._restart_due:
                await queue._changed.wait()
    except TimeoutError:
        return False
    return True
