"""One attempt to use a server as a client does: start or reach it, shake hands, and list its tools; with timings.

A proxy is also asked for the health of its server. Whatever the server does, a trial returns within a time limit, says
what happened, and leaves no process running.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from typing import TYPE_CHECKING, Any, TypeVar

from ... import __version__
from ...instances.bounded_output import BoundedOutput
from ...instances.child_process import spawn
from ...instances.probe import HEALTH_TOOL
from ...protocol.client.connection import ConnectionLost, UnusableServer
from ...protocol.client.credentials import FixedHeaders
from ...protocol.client.http_connect import connect_http
from ...protocol.client.pipe_lines import PipeLines
from ...protocol.client.raw_messages import object_in
from ...protocol.client.stdio import StdioConnection
from ...protocol.jsonrpc import METHOD_NOT_FOUND, RpcError, shown
from ...protocol.peer_info import ClientInfo
from ...protocol.versions import NEWEST_HANDSHAKE
from ...system.event_loop import process_exit, run_in_thread
from ...system.text import decode_output
from ...system.values import Value
from .proxy_probe import probe_proxy

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from ...instances.child_process import Child
    from ...protocol.client.connection import Connection
    from ...protocol.service import Params, Result
    from .launch_spec import LaunchSpec
    from .proxy_probe import ProxyHealth

PATIENCE_SECONDS = 60.0  # more than the usual limits of clients, because a runner downloads at its first start
MORE_SECONDS = 10.0  # in addition to the client's limit, to distinguish a slow server from one that never answers
INPUT_SECONDS = 2.0  # how long a server may take to end after its input was closed, as MCP requires
STOP_SECONDS = 2.0  # how long a server may take to end after a signal, before it is killed
LAST_OUTPUT_SECONDS = 0.5  # between the exit of a process and the end of its output, in either order
POLL_SECONDS = 0.05  # used on systems that do not report the exit of a process
LAST_LINES = 5
MAX_STRAYS = 3
MAX_CHARACTERS = 500  # the limit for each message of a server
MAX_PAGES = 100  # the limit for a list of tools
READY = "ready"  # the step until a proxy has a server; the client does not wait for it

T = TypeVar("T")


class Trial(Value):
    milliseconds: Mapping[str, int]  # the time of each completed step: `spawn`, `initialize`, `tools`, `ready`
    tools: int | None = None  # the number of tools
    problem: str = ""  # sentences: why the server cannot be used; "" if it can
    behind: ProxyHealth | None = None  # the health of the server behind a proxy

    @property
    def seconds(self) -> float:
        """The time that the client has to wait."""
        return sum(spent for name, spent in self.milliseconds.items() if name != READY) / 1000


def patience_of(spec: LaunchSpec) -> float:
    limit = spec.limit_seconds
    return PATIENCE_SECONDS if limit is None else min(limit + MORE_SECONDS, PATIENCE_SECONDS)


def try_command(program: str, spec: LaunchSpec) -> Trial:
    """Start and try a server; `program` is the executable file of the command."""
    with tempfile.TemporaryDirectory(prefix="uno-devserver-") as folder:
        output = BoundedOutput(os.path.join(folder, "stderr.log"))
        try:
            return asyncio.run(_over_pipes(program, spec, output))
        finally:
            output.close()


def try_address(spec: LaunchSpec) -> Trial:
    return asyncio.run(_over_http(spec))


class _Stopwatch:
    def __init__(self) -> None:
        self.milliseconds: dict[str, int] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.milliseconds[name] = round((now - self._last) * 1000)
        self._last = now


async def _over_pipes(program: str, spec: LaunchSpec, output: BoundedOutput) -> Trial:
    watch = _Stopwatch()
    line = (program, *spec.command[1:])
    try:
        child = spawn(line, folder=spec.folder, environ=spec.environ, output=output, spoken_to=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Trial({}, problem=f"'{program}' cannot be started: {reason}.")
    watch.lap("spawn")
    assert child.pipes is not None
    strays: list[bytes] = []
    lines = PipeLines(lambda: None)

    def keep(line: bytes) -> None:
        if len(strays) < MAX_STRAYS:
            strays.append(line)

    connection = StdioConnection(_SilentClient(), lines, keep)
    try:
        await lines.open(*child.pipes, connection)
        try:
            problem, tools = await _until_it_ends(_talk(connection, watch), child, spec)
            behind: ProxyHealth | None = None
            if HEALTH_TOOL in (tools or ()):
                asking = probe_proxy(connection, _SilentClient(), lambda: watch.lap(READY))
                problem, behind = await _until_it_ends(asking, child, spec)
        finally:
            lines.close_output()
            gone = asyncio.ensure_future(process_exit(child.pid, POLL_SECONDS))
            await asyncio.wait((gone,), timeout=INPUT_SECONDS)
            gone.cancel()
            lines.close()
    finally:
        await run_in_thread(lambda: child.stop(STOP_SECONDS))
        child.end_the_rest()
        await run_in_thread(lambda: output.wait(LAST_OUTPUT_SECONDS))
    count = None if tools is None else len(tools) if behind is None else behind.tools
    return Trial(watch.milliseconds, count, _explained(problem, strays, child) if problem else "", behind)


async def _talk(connection: StdioConnection, watch: _Stopwatch) -> list[object]:
    await connection.begin(modern_first=False)
    watch.lap("initialize")
    tools = await _tools(connection)
    watch.lap("tools")
    return tools


async def _until_it_ends(talk: Coroutine[Any, Any, T], child: Child, spec: LaunchSpec) -> tuple[str, T | None]:
    """Talk to the server until its process exits; a process that it started may hold the output open for longer."""
    talking = asyncio.ensure_future(talk)
    gone = asyncio.ensure_future(process_exit(child.pid, POLL_SECONDS))
    try:
        await asyncio.wait((talking, gone), timeout=patience_of(spec), return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            await asyncio.wait((talking,), timeout=LAST_OUTPUT_SECONDS)
        if not talking.done():
            return (_ended(child) if gone.done() else _silence(spec)), None
        try:
            return "", talking.result()
        except ConnectionLost:
            await asyncio.wait((gone,), timeout=LAST_OUTPUT_SECONDS)
            return _ended(child), None
        except (UnusableServer, RpcError) as refused:
            return _sentence(refused), None
    finally:
        for task in (talking, gone):
            task.cancel()
        await asyncio.wait((talking, gone))


async def _over_http(spec: LaunchSpec) -> Trial:
    patience = patience_of(spec)
    watch = _Stopwatch()
    connection: Connection | None = None
    try:
        async with asyncio.timeout(patience):
            connection = await connect_http(
                spec.url, _SilentClient(), modern_first=False, seconds=patience, credentials=FixedHeaders(spec.headers)
            )
            watch.lap("initialize")
            tools = await _tools(connection)
            watch.lap("tools")
        return Trial(watch.milliseconds, len(tools))
    except (ConnectionLost, UnusableServer, RpcError) as error:
        return Trial(watch.milliseconds, problem=_sentence(error))
    except TimeoutError:
        return Trial(watch.milliseconds, problem=_silence(spec))
    finally:
        if connection is not None:
            await connection.close()


async def _tools(connection: Connection) -> list[object]:
    """The names of all tools."""
    if "tools" not in connection.server.capabilities:
        return []
    names: list[object] = []
    params: Params = {}
    for _ in range(MAX_PAGES):
        page = object_in(await connection.request("tools/list", params, _SilentClient())) or {}
        tools = page.get("tools")
        if not isinstance(tools, list):
            raise UnusableServer("its answer to tools/list has no list of tools")
        names += [tool.get("name") if isinstance(tool, dict) else None for tool in tools]
        if page.get("nextCursor") is None:
            break
        params = {"cursor": page["nextCursor"]}
    return names


class _SilentClient:
    """A client that answers pings and nothing else."""

    client = ClientInfo("uno-devserver-doctor", __version__, {}, NEWEST_HANDSHAKE)
    log_level = None

    def notify(self, method: str, params: Params) -> None:
        pass

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        if method == "ping":
            return {}
        raise RpcError(METHOD_NOT_FOUND, f"'{method}' is not answered here.")


def _silence(spec: LaunchSpec) -> str:
    waits = f"; its client waits {spec.limit_seconds:g} s" if spec.limit_seconds is not None else ""
    return f"It gave no answer within {patience_of(spec):g} s{waits}."


def _ended(child: Child) -> str:
    code = child.exit_code()
    if code is None:
        return "It closed its output before it answered."
    how = f"exit code {code}" if code >= 0 else f"signal {-code}"
    return f"It ended with {how} before it answered."


def _sentence(error: Exception) -> str:
    text = str(error)[:MAX_CHARACTERS].rstrip(".")
    return text[:1].upper() + text[1:] + "."


def _explained(problem: str, strays: list[bytes], child: Child) -> str:
    """The problem, followed by what the server printed to its output and to its error output."""
    if strays:
        lines = "; ".join(shown(decode_output(line).strip()) for line in strays)
        problem += f" On its output, where only MCP belongs, it printed: {lines}"
    printed = [line.strip() for line in child.printed().splitlines() if line.strip()][-LAST_LINES:]
    if printed:
        problem += " Its last output: " + " / ".join(line[:MAX_CHARACTERS] for line in printed)
    return problem
