"""Answers mcpStatus and mcpRestart: waits until the newest code answers, for at most the time limit.

Both check the code as a call would, so `ready` means that the next call is not told of a restart.
"""

from __future__ import annotations

import asyncio
import re
from itertools import islice
from typing import TYPE_CHECKING

from ...hotreload.authority import NAMED_TOOLS, Demand
from ...system.text import LONGEST_NAME
from ...workspace.trust import not_reloaded
from ..health.upstream_issues import TRY_AGAIN
from ..lists.tool_changes import compare_tools, entries_of, renamed_tools
from ..own_tools import HEALTH, STATUS
from ..state import ConnectionState
from .failure_answers import known_issues, unavailable
from .forwarder import report
from .reload_messages import (
    QUOTED_CHARACTERS,
    UNCHECKED_TEXT,
    ReloadNote,
    ReloadState,
    capitalised,
    fenced,
    noted_result,
    printed_last,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...protocol.service import Call, Result
    from ..state import ProxyState
    from .forwarder import Forwarder
    from .upstream_link import CallLimits

UNNAMED = "The MCP server"
NOT_LOADED = "AddInLoadFailed"
_ERROR = re.compile(r"(?<!\b0 )\b\w*(?:error|exception|panic|fatal)\b", re.IGNORECASE)  # not "0 Error(s)", no "errors"


class McpStatus:
    def __init__(
        self, forwarding: Forwarder, published: ProxyState, limits: CallLimits, listed: bytes | None = None
    ) -> None:
        """`published`: the state with the lists that clients see. `listed`: the list of tools that the client has read
        last; None if it has read none.
        """
        self._link = forwarding.link
        self._state = forwarding.state
        self._published = published
        self._forwarding = forwarding
        self._limits = limits
        self._listed = listed

    async def answer(self, call: Call, *, restart: bool = False) -> Result:
        """Check the code as a call does, wait for at most the time limit until the newest code answers, and report.

        A build that failed is tried again. With `restart` the server is restarted even if its code has not changed.
        """
        queue = first_queue = self._forwarding.queue  # None if code is not reloaded, or that is not known yet
        seconds = queue.status_seconds if queue else self._limits.status_seconds
        replaced = queue.replaced if queue else 0
        reporting = asyncio.ensure_future(report(call, self._waits_for, self._limits.progress_seconds))
        try:
            async with asyncio.timeout(seconds):
                is_ready = await self._refresh(seconds, Demand.RESTART if restart else Demand.BUILD)
        except TimeoutError:
            is_ready = False
        finally:
            reporting.cancel()
        queue, facts = self._forwarding.queue, self._state.snapshot()
        unnamed = UNNAMED if facts.options.server is None else facts.upstream_name
        name, failing = (queue.name, queue.notes.failing) if queue else (unnamed, None)
        off = facts.hot_reload_off if facts.hot_reload is None else None
        not_reloaded = [f"Hot reload is off, because {off}."] if off and failing is None else []
        if is_ready:
            remarks = list(self._changed_tools())
            replaced = replaced if queue is first_queue else 0
            restarted = restart and queue is not None and queue.replaced != replaced
            if queue is not None and (remark := queue.notes.take_remark()):
                remarks.insert(0, remark)
            elif restart and not restarted:
                remarks.insert(0, "It was not restarted.")
            return ready(
                name,
                log_file=facts.upstream.log_file if facts.upstream else None,
                source=queue.source if queue else None,
                failing=failing,
                missing=[*known_issues(self._state, NOT_LOADED)[0], *not_reloaded],
                unchecked=queue is not None and queue.unchecked,
                extension_error=queue.notes.extension_error if queue else None,
                remarks=remarks,
                restarted=restarted,
            )
        if self._is_down:
            if failing is not None and failing[0] is ReloadState.BUILD_FAILED:
                return not_built(name, failing[1])
            reasons, steps = known_issues(self._state)
            last_lines = facts.last_end.last_lines if facts.last_end else ()
            return not_started(name, [*reasons, *not_reloaded], steps, last_lines, is_remote=facts.is_remote)
        if self._link.fallback or self._link.state is ConnectionState.SHUTDOWN:
            raise unavailable(self._link, self._state)
        if queue is not None and queue.awaits_answer:
            return awaits_answer(name)
        return still_restarting(name, seconds, waits_for=self._waits_for())

    async def _refresh(self, seconds: float, demand: Demand) -> bool:
        """Wait until the newest code answers; return False if it does not come, or a running call has to be answered.

        If no upstream runs, check the code and make another attempt, as a tool call does.
        """
        if (pending := self._forwarding.queue_pending) is not None:
            await asyncio.wait([pending])
        reconsidered = attempt_due = self._is_down
        if reconsidered or self._state.facts.hot_reload_off:  # check whether the user trusts it now
            await self._link.reconsider()
        while True:
            queue = self._forwarding.queue
            if queue is not None:
                if not await queue.refreshed(demand):
                    return False
                demand = Demand.NEW_CODE
            if attempt_due and self._is_down:
                self._link.wanted()  # otherwise an attempt has just failed, and would fail again with the same code
                attempt_due = False
            if self._link.state is not ConnectionState.CONNECTED and not await self._link.until_connected(seconds):
                if reconsidered or not self._is_down:
                    return False
                reconsidered = True  # a start has just failed; perhaps its code was never built
                await self._link.reconsider()
                continue
            if queue is self._forwarding.queue and (queue is None or queue.is_settled):
                return True

    def _changed_tools(self) -> Iterator[str]:
        """A sentence about the tools that have changed since the client has listed them, if any."""
        tools = self._published.lists.tools
        if self._listed is None or self._listed == tools:
            return
        before, after = entries_of(self._listed), entries_of(tools)
        changes = compare_tools(before, after)
        if changes.verdict != "same":
            named = islice(renamed_tools(before, after).items(), NAMED_TOOLS)
            renamed = [f"'{old[:LONGEST_NAME]}' is probably '{new[:LONGEST_NAME]}' now" for old, new in named]
            told = "; ".join([str(changes), *renamed])
            yield f"Since you listed them: {told}. List the tools again."

    @property
    def _is_down(self) -> bool:
        return self._link.state is ConnectionState.DEGRADED

    def _waits_for(self) -> str:
        queue = self._forwarding.queue
        return (queue.awaits if queue else "") or f"it is {self._link.state.value}"


def ready(
    name: str,
    *,
    log_file: str | None,
    source: str | None,
    failing: tuple[ReloadState, str] | None = None,
    missing: Sequence[str] = (),
    unchecked: bool = False,
    extension_error: str | None = None,
    remarks: Sequence[str] = (),
    restarted: bool = False,
) -> Result:
    """`failing`: why the code on disk does not run. `missing`: sentences about parts that do not work. `unchecked`:
    whether its code could not be checked. `extension_error`: the output of the extension's failed build. `remarks`:
    sentences about what has changed. `restarted`: whether mcpRestart has had it restarted.
    """
    steps = [f"Call {HEALTH}, which says what is wrong"]
    if log_file:
        steps.append(f"Look into its log, {log_file}")
    steps.append(f"Read its source{f' in {source}' if source else ''}")
    sentences = [*remarks, *missing]
    states = [ReloadState.READY, *([ReloadState.RELOADED] if restarted else [])]
    if failing and failing[0] is ReloadState.NOT_AGREED:
        sentences.append(not_reloaded(failing[1]))
    elif failing and failing[0] is ReloadState.OLD_OUTPUT:
        sentences.append(f"But what answers may be older than its present code: {failing[1]}")
    elif failing:
        what = "that cannot be used" if failing[0] is ReloadState.BUILD_FAILED else "it did not start"
        sentences.append(
            f"But what answers may be older than its present code: {what}{_because(failing[1])}. "
            "Fix that; the next call after a change tries again."
        )
    if failing:
        states.append(failing[0])
    if unchecked:
        sentences.append(f"But {UNCHECKED_TEXT.format(name)}.")
        states.append(ReloadState.UNCHECKED)
    if extension_error is not None:
        why = _because(extension_error)
        sentences.append(f"The build of the extension's code fails{why}; the next call after a change builds it again.")
        states.append(ReloadState.EXTENSION_BUILD_FAILED)
    is_ready = " ".join([f"{capitalised(name)} is ready.", *sentences])
    text = (
        f"{is_ready} Do not call {STATUS} again; go on with its tools.\n\n"
        "If tools are missing, or it does not do what its code says:\n"
        + "\n".join(f"{number}. {step}." for number, step in enumerate(steps, 1))
    )
    return _status(text, *states, is_ready=True)


def _because(output: str) -> str:
    """Return one line of the output in brackets: the first that names an error, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    line = next((line for line in lines if _ERROR.search(line)), lines[-1] if lines else "")
    return f" ({line[:QUOTED_CHARACTERS].rstrip('.')})" if line else ""


def still_restarting(name: str, seconds: float, *, waits_for: str) -> Result:
    text = (
        f"{capitalised(name)} is not ready after {seconds:g} s: {waits_for}. Call {STATUS} again to keep waiting; if "
        f"that does not help either, call {HEALTH}, which says what is wrong."
    )
    return _status(text, ReloadState.RESTARTING, is_ready=False)


def awaits_answer(name: str) -> Result:
    text = (
        f"The code of {name} has changed. {capitalised(name)} restarts with it when the call is over that waits for an "
        "answer of its client (sampling, elicitation): answer it first. Until then calls run on the old code, and "
        "their results say so."
    )
    return _status(text, ReloadState.RESTARTING, is_ready=False)


def not_built(name: str, output: str) -> Result:
    text = (
        f"{capitalised(name)} does not run, and its code cannot be used:\n\n{fenced(output)}\n\n"
        f"Fix that, then call {STATUS} or one of its tools: that starts it."
    )
    return _status(text, ReloadState.FAILED, ReloadState.BUILD_FAILED, is_ready=False)


def not_started(
    name: str, reasons: Sequence[str], steps: Sequence[str], lines: Sequence[str], *, is_remote: bool = False
) -> Result:
    """`reasons` and `steps` come from the health report."""
    does_not, then = (
        ("is not connected", "connects to it again") if is_remote else ("does not run", "builds and starts it again")
    )
    why = " ".join([f"{capitalised(name)} {does_not}.", *reasons])
    what = " ".join(step.replace(TRY_AGAIN, "Fix it.") for step in steps or ["Fix its code."])
    printed = [line.strip() for line in lines if line.strip()]
    quoted = bool(printed) and printed[-1] in (line.strip() for line in why.splitlines())
    text = (
        f"{why}{'' if quoted else printed_last(lines)}\n\n"
        f"{what} Then call {STATUS} or one of its tools: that {then}. {HEALTH} has the details."
    )
    return _status(text, ReloadState.FAILED, is_ready=False)


def _status(text: str, *states: ReloadState, is_ready: bool) -> Result:
    return noted_result(text, [ReloadNote(state) for state in states], run=is_ready)
