"""Answers calls of the proxy's own tools; own_tools.py has their names and schemas.

A wrong argument leads to a tool error that names the argument, so that a model can correct it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.jsonrpc import RpcError, encode, shown
from ..own_tools import (
    DISCOVER,
    EXECUTE,
    HEALTH,
    INITIALIZE,
    RESTART,
    SELECT_SOLUTION,
    SET_ROOTS,
    STATUS,
    asks_details,
    health_result,
)
from .failure_answers import failed
from .forwarder import ForwardedRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...protocol.service import Call, Params, Result
    from ..state import ProxyState
    from .conversations import Conversations
    from .forwarder import Forwarder
    from .mcp_status import McpStatus
    from .upstream_link import CallLimits, Link


class _Named(msgspec.Struct):
    name: str


_named = msgspec.json.Decoder(_Named).decode
_raw_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class BadArgument(Exception):
    """An argument is wrong; the message names it and says what it should be."""


class OwnToolAnswers:
    def __init__(
        self, link: Link, state: ProxyState, forwarding: Forwarder, conversations: Conversations, limits: CallLimits
    ) -> None:
        self._link = link
        self._state = state
        self._forwarding = forwarding
        self._conversations = conversations
        self._limits = limits
        self._tools: dict[str, Callable[[Call, Params], Awaitable[Result | msgspec.Raw]]] = {
            HEALTH: self._health,
            DISCOVER: self._discover,
            EXECUTE: self._execute,
            SELECT_SOLUTION: self._select_solution,
            INITIALIZE: self._initialize,
            SET_ROOTS: self._set_roots,
            STATUS: self._status,
            RESTART: self._restart,
        }

    def has(self, name: object) -> bool:
        """Whether the proxy answers the tool of that name at the moment."""
        return name == HEALTH or (isinstance(name, str) and name in self._state.own_tools and name in self._tools)

    async def answer(self, call: Call, name: str, arguments: object) -> Result | msgspec.Raw:
        """Return the result of a tool; raise UnansweredRequest if it needs the upstream, and there is none."""
        try:
            return await self._tools[name](call, _object("arguments", arguments))
        except BadArgument as bad:
            return failed(f"{name}: {bad}")

    async def _health(self, call: Call, arguments: Params) -> Result:
        told = self._state.told_health(details=asks_details(arguments))
        return health_result(told, call.session.client.protocol_version)

    async def _discover(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        await self._forwarding.await_upstream(call, self._limits.discover_seconds)
        self._forwarding.list_read()
        self._conversations.of(call.session).listed_tools = self._state.lists.tools
        own = self._state.own_tools
        tools = [raw for raw in _raw_list(self._state.lists.tools) if _named(raw).name not in own]
        if not tools:
            return failed(f"The dev server is connected, but it offers no tools. {HEALTH} has the details.")
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
            params = {**call.params, "name": name, "arguments": inner}
            return await self._forwarding.run(call, ForwardedRequest("tools/call", params))
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
        """Answer the older form of uno_app_initialize, which takes a list of folders and uses the first."""
        roots = arguments.get("roots")
        if "workspaceDirectory" not in arguments and isinstance(roots, list) and roots:
            arguments = {**arguments, "workspaceDirectory": roots[0]}
        return await self._initialize(call, arguments)

    async def _status(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        return await self._mcp_status(call).answer(call)

    async def _restart(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        return await self._mcp_status(call).answer(call, restart=True)

    def _mcp_status(self, call: Call) -> McpStatus:
        from .mcp_status import McpStatus  # imported late: agents only call it after a reload

        listed = self._conversations.of(call.session).listed_tools
        return McpStatus(self._link, self._state, self._forwarding, self._limits, listed)


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
