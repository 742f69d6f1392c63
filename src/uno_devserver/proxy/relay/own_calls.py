"""The tools that the proxy has itself: what each answers. Their names and schemas are in tools.py.

Bad arguments are a tool's own error, with a sentence that names the argument: that is what a model can correct.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.eras import HANDSHAKE_VERSIONS
from ...protocol.jsonrpc import RpcError, encode, shown
from ..tools import DISCOVER, EXECUTE, HEALTH, INITIALIZE, SELECT_SOLUTION, SET_ROOTS, STATUS, health_result
from .outcomes import failed
from .status import Status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...protocol.service import Call, Params, Result
    from ..board import Board
    from .forwarding import Forwarding
    from .link import Link
    from .policy import RelayPolicy

# Structured content came with this version; the ones before it do not know the field.
UNSTRUCTURED = HANDSHAKE_VERSIONS[: HANDSHAKE_VERSIONS.index("2025-06-18")]


class BadArgument(Exception):
    """The message says which, and what it should be."""


class OwnCalls:
    def __init__(self, link: Link, board: Board, forwarding: Forwarding, policy: RelayPolicy) -> None:
        self._link = link
        self._board = board
        self._forwarding = forwarding
        self._policy = policy
        self._status = Status(link, board, forwarding, policy).answer
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
        return name == HEALTH or (isinstance(name, str) and name in self._board.own_tools and name in self._tools)

    async def answer(self, call: Call, name: str, arguments: object) -> Result | msgspec.Raw:
        """The result of one that `has` knows; NoAnswer where it needs the upstream in vain."""
        try:
            return await self._tools[name](call, _object("arguments", arguments))
        except BadArgument as bad:
            return failed(f"{name}: {bad}")

    async def _health(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        structured = call.session.client.protocol_version not in UNSTRUCTURED
        return health_result(self._board.health(), structured=structured)

    async def _discover(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        await self._forwarding.await_upstream(call, self._policy.discover_seconds)
        self._forwarding.listed()
        own = self._board.own_tools
        tools = [raw for raw in _raw_list(self._board.lists.tools) if _named.decode(raw).name not in own]
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
            return await self._forwarding.run(call, "tools/call", {**call.params, "name": name, "arguments": inner})
        except RpcError as error:
            why = error.message.rstrip(".")
            return failed(f"The dev server refused '{shown(name)}': {why}. {DISCOVER} lists its tools.")

    async def _select_solution(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        solution = _path("solutionPath", arguments, "the .sln or .slnx to serve")
        force = arguments.get("forceRestart")
        if force is not None and not isinstance(force, bool):
            raise BadArgument("forceRestart must be true or false.")
        report = await self._link.select_solution(solution, force_restart=bool(force))
        return _report(report, is_error=report.get("status") == "rejected")

    async def _initialize(self, call: Call, arguments: Params) -> Result:  # noqa: ARG002
        directory = _path("workspaceDirectory", arguments, "the folder of the workspace")
        solution = arguments.get("solutionPath")
        if solution is not None:
            solution = _path("solutionPath", arguments, "the .sln or .slnx to serve")
        report = await self._link.set_workspace(directory, solution)
        return _report(report, is_error=report.get("status") == "rejected")

    async def _set_roots(self, call: Call, arguments: Params) -> Result:
        """The older tool took a list, and used its first."""
        roots = arguments.get("roots")
        if "workspaceDirectory" not in arguments and isinstance(roots, list) and roots:
            arguments = {**arguments, "workspaceDirectory": roots[0]}
        return await self._initialize(call, arguments)


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


def _report(report: Mapping[str, Any], *, is_error: bool) -> Result:
    return {**_text(encode(report).decode()), "isError": is_error}


def _text(text: str) -> Result:
    return {"content": [{"type": "text", "text": text}]}


class _Named(msgspec.Struct):
    name: str


_named = msgspec.json.Decoder(_Named)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
