"""Watches the files that define a workspace, and reports which of them were added, removed or changed.

Notifications of the operating system only wake the watcher; it reports the difference between two scans, so a lost or
late notification does no harm. Only relevant folders are watched: those in which solutions are searched, restore
folders, `.devtools`, and those up to the root. A recursive watch would include all of `node_modules`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from stat import S_ISREG
from typing import TYPE_CHECKING

from ...system.files import FileProblem, read_head
from ...system.folder_notifier import ADDED, MODIFIED, folder_notifier
from ...system.log import log
from ...system.values import Value
from ...workspace.addins import addin_sources, workspace_addins
from ...workspace.devtools_folder import ADDINS_FOLDER as ADDINS
from ...workspace.devtools_folder import CONFIG
from ...workspace.git import repository
from ...workspace.global_json import GLOBAL_JSON as GLOBAL_JSON
from ...workspace.paths import upwards
from ...workspace.solution_finder import LEVELS_BELOW, is_searched
from ...workspace.solutions import PROJECT_EXTENSIONS, project_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...system.folder_notifier import FolderNotifier
    from ...workspace.resolver import Workspace


class WatcherLimits(Value):
    quiet_seconds: float = 0.25  # an editor's save or a git checkout is over after this time without an event
    longest_seconds: float = 2.0  # the longest wait for quiet
    scan_seconds: float = 10.0  # between scans without a notification: network drives and full queues give none
    scan_share: float = 0.01  # of the time, at most, is spent on such scans; a large tree is scanned less often
    stop_seconds: float = 0.1
    watched_folders: int = 512  # a user has a few thousand watches, which editors and build servers need as well
    scanned_folders: int = 4096  # 15 µs each; a home directory has far more, a workspace does not
    content_bytes: int = 1024 * 1024  # larger files are compared by their status; hand-written ones are far smaller


DEFAULT_LIMITS = WatcherLimits()
CLOCK_SECONDS = 0.02  # the clock of file systems ticks, and is up to 10 ms behind time.time()
NAMED_PATHS = 5  # in the log

RESTORE_FOLDER = "obj"
ARTIFACTS = "artifacts"  # the layout with one folder for all output: artifacts/obj/<project>
ASSETS = "project.assets.json"
SOLUTIONS = (".sln", ".slnx")
NAMES = (GLOBAL_JSON, ASSETS, os.path.basename(CONFIG))

Stamp = tuple[int, ...]  # the time of the last change, then the content; empty: only existence is compared


class _Subject(Value):
    workspace: Workspace
    also: tuple[str, ...]
    since: float


class Watcher:
    """Calls `changed` in its own thread with the paths that were added, removed or changed, until `stop`."""

    def __init__(self, changed: Callable[[frozenset[str]], None], limits: WatcherLimits = DEFAULT_LIMITS) -> None:
        self._changed = changed
        self._limits = limits
        self._subject: _Subject | None = None
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._interrupted = threading.Event()
        self._notifier: FolderNotifier | None = None  # made by the thread, when it waits first
        self._notifies = True
        self._said_incomplete = False

    def observe(self, workspace: Workspace, since: float, also: tuple[str, ...] = ()) -> None:
        """Watch this workspace and the files `also` instead of the previous ones; returns at once.

        Changes after `since`, in seconds since 1970, are reported: the time at which the workspace was resolved.
        """
        subject = _Subject(workspace, also, since)
        if self._stopped or (self._subject is not None and self._subject.replace(since=since) == subject):
            return
        self._subject = subject
        self._interrupt()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="workspace-watcher", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._interrupt()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(self._limits.stop_seconds)

    def _interrupt(self) -> None:
        self._interrupted.set()
        notifier = self._notifier
        if notifier is not None:
            notifier.wake()

    def _run(self) -> None:
        while True:
            self._interrupted.clear()  # before the subject is read, so that no change of it is missed
            if self._stopped:
                break
            assert self._subject is not None
            try:
                self._follow(self._subject)
            except Exception as error:  # a defect must not end the watcher
                log.warn(f"Watching the workspace failed and will be restarted: {type(error).__name__}: {error}.")
                self._interrupted.wait(self._limits.scan_seconds)
        if self._notifier is not None:
            self._notifier.close()

    def _follow(self, subject: _Subject) -> None:
        """Watch until there is another subject or the watcher is stopped."""
        known: Mapping[str, Stamp] | None = None
        watched: Mapping[str, None] | None = None
        while not self._interrupted.is_set():
            began = time.monotonic()
            scope = WatchScope(subject.workspace, subject.also, self._limits)
            took = time.monotonic() - began
            self._report(changed_files(_older(scope, subject.since) if known is None else known, scope.files))
            known = scope.files
            if scope.folders == watched:
                self._wait(scope, max(self._limits.scan_seconds, took / self._limits.scan_share))
            else:
                self._watch(scope)
                watched = scope.folders
                # Scan once more: earlier events in the new folders were not notified.

    def _report(self, paths: frozenset[str]) -> None:
        if paths and not self._interrupted.is_set():
            log.debug(f"the workspace changed: {', '.join(sorted(paths)[:NAMED_PATHS])}")
            self._changed(paths)

    def _watch(self, scope: WatchScope) -> None:
        if not self._said_incomplete and not scope.complete:
            self._said_incomplete = True
            nearest = next(iter(scope.folders))
            log.info(f"There are too many folders to watch: changes far from {nearest} may go unnoticed.")
        if not self._notifies:
            return
        try:
            if self._notifier is None:
                self._notifier = folder_notifier()
            self._notifier.watch(scope.folders)
        except Exception as error:  # no watches left, or none at all on this system
            self._give_up_notifications(error)

    def _give_up_notifications(self, error: Exception) -> None:
        self._notifies = False
        reason = getattr(error, "strerror", None) or error
        log.info(f"Changes of the workspace are looked for every {self._limits.scan_seconds:g} s: {reason}.")

    def _wait(self, scope: WatchScope, seconds: float) -> None:
        """Return when a relevant event has happened and things are quiet, or after `seconds`."""
        latest = until = time.monotonic() + seconds
        while (now := time.monotonic()) < until and not self._interrupted.is_set():
            if self._notifier is None or not self._notifies:
                self._interrupted.wait(until - now)
                return
            try:
                events = self._notifier.wait(until - now)
            except Exception as error:
                self._give_up_notifications(error)
                continue
            if any(scope.concerns(kind, path) for kind, path in events):
                now = time.monotonic()
                latest = min(latest, now + self._limits.longest_seconds)
                until = min(latest, now + self._limits.quiet_seconds)


class WatchScope:
    """The folders and files that define a workspace, as found by one scan, which is bounded in time."""

    def __init__(self, workspace: Workspace, also: Iterable[str] = (), limits: WatcherLimits = DEFAULT_LIMITS) -> None:
        """`also`: files elsewhere, which need not exist."""
        self.folders: dict[str, None] = {}  # to be watched, without the folders below them
        self.files: dict[str, Stamp] = {}
        self.complete = True  # False: there are more folders than are watched or scanned
        self._also = frozenset(also)
        self._limits = limits
        start = workspace.requested_directory
        self._scan_up(start, workspace.effective_directory)
        for path in self._also:
            self._scan_file(path)
        if workspace.solution:
            for project in project_files(workspace).paths:  # may be deeper than solutions, or beside the directory
                self._scan_file(project)
                self._scan_restored(os.path.join(os.path.dirname(project), RESTORE_FOLDER))
        self._scan_down(start)

    def concerns(self, kind: int, path: str) -> bool:
        """Whether the event may change the workspace, so that another scan is due."""
        folder, name = os.path.split(path)
        name = name.lower()
        if name.endswith(PROJECT_EXTENSIONS):
            return kind != MODIFIED  # only whether they exist matters
        if self.files.get(path) or path in self._also or name in NAMES or name.endswith(SOLUTIONS):
            return True
        if kind == MODIFIED:
            return False
        return (
            path in self.folders
            or folder.endswith((ADDINS, os.path.dirname(CONFIG)))
            or (name.endswith(".py") and ADDINS in folder)  # in a package
            or (kind == ADDED and _may_hold(folder, name) and os.path.isdir(path))
        )

    def _scan_up(self, start: str, effective: str | None) -> None:
        """Scan global.json and `.devtools` in every folder above; inside the repository, watch them, too."""
        top = min((top for top in (effective, repository(start)) if top), key=len, default=start)
        for folder in upwards(start):
            if len(folder) >= len(top) or not self.folders:  # if `start` is gone: the nearest folder that exists
                self._watch(folder)
                if folder != start:  # its own are found by the scan downwards
                    for entry in _entries(folder):
                        if entry.name.lower().endswith(SOLUTIONS):
                            self._stamp(entry.path)
            self._stamp(os.path.join(folder, GLOBAL_JSON))
            self._scan_devtools(folder)

    def _scan_file(self, path: str) -> None:
        """Scan one file; until its folder exists, watch the nearest folder above."""
        self._stamp(path)
        for folder in upwards(os.path.dirname(path)):
            if self._watch(folder):
                return

    def _scan_down(self, start: str) -> None:
        """Scan level by level, so that in a tree that is too large the nearest folders are watched."""
        waiting = deque([(start, LEVELS_BELOW)])
        linked: set[str] = set()  # targets of links, each of which is scanned once: links may form a loop
        scanned = 0
        while waiting:
            folder, levels = waiting.popleft()
            scanned += 1
            if scanned > self._limits.scanned_folders:
                self.complete = False
                return
            self._watch(folder)
            for entry in _entries(folder):
                name = entry.name.lower()
                if name.endswith(SOLUTIONS) or name == GLOBAL_JSON:
                    self._stamp(entry.path)
                elif name == RESTORE_FOLDER:
                    self._scan_restored(entry.path)
                elif levels > 0 and is_searched(name) and _is_folder(entry) and _is_new(entry, linked):
                    waiting.append((entry.path, levels - 1))

    def _scan_devtools(self, folder: str) -> None:
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

    def _scan_restored(self, folder: str) -> None:
        if not self._watch(folder):
            return
        self._stamp(os.path.join(folder, ASSETS))
        if os.path.basename(os.path.dirname(folder)).lower() == ARTIFACTS:
            for entry in _entries(folder):
                if _is_folder(entry):
                    self._watch(entry.path)
                    self._stamp(os.path.join(entry.path, ASSETS))

    def _watch(self, folder: str) -> bool:
        """Watch a folder while the limit allows; returns whether it exists."""
        if folder in self.folders:
            return True
        if not os.path.isdir(folder):
            return False
        if len(self.folders) < self._limits.watched_folders:
            self.folders[folder] = None
        else:
            self.complete = False
        return True

    def _stamp(self, path: str) -> None:
        """Record a file by a hash of its content: one that was only touched has not changed.

        The record of a restore is compared by its status: it is large, and a restore may write the same content again.
        """
        limit = self._limits.content_bytes
        try:
            status = os.stat(path)
            if path.lower().endswith(PROJECT_EXTENSIONS):
                self.files[path] = ()
                return
            content: Stamp = _changed_at(status), status.st_size, status.st_ino
            small = status.st_size <= limit and S_ISREG(status.st_mode)
            if small and os.path.basename(path).lower() != ASSETS:
                content = (hash(read_head(path, limit)),)
                status = os.stat(path)  # read last: else a file that is saved meanwhile would look old
        except (OSError, ValueError, FileProblem):
            return
        self.files[path] = (_changed_at(status), *content)


def _changed_at(status: os.stat_result, platform: str = sys.platform) -> int:
    """The time of the last change; on Windows, `st_ctime` is the time at which the file was made."""
    return status.st_mtime_ns if platform == "win32" else status.st_ctime_ns


def _may_hold(folder: str, name: str) -> bool:
    """Whether a new folder of this name can hold a relevant file. A build creates dozens that cannot."""
    above, parent = os.path.split(folder)
    if parent.lower() == RESTORE_FOLDER:
        return os.path.basename(above).lower() == ARTIFACTS
    return name == RESTORE_FOLDER or is_searched(name)


def changed_files(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> frozenset[str]:
    """The paths whose content or existence differs, without regard to the time of the last change."""
    old, new = ({path: stamp[1:] for path, stamp in files.items()} for files in (before, after))
    return frozenset(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))


def _older(scope: WatchScope, since: float) -> dict[str, Stamp]:
    """The files that have not changed since that time, according to their stamps."""
    limit = (since - CLOCK_SECONDS) * 1e9
    return {path: stamp for path, stamp in scope.files.items() if not stamp or stamp[0] < limit}


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
    """False for a link to a folder that another link leads to."""
    if not entry.is_symlink():
        return True
    target = os.path.realpath(entry.path)
    known = target in linked
    linked.add(target)
    return not known
