"""One package: which content runs, which lies on disk, and making the one ready to take the place of the other.

A content is named by its digest. What is taken for running was read before it was started, never after, so that a save
is seen again rather than missed; what is taken for built is what lay there before the build and behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

from ..system.event_loop import Tasks
from ..system.files import FileProblem, read_bytes
from ..system.log import log
from ..system.threads import run_in_thread, run_in_thread_to_end
from ..system.values import Value
from .authority import AuthorityProblem
from .build_command import build_of
from .build_run import log_path, run_build
from .digest_store import UNKNOWN
from .fingerprint import Fingerprint
from .sources.finder import find_sources, kind_of
from .watched_package import Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from .build_command import BuildCommand
    from .digest_store import DigestStore, StoredDigests
    from .sources.finder import PackageKind
    from .watched_package import WatchedPackage


class PackageLimits(Value):
    look_seconds: float = 10.0  # reading 100 MB takes 0.1 s, from a cold disk 2 s; calls wait for it
    build_seconds: float = 300.0  # a large project, from scratch
    lock_seconds: float = 330.0  # another process builds the same package, for as long as that may take
    watch_seconds: float = 0.1  # a save that comes while its predecessor is built is noticed as soon as that
    watch_share: int = 5  # where a look reads everything, it takes a fifth of the time at most
    most_cancels: int = 10  # of builds by newer saves, in one check: then one may finish
    most_builds: int = 3  # that find their sources changed when they are done, in one check
    quiet_seconds: float = 0.5  # where no build runs and nothing changes, it was the build that did


class BuildResult(Value):
    """What came of making a content ready to run."""

    digest: str
    error: str | None = None  # what the build printed, where it failed
    named: str = ""  # the build that ran last, if one had to
    seconds: float = 0.0
    log_file: str = ""  # what that build printed; empty: it could not run, or need not


class PackageState:
    def __init__(
        self,
        package: WatchedPackage,
        kept: DigestStore,
        environ: Mapping[str, str],
        state: str,
        policy: PackageLimits | None = None,
    ) -> None:
        self.package = package
        self._policy = policy or PackageLimits()
        self.on_disk = DiskDigest(package, self._policy.look_seconds)
        self.running: str | None = None  # what the process was started with that answers
        self.starting: str | None = None  # what one is started with at the moment
        self.failed: str | None = None  # what did not start
        self._started_files: dict[str, bytes] = {}  # of add-ins: the digest of each file when their Host was started
        self._kept = kept
        self._known: StoredDigests | None = None  # what is kept, as it was last read
        # Both roles may have one root, and two builds with outputs of their own.
        self._key = os.path.realpath(package.root) + ("#extension" if package.role is Role.EXTENSION else "")
        self._environ = environ
        self._log_file = log_path(state, package.root)
        self._kind: PackageKind | None = None  # as of the same moment as the build
        self._build: BuildCommand | None = None  # as of the last start or build; None: there is nothing to build
        self._built_here: str | None = None  # what this process has built itself

    # --- what runs

    async def launched(self, content: str | None = None) -> None:
        """A process is about to be started, or was: find out with which content, unless that is known."""
        self._build = await run_in_thread(self._find_build)
        self._known = await run_in_thread(self._read_kept)
        if self._build is not None and self._known is not None:
            self.starting = self._known.built
            return
        if content is not None and not self.package.addins:
            self.starting = content
            return
        try:
            now = await self.on_disk.digest()
            self.starting = now if content is None else content
            self._started_files = self.on_disk.fingerprint.files if now == self.starting else {}
        except AuthorityProblem as error:
            self.starting = content or UNKNOWN  # so that it is started again, once its content can be told
            log.warn(f"With which content the {self.package.role.value} starts is not known: {error}")

    def works(self) -> bool:
        """What was being started does; whether something was."""
        if self.starting is None:
            return False
        self.runs(self.starting)
        return True

    def runs(self, digest: str) -> None:
        """Whatever uses this package has this content now."""
        self.running, self.starting, self.failed = digest, None, None

    def did_not_start(self, *, old_runs: bool) -> None:
        if self.starting is not None:
            self.failed, self.starting = self.starting, None
        elif self.failed is None:
            self.failed = UNKNOWN  # it was started before anybody looked
        if not old_runs:
            self.running = None

    def doubt_output(self) -> bool:
        """What uses it does not start: the next check builds it, unless this process has. Whether it will."""
        if self._build is None or not self.running or self._built_here == self.running:
            return False
        self.failed, self.running = self.running, None
        return True

    async def keep(self) -> None:
        """Remember across processes what runs."""
        digest = self.running
        if digest:
            put = self._kept.put if self._build is None else self._kept.started
            await run_in_thread(partial(put, self._key, digest))
            self._known = await run_in_thread(self._read_kept)

    def is_changed(self, now: str) -> bool:
        """Whether what lies on disk should run, and does not."""
        if self.starting is not None:
            return now != self.starting
        if now == self.failed:  # trying again is no use, unless it was never built
            return self.running is None and self._build is not None and self._built_here != now
        return now != self.running

    async def has_other_output(self, now: str) -> bool:
        """Whether this is what runs, but what a build has left is of something else: it would be started next."""
        if self._build is None or now != self.running or self.starting is not None:
            return False
        self._known = await run_in_thread(self._read_kept)
        return self._known is not None and self._known.built != now

    @property
    def expected(self) -> str | None:
        """What runs, or will in a moment."""
        return self.running if self.starting is None else self.starting

    @property
    def has_base(self) -> bool:
        """Whether it is known what runs, or that nothing does."""
        return self.expected is not None or self.failed is not None

    # --- making it ready

    async def make(self, tell: Callable[[str], None]) -> BuildResult:
        """Build what lies on disk, if it has to be built, until what was built is what lies there."""
        begun = time.monotonic()
        self._build = await run_in_thread(self._find_build)
        if self._build is None:
            changed = self.on_disk.changed_paths
            now = await self.on_disk.digest()
            await run_in_thread(partial(forget_bytecode, self.package.root, {*changed, *self.on_disk.changed_paths}))
            return BuildResult(now, await run_in_thread(self._syntax_errors) if self.package.addins else None)
        async with self._alone(self._build) as alone:
            if not alone:
                held = f"Another process has been building {self.package.root} for {self._policy.lock_seconds:g} s."
                return BuildResult(await self.on_disk.digest(), f"{held} Call a tool again when it is done, or end it.")
            made = await self._build_newest(tell)
        return made.replace(seconds=round(time.monotonic() - begun, 3))

    def _syntax_errors(self) -> str | None:
        """Of the add-ins that are others than when the Host was started: what was wrong before keeps back nothing."""
        files, before = self.on_disk.fingerprint.files, self._started_files
        return syntax_errors(self.package.root, (name for name in files if files[name] != before.get(name)))

    async def _build_newest(self, tell: Callable[[str], None]) -> BuildResult:
        cancels = 0
        moved: list[tuple[str, ...]] = []  # the sources that were others when a build was done than when it began
        now = await self.on_disk.digest()
        while True:
            self._known = await run_in_thread(self._read_kept)
            if self._known is not None and self._known.built == now and not self._is_doubtful(now):
                log.debug(f"what lies in {self.package.root} was built already")
                return BuildResult(now)
            self._build = build = await run_in_thread(self._find_build)
            if build is None:
                return BuildResult(now)
            if build.problem:
                log.warn(f"{build.named} in {build.folder} cannot run: {build.problem}")
                return BuildResult(now, build.problem, build.named)
            tell(f"{build.named} runs for the {self.package.role.value}")
            await run_in_thread(partial(self._kept.building, self._key))
            done, error = await self._run(build, now, may_be_cancelled=cancels < self._policy.most_cancels)
            if not done:
                cancels += 1
                now = await self.on_disk.digest()
                continue
            after = await self.on_disk.digest()
            if after != now:
                moved.append(self.on_disk.changed_paths)
                if len(moved) < self._policy.most_builds:
                    now = after
                    continue
                now = await self._settled(moved, now, after)
            if error is None:
                self._built_here = now
                await run_in_thread(partial(self._kept.built, self._key, now))
            return BuildResult(now, error, build.named, log_file=self._log_file)

    def _is_doubtful(self, now: str) -> bool:
        """Whether the output of the build may be missing, although somebody has built this content once."""
        return now == self.failed and self._built_here != now

    async def _settled(self, moved: list[tuple[str, ...]], before: str, after: str) -> str:
        """What counts as built where the sources were never the same before a build and behind it."""
        paths = ", ".join(moved[-1][:5])
        if len(set(moved)) == 1:
            await asyncio.sleep(self._policy.quiet_seconds)
            if await self.on_disk.digest() == after:
                advice = f"Name what it writes in hotReload.exclude: {paths}."
                log.warn(f"The build of {self.package.root} changes its own sources each time. {advice}")
                return after
        log.warn(f"The sources in {self.package.root} change all the time ({paths}); the next call looks again.")
        return before

    async def _run(self, build: BuildCommand, content: str, *, may_be_cancelled: bool) -> tuple[bool, str | None]:
        """Whether it came to its end, and the error; False: it was cancelled, because there is newer content."""
        running = asyncio.ensure_future(run_build(build, self._environ, self._log_file, self._policy.build_seconds))
        pause = self._policy.watch_seconds
        try:
            while True:
                await asyncio.wait([running], timeout=pause)
                if running.done():
                    return True, running.result()
                if may_be_cancelled and self.on_disk.news() is not False:
                    begun = time.monotonic()
                    if await self._is_other_than(content):
                        log.info(f"{build.named} begins anew: a source has changed ({self._first_changed()}).")
                        return False, None
                    pause = max(self._policy.watch_seconds, (time.monotonic() - begun) * self._policy.watch_share)
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait([running])

    async def _is_other_than(self, content: str) -> bool:
        try:
            return await self.on_disk.digest() != content
        except AuthorityProblem:
            return False  # the build may finish; it is looked for afterwards

    def _first_changed(self) -> str:
        return ", ".join(self.on_disk.changed_paths[:3])

    @contextlib.asynccontextmanager
    async def _alone(self, build: BuildCommand) -> AsyncIterator[bool]:
        """While no other process builds the package; False: one does for too long. Without a lock where none can be."""
        lock = self._kept.build_lock(self.package.root)
        wanted = True

        def give_up() -> None:
            nonlocal wanted
            wanted = False

        def wait(holder: int | None) -> None:
            log.info(f"{build.named} waits: process {holder or '?'} builds {self.package.root}.")

        try:
            got = await run_in_thread_to_end(
                lambda: lock.acquire(self._policy.lock_seconds, wait, lambda: wanted), give_up
            )
        except OSError as error:
            log.debug(f"{self.package.root} is built without a lock: {error}")
            got = True
        except asyncio.CancelledError:
            lock.release()
            raise
        try:
            yield got
        finally:
            lock.release()

    def _find_build(self) -> BuildCommand | None:
        self._kind = kind_of(self.package)
        return build_of(self.package, self._environ, sys.platform)

    def _read_kept(self) -> StoredDigests | None:
        return self._kept.get(self._key)

    # --- the rest

    def status(self) -> dict[str, Any]:
        """From any thread."""
        known, build = self._known, self._build
        return {
            "role": self.package.role.value,
            "root": self.package.root,
            "kind": self._kind.value if self._kind else None,
            "files": None if self.on_disk.last is None else self.on_disk.fingerprint.file_count,
            "watched": self.on_disk.fingerprint.watching,  # else all of them are read at each check
            "sha256": {
                "running": self.running or None,
                "now": self.on_disk.last,
                "kept": known.started or None if known else None,
            },
            "build": build.named if build else None,
            "problems": list(self.on_disk.problems),
        }


class DiskDigest:
    def __init__(self, package: WatchedPackage, seconds: float) -> None:
        cache: dict[str, Any] = {}
        self.fingerprint = Fingerprint(lambda: find_sources(package, cache))
        self.last: str | None = None  # the last answer
        self.problems: tuple[str, ...] = ()  # sentences: what could not be read then
        self._root = package.root
        self._seconds = seconds
        self._looks = Tasks()
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[str | AuthorityProblem] | None = None  # a look that was asked for and has not begun
        self._late: asyncio.Task[str | AuthorityProblem] | None = None  # one that takes longer than anybody waits

    async def digest(self) -> str:
        """NoAnswer if it takes too long, or is not possible."""
        if self._late is not None and not self._late.done():
            raise AuthorityProblem(f"Reading the sources in {self._root} has not come to an end yet.")
        if self._next is None:
            self._next = self._looks.start(self._look())
        look = self._next
        done, _ = await asyncio.wait([look], timeout=self._seconds)
        if not done:
            self._late = look
            raise AuthorityProblem(f"Reading the sources in {self._root} takes longer than {self._seconds:g} s.")
        if look.cancelled():
            raise AuthorityProblem(f"The sources in {self._root} are not looked at any more.")
        seen = look.result()
        if isinstance(seen, AuthorityProblem):
            raise seen
        return seen

    def news(self) -> bool | None:
        """At once: whether a source may be another than at the last answer. None: only another one can tell."""
        return self.fingerprint.news()

    @property
    def changed_paths(self) -> tuple[str, ...]:
        """From the root: what made the last answer another than the one before."""
        return self.fingerprint.changed_paths

    def close(self) -> None:
        self._looks.cancel()
        self.fingerprint.close()

    async def _look(self) -> str | AuthorityProblem:
        async with self._turn:
            self._next = None  # what is asked for from here on needs another one
            try:
                self.last = await run_in_thread(self._read)
            except AuthorityProblem as reason:
                return reason
            except Exception as error:
                return AuthorityProblem(f"The sources in {self._root} cannot be read: {error or type(error).__name__}.")
            if self.fingerprint.problems != self.problems:
                self.problems = self.fingerprint.problems
                for problem in self.problems:
                    log.warn(problem)
            return self.last

    def _read(self) -> str:
        if not os.path.isdir(self._root):  # moved, or on another branch: no reason to give up what runs
            raise AuthorityProblem(f"There is no folder {self._root}.")
        return self.fingerprint.digest()


PYCACHE = "__pycache__"


def forget_bytecode(root: str, changed: Iterable[str]) -> None:
    """Remove the compiled copies of these files, which are named from the root; Python makes them anew."""
    for path in changed:
        if path.endswith(".py"):
            folder, name = os.path.split(os.path.join(root, path))
            _remove_bytecode(os.path.join(folder, PYCACHE), name[:-2])


def _remove_bytecode(folder: str, stem: str) -> None:
    """All versions of Python have their own: `module.cpython-311.pyc`, `module.cpython-311.opt-1.pyc`."""
    try:
        names = os.listdir(folder)
    except OSError:  # there are none
        return
    for name in names:
        if name.startswith(stem) and name.endswith(".pyc"):
            try:
                os.remove(os.path.join(folder, name))
            except OSError as error:
                log.debug(f"the compiled copy {name} in {folder} stays: {error}")


MAX_PYTHON_BYTES = 4 * 1024 * 1024  # of a file that is looked into; code has some KB


def syntax_errors(root: str, names: Iterable[str]) -> str | None:
    """Of these files, which are named from the root: what Python prints; None: there are none."""
    found = [
        error for name in sorted(names) if name.endswith(".py") and (error := _syntax_error(os.path.join(root, name)))
    ]
    return "\n".join(found) or None


def _syntax_error(path: str) -> str:
    try:
        compile(read_bytes(path, MAX_PYTHON_BYTES), path, "exec", dont_inherit=True)
    except (FileNotFoundError, FileProblem):  # whoever loads it says what is the matter
        return ""
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        told = "".join(traceback.format_exception_only(error))
        return told if path in told else f'  File "{path}"\n{told}'
    return ""
