"""The authority of the process that owns the upstream: it looks whether code is newer than what runs, builds, restarts.

All who ask at the same time share one check, and one restart; both go on when an asker is cancelled. For one change
there is one restart. A content counts as running when a process that was started with it works, and not before.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any, TypeVar

from ..system.event_loop import Tasks
from ..system.log import log
from .authority import UNCHANGED, AuthorityProblem, CheckResult, RestartResult
from .digest_store import UNKNOWN
from .history import ReloadHistory
from .package_state import PackageState
from .watched_package import Role

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from ..workspace.config import Strategy
    from .client_app import ClientApp
    from .digest_store import DigestStore
    from .package_state import BuildResult, PackageLimits
    from .watched_package import WatchedPackage

T = TypeVar("T")

CLOSE_SECONDS = 1.0  # builds and looks have given up by then; the process may end without them
ENDING = "The proxy is ending."
RESTARTING = CheckResult(server_changed=True, server_rebuilt=True)


class LocalAuthority:
    def __init__(
        self,
        packages: Sequence[WatchedPackage],
        kept: DigestStore,
        environ: Mapping[str, str],
        state: str,
        *,
        strategy: Strategy,
        restart: Callable[[], Awaitable[RestartResult]],
        answers: Callable[[], Awaitable[bool]],
        client: ClientApp | None = None,
        policy: PackageLimits | None = None,
    ) -> None:
        """`restart` replaces the upstream, and returns when the next one works or does not; `answers` waits, within a
        bound, until the upstream answers. `environ` is that of builds; `state` is the folder of our own files.
        """
        by_role = {package.role: PackageState(package, kept, environ, state, policy) for package in packages}
        self._extension = by_role.get(Role.EXTENSION)
        self._server = by_role.get(Role.SERVER)
        self._packages = tuple(by_role.values())
        self._strategy = strategy
        self._restart = restart
        self._answers = answers
        self._client = client
        self._client_begun = False
        self._client_start = asyncio.Lock()
        self._tasks = Tasks()
        self._keeps = Tasks()  # what is written down when a start went well; takes milliseconds
        self._telling = CheckProgress()
        self._checking: asyncio.Task[CheckResult] | None = None
        self._restarting: asyncio.Task[RestartResult] | None = None
        self._due = False  # there is something new that is ready to be started
        self._starts = 0  # counts what was told about the upstream
        self._launching = 0  # for how many starts it is being found out with which content
        self._then: Callable[[], None] | None = None  # what has become of the last of them meanwhile
        self._settled: int | None = None  # as of which of these the last check has found all as it should be
        self._building = False
        self._untold = True  # how many files there are, and what was built, is known when the check is through
        self._told_failing: list[dict[str, Any]] = []  # as `status` told it last
        self._closed = False
        self._figures = ReloadHistory()
        if client is not None:
            client.moved = self._tell
        self.say: Callable[[str, str], None] = lambda _level, text: log.info(text)  # for people, with MCP's level
        self.moved: Callable[[], None] = lambda: None  # `status` has something new to tell

    # --- what the pipeline asks

    def news(self) -> bool | None:
        heard = [watched.on_disk.news() for watched in self._packages]
        if True in heard:
            return True
        return False if self._settled == self._starts and None not in heard else None

    async def check(self, tell: Callable[[str], None]) -> CheckResult:
        """As the protocol says; NoAnswer where what lies on disk cannot be told in time."""
        if self._restarting is not None:  # whoever asks can join it; waiting here could make it wait for us
            return RESTARTING
        if self._closed:
            raise AuthorityProblem(ENDING)
        with self._telling.to(tell):
            joined = self._checking is not None
            result = await self._share_check()
            if joined and result == UNCHANGED and self.news() is not False:  # it may have looked before our asker saved
                result = await self._share_check()
            return result if result.server_changed else result.replace(server_digest=self._not_started())

    def _not_started(self) -> str | None:
        """The content on disk, where that is one that did not start."""
        server = self._server
        return server.failed if server is not None and server.failed == server.on_disk.last else None

    async def ready_to_restart(self) -> RestartResult:
        while self._restarting is None and self._checking is not None:
            await asyncio.wait([self._checking])  # it may be writing what would be started, and tells what is due
        if self._restarting is None:
            if not self._due or self._closed:  # somebody was faster, or the change was taken back
                return self._figures.last_restarted
            self._restarting = self._tasks.start(self._restart_server())
            self._restarting.add_done_callback(self._restart_done)
            self._tell()
        try:
            return await _shared(self._restarting)
        except AuthorityProblem as error:
            return RestartResult(False, str(error))

    # --- what the owner of the upstream tells

    async def launched(self, content: str | None = None) -> None:
        """An upstream is about to be started; to be awaited before, so that no save comes between unseen. Of one that
        was started before there was anybody to ask, `content` is the digest of its code as it was read then.
        """
        self._starts += 1
        self._launching += 1
        try:
            if self._server is not None:
                await self._server.launched(content)
            if self._extension is not None and not self._extension.has_base:
                await self._extension.launched()
        finally:
            self._launching -= 1
        then, self._then = self._then, None
        if then is not None:
            then()

    @property
    def content(self) -> str | None:
        """The digest of the server's code that runs, or will in a moment; None: there is none, or it is not known."""
        return self._server.expected if self._server is not None else None

    def connected(self) -> None:
        """It works."""
        if self._launching:  # it was faster than we could read its code
            self._then = self.connected
            return
        self._starts += 1
        for watched in self._packages:
            if watched.works():
                self._keeps.start(watched.keep())
        if self._client is not None and not self._client_begun and not self._closed:
            self._tasks.start(self._start_client(self._client))

    def failed(self) -> None:
        """It did not start. Of a restart of ours, its result tells."""
        if self._launching:
            self._then = self.failed
            return
        self._starts += 1
        if self._server is not None and self._restarting is None:
            self._server.did_not_start(old_runs=False)

    async def close(self) -> None:
        """Nothing is left running, and nothing begins any more, whatever is told or asked meanwhile."""
        self._closed = True
        self._tasks.cancel()
        ends = [self._tasks.wait(CLOSE_SECONDS), self._keeps.wait(CLOSE_SECONDS)]
        await asyncio.gather(*ends, *([self._client.stop()] if self._client is not None else []))
        for watched in self._packages:
            watched.on_disk.close()

    # --- what others may know

    @property
    def restarting(self) -> bool:
        return self._restarting is not None

    def status(self) -> dict[str, Any]:
        return {
            "state": self._state(),
            "strategy": self._strategy.value,
            "packages": [watched.status() for watched in self._packages],
            "client": self._client.status() if self._client else None,
            "failing": self._figures.failing(self._packages),
            **self._figures.status(),
        }

    def _tell(self) -> None:
        """`status` has something new to tell."""
        self._told_failing = self._figures.failing(self._packages)
        self.moved()

    def _state(self) -> str:
        if self._restarting is not None:
            return "restarting"
        if self._building:
            return "building"
        return "idle" if self._checking is None else "checking"

    async def mcp_ready(self) -> dict[str, Any]:
        """Returns when the server answers, or does not within its bound; brings the client along."""
        ready = await self._answers()
        if self._client is not None and ready and not self._closed:
            await self._start_client(self._client)
        return {"ready": ready, "client": self._client.status() if self._client else None}

    # --- a check

    async def _share_check(self) -> CheckResult:
        if self._checking is None:
            self._checking = self._tasks.start(self._check())
            self._checking.add_done_callback(self._check_done)
        return await _shared(self._checking)

    def _check_done(self, task: asyncio.Task[CheckResult]) -> None:
        self._checking = None
        answered = not task.cancelled() and task.exception() is None
        failing = self._figures.failing(self._packages)  # also what did fail and was taken back has to be told
        if self._untold or failing != self._told_failing or (answered and task.result() != UNCHANGED):
            self._untold = False
            self._tell()

    async def _check(self) -> CheckResult:
        begun, starts = time.monotonic(), self._starts
        result = None
        try:
            result = await self._check_server(await self._check_extension(UNCHANGED))
        except AuthorityProblem as error:
            log.warn(f"Whether code has changed is not known: {error}")
            raise
        finally:
            self._settled = starts if result == UNCHANGED else None
            self._figures.checked(time.monotonic() - begun, result)
        return result

    async def _check_extension(self, result: CheckResult) -> CheckResult:
        extension = self._extension
        if extension is None or not await self._is_to_be_made(extension):
            return result
        made = await self._make(extension)
        if made.error is not None:
            return result.replace(extension_changed=True, extension_build_error=made.error)
        if made.digest == extension.expected:  # it was taken back
            return result
        extension.runs(made.digest)
        await extension.keep()
        reloaded = await self._reload_client()
        self._figures.extension_reloaded(client=reloaded)
        problem = None if reloaded or self._client is None else self._client.problem or None
        return result.replace(
            extension_changed=True, extension_rebuilt=True, client_reloaded=reloaded, client_problem=problem
        )

    async def _start_client(self, client: ClientApp) -> None:
        self._client_begun = True
        async with self._client_start:
            if await client.start() or not client.broke_down or self._extension is None:
                return
            if self._extension.doubt_output():  # then a check builds it, and starts the client again
                log.info(f"The client did not start: perhaps {self._extension.package.root} was never built.")
                with contextlib.suppress(AuthorityProblem):
                    await self.check(log.debug)

    async def _reload_client(self) -> bool:
        if self._client is None or not self._client_begun or self._client.closed:
            return False
        with self._telling.during("the client is started again"):
            ready = await self._client.restart()
        if not ready and self._client.problem:
            self._telling.say(self._client.problem)
        return ready

    async def _check_server(self, result: CheckResult) -> CheckResult:
        server = self._server
        if server is None:
            return result
        to_be_made = await self._is_to_be_made(server)
        self._due = False  # and not before: without an answer, what is ready to be started stays so
        if not to_be_made:
            return result
        made = await self._make(server)
        if made.error is not None:
            return result.replace(server_changed=True, server_build_error=made.error, server_digest=made.digest)
        self._due = made.digest != server.expected  # else it was taken back
        self._figures.last_restarted = RestartResult(True)  # what became of an earlier change is no answer to this one
        return result.replace(server_changed=self._due, server_rebuilt=self._due)

    async def _is_to_be_made(self, watched: PackageState) -> bool:
        if not watched.has_base:  # what runs was started before anybody could look
            await watched.launched()
        now = await watched.on_disk.digest()
        return watched.is_changed(now) or await watched.has_other_output(now)

    async def _make(self, watched: PackageState) -> BuildResult:
        role, changed = watched.package.role, watched.on_disk.changed_paths
        if watched.is_changed(watched.on_disk.last or UNKNOWN):
            self.say("info", f"The code of the {role.value} has changed: {_shown(changed)}.")
        else:
            self.say("info", f"The code of the {role.value} is what runs, but what was last built is not: it is built.")
        self._building = self._untold = True
        self._tell()
        try:
            with self._telling.during(f"the code of the {role.value} has changed"):
                made = await watched.make(self._telling.say)
        finally:
            self._building = False
        self._figures.made(role, changed, made)
        if made.error is not None:
            built = f"{made.named} of the {role.value} failed"
            what = built if made.named else f"The new code of the {role.value} cannot be used"
            self.say("warning", f"{what}: what runs is the code before.")
        elif made.named:
            self.say("info", f"{made.named} of the {role.value} took {made.seconds:.1f} s.")
        return made

    # --- a restart

    async def _restart_server(self) -> RestartResult:
        assert self._server is not None
        self._due = False
        begun = time.monotonic()
        try:
            await self.launched()
            result = await self._restart()
        except Exception as error:
            log.warn(f"The restart of the server failed: {error!r}")
            result = RestartResult(False, f"The restart failed: {error or type(error).__name__}.")
        if result.ok:
            self.connected()
            await self._server.keep()
        else:
            self._starts += 1
            self._server.did_not_start(old_runs=result.kept)
        self._figures.restarted(time.monotonic() - begun, result)
        return result

    def _restart_done(self, task: asyncio.Task[RestartResult]) -> None:
        self._restarting = None
        if not task.cancelled():
            task.exception()  # whoever asked may be gone
            self._tell()


async def _shared(task: asyncio.Task[T]) -> T:
    """What comes of it; it goes on where the one who waits is cancelled."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled() and not _is_cancelled():
            raise AuthorityProblem(ENDING) from None
        raise


def _is_cancelled() -> bool:
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return (", ".join(paths[:3]) or "since it was last built") + more


REPEAT_SECONDS = 1.0


class CheckProgress:
    def __init__(self) -> None:
        self._hearers: list[Callable[[str], None]] = []
        self._doing = ""

    @contextlib.contextmanager
    def to(self, hearer: Callable[[str], None]) -> Iterator[None]:
        self._hearers.append(hearer)
        try:
            yield
        finally:
            self._hearers.remove(hearer)

    def say(self, message: str) -> None:
        self._doing = message
        self._pass_on(message)

    @contextlib.contextmanager
    def during(self, message: str) -> Iterator[None]:
        """Something that may take long; what is said meanwhile is repeated in its place."""
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
            self._pass_on(f"{self._doing} ({time.monotonic() - begun:.0f} s)")

    def _pass_on(self, message: str) -> None:
        for hearer in tuple(self._hearers):
            hearer(message)
