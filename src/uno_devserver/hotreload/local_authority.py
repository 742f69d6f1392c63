"""Checks, builds and restarts in the process that owns the upstream.

Concurrent callers share one check and one restart; both continue if a caller is cancelled. Each change leads to one
restart. A content counts as running only once a process that was started with it answers. What the user has not agreed
to is neither built nor started, and what runs goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any, TypeVar

from ..system.event_loop import Tasks, run_in_thread, shielded
from ..system.log import log
from .authority import UNCHANGED, AuthorityProblem, CheckResult, Demand, RestartResult
from .digest_store import UNKNOWN
from .history import ReloadHistory
from .package_state import PackageState
from .watched_package import Role

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from ..workspace.config import Strategy
    from .client_app import ClientApp
    from .package_state import BuildResult, BuildSettings
    from .watched_package import WatchedPackage

T = TypeVar("T")

CLOSE_SECONDS = 1.0  # builds and reads have usually ended by then; the process does not wait longer
REPEAT_SECONDS = 1.0  # between two progress reports on long work
ENDING = "The proxy is ending."
RESTARTING = CheckResult(server_changed=True, server_rebuilt=True)


class LocalAuthority:
    """Checks, builds and restarts the code of one upstream for all callers."""

    def __init__(
        self,
        packages: Sequence[WatchedPackage],
        settings: BuildSettings,
        *,
        strategy: Strategy,
        restart: Callable[[], Awaitable[RestartResult]],
        answers: Callable[[], Awaitable[bool]],
        say: Callable[[str, str], None],
        status_changed: Callable[[], None],
        refusal: Callable[[], str],
        client: ClientApp | None = None,
        history: ReloadHistory | None = None,
    ) -> None:
        """`restart` replaces the upstream and returns when the new one answers or failed to. `answers` waits, for a
        limited time, until the upstream answers. `say` shows a message, with its MCP level, to people. `refusal`: why
        changed code may not be started, as the end of a sentence; empty if it may; may block. `history`: that of a
        former authority, which goes on.
        """
        by_role = {package.role: PackageState(package, settings) for package in packages}
        self._extension = by_role.get(Role.EXTENSION)
        self._server = by_role.get(Role.SERVER)
        self._packages = tuple(by_role.values())
        self._refusal = refusal
        self.refused = ""  # why nothing may be built or started; as it was last known
        self._strategy = strategy
        self._restart = restart
        self._answers = answers
        self._say = say
        self._status_changed = status_changed
        self._client = client
        self._client_begun = False
        self._client_start = asyncio.Lock()
        self._tasks = Tasks()
        self._saves = Tasks()  # tasks that store digests after a good start; they take milliseconds
        self._progress = _CheckProgress()
        self._checking: asyncio.Task[CheckResult] | None = None
        self._restarting: asyncio.Task[RestartResult] | None = None
        self.last_restart = RestartResult(True)  # returned if no restart is due
        self._new_code_ready = False  # to be started
        self._restart_demanded = False  # until the restart, whether or not later checks find new code
        self._start_events = 0  # the number of reported events about starts of the upstream
        self._settled: int | None = None  # `_start_events` at the last check that found everything current
        self._launching = 0  # the number of starts whose content is being determined
        self._early_outcome: bool | None = None  # whether the last of these starts succeeded; None if not known yet
        self._building = False
        self._unpublished = True  # publish after the next check even if it found nothing
        self._published_failing: list[dict[str, Any]] = []
        self._closed = False
        self.history = history or ReloadHistory()

    # The protocol `Authority`.

    def news(self) -> bool | None:
        if self.refused:  # the user may have agreed
            return None
        news = [package.news() for package in self._packages]
        if True in news:
            return True
        return False if self._settled == self._start_events and None not in news else None

    async def check(self, tell: Callable[[str], None], demand: Demand = Demand.NEW_CODE) -> CheckResult:
        if self._restarting is not None:  # the caller can join it; if it waited here, the restart might wait for it
            return RESTARTING
        if self._closed:
            raise AuthorityProblem(ENDING)
        with self._progress.to(tell):
            if demand is not Demand.NEW_CODE:
                await self._forget_failed_builds()
            joined = self._checking is not None
            result = await self._share_check()
            if joined and not result.server_changed and self.news() is not False:
                result = await self._share_check()  # the other one may have read before our caller saved
            if self.restarting:
                return RESTARTING
            if result.server_changed:
                return result
            if demand is Demand.RESTART and self._server is not None:
                if await self._is_refused():
                    return result.replace(refusal=self.refused)
                self._restart_demanded = True
                self.history.restart_demanded(self._server.package.role)
                return result.replace(server_changed=True, server_rebuilt=True)
            return result.replace(server_digest=self._digest_that_failed())

    async def _forget_failed_builds(self) -> None:
        """Let the next check build again what failed to build."""
        while self._checking is not None:  # it may build just now, and fail
            await asyncio.wait([self._checking])
        for package in self._packages:
            package.forget_failed_build()

    def _digest_that_failed(self) -> str | None:
        """The digest of the content on disk if it failed to start, otherwise None."""
        server = self._server
        return server.failed if server is not None and server.failed == server.disk.last else None

    async def ready_to_restart(self) -> RestartResult:
        while self._restarting is None and self._checking is not None:
            await asyncio.wait([self._checking])  # it may be building, and decides whether a restart is due
        if self._restarting is None:
            if self._closed:
                return RestartResult(False, ENDING)
            if not (self._new_code_ready or self._restart_demanded):  # another caller restarted, or a change was undone
                return self.last_restart
            self._restarting = self._tasks.start(self._restart_server())
            self._restarting.add_done_callback(self._restart_done)
            self._publish()
        try:
            return await _shared(self._restarting)
        except AuthorityProblem as error:
            return RestartResult(False, str(error))

    # Events that the owner of the upstream reports.

    def note_refusal(self, why: str) -> None:
        """Note why the user's agreement does not cover the workspace as it is now; empty if it does."""
        self.refused = why

    async def note_launch(
        self,
        *,
        on_disk: str | None = None,
        running: str | None = None,
        started_at: float | None = None,
        deadline: float | None = None,
    ) -> None:
        """Note that an upstream is about to be started. Await this before the start, so that no save is missed.

        Of an upstream that was started before this authority existed, `running` is the digest of its code, or `on_disk`
        that of the sources at that time, `started_at`. After the `deadline` the start goes on, so what is read then may
        be newer.
        """
        self._start_events += 1
        self._launching += 1
        try:
            if self._server is not None:
                noted = self._server.starting if self._restarting is not None else None  # before the restart
                await self._server.note_launch(on_disk=on_disk, running=running, started_at=started_at)
                if deadline is not None and time.monotonic() > deadline:
                    self._server.starting = noted or UNKNOWN
            if self._extension is not None and not self._extension.knows_running:
                await self._extension.note_launch()
        finally:
            self._launching -= 1
        outcome, self._early_outcome = self._early_outcome, None
        if outcome is not None:
            self._start_ended(outcome)

    def connected(self) -> None:
        """Note that the upstream answers."""
        self._start_ended(True)

    def failed(self) -> None:
        """Note that the upstream did not start. During our own restart, the result of the restart decides instead."""
        self._start_ended(False)

    def _start_ended(self, answers: bool) -> None:
        if self._launching:  # the start ended before its code was read
            self._early_outcome = answers
            return
        self._start_events += 1
        if not answers:
            if self._server is not None and self._restarting is None:
                self._server.start_failed(old_runs=False)
            return
        for package in self._packages:
            if package.start_succeeded():
                self._saves.start(package.save())
        if self._client is not None and not self._client_begun and not self._closed:
            self._tasks.start(self._start_client(self._client))

    @property
    def content(self) -> str | None:
        """The digest of the server's code that runs or is being started.

        UNKNOWN if it could not be read; None if nothing was started.
        """
        return self._server.expected if self._server is not None else None

    async def runs_current_code(self) -> bool:
        """Whether the server's code on disk is that which runs or is being started; False if it cannot be read."""
        try:
            return self._server is None or await self._server.disk.digest() == self._server.expected
        except AuthorityProblem:
            return False

    @property
    def starts_new_code(self) -> bool:
        """Whether the code that is being started differs from what answered last."""
        return self._server is not None and self._server.starting != self._server.running

    async def close(self) -> None:
        """Cancel checks, builds and restarts; later events and requests start nothing."""
        self._closed = True
        self._tasks.cancel()
        ends = [self._tasks.wait(CLOSE_SECONDS), self._saves.wait(CLOSE_SECONDS)]
        await asyncio.gather(*ends, *([self._client.stop()] if self._client is not None else []))
        for package in self._packages:
            package.close()

    # The status.

    @property
    def restarting(self) -> bool:
        return self._restarting is not None

    def status(self) -> dict[str, Any]:
        return {
            "state": self._state(),
            "strategy": self._strategy.value,
            "packages": [package.status() for package in self._packages],
            "client": self._client.status() if self._client else None,
            "failing": self.history.failing(self._packages),
            **self.history.status(),
        }

    def _state(self) -> str:
        if self._restarting is not None:
            return "restarting"
        if self._building:
            return "building"
        return "idle" if self._checking is None else "checking"

    def _publish(self) -> None:
        self._published_failing = self.history.failing(self._packages)
        self._status_changed()

    async def mcp_ready(self) -> dict[str, Any]:
        """Wait until the server answers, then start the client."""
        ready = await self._answers()
        if self._client is not None and ready and not self._closed:
            await self._start_client(self._client)
        return {"ready": ready, "client": self._client.status() if self._client else None}

    # A check.

    async def _share_check(self) -> CheckResult:
        if self._checking is None:
            self._checking = self._tasks.start(self._check())
            self._checking.add_done_callback(self._check_done)
        return await _shared(self._checking)

    def _check_done(self, task: asyncio.Task[CheckResult]) -> None:
        self._checking = None
        changed = not task.cancelled() and task.exception() is None and task.result() != UNCHANGED
        # An edit that failed may have been undone; compared with what runs, nothing has changed then.
        if changed or self._unpublished or self.history.failing(self._packages) != self._published_failing:
            self._unpublished = False
            self._publish()

    async def _check(self) -> CheckResult:
        begun, starts = time.monotonic(), self._start_events
        result = None
        try:
            if self.refused and await self._is_refused():
                result = CheckResult(refusal=self.refused)
            else:
                result = await self._check_server(await self._check_extension())
            if self._server is not None and self._server.output.stale_reason:
                result = result.replace(server_old_output=self._server.output.stale_reason)
        except AuthorityProblem as error:
            log.warn(f"Cannot tell whether the code has changed: {error}")
            raise
        finally:
            self._settled = starts if result == UNCHANGED else None
            self.history.checked(time.monotonic() - begun, result)
        return result

    async def _is_refused(self) -> bool:
        """Whether the user has not agreed to the workspace as it is now. Reads the disk, so few checks ask."""
        before, self.refused = self.refused, await run_in_thread(self._refusal)
        self._unpublished = self._unpublished or before != self.refused
        return bool(self.refused)

    async def _check_extension(self) -> CheckResult:
        extension = self._extension
        if extension is None or not await extension.needs_making():
            return UNCHANGED
        if await self._is_refused():
            return CheckResult(refusal=self.refused)
        made = await extension.known_failure() or await self._make(extension)
        if made.error is not None:
            return CheckResult(extension_changed=True, extension_build_error=made.error)
        if made.digest == extension.expected:  # the change was undone
            return UNCHANGED
        extension.set_running(made.digest)
        await extension.save()
        reloaded = await self._reload_client()
        self.history.extension_reloaded(client=reloaded)
        problem = None if reloaded or self._client is None else self._client.problem or None
        return CheckResult(
            extension_changed=True, extension_rebuilt=True, client_reloaded=reloaded, client_problem=problem
        )

    async def _start_client(self, client: ClientApp) -> None:
        self._client_begun = True
        async with self._client_start:
            if await client.start() or not client.broke_down or self._extension is None:
                return
            if self._extension.distrust_output():  # then the next check builds it and starts the client again
                log.info(f"The client did not start: perhaps {self._extension.package.root} was never built.")
                with contextlib.suppress(AuthorityProblem):
                    await self.check(log.debug)

    async def _reload_client(self) -> bool:
        if self._client is None or not self._client_begun or self._client.closed:
            return False
        with self._progress.during("the client is started again"):
            ready = await self._client.restart()
        if not ready and self._client.problem:
            self._progress.say(self._client.problem)
        return ready

    async def _check_server(self, result: CheckResult) -> CheckResult:
        """Add the outcome for the server to `result`, which has that of the extension."""
        server = self._server
        if server is None:
            return result
        needs_making = await server.needs_making()
        self._new_code_ready = False  # not earlier: if the check fails, code that is ready to be started stays ready
        if not needs_making:
            return result
        if await self._is_refused():
            return result.replace(refusal=self.refused)
        made = await server.known_failure() or await self._make(server)
        if made.error is not None:
            result = result.replace(server_changed=True, server_build_error=made.error, server_digest=made.digest)
            return result.replace(server_of_failed_build=bool(made.named) and server.running == UNKNOWN)
        ready = self._new_code_ready = made.digest != server.expected or made.output_replaced  # not if it was undone
        if not ready:
            await server.save()  # the origin of its output may be known only now
        self.last_restart = RestartResult(True)  # forget the result of an earlier change
        return result.replace(server_changed=ready, server_rebuilt=ready)

    async def _make(self, package: PackageState) -> BuildResult:
        role, changed = package.package.role, package.fingerprint.changed_paths
        if package.output.wants_build:
            why = f"The file that the command of the {role.value} starts may be older than its code."
        elif package.is_changed(package.disk.last or UNKNOWN):
            why = f"The code of the {role.value} {_shown(changed)}."
        elif package.output.stale_reason:
            why = f"The file that the command of the {role.value} starts has been rebuilt."
        else:
            why = f"The {role.value} runs the code on disk, but its build output is from other code; rebuilding."
        self._say("info", why)
        self._building = self._unpublished = True
        self._publish()
        try:
            with self._progress.during(why.removesuffix(".")):
                made = await package.make(self._progress.say)
        finally:
            self._building = False
        self.history.made(role, changed, made)
        if made.error is not None:
            built = f"{made.named} of the {role.value} {'failed' if made.log_file else 'could not be started'}"
            what = built if made.named else f"The new code of the {role.value} cannot be used"
            self._say("warning", f"{what}{'; the old code goes on running' if package.running else ''}.")
        elif made.named:
            self._say("info", f"{made.named} of the {role.value} took {made.seconds:.1f} s.")
        return made

    # A restart.

    async def _restart_server(self) -> RestartResult:
        assert self._server is not None
        self._new_code_ready = self._restart_demanded = False
        begun = time.monotonic()
        try:
            await self.note_launch()
            result = await self._restart()
        except Exception as error:
            log.warn(f"The restart of the server failed: {error!r}")
            result = RestartResult(False, f"The restart failed: {str(error) or type(error).__name__}.")
        if result.ok:
            self.connected()
            await self._saves.wait(CLOSE_SECONDS)
        else:
            self._start_events += 1
            if result.refusal:
                self._server.starting = None  # it was not tried, so the check after the user's agreement finds it again
            else:
                self._server.start_failed(old_runs=result.kept)
        self.last_restart = result
        self.history.restarted(time.monotonic() - begun, result)
        return result

    def _restart_done(self, task: asyncio.Task[RestartResult]) -> None:
        self._restarting = None
        if not task.cancelled():
            task.exception()  # all callers may have been cancelled
            self._publish()


