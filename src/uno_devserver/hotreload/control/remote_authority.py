"""Asks the authority of another process over its control channel.

A missing or broken connection is an error at once. Silence is an error after a limit; then the owner is not asked
for a while. Progress messages during a long build end the silence. Only the first connection waits for the channel,
because the registry names it before the owner listens on it. When the owner announces a restart, running calls of this
process may finish, and the owner is notified when they have.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...protocol.jsonrpc import RpcError, RpcNotification
from ...system.event_loop import Tasks, shielded
from ...system.log import log
from ...system.pipe_clients import connect, is_this_user
from ...system.values import Value
from ..authority import UNCHANGED, AuthorityProblem, CheckResult, Demand, RestartResult
from . import messages
from .line_rpc import ConnectionEnded, LineRpc, RpcLimits

OWNER = "The proxy that owns the server"


class RemoteLimits(Value):
    rpc: RpcLimits = RpcLimits(line_bytes=64 * 1024 * 1024)  # an answer contains the whole output of a build
    connect_seconds: float = 1.0  # enough for a socket on this machine
    opening_seconds: float = 2.0  # the owner listens 0.2 s after its Host serves, or 1 s if the machine is busy
    opening_step_seconds: float = 0.01
    silence_seconds: float = 10.0  # the owner sends progress every 3 s while it works for us
    doubt_seconds: float = 30.0  # after such a silence the owner is not asked; otherwise each batch of calls would wait
    whole_seconds: float = 900.0  # two builds of 300 s, the start of a client, and some room


class RemoteAuthority:
    def __init__(
        self,
        path: str,
        restart_announced: Callable[[], Awaitable[None]],
        restarted: Callable[[RestartResult], None],
        limits: RemoteLimits | None = None,
    ) -> None:
        """`restart_announced` is awaited when the owner announces a restart: it returns when no call of this process
        runs, and is cancelled if the restart does not wait for that. `restarted` is called once after each restart.
        """
        self._path = path
        self._restart_announced = restart_announced
        self._restarted = restarted
        self._limits = limits or RemoteLimits()
        self._connection: LineRpc | None = None
        self._connecting = asyncio.Lock()
        self._gave_up: float | None = None  # when the owner had been silent for too long, by the clock of the loop
        self._checking: asyncio.Task[CheckResult] | None = None
        self._tells: list[Callable[[str], None]] = []  # the progress functions of the callers of `check`
        self._restarting: asyncio.Task[RestartResult] | None = None
        self._announced: asyncio.Future[RestartResult] | None = None  # a restart that the owner has announced
        self._tasks = Tasks()
        self._closed = False
        self._opens_until = _now() + self._limits.opening_seconds  # before that time the owner may not listen yet
        self.restarts = 0  # how many successful restarts the owner has reported
        self._tasks.start(self._connect_ahead())

    def news(self) -> bool | None:
        return None

    async def check(self, tell: Callable[[str], None], demand: Demand = Demand.NEW_CODE) -> CheckResult:
        self._tells.append(tell)
        try:
            if demand is not Demand.NEW_CODE:
                return await self._check(demand)
            joined = self._checking is not None and not self._checking.done()
            result = await self._share_check()
            if joined and result == UNCHANGED:  # the owner may have read before our caller saved
                result = await self._share_check()
            return result
        finally:
            self._tells.remove(tell)

    async def ready_to_restart(self) -> RestartResult:
        if self._restarting is None or self._restarting.done():
            self._restarting = self._tasks.start(self._ready())
            self._restarting.add_done_callback(_retrieve)
        return await shielded(self._restarting)

    @property
    def restarting(self) -> bool:
        """Whether the owner has announced or begun a restart."""
        return bool(self._under_way())

    async def until_restarted(self) -> None:
        """Wait until the restart or the connection has ended; return at once if there is no restart."""
        waits = self._under_way()
        if waits:
            await asyncio.wait(waits)

    def _under_way(self) -> list[asyncio.Future[RestartResult]]:
        return [each for each in (self._announced, self._restarting) if each is not None and not each.done()]

    async def close(self) -> None:
        self._closed = True
        self._settle(RestartResult(False, "The proxy is ending."))
        self._tasks.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def _share_check(self) -> CheckResult:
        if self._checking is None or self._checking.done():
            self._checking = self._tasks.start(self._check())
            self._checking.add_done_callback(_retrieve)
        return await shielded(self._checking)

    async def _check(self, demand: Demand = Demand.NEW_CODE) -> CheckResult:
        params = {} if demand is Demand.NEW_CODE else {"demand": demand.value}
        return messages.check_of(await self._ask(messages.CHECK, params))

    async def _ready(self) -> RestartResult:
        return messages.restart_of(await self._ask(messages.READY_TO_RESTART))

    # Requests.

    async def _ask(self, method: str, params: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        if self._is_doubted():
            raise AuthorityProblem(f"{OWNER} does not answer on {self._path}; it is asked again later.")
        connection = await self._connected()
        begun = _now()
        asked = asyncio.ensure_future(connection.request(method, params or {}))
        try:
            while not asked.done():
                await asyncio.wait([asked], timeout=self._patience(connection, begun))
            return asked.result()
        except (ConnectionEnded, RpcError) as error:
            raise _problem(self._path, error) from error
        finally:
            asked.cancel()

    def _patience(self, connection: LineRpc, begun: float) -> float:
        """For how many seconds the owner may still be silent."""
        now, limits = _now(), self._limits
        quiet = max(begun, connection.last_heard) + limits.silence_seconds - now
        whole = begun + limits.whole_seconds - now
        if quiet <= 0:
            self._gave_up = now
            raise AuthorityProblem(f"{OWNER} has been silent for {limits.silence_seconds:g} s on {self._path}.")
        if whole <= 0:
            raise AuthorityProblem(f"{OWNER} has not finished within {limits.whole_seconds:g} s.")
        return min(quiet, whole)

    def _is_doubted(self) -> bool:
        """Whether the owner was recently silent for too long, has sent nothing since, and is still connected."""
        connection, gave_up = self._connection, self._gave_up
        if gave_up is None or connection is None or connection.ended:
            return False
        return connection.last_heard <= gave_up and _now() < gave_up + self._limits.doubt_seconds

    # The connection.

    async def _connect_ahead(self) -> None:
        """Connect before the first request, to be notified of restarts even if nothing is requested."""
        with contextlib.suppress(AuthorityProblem):
            await self._connected()

    async def _connected(self) -> LineRpc:
        async with self._connecting:
            if self._connection is None or self._connection.ended:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> LineRpc:
        if self._closed:
            raise AuthorityProblem("The proxy is ending.")
        try:
            reader, writer = await self._open()
        except (OSError, ValueError) as error:
            raise _problem(self._path, error) from error
        connection = LineRpc(reader, writer, heard=self._heard, limits=self._limits.rpc)
        self._tasks.start(self._listen(connection))
        return connection

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect; at first, wait until the owner listens."""
        while True:
            try:
                async with asyncio.timeout(self._limits.connect_seconds):
                    streams = await _open(self._path)
            except (FileNotFoundError, ConnectionRefusedError):
                if _now() >= self._opens_until:
                    raise
                await asyncio.sleep(self._limits.opening_step_seconds)
            else:
                self._opens_until = _now()
                return streams

    async def _listen(self, connection: LineRpc) -> None:
        try:
            await connection.serve()
        finally:
            self._settle(RestartResult(False, f"{OWNER} has ended."))

    def _heard(self, notification: RpcNotification) -> None:
        params = notification.params
        if notification.method == messages.PROGRESS and isinstance(message := params.get("message"), str):
            for tell in tuple(self._tells):
                tell(message)
        elif notification.method == messages.RESTARTING and self._announced is None:
            self._announced = asyncio.get_running_loop().create_future()
            self._tasks.start(self._take_part(self._announced))
        elif notification.method == messages.RESTARTED:
            outcome = messages.restart_of(params)
            self.restarts += outcome.ok
            self._settle(outcome)

    # A restart that the owner announces.

    async def _take_part(self, announced: asyncio.Future[RestartResult]) -> None:
        finishing = asyncio.ensure_future(self._finish_calls())
        try:
            waits: list[asyncio.Future[Any]] = [finishing, announced]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not announced.done():
                self._settle(await self._said_ready())
        finally:
            finishing.cancel()
            self._announced = None
        self._restarted(announced.result())

    async def _finish_calls(self) -> None:
        try:
            await self._restart_announced()
        except Exception as error:  # the owner is notified all the same
            log.warn(f"Could not wait for running calls before a restart: {error!r}")

    async def _said_ready(self) -> RestartResult:
        try:
            return await self.ready_to_restart()
        except AuthorityProblem as error:
            return RestartResult(False, str(error))

    def _settle(self, outcome: RestartResult) -> None:
        if self._announced is not None and not self._announced.done():
            self._announced.set_result(outcome)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception, because all callers may have been cancelled."""
    if not task.cancelled():
        task.exception()


def ask(path: str, method: str, params: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """The result of one request, for commands without an event loop. Raises AuthorityProblem."""
    try:
        return asyncio.run(_ask_within(path, method, params, seconds))
    except (RpcError, ConnectionEnded, OSError, ValueError) as error:
        raise _problem(path, error) from error


async def _ask_within(path: str, method: str, params: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    async with asyncio.timeout(seconds):
        connection = LineRpc(*await _open(path))
        serving = asyncio.ensure_future(connection.serve())
        try:
            return await connection.request(method, params)
        finally:
            serving.cancel()
            await connection.close()


async def _open(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a channel of this user."""
    reader, writer = await connect(path)
    if not is_this_user(writer):
        writer.transport.abort()
        raise AuthorityProblem(f"{path} belongs to another user.")
    return reader, writer


def _problem(path: str, error: Exception) -> AuthorityProblem:
    """The sentence for an error of a request or a connection."""
    if isinstance(error, RpcError):
        return AuthorityProblem(error.message)
    if isinstance(error, ConnectionEnded):
        return AuthorityProblem(f"{OWNER} has closed {path}.")
    if isinstance(error, TimeoutError):
        return AuthorityProblem(f"{OWNER} does not answer on {path}.")
    return AuthorityProblem(f"{OWNER} cannot be reached on {path}: {error}.")  # ValueError: the path is not valid
