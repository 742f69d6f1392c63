"""The authority of another process, asked over its control channel.

Nobody waits for one that is not there or does not answer: where there is no connection, or it breaks, that is known at
once; where there is silence, within a bound, and then for a while without trying. A long build is no silence. Only at
the beginning the channel is waited for: the registry names it before its owner listens there. When the owner announces
a restart, our own calls are let finish first, and it hears when they have.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...protocol.jsonrpc import RpcError, RpcNotification
from ...system.event_loop import Tasks
from ...system.log import log
from ...system.pipe_clients import connect, is_this_user
from ...system.values import Value
from ..authority import UNCHANGED, CheckResult, RestartResult
from . import messages
from .line_rpc import ConnectionEnded, LineRpc, RpcLimits


class RemoteLimits(Value):
    limits: RpcLimits = RpcLimits(line_bytes=64 * 1024 * 1024)  # an answer has the whole output of a build
    connect_seconds: float = 1.0  # a socket of this machine
    opening_seconds: float = 2.0  # the owner listens some 0.2 s after its Host serves, on a busy machine a second
    opening_step_seconds: float = 0.01
    silence_seconds: float = 10.0  # the owner says something every 3 s as long as it works for us
    doubt_seconds: float = 30.0  # after such a silence it is not asked: each batch of calls would wait for it
    whole_seconds: float = 900.0  # two builds of 300 s, a client that has to become ready, and some room


class NoAuthority(Exception):
    """There is no answer; says why."""


class RemoteAuthority:
    def __init__(
        self,
        path: str,
        restart_announced: Callable[[], Awaitable[None]],
        restarted: Callable[[RestartResult], None] = lambda _: None,
        policy: RemoteLimits | None = None,
    ) -> None:
        """`restart_announced` is awaited when the owner is about to restart the server: it returns when no call of
        ours runs, or is cancelled if the restart does not wait for that. `restarted` is called once after each.
        """
        self._path = path
        self._restart_announced = restart_announced
        self._restarted = restarted
        self._policy = policy or RemoteLimits()
        self._connection: LineRpc | None = None
        self._connecting = asyncio.Lock()
        self._gave_up: float | None = None  # when its silence was too long, by the loop's clock
        self._checking: asyncio.Task[CheckResult] | None = None
        self._tells: list[Callable[[str], None]] = []  # of those who wait for that
        self._restarting: asyncio.Task[RestartResult] | None = None
        self._announced: asyncio.Future[RestartResult] | None = None  # a restart that the owner has announced
        self._tasks = Tasks()
        self._closed = False
        self._opens_until = _now() + self._policy.opening_seconds  # until then its owner may be about to listen
        self.restarts = 0  # that the owner has told of, and that went well
        self._tasks.start(self._connect_ahead())

    def news(self) -> bool | None:
        return None

    async def check(self, tell: Callable[[str], None]) -> CheckResult:
        """As the protocol says; NoAuthority where there is no answer."""
        self._tells.append(tell)
        try:
            joined = self._checking is not None and not self._checking.done()
            result = await self._share_check()
            if joined and result == UNCHANGED:  # the owner may have looked before our asker saved
                result = await self._share_check()
            return result
        finally:
            self._tells.remove(tell)

    async def ready_to_restart(self) -> RestartResult:
        if self._restarting is None or self._restarting.done():
            self._restarting = self._tasks.start(self._ready())
            self._restarting.add_done_callback(_retrieve)
        return await asyncio.shield(self._restarting)

    @property
    def restarting(self) -> bool:
        """Whether the owner is about to restart the server, or at it."""
        return bool(self._under_way())

    async def until_restarted(self) -> None:
        """Returns when that is over, or the owner has gone."""
        waits = self._under_way()
        if waits:
            await asyncio.wait(waits)

    def _under_way(self) -> list[asyncio.Future[RestartResult]]:
        return [each for each in (self._announced, self._restarting) if each is not None and not each.done()]

    async def close(self) -> None:
        self._closed = True
        self._settle(RestartResult(False, "Nobody waits for it any more."))  # whoever does, hears of it
        self._tasks.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def _share_check(self) -> CheckResult:
        if self._checking is None or self._checking.done():
            self._checking = self._tasks.start(self._check())
            self._checking.add_done_callback(_retrieve)
        return await asyncio.shield(self._checking)

    async def _check(self) -> CheckResult:
        return CheckResult.from_json(await self._ask(messages.CHECK))

    async def _ready(self) -> RestartResult:
        return messages.restarted_of(await self._ask(messages.READY_TO_RESTART))

    # --- asking

    async def _ask(self, method: str) -> Mapping[str, Any]:
        """The result; NoAuthority where there is none."""
        if self._is_doubted():
            raise NoAuthority(f"The owner of the server does not answer on {self._path}; it is asked again later.")
        connection = await self._connected()
        begun = _now()
        asked = asyncio.ensure_future(connection.request(method))
        try:
            while not asked.done():
                await asyncio.wait([asked], timeout=self._patience(connection, begun))
            return asked.result()
        except ConnectionEnded:
            raise NoAuthority(f"The owner of the server has closed {self._path}.") from None
        except RpcError as error:
            raise NoAuthority(error.message) from error
        finally:
            asked.cancel()

    def _patience(self, connection: LineRpc, begun: float) -> float:
        """For how long it may still say nothing."""
        now, policy = _now(), self._policy
        quiet = max(begun, connection.last_heard) + policy.silence_seconds - now
        whole = begun + policy.whole_seconds - now
        if quiet <= 0:
            self._gave_up = now
            silence = f"has been silent for {policy.silence_seconds:g} s"
            raise NoAuthority(f"The owner of the server, asked on {self._path}, {silence}.")
        if whole <= 0:
            raise NoAuthority(f"The owner of the server has not come to an end in {policy.whole_seconds:g} s.")
        return min(quiet, whole)

    def _is_doubted(self) -> bool:
        """One that was silent is given a rest, unless it has said something since, or another listens in its place."""
        connection, gave_up = self._connection, self._gave_up
        if gave_up is None or connection is None or connection.ended:
            return False
        return connection.last_heard <= gave_up and _now() < gave_up + self._policy.doubt_seconds

    # --- the connection

    async def _connect_ahead(self) -> None:
        """Connect before the first question, so that a restart is heard of also where nothing was asked."""
        with contextlib.suppress(NoAuthority):
            await self._connected()

    async def _connected(self) -> LineRpc:
        async with self._connecting:
            if self._connection is None or self._connection.ended:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> LineRpc:
        if self._closed:
            raise NoAuthority("The proxy is ending.")
        try:
            reader, writer = await self._open()
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: a path that none can be
            raise NoAuthority(f"The owner of the server is not reached on {self._path}: {error}.") from error
        if not is_this_user(writer):
            writer.transport.abort()
            raise NoAuthority(f"{self._path} belongs to another user.")
        connection = LineRpc(reader, writer, heard=self._heard, limits=self._policy.limits)
        self._tasks.start(self._listen(connection))
        return connection

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Wait for the channel, if it may be about to be opened for the first time."""
        while True:
            try:
                async with asyncio.timeout(self._policy.connect_seconds):
                    streams = await connect(self._path)
            except (FileNotFoundError, ConnectionRefusedError):
                if _now() >= self._opens_until:
                    raise
                await asyncio.sleep(self._policy.opening_step_seconds)
            else:
                self._opens_until = _now()
                return streams

    async def _listen(self, connection: LineRpc) -> None:
        try:
            await connection.serve()
        finally:
            self._settle(RestartResult(False, "The owner of the server has gone."))

    def _heard(self, notification: RpcNotification) -> None:
        params = notification.params
        if notification.method == messages.PROGRESS and isinstance(message := params.get("message"), str):
            for tell in tuple(self._tells):
                tell(message)
        elif notification.method == messages.RESTARTING and self._announced is None:
            self._announced = asyncio.get_running_loop().create_future()
            self._tasks.start(self._take_part(self._announced))
        elif notification.method == messages.RESTARTED:
            outcome = messages.restarted_of(params)
            self.restarts += outcome.ok
            self._settle(outcome)

    # --- a restart that the owner announces

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
        except Exception as error:  # the restart comes in any case
            log.warn(f"calls could not be let finish before the server is restarted: {error!r}")

    async def _said_ready(self) -> RestartResult:
        try:
            return await self.ready_to_restart()
        except NoAuthority as error:
            return RestartResult(False, str(error))

    def _settle(self, outcome: RestartResult) -> None:
        if self._announced is not None and not self._announced.done():
            self._announced.set_result(outcome)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Whoever asked may have been cancelled; then nobody else looks at what came of it."""
    if not task.cancelled():
        task.exception()


class NoReply(Exception):
    """Says why, as a sentence."""


def ask(path: str, method: str, params: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """The result; NoReply where there is none."""
    try:
        return asyncio.run(_ask_within(path, method, params, seconds))
    except RpcError as error:
        raise NoReply(error.message) from error
    except ConnectionEnded:
        raise NoReply(f"The proxy has closed {path}.") from None
    except TimeoutError:
        raise NoReply(f"The proxy does not answer on {path}.") from None
    except (OSError, ValueError) as error:  # ValueError: a path that none can be
        raise NoReply(f"The proxy is not reached on {path}: {error}.") from error


async def _ask_within(path: str, method: str, params: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    async with asyncio.timeout(seconds):
        reader, writer = await connect(path)
        if not is_this_user(writer):
            writer.transport.abort()
            raise NoReply(f"{path} belongs to another user.")
        connection = LineRpc(reader, writer)
        serving = asyncio.ensure_future(connection.serve())
        try:
            return await connection.request(method, params)
        finally:
            serving.cancel()
            await connection.close()
