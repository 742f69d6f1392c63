"""mcpStatus: waits until the server behind the proxy answers again, within a bound, and says what to do then.

Where none runs, it has the code looked at and another attempt made, as the call of a tool would. Where code
is not reloaded it answers, too, and says why.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...instances.health_report import ConnectionState
from .outcomes import issues_of, known, unavailable
from .progress import report
from .reload_messages import State, not_built, not_started, ready, still_restarting

if TYPE_CHECKING:
    from ...protocol.service import Call, Params, Result
    from ..board import Board
    from .forwarding import Forwarding
    from .link import Link
    from .policy import RelayPolicy

UNNAMED = "The MCP server"
NOT_LOADED = "AddInLoadFailed"


class Status:
    def __init__(self, link: Link, board: Board, forwarding: Forwarding, policy: RelayPolicy) -> None:
        self._link = link
        self._board = board
        self._forwarding = forwarding
        self._policy = policy

    async def answer(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        pipeline = self._forwarding.pipeline  # none yet: the server is being started for the first time
        seconds = pipeline.status_seconds if pipeline else self._policy.status_seconds
        reporting = asyncio.ensure_future(report(call, self._waits_for, self._policy.progress_seconds))
        try:
            is_ready = await self._is_ready(seconds)
        finally:
            reporting.cancel()
        pipeline = self._forwarding.pipeline
        name, failing = (pipeline.name, pipeline.failing) if pipeline else (UNNAMED, None)
        if is_ready:
            return ready(
                name,
                log_file=self._log_file(),
                source=pipeline.source if pipeline else None,
                failing=failing,
                missing=[*issues_of(self._board, NOT_LOADED), *self._not_reloaded()],
                extension_error=pipeline.extension_error if pipeline else None,
            )
        if self._is_down:
            if failing is not None and failing[0] is State.BUILD_FAILED:
                return not_built(name, failing[1])
            reasons, steps = known(self._board)
            return not_started(name, [*reasons, *self._not_reloaded()], steps, self._last_lines())
        if self._link.fallback or self._link.state is ConnectionState.SHUTDOWN:
            raise unavailable(self._link, self._board)
        return still_restarting(name, seconds, waits_for=self._waits_for())

    async def _is_ready(self, seconds: float) -> bool:
        """No restart is due, and the upstream is there."""
        try:
            async with asyncio.timeout(seconds):
                was_down = self._is_down
                if not was_down and await self._settled(seconds):
                    return True
                if self._is_down:
                    await self._ask_for_it()
                if was_down:  # else an attempt was made just now, and another one needs other code
                    self._link.wanted()
                return await self._settled(seconds)
        except TimeoutError:
            return False

    @property
    def _is_down(self) -> bool:
        return self._link.state is ConnectionState.DEGRADED

    async def _ask_for_it(self) -> None:
        """Have done what may be in the way of a server: its code built, the user's agreement seen."""
        await self._link.reconsider()
        if self._forwarding.pipeline is not None:
            await self._forwarding.pipeline.current()

    async def _settled(self, seconds: float) -> bool:
        """Whether there is an upstream, when no more is due."""
        while True:
            pipeline = self._forwarding.pipeline
            if pipeline is not None and not await pipeline.settled(seconds):
                return False
            if self._link.state is ConnectionState.CONNECTED:
                return True
            if not await self._link.until_connected(seconds):
                return False

    def _waits_for(self) -> str:
        pipeline = self._forwarding.pipeline
        calls = pipeline.awaited_calls if pipeline else 0
        if calls:
            return f"it waits for {'a call that still runs' if calls == 1 else f'{calls} calls that still run'}"
        return f"it is {self._link.state.value}"

    def _not_reloaded(self) -> list[str]:
        proxy = self._board.health().get("proxy")
        why = proxy.get("hotReloadOff") if isinstance(proxy, dict) else None
        return [f"Hot reload is off, because {why}."] if why else []

    def _log_file(self) -> str | None:
        log_file = self._board.health().get("logFile")
        return log_file if isinstance(log_file, str) else None

    def _last_lines(self) -> list[str]:
        proxy = self._board.health().get("proxy")
        last = proxy.get("lastExit") if isinstance(proxy, dict) else None
        lines = last.get("lastLines") if isinstance(last, dict) else None
        return [str(line) for line in lines] if isinstance(lines, list) else []
