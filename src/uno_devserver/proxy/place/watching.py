"""Notices when a workspace may have become another one: files that decide what it is, come, go or change.

Notifications of the operating system only wake; what counts is the difference between two looks at the disk. So a
notification that is lost, late or of no interest does no harm, and where a system gives none, looking at intervals has
to do. One thread, which ends within a tenth of a second when it is told to.
"""

from __future__ import annotations

import threading
import time
from functools import cache
from typing import TYPE_CHECKING, Protocol

from ...system.log import log
from ...system.values import Value
from .watch_scope import changed_files, look

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...workspace.resolver import Workspace
    from .watch_scope import Scope, Stamp


NAMED_PATHS = 5  # in the log
CLOCK_SECONDS = 0.02  # file systems take their time from a clock that ticks, up to 10 ms behind ours


class Timing(Value):
    quiet_seconds: float = 0.25  # an editor's save, or a git checkout, is over when nothing has happened for so long
    longest_seconds: float = 2.0  # but where it never ends, as long as this is waited
    look_seconds: float = 10.0  # without a notification: network drives and full queues give none
    look_share: float = 0.01  # of the time, at most: in a large tree, looking without being woken comes less often
    step_seconds: float = 0.05  # how often the notifier looks up; 0.2 % of a processor, and a quick stop
    stop_seconds: float = 0.1


DEFAULT_TIMING = Timing()


class _Subject(Value):
    workspace: Workspace
    also: tuple[str, ...]
    since: float


class Watcher:
    """Calls `changed` with the paths that came, went or changed, in its own thread."""

    def __init__(self, changed: Callable[[frozenset[str]], None], timing: Timing = DEFAULT_TIMING) -> None:
        self._changed = changed
        self._timing = timing
        self._subject: _Subject | None = None
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._interrupted = threading.Event()
        self._notifies = True
        self._said_incomplete = False

    def observe(self, workspace: Workspace, since: float, also: tuple[str, ...] = ()) -> None:
        """Watch this workspace from now on, and the files `also`; returns at once.

        `since`, in seconds since 1970, is when the workspace was looked at: what has changed after that is told.
        """
        subject = _Subject(workspace, also, since)
        if self._stopped or (self._subject is not None and self._subject.replace(since=since) == subject):
            return
        self._subject = subject
        self._interrupted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="workspace-watcher", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._interrupted.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(self._timing.stop_seconds)

    def _run(self) -> None:
        while True:
            self._interrupted.clear()  # before looking at what there is to do
            if self._stopped:
                return
            assert self._subject is not None
            try:
                self._follow(self._subject)
            except Exception as error:  # a defect must not end the watching for good
                log.warn(f"Watching the workspace failed and begins anew: {type(error).__name__}: {error}.")
                self._interrupted.wait(self._timing.look_seconds)

    def _follow(self, subject: _Subject) -> None:
        """Until there is another subject, or none."""
        known: Mapping[str, Stamp] | None = None
        notifier, watched = None, None
        try:
            while not self._interrupted.is_set():
                began = time.monotonic()
                scope = look(subject.workspace, subject.also)
                took = time.monotonic() - began
                self._tell(changed_files(_older(scope, subject.since) if known is None else known, scope.files))
                known = scope.files
                if scope.folders == watched:
                    self._wait(notifier, scope, max(self._timing.look_seconds, took / self._timing.look_share))
                    continue
                if notifier is not None:
                    notifier.close()
                notifier, watched = self._notifier(scope), scope.folders
                # Then look once more: what happened before the notifier was there, nobody was told.
        finally:
            if notifier is not None:
                notifier.close()

    def _tell(self, paths: frozenset[str]) -> None:
        if not paths or self._interrupted.is_set():
            return
        log.debug(f"the workspace changed: {', '.join(sorted(paths)[:NAMED_PATHS])}")
        try:
            self._changed(paths)
        except Exception as error:
            log.warn(f"A change of the workspace was not taken: {type(error).__name__}: {error}.")

    def _notifier(self, scope: Scope) -> _Notifier | None:
        """None where the system has none to give; that is said once."""
        if not self._said_incomplete and not scope.complete:
            self._said_incomplete = True
            log.info(f"There are too many folders to watch: what is not near {scope.folders[0]} may go unnoticed.")
        if not self._notifies:
            return None
        try:
            notifier: _Notifier = _rust_notify()(list(scope.folders), False, False, 0, False, True)
        except FileNotFoundError:  # gone since it was looked at
            return None
        except Exception as error:  # no watches left, or none at all on this system
            self._give_up_notifications(error)
            return None
        return notifier

    def _give_up_notifications(self, error: Exception) -> None:
        self._notifies = False
        log.info(f"Changes of the workspace are looked for every {self._timing.look_seconds:g} s: {error}.")

    def _wait(self, notifier: _Notifier | None, scope: Scope, seconds: float) -> None:
        """Until it is time to look again: something that counts has happened, and is over, or nobody told for long."""
        if notifier is None or not self._notifies:
            self._interrupted.wait(seconds)
            return
        latest = time.monotonic() + seconds
        until = latest
        while (now := time.monotonic()) < until and not self._interrupted.is_set():
            events = self._events(notifier, until - now)
            if any(scope.concerns(kind, path) for kind, path in events):
                now = time.monotonic()
                latest = min(latest, now + self._timing.longest_seconds)
                until = min(latest, now + self._timing.quiet_seconds)

    def _events(self, notifier: _Notifier, seconds: float) -> set[tuple[int, str]]:
        step = round(self._timing.step_seconds * 1000)
        try:
            events = notifier.watch(step, step, max(step, round(seconds * 1000)), self._interrupted)
        except Exception as error:
            self._give_up_notifications(error)
            self._interrupted.wait(seconds)
            return set()
        return set() if isinstance(events, str) else events


def _older(scope: Scope, since: float) -> dict[str, Stamp]:
    """What was there when the workspace was looked at, as far as one can tell now."""
    limit = (since - CLOCK_SECONDS) * 1e9
    return {path: stamp for path, stamp in scope.files.items() if not stamp or stamp[0] < limit}


class _Notifier(Protocol):
    def watch(
        self, debounce_ms: int, step_ms: int, timeout_ms: int, stop_event: threading.Event
    ) -> set[tuple[int, str]] | str: ...

    def close(self) -> None: ...


@cache
def _rust_notify() -> Callable[..., _Notifier]:
    """The native half of watchfiles alone: 1 ms and 0.7 MB. The package brings anyio and more: 12 ms and 2.5 MB."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    package = PathFinder.find_spec("watchfiles")
    spec = PathFinder.find_spec("_rust_notify", package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        raise RuntimeError("watchfiles is not installed")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Callable[..., _Notifier] = module.RustNotify
    return made
