"""Answers mcpStatus: waits, for a bounded time, until the server behind the proxy answers, and says what to do next."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..health.upstream_issues import TRY_AGAIN
from ..own_tools import HEALTH, STATUS
from ..state import ConnectionState
from .failure_answers import known_issues, unavailable
from .forwarder import report
from .reload_messages import QUOTED_CHARACTERS, ReloadNote, ReloadState, capitalised, fenced, noted_result, printed_last

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...protocol.service import Call, Result
    from ..state import ProxyState
    from .forwarder import Forwarder
    from .upstream_link import CallLimits, Link

UNNAMED = "The MCP server"
NOT_LOADED = "AddInLoadFailed"


class McpStatus:
    def __init__(self, link: Link, state: ProxyState, forwarding: Forwarder, limits: CallLimits) -> None:
        self._link = link
        self._state = state
        self._forwarding = forwarding
        self._limits = limits

    async def answer(self, call: Call) -> Result:
        """Wait until the upstream answers, in bounded time; return its status, and why code is not reloaded, if so."""
        queue = self._forwarding.queue  # None if code is not reloaded, or that is not known yet
        seconds = queue.status_seconds if queue else self._limits.status_seconds
        reporting = asyncio.ensure_future(report(call, self._waits_for, self._limits.progress_seconds))
        try:
            is_ready = await self._is_ready(seconds)
        finally:
            reporting.cancel()
        queue, facts = self._forwarding.queue, self._state.snapshot()
        name, failing = (queue.name, queue.notes.failing) if queue else (UNNAMED, None)
        off = facts.hot_reload_off if facts.hot_reload is None else None
        not_reloaded = [f"Hot reload is off, because {off}."] if off else []
        if is_ready:
            return ready(
                name,
                log_file=facts.upstream.log_file if facts.upstream else None,
                source=queue.source if queue else None,
                failing=failing,
                missing=[*known_issues(self._state, NOT_LOADED)[0], *not_reloaded],
                extension_error=queue.notes.extension_error if queue else None,
            )
        if self._is_down:
            if failing is not None and failing[0] is ReloadState.BUILD_FAILED:
                return not_built(name, failing[1])
            reasons, steps = known_issues(self._state)
            last_lines = facts.last_end.last_lines if facts.last_end else ()
            return not_started(name, [*reasons, *not_reloaded], steps, last_lines)
        if self._link.fallback or self._link.state is ConnectionState.SHUTDOWN:
            raise unavailable(self._link, self._state)
        return still_restarting(name, seconds, waits_for=self._waits_for())

    async def _is_ready(self, seconds: float) -> bool:
        """Wait until no restart is due and the upstream answers; return False if that takes too long, or fails.

        If no upstream runs, check the code and make another attempt, as a tool call does.
        """
        try:
            async with asyncio.timeout(seconds):
                was_down = self._is_down
                if not was_down and await self._settled(seconds):
                    return True
                if self._is_down:  # build its code, and check whether the user trusts it now
                    await self._link.reconsider()
                    if self._forwarding.queue is not None:
                        await self._forwarding.queue.current()
                if was_down:  # otherwise an attempt has just failed, and would fail again with the same code
                    self._link.wanted()
                return await self._settled(seconds)
        except TimeoutError:
            return False

    @property
    def _is_down(self) -> bool:
        return self._link.state is ConnectionState.DEGRADED

    async def _settled(self, seconds: float) -> bool:
        """Wait until no restart is due and an upstream is connected; return False if none comes."""
        while True:
            queue = self._forwarding.queue
            if queue is not None and not await queue.settled(seconds):
                return False
            if self._link.state is ConnectionState.CONNECTED:
                return True
            if not await self._link.until_connected(seconds):
                return False

    def _waits_for(self) -> str:
        queue = self._forwarding.queue
        calls = queue.awaited_calls if queue else 0
        if calls:
            return f"it waits for {'a call that still runs' if calls == 1 else f'{calls} calls that still run'}"
        return f"it is {self._link.state.value}"


def ready(
    name: str,
    *,
    log_file: str | None,
    source: str | None,
    failing: tuple[ReloadState, str] | None = None,
    missing: Sequence[str] = (),
    extension_error: str | None = None,
) -> Result:
    """`failing`: why the code on disk does not run. `missing`: sentences about parts that do not work.
    `extension_error`: the output of the extension's failed build.
    """
    steps = [f"Call {HEALTH}, which says what is wrong"]
    if log_file:
        steps.append(f"Look into its log, {log_file}")
    steps.append(f"Read its source{f' in {source}' if source else ''}")
    problems, states = list(missing), [ReloadState.READY]
    if failing:
        what = "its build fails" if failing[0] is ReloadState.BUILD_FAILED else "it did not start"
        problems.append(
            f"But what answers may be older than its present code: {what}{_because(failing[1])}. "
            "Fix that; the next call of a tool tries again."
        )
        states.append(failing[0])
    if extension_error is not None:
        why = _because(extension_error)
        problems.append(f"The build of the extension's code fails{why}; the next call builds it again.")
        states.append(ReloadState.EXTENSION_BUILD_FAILED)
    is_ready = " ".join([f"{capitalised(name)} is ready.", *problems])
    text = (
        f"{is_ready} Do not call {STATUS} again; go on with its tools.\n\n"
        "If tools are missing, or it does not do what its code says:\n"
        + "\n".join(f"{number}. {step}." for number, step in enumerate(steps, 1))
    )
    return _status(text, *states, is_ready=True)


def _because(output: str) -> str:
    """Return one line of the output in brackets: the first that mentions an error, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    line = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
    return f" ({line[:QUOTED_CHARACTERS].rstrip('.')})" if line else ""


def still_restarting(name: str, seconds: float, *, waits_for: str) -> Result:
    text = (
        f"{capitalised(name)} is not ready after {seconds:g} s: {waits_for}. Call {STATUS} again to keep waiting; if "
        f"that does not help either, call {HEALTH}, which says what is wrong."
    )
    return _status(text, ReloadState.RESTARTING, is_ready=False)


def not_built(name: str, output: str) -> Result:
    text = (
        f"{capitalised(name)} does not run, and the build of its code fails:\n\n{fenced(output)}\n\n"
        f"Fix what the build complains about, then call {STATUS} or one of its tools: that builds and starts it again."
    )
    return _status(text, ReloadState.FAILED, ReloadState.BUILD_FAILED, is_ready=False)


def not_started(name: str, reasons: Sequence[str], steps: Sequence[str], lines: Sequence[str]) -> Result:
    """`reasons` and `steps` come from the health report."""
    why = " ".join([f"{capitalised(name)} does not run.", *reasons])
    what = " ".join(step.replace(TRY_AGAIN, "Fix it.") for step in steps or ["Fix its code."])
    quoted = bool(lines) and lines[-1] in why
    text = (
        f"{why}{'' if quoted else printed_last(lines)}\n\n"
        f"{what} Then call one of its tools: that builds and starts it again. {HEALTH} has the details."
    )
    return _status(text, ReloadState.FAILED, is_ready=False)


def _status(text: str, *states: ReloadState, is_ready: bool) -> Result:
    return noted_result(text, [ReloadNote(state) for state in states], run=is_ready)
