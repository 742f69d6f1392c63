"""Answers the calls of the proxy's own tools. own_tools.py has their names and schemas.

A wrong argument is a tool error whose sentence names the argument, because a model can correct that.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.eras import HANDSHAKE_VERSIONS
from ...protocol.jsonrpc import RpcError, encode, shown
from ..own_tools import DISCOVER, EXECUTE, HEALTH, INITIALIZE, SELECT_SOLUTION, SET_ROOTS, STATUS, health_result
from ..state import ConnectionState
from .failure_answers import failed, known_issues, unavailable
from .forwarding import Request, report
from .reload_messages import State, not_built, not_started, ready, still_restarting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...protocol.service import Call, Params, Result
    from ..state import ProxyState
    from .forwarding import Forwarding
    from .upstream_link import CallLimits, Link


# Structured content came with 2025-06-18; older clients do not know the field.
UNSTRUCTURED = HANDSHAKE_VERSIONS[: HANDSHAKE_VERSIONS.index("2025-06-18")]
UNNAMED = "The MCP server"
NOT_LOADED = "AddInLoadFailed"


class _Named(msgspec.Struct):
    name: str


_named = msgspec.json.Decoder(_Named).decode
_raw_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class BadArgument(Exception):
    """The message says which argument is wrong, and what it should be."""


class OwnToolAnswers:
    def __init__(self, link: Link, state: ProxyState, forwarding: Forwarding, limits: CallLimits) -> None:
        self._link = link
        self._state = state
        self._forwarding = forwarding
        self._limits = limits
        self._tools: dict[str, Callable[[Call, Params], Awaitable[Result | msgspec.Raw]]] = {
            HEALTH: self._health,
            DISCOVER: self._discover,
            EXECUTE: self._execute,
            SELECT_SOLUTION: self._select_solution,
            INITIALIZE: self._initialize,
            SET_ROOTS: self._set_roots,
            STATUS: self._status,
        }

    def has(self, name: object) -> bool:
        """Whether a tool of that name is ours at the moment."""
        return name == HEALTH or (isinstance(name, str) and name in self._state.own_tools and name in self._tools)

    async def answer(self, call: Call, name: str, arguments: object) -> Result | msgspec.Raw:
        """The result of one of these tools; NoAnswer if it needs the upstream, and there is none."""
        try:
            return await self._tools[name](call, _object("arguments", arguments))
        except BadArgument as bad:
            return failed(f"{name}: {bad}")

    async def _health(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        structured = call.session.client.protocol_version not in UNSTRUCTURED
        return health_result(self._state.report(), structured=structured)

    async def _discover(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        await self._forwarding.await_upstream(call, self._limits.discover_seconds)
        self._forwarding.list_read()
        own = self._state.own_tools
        tools = [raw for raw in _raw_list(self._state.lists.tools) if _named(raw).name not in own]
        if not tools:
            return failed(f"The dev server is connected, but it offers no tools. {HEALTH} tells more.")
        return _text(msgspec.json.encode(tools).decode())

    async def _execute(self, call: Call, arguments: Params) -> Result | msgspec.Raw:
        name = arguments.get("toolName")
        if not isinstance(name, str) or not name:
            raise BadArgument(f"toolName must be the name of a tool; {DISCOVER} lists them.")
        inner = _object("arguments", arguments.get("arguments"))
        if name == EXECUTE:
            raise BadArgument(f"toolName must be another tool than {EXECUTE} itself.")
        if self.has(name):
            return await self.answer(call, name, inner)
        try:
            return await self._forwarding.run(
                call, Request("tools/call", {**call.params, "name": name, "arguments": inner})
            )
        except RpcError as error:
            why = error.message.rstrip(".")
            return failed(f"The dev server refused '{shown(name)}': {why}. {DISCOVER} lists its tools.")

    async def _select_solution(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        solution = _path("solutionPath", arguments, "the .sln or .slnx to serve")
        force = arguments.get("forceRestart")
        if force is not None and not isinstance(force, bool):
            raise BadArgument("forceRestart must be true or false.")
        return _workspace_result(await self._link.select_solution(solution, force_restart=bool(force)))

    async def _initialize(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        directory = _path("workspaceDirectory", arguments, "the folder of the workspace")
        solution = arguments.get("solutionPath")
        if solution is not None:
            solution = _path("solutionPath", arguments, "the .sln or .slnx to serve")
        return _workspace_result(await self._link.set_workspace(directory, solution))

    async def _set_roots(self, call: Call, arguments: Params) -> Result:
        """The older tool takes a list, and uses its first."""
        roots = arguments.get("roots")
        if "workspaceDirectory" not in arguments and isinstance(roots, list) and roots:
            arguments = {**arguments, "workspaceDirectory": roots[0]}
        return await self._initialize(call, arguments)

    # mcpStatus.

    async def _status(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        """Wait until the upstream answers again, within a bound, and say what to do then.

        It also answers where code is not reloaded, and says why it is not.
        """
        queue = self._forwarding.queue  # None: code is not reloaded, or that is not known yet
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
            if failing is not None and failing[0] is State.BUILD_FAILED:
                return not_built(name, failing[1])
            reasons, steps = known_issues(self._state)
            last_lines = facts.last_end.last_lines if facts.last_end else ()
            return not_started(name, [*reasons, *not_reloaded], steps, last_lines)
        if self._link.fallback or self._link.state is ConnectionState.SHUTDOWN:
            raise unavailable(self._link, self._state)
        return still_restarting(name, seconds, waits_for=self._waits_for())

    async def _is_ready(self, seconds: float) -> bool:
        """Whether no restart is due and the upstream answers, within that time.

        If no upstream runs, the code is checked and another attempt is made, as a tool call would have it.
        """
        try:
            async with asyncio.timeout(seconds):
                was_down = self._is_down
                if not was_down and await self._settled(seconds):
                    return True
                if self._is_down:  # have its code built, and look whether the user trusts it now
                    await self._link.reconsider()
                    if self._forwarding.queue is not None:
                        await self._forwarding.queue.current()
                if was_down:  # else an attempt has just failed, and the next one needs other code
                    self._link.wanted()
                return await self._settled(seconds)
        except TimeoutError:
            return False

    @property
    def _is_down(self) -> bool:
        return self._link.state is ConnectionState.DEGRADED

    async def _settled(self, seconds: float) -> bool:
        """Whether there is an upstream when no restart is due any more."""
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


def _object(name: str, value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadArgument(f"{name} must be an object.")
    return value


def _path(name: str, arguments: Params, what: str) -> str:
    value = arguments.get(name)
    if value is None:
        raise BadArgument(f"{name} is missing: the absolute path of {what}.")
    if not isinstance(value, str):
        raise BadArgument(f"{name} must be a string: the absolute path of {what}.")
    if not os.path.isabs(value.strip()):
        raise BadArgument(f"{name} must be the absolute path of {what}; '{shown(value)}' is none.")
    return value.strip()


def _workspace_result(report: Mapping[str, Any]) -> Result:
    return {**_text(encode(report).decode()), "isError": report.get("status") == "rejected"}


def _text(text: str) -> Result:
    return {"content": [{"type": "text", "text": text}]}
