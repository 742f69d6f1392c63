"""State of one package: the version that runs, the version on disk, and the build between them.

A version ("content") is identified by its digest. The digest of what runs was computed before the start, never after
it, so that a save in between leads to one check too many and not to a missed change. A content counts as built if it
was the same before and after its build.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from ..system.event_loop import run_in_thread, run_in_thread_to_end
from ..system.log import log
from ..system.state_files import sha256
from ..system.values import Value
from ..workspace.repository import is_inside, repository_of
from ..workspace.trust import AGREE
from .authority import AuthorityProblem
from .build_command import build_inputs, build_of, steps_of, unbuilt_package
from .build_run import log_path, run_build
from .digest_store import UNKNOWN
from .disk_digest import DiskDigest
from .fingerprint import Fingerprint
from .output_freshness import StartedOutput, with_outputs
from .python_syntax import remove_bytecode, syntax_errors
from .sources.dotnet import may_ask_sdk
from .sources.finder import PackageKind, find_sources, kind_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from .build_command import BuildCommand, BuildStep
    from .digest_store import DigestStore, StoredDigests
    from .watched_package import WatchedPackage


CLOCK_SECONDS = 0.1  # systems know the time of a start less exactly than that of a build


class PackageLimits(Value):
    read_seconds: float = 10.0  # reading 100 MB takes 0.1 s, from a cold disk 2 s; calls wait for it
    build_seconds: float = 300.0  # a large project, from scratch
    lock_seconds: float = 330.0  # for another process that builds the same package: its limit and some more
    watch_seconds: float = 0.1  # between two checks for newer saves during a build
    watch_share: int = 5  # if a check reads all files, checks take at most a fifth of the time
    most_cancels: int = 10  # builds that newer saves may cancel in one check; the next build may finish
    most_builds: int = 3  # in one check if the sources change during each build
    quiet_seconds: float = 0.5  # if the sources stay unchanged this long after the last build, the build changes them


class BuildSettings(Value):
    """What the builds of all packages of a workspace share."""

    store: DigestStore
    environ: Mapping[str, str]  # of the builds
    state: str  # the folder of our own files
    # Why builds are refused, as the end of a sentence; empty if they are allowed; may block.
    refusal: Callable[[], str] = lambda: ""
    limits: PackageLimits | None = None  # None: the usual ones


class BuildResult(Value):
    """The result of making a content ready to run."""

    digest: str
    error: str | None = None  # the output of a build that failed
    named: str = ""  # the name of the last build, if one had to run
    seconds: float = 0.0
    log_file: str = ""  # the file with the output of that build; empty if none ran
    output_replaced: bool = False  # the started output was stale and has been rebuilt


class PackageState:
    def __init__(self, package: WatchedPackage, settings: BuildSettings) -> None:
        self.package = package
        self._settings = settings
        self._limits = settings.limits or PackageLimits()
        cache = may_ask_sdk(settings.environ)  # a package is watched only if the user trusts its workspace
        self.fingerprint = Fingerprint(lambda: with_outputs(package, find_sources(package, cache)))
        self.disk = DiskDigest(package.root, self.fingerprint, self._limits.read_seconds)
        self.running: str | None = None  # the content of the process that answers
        self.starting: str | None = None  # the content of the process that is being started
        self.failed: str | None = None  # the content that did not start
        self._started_files: dict[str, bytes] = {}  # the digest of each file of the version that was started last
        self._store = settings.store
        self._stored: StoredDigests | None = None  # as it was last read from the store
        self._key = _key_of(package)
        self._environ = settings.environ
        self._log_file = log_path(settings.state, package.root)
        self._kind: PackageKind | None = None
        self._build: BuildCommand | None = None  # as read at the last start or build; None if there is nothing to build
        self._built_here: str | None = None  # the content that this process has built
        self.output = StartedOutput(package, self.fingerprint, self.disk, self._limits.read_seconds)
        # The last build that failed, and the digest of what it read besides the sources.
        self._failed_build: tuple[BuildResult, str, str] | None = None

    def close(self) -> None:
        self.disk.close()
        self.fingerprint.close()
        self.output.close()

    def news(self) -> bool | None:
        """Whether a file may have changed since the last check; None if only a check can tell. Never waits."""
        news = (self.fingerprint.news(), self.output.news())
        return True if True in news else None if None in news else False

    # What runs.

    async def note_launch(
        self, *, on_disk: str | None = None, running: str | None = None, started_at: float | None = None
    ) -> None:
        """Determine the content of a process that is about to be started, or was, unless `running` is its digest.

        `on_disk`: the digest of the sources when it was started, at `started_at`, if that was before now.
        """
        await self._find_content(on_disk, running, started_at)
        stored = self._stored.output if self._stored else ()
        try:
            await self.output.note_start(self.starting, stored, can_build=self._can_build)
        except AuthorityProblem as error:
            self.starting = UNKNOWN
            log.warn(f"Which code the {self.package.role.value} starts with is not known: {error}")

    async def _find_content(self, on_disk: str | None, running: str | None, started_at: float | None) -> None:
        await self._refresh()
        if running is None and self._build is not None and self._stored is not None:
            # A build of another process that ended since then may have written what this one had already read.
            is_older = started_at is not None and self._stored.built_at > started_at - CLOCK_SECONDS
            self.starting = UNKNOWN if is_older else self._stored.built
            return
        known = on_disk if running is None else running
        if known is not None and not self.package.addins:
            self.starting = known
            return
        try:
            now = await self.disk.digest()
            self.starting = now if known is None else known
            self._started_files = self.fingerprint.files if now == self.starting else {}
        except AuthorityProblem as error:
            self.starting = known or UNKNOWN  # UNKNOWN makes the next check start it again
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
            origin = self.output.known_origin
            if self._build is None:
                save = partial(self._store.put, self._key, digest, origin)
            else:  # what a build writes was stored at its end, for the processes that run meanwhile
                save = partial(self._store.started, self._key, digest, None if self._can_build else origin)
            await run_in_thread(save)
            await self._read_store()

    async def needs_making(self) -> bool:
        """Whether the content on disk has to be built or started. Raises AuthorityProblem."""
        if not self.knows_running:  # the process was started before this object existed
            await self.note_launch()
        now = await self.disk.digest()
        if now == self.expected:
            self._started_files = self.fingerprint.files
        await self._believe_store()
        other_output = await self.output.is_other(can_build=self._can_build)  # also if the sources have changed
        return self.is_changed(now) or other_output or self._has_other_output(now)

    async def _believe_store(self) -> None:
        """Read which content was built last, by any process, and from which content the output on disk was built."""
        await self._read_store()
        if self._stored is not None and self._can_build:
            await self.output.believe(self._stored.output)

    def is_changed(self, now: str) -> bool:
        """Whether this content on disk should run, and does not."""
        if self.starting is not None:
            return now != self.starting
        if now == self.failed:  # another attempt would fail too, unless the output is missing
            return self.running is None and self._build is not None and self._may_lack_output(now)
        return now != self.running

    def _has_other_output(self, now: str) -> bool:
        """Whether this content runs, but the output on disk was built from another content, which would start next."""
        if self._build is None or now != self.running or self.starting is not None:
            return False
        return self._stored is not None and self._stored.built != now

    @property
    def _can_build(self) -> bool:
        """Whether a build may write what is started."""
        return self._build is not None and self._build.writes

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
        await self.output.begin_build()
        await self._refresh()
        inputs = await run_in_thread(self._build_inputs)
        if self._build is None:
            changed = self.fingerprint.changed_paths
            now = await self.disk.digest()
            changed = tuple({*changed, *self.fingerprint.changed_paths})
            await run_in_thread(partial(remove_bytecode, self.package.root, set(changed)))
            errors = await run_in_thread(lambda: self._syntax_errors(changed))
            return await self._noted(await self._compared(BuildResult(now, errors)), inputs)
        async with self._build_lock(self._build) as locked:
            if not locked:
                return BuildResult(await self.disk.digest(), self._locked_text(self._build))
            await self._believe_store()  # the process that held the lock may have built this content
            made = await self._compared(await self._build_newest(tell))
        return await self._noted(made, inputs)

    async def _compared(self, made: BuildResult) -> BuildResult:
        """Compare the output with the one before the build, and store from which content it is now."""
        if made.error is not None:
            return made
        # What a build writes may change with its script and settings.
        build = await run_in_thread(self._build_inputs) if made.named and self._can_build else ""
        replaced = await self.output.end_build(made.digest, build)
        if self._can_build:
            await run_in_thread(partial(self._store.wrote, self._key, self.output.known_origin))
        return made.replace(output_replaced=replaced)

    async def _noted(self, made: BuildResult, inputs: str) -> BuildResult:
        did_not_run = self._build is not None and bool(self._build.problem)  # what is missing is asked for each time
        self._failed_build = None
        if made.error is not None and not did_not_run:
            # A build that restores packages writes what the next one reads, so that is read after it.
            self._failed_build = made, inputs, await run_in_thread(self._restored)
        return made

    async def known_failure(self) -> BuildResult | None:
        """The failed build of the content that was read last, if nothing has changed that it reads; else None."""
        if self._failed_build is None:
            return None
        made, *read = self._failed_build
        same = made.digest == self.disk.last and read == await run_in_thread(
            lambda: [self._build_inputs(), self._restored()]
        )
        return made if same else None

    def forget_failed_build(self) -> None:
        """Let the next check build the content again even if nothing has changed."""
        self._failed_build = None

    def _build_inputs(self) -> str:
        return build_inputs(
            (self.package.root, *(each.folder for each in (self._build.prerequisites if self._build else ())))
        )

    def _restored(self) -> str:
        """The digest of what a restore of the .NET project has written, by a build or by hand; empty for others."""
        return self._build.restored() if self._build else ""

    def _syntax_errors(self, changed: tuple[str, ...]) -> str | None:
        """Syntax errors in files changed since the start; errors in other files did not prevent that start.

        `changed`: the files that changed last, which count where it is not known with which the server was started.
        """
        package = self.package
        if self._kind not in (PackageKind.PYTHON, PackageKind.ADDINS) and not package.node:
            return None
        files, before = self.fingerprint.files, self._started_files
        if before or self.package.addins:
            changed = tuple(name for name in files if files[name] != before.get(name))
        if package.node:
            from .javascript_syntax import javascript_errors  # few servers need it

            used = [each.root for each in sources.packages[1:]] if (sources := self.fingerprint.sources) else []
            return javascript_errors(package, changed, used, self._environ)
        # Add-ins run in our own Python; another server may have a newer one.
        return syntax_errors(package.root, changed, None if package.addins else self._environ)

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
            begun = time.monotonic()
            done, error = await self._run(build, now, may_be_cancelled=cancels < self._limits.most_cancels)
            if not done:
                cancels += 1
                now = await self.disk.digest()
                continue
            seconds = round(time.monotonic() - begun, 3)
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
                missing = await run_in_thread(self.output.missing) if build.writes and build.line else ""
                if missing:
                    error = (
                        f"{build.named} ended without an error, but did not write {missing}, which the command starts. "
                        "Correct the build or the command. If the compiler keeps a record of earlier builds "
                        "(.tsbuildinfo), delete it."
                    )
            return BuildResult(now, error, build.named, seconds, self._log_file)

    def _may_lack_output(self, now: str) -> bool:
        """Whether the output may be missing or from other code, although this content was built."""
        has_failed = now == self.failed and self._built_here != now
        if has_failed or self.output.wants_build or (self._can_build and self.output.missing()):
            return True
        return self._build is not None and unbuilt_package(self._build, self._store) is not None

    async def _built_content(self, moved: list[tuple[str, ...]], before: str, after: str) -> str:
        """The content that counts as built if the sources changed during each build."""
        paths = ", ".join(moved[-1][:5])
        if len(set(moved)) == 1:
            await asyncio.sleep(self._limits.quiet_seconds)
            if await self.disk.digest() == after:
                advice = f"Name what it writes in hotReload.exclude: {paths}."
                log.warn(f"The build of {self.package.root} changes its own sources each time. {advice}")
                return after
        log.warn(f"The sources in {self.package.root} keep changing ({paths}); the next call checks again.")
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
            error = await (self._build_used(step) if step.key else self._run_build(step.build))
            if error is not None:
                return f"In {step.build.folder}:\n{error}" if step.key else error
        return None

    async def _build_used(self, step: BuildStep) -> str | None:
        async with self._build_lock(step.build) as locked:  # another server may use the same package
            if not locked:
                return self._locked_text(step.build)
            await run_in_thread(partial(self._store.building, step.key))
            error = await self._run_build(step.build)
            if error is None:
                await run_in_thread(lambda: self._store.built(step.key, step.content()))
            return error

    async def _run_build(self, build: BuildCommand) -> str | None:
        return await run_build(build, self._environ, self._log_file, self._limits.build_seconds)

    async def _is_other_than(self, content: str) -> bool:
        try:
            return await self.disk.digest() != content
        except AuthorityProblem:
            return False  # the build may finish; the digest is computed again after it

    @contextlib.asynccontextmanager
    async def _build_lock(self, build: BuildCommand) -> AsyncIterator[bool]:
        """Keep other processes from building in this folder; yield False if one has been building for too long.

        If the lock cannot be used at all, the package is built without it.
        """
        lock = self._store.build_lock(os.path.realpath(build.folder))

        def report_holder(holder: int | None) -> None:
            log.info(f"{build.named} waits: process {holder or '?'} builds {build.folder}.")

        try:
            locked = await run_in_thread_to_end(
                lambda wanted: lock.acquire(self._limits.lock_seconds, report_holder, wanted)
            )
        except OSError as error:
            log.debug(f"{build.folder} is built without a lock: {error}")
            locked = True
        except asyncio.CancelledError:
            lock.release()
            raise
        try:
            yield locked
        finally:
            lock.release()

    def _locked_text(self, build: BuildCommand) -> str:
        waited = f"This call waited {self._limits.lock_seconds:g} s for another process that builds {build.folder}."
        return f"{waited} Try again later, or end that process."

    async def _refresh(self) -> None:
        """Read again the build command and the stored digests of the package."""
        self._build = await run_in_thread(self._find_build)
        await self._read_store()

    def _find_build(self) -> BuildCommand | None:
        self._kind = kind_of(self.package)
        build = build_of(self.package, self._environ, sys.platform)
        # Checked after reading the build, so that an unapproved change is never run.
        if build is not None and (why := self._settings.refusal()):
            return build.replace(problem=f"The build was not run: {why}. Only the user may agree, by {AGREE}.")
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


def _key_of(package: WatchedPackage) -> str:
    """What digests are stored under: the same in all workspaces where the same files count and the same is built."""
    repository = repository_of(package.root, package.workspace)
    top = min((top for top in repository.tops if is_inside(repository.root, top)), key=len)
    decides = package.replace(root=repository.root, workspace=top, node="")
    return f"{repository.root}#{sha256(repr(decides).encode())}"
