"""Answers calls of the proxy's own tools; own_tools.py has their names and schemas.

A wrong argument leads to a tool error that names the argument, so that a model can correct it.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.jsonrpc import RpcError, encode, shown
from ..lists.tool_changes import entries_of
from ..own_tools import (
    DISCOVER,
    EXECUTE,
    HEALTH,
    INITIALIZE,
    MAIN,
    RESTART,
    SELECT_SOLUTION,
    SET_ROOTS,
    STATUS,
    asks_details,
    health_result,
)
from .failure_answers import UnansweredRequest, failed, not_served
from .forwarder import ForwardedRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ...protocol.service import Call, Params, Result
    from .forwarder import Forwarder
    from .mcp_status import McpStatus
    from .service import ProxyService


class BadArgument(Exception):
    """An argument is wrong; the message names it and says what it should be."""


class OwnToolAnswers:
    def __init__(self, service: ProxyService) -> None:
        main = service.forwarding
        self._link = main.link
        self._state = main.state
        self._service = service
        self._limits = main.limits
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
        await self._await_servers(call)
        self._service.tools_listed(call.session, self._state.lists.tools)
        own = self._state.own_tools
        tools = [msgspec.Raw(tool) for name, tool in entries_of(self._state.lists.tools) if name not in own]
        if not tools:
            return failed(f"The dev server is connected, but it offers no tools. {HEALTH} has the details.")
        return _text(msgspec.json.encode(tools).decode())

    async def _await_servers(self, call: Call) -> None:
        """Wait for the newest code of all servers; raise UnansweredRequest if none of them comes."""
        servers, seconds = self._service.servers, self._limits.discover_seconds
        waits = await asyncio.gather(*(to.await_newest_code(call, seconds) for to in servers), return_exceptions=True)
        failures = [failure for failure in waits if isinstance(failure, BaseException)]
        other = next((failure for failure in failures if not isinstance(failure, UnansweredRequest)), None)
        if other is not None or (failures and len(failures) == len(servers)):
            raise other or failures[0]

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
            to = await self._service.server_for("tools/call", params, call)
            try:
                return await to.run(call, ForwardedRequest("tools/call", params))
            except UnansweredRequest as failure:
                raise (failure.of_server(to.state.facts) if self._service.members else failure) from None
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
        servers = self._service.servers
        if len(servers) == 1:
            return await self._mcp_status(call, servers[0]).answer(call)
        if not servers:
            raise not_served(self._state)
        answers = await asyncio.gather(*(self._one_status(call, to) for to in servers))
        return several_statuses([to.state.facts.upstream_name for to in servers], answers)

    async def _one_status(self, call: Call, to: Forwarder) -> Result:
        try:
            return await self._mcp_status(call, to).answer(call)
        except UnansweredRequest as failure:
            return failure.of_server(to.state.facts, several=True).answer("tools/call")

    async def _restart(self, call: Call, arguments: Params) -> Result:
        servers, name = self._service.servers, arguments.get("server")
        if name is not None:
            servers = [to for to in servers if name == (to.state.facts.options.server or MAIN)]
        if len(servers) != 1:
            known = ", ".join(f"'{to.state.facts.options.server or MAIN}'" for to in self._service.servers)
            raise BadArgument(f"server must be the name of one of the servers: {known}.")
        return await self._mcp_status(call, servers[0]).answer(call, restart=True)

    def _mcp_status(self, call: Call, to: Forwarder) -> McpStatus:
        from .mcp_status import McpStatus  # imported late: agents only call it after a reload

        # The lists are those of all servers: what has changed in them is told once.
        is_first = to is self._service.servers[0]
        listed = self._service.conversations.of(call.session).listed_tools if is_first else None
        return McpStatus(to, self._state, self._limits, listed)


def several_statuses(names: Sequence[str], answers: Sequence[Result]) -> Result:
    """The answer of mcpStatus for several servers: that of each, in a paragraph.

    The state is that of the first that is not ready. It is an error if one restarts, or if none is ready.
    """
    if all(not answer.get("isError") for answer in answers):
        ready = [str(answer["content"][0]["text"]).partition(" Do not call ")[0] for answer in answers]
        text = f"{' '.join(ready)} Do not call {STATUS} again; go on with their tools."
        return {**answers[0], "content": [{"type": "text", "text": text}]}
    texts = [f"{name}: {answer['content'][0]['text']}" for name, answer in zip(names, answers, strict=True)]
    from .reload_messages import META_KEY, ReloadState  # imported late, as above

    unready = [answer for answer in answers if answer.get("isError")]
    restarts = any(
        answer.get("_meta", {}).get(META_KEY, {}).get("state") == ReloadState.RESTARTING.value for answer in unready
    )
    failed = restarts or len(unready) == len(answers)
    return {**unready[0], "content": [{"type": "text", "text": "\n\n".join(texts)}], "isError": failed}


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
        raise BadArgument(f"{name} must be the absolute path of {what}; '{shown(value)}' is not absolute.")
    return value.strip()


def _workspace_result(report: Mapping[str, Any]) -> Result:
    return {**_text(encode(report).decode()), "isError": report.get("status") == "rejected"}


def _text(text: str) -> Result:
    return {"content": [{"type": "text", "text": text}]}
