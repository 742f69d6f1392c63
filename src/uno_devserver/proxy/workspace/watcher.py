"""Which folders and files decide what a workspace is, as they lie on disk now.

A recursive watch would put one on every folder of `node_modules` and `bin`. What can matter is little: the folders in
which solutions are looked for, the restore folders of projects, `.devtools`, and the way up to the root. The number of
folders is bounded, whatever the tree looks like.

Notices when a workspace may have become another one: files that decide what it is, come, go or change.

Notifications of the operating system only wake; what counts is the difference between two looks at the disk. So a
notification that is lost, late or of no interest does no harm, and where a system gives none, looking at intervals has
to do. One thread, which ends within a tenth of a second when it is told to.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from functools import cache
from stat import S_ISREG
from typing import TYPE_CHECKING, Protocol

from ...system.log import log
from ...system.values import Value
from ...workspace.addins import FOLDER as ADDINS
from ...workspace.addins import addin_sources, workspace_addins
from ...workspace.finder import LEVELS_BELOW, is_searched
from ...workspace.git import repository
from ...workspace.globaljson import NAME as GLOBAL_JSON
from ...workspace.paths import upwards
from ...workspace.projects import project_files
from ...workspace.resolver import CONFIG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...workspace.resolver import Workspace


# Systems give a user some thousand watches, which editors and build servers want, too.
MAX_WATCHED = 512
# Looking into a folder takes 15 µs. A home directory has far more than this; a workspace does not.
MAX_SEEN = 4096

RESTORE_FOLDER = "obj"
ARTIFACTS = "artifacts"  # the layout with one folder for all output: artifacts/obj/<project>
ASSETS = "project.assets.json"
SOLUTIONS = (".sln", ".slnx")
NAMES = (GLOBAL_JSON, ASSETS, os.path.basename(CONFIG))
ADDED, MODIFIED, DELETED = 1, 2, 3  # as watchfiles numbers what happened

CONTENT_BYTES = 1024 * 1024  # the files that people write are far smaller

# When the file last changed, then what it is; empty: only that it is there counts.
Stamp = tuple[int, ...]


class Scope(Value):
    folders: tuple[str, ...]  # to be watched, without what is below them
    files: Mapping[str, Stamp]
    complete: bool  # False: there are more folders than are looked at
    also: frozenset[str] = frozenset()  # files elsewhere, which may be still to come

    def concerns(self, kind: int, path: str) -> bool:
        """Whether such an event may change what the workspace is, so that one has to look again."""
        folder, name = os.path.split(path)
        name = name.lower()
        if self.files.get(path) or path in self.also or name in NAMES or name.endswith(SOLUTIONS):
            return True
        if kind == MODIFIED:
            return False
        if path in self.folders or folder.endswith((ADDINS, os.path.dirname(CONFIG))):
            return True
        if name.endswith(".py") and ADDINS in folder:  # in a package
            return True
        return kind == ADDED and _may_hold(folder, name) and os.path.isdir(path)


def _may_hold(folder: str, name: str) -> bool:
    """Whether a new folder of this name can hold something that counts. A build makes dozens that cannot."""
    above, parent = os.path.split(folder)
    if parent.lower() == RESTORE_FOLDER:
        return os.path.basename(above).lower() == ARTIFACTS
    return name == RESTORE_FOLDER or is_searched(name)


def changed_files(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> frozenset[str]:
    paths = before.keys() | after.keys()
    return frozenset(path for path in paths if _what(before.get(path)) != _what(after.get(path)))


def _what(stamp: Stamp | None) -> Stamp | None:
    return None if stamp is None else stamp[1:]


def look(workspace: Workspace, also: Iterable[str] = ()) -> Scope:
    """What counts now, for this workspace and for these files elsewhere; nothing here raises or waits for long."""
    view = _View()
    start = workspace.requested_directory
    view.look_up(start, workspace.effective_directory)
    also = frozenset(also)
    for path in also:
        view.look_at(path)
    if workspace.solution:
        for project in project_files(workspace).paths:  # they may lie deeper than solutions, or beside the directory
            view.look_into_project(os.path.dirname(project))
    view.look_down(start)
    return Scope(tuple(view.folders), view.files, view.complete, also)


class _View:
    def __init__(self) -> None:
        self.folders: dict[str, None] = {}
        self.files: dict[str, Stamp] = {}
        self.complete = True

    def look_up(self, start: str, effective: str | None) -> None:
        """global.json and `.devtools` count in every folder above, and are watched inside the repository."""
        top = min((top for top in (effective, repository(start)) if top), key=len, default=start)
        for folder in upwards(start):
            if len(folder) >= len(top) or not self.folders:  # where the directory has gone: the nearest that is there
                self._watch(folder)
            self._stamp(os.path.join(folder, GLOBAL_JSON))
            self._look_into_devtools(folder)

    def look_at(self, path: str) -> None:
        """One file, which may be in a folder that is still to be made."""
        self._stamp(path)
        for folder in upwards(os.path.dirname(path)):
            if self._watch(folder):
                return

    def look_into_project(self, folder: str) -> None:
        self._watch(folder)
        self._look_into_restored(os.path.join(folder, RESTORE_FOLDER))

    def look_down(self, start: str) -> None:
        """Level by level, so that what is near is watched where there is too much."""
        waiting = deque([(start, LEVELS_BELOW)])
        linked: set[str] = set()  # targets of links: a loop would show each folder again and again
        seen = 0
        while waiting:
            folder, levels = waiting.popleft()
            seen += 1
            if seen > MAX_SEEN:
                self.complete = False
                return
            self._watch(folder)
            for entry in _entries(folder):
                name = entry.name.lower()
                if name.endswith(SOLUTIONS) or name == GLOBAL_JSON:
                    self._stamp(entry.path)
                elif name == RESTORE_FOLDER:
                    self._look_into_restored(entry.path)
                elif levels > 0 and is_searched(name) and _is_folder(entry) and _is_new(entry, linked):
                    waiting.append((entry.path, levels - 1))

    def _look_into_devtools(self, folder: str) -> None:
        config, addins = os.path.join(folder, CONFIG), os.path.join(folder, ADDINS)
        if not self._watch(os.path.dirname(config)):
            return
        self._stamp(config)
        if self._watch(addins):
            self.files[addins] = ()
            self.files.update(dict.fromkeys(workspace_addins(folder), ()))
            for source in addin_sources(folder):
                self._watch(os.path.dirname(source))
                self._stamp(source)

    def _look_into_restored(self, folder: str) -> None:
        if not self._watch(folder):
            return
        self._stamp(os.path.join(folder, ASSETS))
        if os.path.basename(os.path.dirname(folder)).lower() == ARTIFACTS:
            for entry in _entries(folder):
                if _is_folder(entry):
                    self._watch(entry.path)
                    self._stamp(os.path.join(entry.path, ASSETS))

    def _watch(self, folder: str) -> bool:
        """Whether there is such a folder."""
        if folder in self.folders:
            return True
        if not os.path.isdir(folder):
            return False
        if len(self.folders) < MAX_WATCHED:
            self.folders[folder] = None
        else:
            self.complete = False
        return True

    def _stamp(self, path: str) -> None:
        try:
            status = os.stat(path)
            self.files[path] = (status.st_ctime_ns, *_content(path, status))
        except (OSError, ValueError):
            return


def _content(path: str, status: os.stat_result) -> Stamp:
    """What tells one content from another. A file that was only touched is what it was.

    Not so the record of a restore: it may be megabytes, and written again as it was when packages have come back.
    """
    if os.path.basename(path).lower() == ASSETS or status.st_size > CONTENT_BYTES or not S_ISREG(status.st_mode):
        return status.st_ctime_ns, status.st_size, status.st_ino
    with open(path, "rb") as file:
        return (hash(file.read(CONTENT_BYTES)),)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # unreadable, or just removed
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _is_new(entry: os.DirEntry[str], linked: set[str]) -> bool:
    if not entry.is_symlink():
        return True
    target = os.path.realpath(entry.path)
    known = target in linked
    linked.add(target)
    return not known


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
