"""Waits for changes in folders, without those below them: with inotify on Linux, with watchfiles on other systems.

`FolderNotifier` reports what has happened as pairs of a kind (ADDED, MODIFIED, DELETED) and a path. A thread that waits
uses no processor time on Linux; elsewhere it wakes twenty times a second.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from functools import cache

from . import inotify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any, Protocol

    class FolderNotifier(Protocol):
        """Used by one thread; only `wake` may be called by any."""

        def watch(self, folders: Collection[str]) -> None:
            """Watch these folders instead of the previous ones. Raises OSError where the system has no watches left."""

        def wait(self, seconds: float) -> Iterable[tuple[int, str]]:
            """What has happened since the last call; empty after this time, or when another thread calls `wake`."""

        def wake(self) -> None:
            """Let `wait` return, at once or when it is called next."""

        def close(self) -> None: ...


ADDED, MODIFIED, DELETED = 1, 2, 3  # as watchfiles numbers them
BATCH_SECONDS = 0.05  # events of this time are reported together: a build or a checkout makes thousands
STEP_SECONDS = 0.05  # how often watchfiles looks for the end of a wait

_ADDED = inotify.CREATE | inotify.MOVED_TO
_DELETED = inotify.DELETE | inotify.MOVED_FROM | inotify.DELETE_SELF | inotify.MOVE_SELF
# CLOSE_WRITE in place of MODIFY: a file that is written to all the time, as a log, wakes nobody.
_MASK = _ADDED | _DELETED | inotify.CLOSE_WRITE | inotify.ATTRIB | inotify.ONLY_FOLDERS


def folder_notifier(platform: str = sys.platform) -> FolderNotifier:
    """Raises OSError where the system has no queue of events left."""
    return _Inotify() if platform == "linux" else _Watchfiles()


class _Inotify:
    def __init__(self) -> None:
        self._events = inotify.Inotify()
        self._folders: dict[int, str] = {}  # by watch
        self._waker = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._waker_open = threading.Lock()  # held while the waker is used or closed
        self._ready = select.poll()
        for handle in (self._events.fileno(), self._waker):
            self._ready.register(handle, select.POLLIN)

    def watch(self, folders: Collection[str]) -> None:
        watches = {}
        for folder in folders:
            try:
                watches[self._events.add(folder, _MASK)] = folder
            except (
                FileNotFoundError,
                NotADirectoryError,
                PermissionError,
            ):  # removed since it was found; or unreadable
                continue
        for watch in self._folders.keys() - watches:
            self._events.remove(watch)
        self._folders = watches

    def wait(self, seconds: float) -> Iterable[tuple[int, str]]:
        ready = [handle for handle, _ in self._ready.poll(seconds * 1000)]
        if self._waker in ready:
            os.eventfd_read(self._waker)
        elif ready:
            time.sleep(BATCH_SECONDS)
            return {change for event in self._events.read() for change in self._changes(event)}
        return ()

    def _changes(self, event: inotify.InotifyEvent) -> Iterable[tuple[int, str]]:
        if event.mask & inotify.OVERFLOW:  # anything may have happened
            return [(ADDED, folder) for folder in self._folders.values()]
        folder = self._folders.get(event.watch)
        if folder is None or event.mask & inotify.IGNORED:
            return ()
        kind = ADDED if event.mask & _ADDED else DELETED if event.mask & _DELETED else MODIFIED
        return [(kind, os.path.join(folder, event.name) if event.name else folder)]

    def wake(self) -> None:
        with self._waker_open:
            if self._waker >= 0:
                os.eventfd_write(self._waker, 1)

    def close(self) -> None:
        with self._waker_open:
            os.close(self._waker)
            self._waker = -1
        self._events.close()


class _Watchfiles:
    def __init__(self) -> None:
        self._notify: Any = None
        self._woken = threading.Event()

    def watch(self, folders: Collection[str]) -> None:
        self.close()
        try:
            self._notify = rust_notify()(list(folders), False, False, 0, False, True)
        except FileNotFoundError:  # removed since the scan
            self._notify = None

    def wait(self, seconds: float) -> Iterable[tuple[int, str]]:
        events: Any = ()
        if self._notify is None:
            self._woken.wait(seconds)
        else:
            batch, step = round(BATCH_SECONDS * 1000), round(STEP_SECONDS * 1000)
            events = self._notify.watch(batch, step, max(step, round(seconds * 1000)), self._woken)
        self._woken.clear()
        return () if isinstance(events, str) else events  # a string says why there are none

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        if self._notify is not None:
            self._notify.close()
            self._notify = None


@cache
def rust_notify() -> Any:
    """The native half of watchfiles: 1 ms and 0.7 MB. The whole package imports anyio and more: 12 ms and 2.5 MB."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    package = PathFinder.find_spec("watchfiles")
    spec = PathFinder.find_spec("_rust_notify", package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        raise RuntimeError("watchfiles is not installed")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.RustNotify
