"""One package: which content runs, which content is on disk, and the build that makes the second ready to run.

A content is identified by its digest. The digest of what runs was computed before the start, never after it, so that a
save in between leads to one check too many and not to a missed change. A content counts as built if it was the same
before and after its build.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from ..system.event_loop import Tasks, run_in_thread, run_in_thread_to_end
from ..system.log import log
from ..system.values import Value
from ..workspace.trust import AGREE
from .authority import AuthorityProblem
from .build_command import build_of, steps_of
from .build_inputs import build_inputs
from .build_run import log_path, run_build
from .bytecode import remove_bytecode
from .digest_store import UNKNOWN
from .fingerprint import Fingerprint
from .python_syntax import syntax_errors
from .sources.dotnet import may_ask_sdk
from .sources.finder import PackageKind, find_sources, kind_of
from .watched_package import Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from .build_command import BuildCommand
    from .digest_store import DigestStore, StoredDigests
    from .watched_package import WatchedPackage


class PackageLimits(Value):
    look_seconds: float = 10.0  # reading 100 MB takes 0.1 s, from a cold disk 2 s; calls wait for it
    build_seconds: float = 300.0  # a large project, from scratch
    lock_seconds: float = 330.0  # for another process that builds the same package: its limit and some more
    watch_seconds: float = 0.1  # between two checks for newer saves during a build
    watch_share: int = 5  # if a check reads all files, checks take at most a fifth of the time
    most_cancels: int = 10  # builds that newer saves may cancel in one check; the next build may finish
    most_builds: int = 3  # in one check if the sources change during each build
    quiet_seconds: float = 0.5  # if nothing changes for this long without a build, the build changes the sources


class BuildResult(Value):
    """The result of making a content ready to run."""

    digest: str
    error: str | None = None  # the output of a build that failed
    named: str = ""  # the name of the last build, if one had to run
    seconds: float = 0.0
    log_file: str = ""  # the file with the output of that build; empty if none ran


class PackageState:
    def __init__(
        self,
        package: WatchedPackage,
        store: DigestStore,
        environ: Mapping[str, str],
        state: str,
        limits: PackageLimits | None = None,
        refusal: Callable[[], str] = lambda: "",
    ) -> None:
        """`refusal`: the end of a sentence, why builds of the package may not run; empty if they may. It may block."""
        self.package = package
        self._refusal = refusal
        self._limits = limits or PackageLimits()
        cache = may_ask_sdk(environ)  # a package is watched only if the user trusts its workspace
        self.fingerprint = Fingerprint(lambda: find_sources(package, cache))
        self.disk = DiskDigest(package.root, self.fingerprint, self._limits.look_seconds)
        self.running: str | None = None  # the content of the process that answers
        self.starting: str | None = None  # the content of the process that is being started
        self.failed: str | None = None  # the content that did not start
        self._started_files: dict[str, bytes] = {}  # the digest of each file of the running content, where known
        self._store = store
        self._stored: StoredDigests | None = None  # as it was last read from the store
        # Both roles may have the same root, with two builds that have separate outputs.
        self._key = os.path.realpath(package.root) + ("#extension" if package.role is Role.EXTENSION else "")
        self._environ = environ
        self._log_file = log_path(state, package.root)
        self._kind: PackageKind | None = None
        self._build: BuildCommand | None = None  # as read at the last start or build; None if there is nothing to build
        self._built_here: str | None = None  # the content that this process has built
        # The last build that failed, and the digest of what it read besides the sources.
        self._failed_build: tuple[BuildResult, str] | None = None

    def close(self) -> None:
        self.disk.close()
        self.fingerprint.close()

    # What runs.

    async def launched(self, content: str | None = None) -> None:
        """Determine the content of a process that is about to be started, or was; `content` is its digest, if known."""
        await self._refresh()
        if self._build is not None and self._stored is not None:
            self.starting = self._stored.built
            return
        if content is not None and not self.package.addins:
            self.starting = content
            return
        try:
            now = await self.disk.digest()
            self.starting = now if content is None else content
            self._started_files = self.fingerprint.files if now == self.starting else {}
        except AuthorityProblem as error:
            self.starting = content or UNKNOWN  # UNKNOWN makes the next check start it again
            log.warn(f"Which code the {self.package.role.value} starts with is not known: {error}")

    def start_succeeded(self) -> bool:
        """Note that the process that was being started answers; return False if none was being started."""
        if self.starting is None:
            return False
        self.set_running(self.starting)
        return True

    def set_running(self, digest: str) -> None:
        self.running, self.starting, self.failed = digest, None, None

    def start_failed(self, *, old_runs: bool) -> None:
        if self.starting is not None:
            self.failed, self.starting = self.starting, None
        elif self.failed is None:
            self.failed = UNKNOWN  # the process was started before its content was determined
        if not old_runs:
            self.running = None

    def distrust_output(self) -> bool:
        """Let the next check build this package, unless this process has built it; return whether it will be built."""
        if self._build is None or not self.running or self._built_here == self.running:
            return False
        self.failed, self.running = self.running, None
        return True

    async def save(self) -> None:
        """Store the digest of what runs, for later processes."""
        digest = self.running
        if digest:
            save = self._store.put if self._build is None else self._store.started
            await run_in_thread(partial(save, self._key, digest))
            await self._read_store()

    async def needs_making(self) -> bool:
        """Whether the content on disk has to be built or started. Raises AuthorityProblem."""
        if not self.knows_running:  # the process was started before this object existed
            await self.launched()
        now = await self.disk.digest()
        if now == self.expected:
            self._started_files = self.fingerprint.files
        return self.is_changed(now) or await self._has_other_output(now)

    def is_changed(self, now: str) -> bool:
        """Whether this content on disk should run, and does not."""
        if self.starting is not None:
            return now != self.starting
        if now == self.failed:  # another attempt would fail too, unless the output is missing
            return self.running is None and self._build is not None and self._built_here != now
        return now != self.running

    async def _has_other_output(self, now: str) -> bool:
        """Whether this content runs, but the output on disk was built from another content, which would start next."""
        if self._build is None or now != self.running or self.starting is not None:
            return False
        await self._read_store()
        return self._stored is not None and self._stored.built != now

    @property
    def expected(self) -> str | None:
        """The content that runs, or is being started."""
        return self.running if self.starting is None else self.starting

    @property
    def knows_running(self) -> bool:
        """Whether it is known what runs, or that nothing does."""
        return self.expected is not None or self.failed is not None

    # Making it ready.

    async def make(self, tell: Callable[[str], None]) -> BuildResult:
        """Build the content on disk, if it needs a build, and repeat that if it changes meanwhile."""
        begun = time.monotonic()
        await self._refresh()
        inputs = await run_in_thread(self._build_inputs)
        if self._build is None:
            changed = self.fingerprint.changed_paths
            now = await self.disk.digest()
            changed = tuple({*changed, *self.fingerprint.changed_paths})
            await run_in_thread(partial(remove_bytecode, self.package.root, set(changed)))
            return self._noted(BuildResult(now, await run_in_thread(lambda: self._syntax_errors(changed))), inputs)
        async with self._build_lock(self._build) as locked:
            if not locked:
                held = f"Another process has been building {self.package.root} for {self._limits.lock_seconds:g} s."
                return BuildResult(await self.disk.digest(), f"{held} Call a tool again when it is done, or end it.")
            made = await self._build_newest(tell)
        return self._noted(made.replace(seconds=round(time.monotonic() - begun, 3)), inputs)

    def _noted(self, made: BuildResult, inputs: str) -> BuildResult:
        self._failed_build = None if made.error is None else (made, inputs)
        return made

    async def known_failure(self) -> BuildResult | None:
        """The failed build of the content that was read last, if nothing has changed that it reads; else None."""
        if self._failed_build is None:
            return None
        made, inputs = self._failed_build
        same = made.digest == self.disk.last and inputs == await run_in_thread(self._build_inputs)
        return made if same else None

    def forget_failed_build(self) -> None:
        """Let the next check build the content again even if nothing has changed."""
        self._failed_build = None

    def _build_inputs(self) -> str:
        return build_inputs((self.package.root, *(each.folder for each in (self._build.before if self._build else ()))))

    def _syntax_errors(self, changed: tuple[str, ...]) -> str | None:
        """The syntax errors in files that changed since the server started; it runs despite errors in the others.

        `changed`: the files that changed last, which count where it is not known with which the server was started.
        """
        if self._kind not in (PackageKind.PYTHON, PackageKind.ADDINS):
            return None
        files, before = self.fingerprint.files, self._started_files
        if before or self.package.addins:
            changed = tuple(name for name in files if files[name] != before.get(name))
        # Add-ins run in our own Python; another server may have a newer one.
        return syntax_errors(self.package.root, changed, None if self.package.addins else self._environ)

    async def _build_newest(self, tell: Callable[[str], None]) -> BuildResult:
        cancels = 0
        moved: list[tuple[str, ...]] = []  # for each build, the sources that changed while it ran
        now = await self.disk.digest()
        while True:
            await self._refresh()
            if self._stored is not None and self._stored.built == now and not self._may_lack_output(now):
                log.debug(f"{self.package.root} was built already")
                return BuildResult(now)
            build = self._build
            if build is None:
                return BuildResult(now)
            if build.problem:
                log.warn(f"{build.named} in {build.folder} cannot run: {build.problem}")
                return BuildResult(now, build.problem, build.named)
            tell(f"{build.named} runs for the {self.package.role.value}")
            await run_in_thread(partial(self._store.building, self._key))
            done, error = await self._run(build, now, may_be_cancelled=cancels < self._limits.most_cancels)
            if not done:
                cancels += 1
                now = await self.disk.digest()
                continue
            after = await self.disk.digest()
            if after != now:
                moved.append(self.fingerprint.changed_paths)
                if len(moved) < self._limits.most_builds:
                    now = after
                    continue
                now = await self._built_content(moved, now, after)
            if error is None:
                self._built_here = now
                await run_in_thread(partial(self._store.built, self._key, now))
            return BuildResult(now, error, build.named, log_file=self._log_file)

    def _may_lack_output(self, now: str) -> bool:
        """Whether the output may be missing: this content failed to start, and this process has not built it."""
        return now == self.failed and self._built_here != now

    async def _built_content(self, moved: list[tuple[str, ...]], before: str, after: str) -> str:
        """The content that counts as built if the sources changed during each build."""
        paths = ", ".join(moved[-1][:5])
        if len(set(moved)) == 1:
            await asyncio.sleep(self._limits.quiet_seconds)
            if await self.disk.digest() == after:
                advice = f"Name what it writes in hotReload.exclude: {paths}."
                log.warn(f"The build of {self.package.root} changes its own sources each time. {advice}")
                return after
        log.warn(f"The sources in {self.package.root} change all the time ({paths}); the next call looks again.")
        return before

    async def _run(self, build: BuildCommand, content: str, *, may_be_cancelled: bool) -> tuple[bool, str | None]:
        """Return True and the error (None: success) of a build that ended, or False if newer content cancelled it."""
        running = asyncio.ensure_future(self._run_steps(build))
        pause = self._limits.watch_seconds
        try:
            while True:
                await asyncio.wait([running], timeout=pause)
                if running.done():
                    return True, running.result()
                if may_be_cancelled and self.fingerprint.news() is not False:
                    begun = time.monotonic()
                    if await self._is_other_than(content):
                        paths = ", ".join(self.fingerprint.changed_paths[:3])
                        log.info(f"{build.named} starts again: a source has changed ({paths}).")
                        return False, None
                    pause = max(self._limits.watch_seconds, (time.monotonic() - begun) * self._limits.watch_share)
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait([running])

    async def _run_steps(self, build: BuildCommand) -> str | None:
        """Run a build, and before it those of the used packages that have changed; return the error of the first."""
        files = self.fingerprint.files
        for step in await run_in_thread(lambda: steps_of(build, self.package.root, files, self._store)):
            if step.key:
                await run_in_thread(partial(self._store.building, step.key))
            error = await run_build(step.build, self._environ, self._log_file, self._limits.build_seconds)
            if error is not None:
                return f"In {step.build.folder}:\n{error}" if step.key else error
            if step.key:
                await run_in_thread(partial(self._store.built, step.key, step.digest))
        return None

    async def _is_other_than(self, content: str) -> bool:
        try:
            return await self.disk.digest() != content
        except AuthorityProblem:
            return False  # the build may finish; the digest is computed again after it

    @contextlib.asynccontextmanager
    async def _build_lock(self, build: BuildCommand) -> AsyncIterator[bool]:
        """Keep other processes from building the package; yield False if one has been building for too long.

        If the lock cannot be used at all, the package is built without it.
        """
        lock = self._store.build_lock(self.package.root)

        def report_holder(holder: int | None) -> None:
            log.info(f"{build.named} waits: process {holder or '?'} builds {self.package.root}.")

        try:
            locked = await run_in_thread_to_end(
                lambda wanted: lock.acquire(self._limits.lock_seconds, report_holder, wanted)
            )
        except OSError as error:
            log.debug(f"{self.package.root} is built without a lock: {error}")
            locked = True
        except asyncio.CancelledError:
            lock.release()
            raise
        try:
            yield locked
        finally:
            lock.release()

    async def _refresh(self) -> None:
        """Read again the build command and the stored digests of the package."""
        self._build = await run_in_thread(self._find_build)
        await self._read_store()

    def _find_build(self) -> BuildCommand | None:
        self._kind = kind_of(self.package)
        build = build_of(self.package, self._environ, sys.platform)
        # Asked after the build was read: what comes later is not run.
        if build is not None and (why := self._refusal()):
            return build.replace(problem=f"It is not run: {why}. Only the user may agree, by {AGREE}.")
        return build

    async def _read_store(self) -> None:
        self._stored = await run_in_thread(lambda: self._store.get(self._key))

    def status(self) -> dict[str, Any]:
        """May be called on any thread."""
        stored, build = self._stored, self._build
        return {
            "role": self.package.role.value,
            "root": self.package.root,
            "kind": self._kind.value if self._kind else None,
            "files": None if self.disk.last is None else len(self.fingerprint.files),
            "watched": self.fingerprint.watching,  # if not, each check reads all files
            "sha256": {
                "running": self.running or None,
                "now": self.disk.last,
                "kept": stored.started or None if stored else None,
            },
            "build": build.named if build else None,
            "problems": list(self.disk.problems),
        }


class DiskDigest:
    """Computes the digest of the files on disk, on a thread and for a limited time; concurrent callers share it."""

    def __init__(self, root: str, fingerprint: Fingerprint, seconds: float) -> None:
        self.last: str | None = None
        self.problems: tuple[str, ...] = ()  # sentences about the files that could not be read for the last digest
        self._root = root
        self._fingerprint = fingerprint
        self._seconds = seconds
        self._looks = Tasks()
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[str | AuthorityProblem] | None = None  # a computation that has not begun yet
        self._late: asyncio.Task[str | AuthorityProblem] | None = None  # a computation that has exceeded the limit

    async def digest(self) -> str:
        """The digest of the files as they are now; raises AuthorityProblem if that takes too long or is impossible."""
        if self._late is not None and not self._late.done():
            raise AuthorityProblem(f"Reading the sources in {self._root} has not finished yet.")
        if self._next is None:
            self._next = self._looks.start(self._look())
        look = self._next
        done, _ = await asyncio.wait([look], timeout=self._seconds)
        if not done:
            self._late = look
            raise AuthorityProblem(f"Reading the sources in {self._root} takes longer than {self._seconds:g} s.")
        if look.cancelled():
            raise AuthorityProblem(f"The sources in {self._root} are not read any more.")
        result = look.result()
        if isinstance(result, AuthorityProblem):
            raise result
        return result

    def close(self) -> None:
        self._looks.cancel()

    async def _look(self) -> str | AuthorityProblem:
        async with self._turn:
            self._next = None  # later callers need another computation
            try:
                self.last = await run_in_thread(self._read)
            except AuthorityProblem as error:
                return error
            except Exception as error:
                return AuthorityProblem(f"The sources in {self._root} cannot be read: {error or type(error).__name__}.")
            if self._fingerprint.problems != self.problems:
                self.problems = self._fingerprint.problems
                for problem in self.problems:
                    log.warn(problem)
            return self.last

    def _read(self) -> str:
        if not os.path.isdir(self._root):  # moved, or not on this branch; the running process is kept
            raise AuthorityProblem(f"There is no folder {self._root}.")
        return self._fingerprint.digest()