class _CheckProgress:
    """Reports the progress of a check to all of its callers."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[str], None]] = []
        self._message = ""

    @contextlib.contextmanager
    def to(self, listener: Callable[[str], None]) -> Iterator[None]:
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def say(self, message: str) -> None:
        self._message = message
        self._send(message)

    @contextlib.contextmanager
    def during(self, message: str) -> Iterator[None]:
        """Report long work: this message, or a later one of `say`, is repeated until the block ends."""
        self.say(message)
        repeating = asyncio.create_task(self._repeat())
        try:
            yield
        finally:
            repeating.cancel()

    async def _repeat(self) -> None:
        begun = time.monotonic()
        while True:
            await asyncio.sleep(REPEAT_SECONDS)
            self._send(f"{self._message} ({time.monotonic() - begun:.0f} s)")

    def _send(self, message: str) -> None:
        for listener in tuple(self._listeners):
            listener(message)


async def _shared(task: asyncio.Task[T]) -> T:
    """The result of the task, which continues if this caller is cancelled."""
    try:
        return await shielded(task)
    except asyncio.CancelledError:
        caller = asyncio.current_task()
        if task.cancelled() and not (caller is not None and caller.cancelling()):
            raise AuthorityProblem(ENDING) from None
        raise


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return f"has changed: {', '.join(paths[:3])}{more}" if paths else "differs from what was started last"
