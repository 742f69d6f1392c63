"""What has happened to the sources of a package since the last question, exactly: after a write has returned, the next
question knows.

Watched are the folders that were looked into, those of all files that count or decide, and each link and each folder on
the way to them. An event that can change nothing (a log beside the code, an editor's swap file) is dropped here; one
that might is told, because whoever asks looks at the content anyway.

What nobody can see from here: a write through a hard link that was made after the file was last looked at.
"""

from __future__ import annotations

import errno
import os
import stat

from ..system import inotify
from ..system.inotify import MOUNTS_FILE, Inotify, file_system_of, reports_changes
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..system.inotify import InotifyEvent
    from .sources.source_tree import Sources

# Writing through a mapping gives no MODIFY, but CLOSE_WRITE at its end. ATTRIB, because reading may be forbidden or
# allowed by it; a `touch` leads to one file being read again.
_CONTENT = inotify.MODIFY | inotify.CLOSE_WRITE | inotify.ATTRIB
_COMING = inotify.CREATE | inotify.MOVED_TO
_GOING = inotify.DELETE | inotify.MOVED_FROM
_SELF = inotify.DELETE_SELF | inotify.MOVE_SELF
_GONE = _SELF | inotify.UNMOUNT | inotify.IGNORED
_IN_FOLDER = _CONTENT | _COMING | _GOING | _SELF | inotify.ONLY_FOLDERS


_PASSED = _SELF | inotify.ONLY_FOLDERS
MAX_LINKS = 40  # one after the other, as in Linux


class Unwatchable(Exception):
    """Some of it cannot be watched, so none of it can be relied on; the text is a sentence without a full stop."""


class SeenChanges(Value):
    files: frozenset[str]  # keys of Sources.files whose content may be another
    listing: bool  # the set of files may be another


NOTHING = SeenChanges(frozenset(), False)


class SourceWatch:
    """For one thread at a time."""

    def __init__(self) -> None:
        try:
            self._inotify = Inotify()
        except OSError as error:
            raise Unwatchable(_limit(error)) from error
        self._way = _WatchedPaths()
        self._folders: frozenset[str] = frozenset()
        self._endings: frozenset[str] | None = None
        self._paths: dict[int, list[str]] = {}  # of each watch: links may lead to one folder in several ways
        self._watches: dict[str, int] = {}
        self._files: set[str] = set()
        self._listing = self._lost = False

    def cover(self, sources: Sources) -> bool:
        """Watch all of this from now on. True: all of it was watched already, so a list that was made meanwhile holds.

        Raises Unwatchable.
        """
        way = _WatchedPaths()
        way.follow(sources)
        watches = self._add(way, sources)
        same = watches == self._watches and way.turns == self._way.turns
        for watch in set(self._watches.values()).difference(watches.values()):
            self._inotify.remove(watch)
        self._way, self._watches = way, watches
        self._folders, self._endings = sources.folders, sources.endings
        self._paths = {}
        for path, watch in watches.items():
            self._paths.setdefault(watch, []).append(path)
        return same

    def news(self) -> bool:
        """Whether anything has happened that `take` has not told yet."""
        for event in self._inotify.read():
            self._sort(event)
        return self._lost or self._listing or bool(self._files)

    def take(self) -> SeenChanges | None:
        """What has happened since this was asked last. None: nobody knows, so everything has to be looked at."""
        if not self.news():
            return NOTHING
        seen = None if self._lost else SeenChanges(frozenset(self._files), self._listing)
        self._files.clear()
        self._listing = self._lost = False
        return seen

    def doubt(self) -> None:
        """The next answer is that nobody knows."""
        self._lost = True

    def close(self) -> None:
        self._inotify.close()

    def _add(self, way: _WatchedPaths, sources: Sources) -> dict[str, int]:
        watches: dict[str, int] = {}
        devices: set[int] = set()
        wanted = [(path, _PASSED) for path in way.passed]
        wanted += [(path, _IN_FOLDER) for path in way.folders | sources.folders]
        wanted += [(path, _CONTENT | _SELF) for path in way.shared]
        for path, mask in wanted:
            try:
                watches[path] = self._inotify.add(path, mask)
                if mask != _PASSED:
                    devices.add(_check_device(path, devices))
            except (FileNotFoundError, NotADirectoryError):  # it is one of the turns
                continue
            except PermissionError as error:
                # What others own above the code, they will not move; of a closed folder the one above it tells.
                if mask != _PASSED and path not in way.turns:
                    raise Unwatchable(f"the system does not let us watch {path}") from error
            except OSError as error:
                if error.errno == errno.ELOOP:
                    continue
                raise Unwatchable(_limit(error)) from error
        return watches

    def _sort(self, event: InotifyEvent) -> None:
        if event.mask & inotify.OVERFLOW:
            self._lost = True
        for watched in self._paths.get(event.watch, ()):
            path = os.path.join(watched, event.name) if event.name else watched
            self._files.update(self._way.owners.get(path, ()))
            if event.name:
                self._listing = self._listing or self._may_change_the_list(event, path)
            elif watched not in self._way.shared or event.mask & _GONE:
                self._listing = True

    def _may_change_the_list(self, event: InotifyEvent, path: str) -> bool:
        way = self._way
        if path in way.turns:
            return True
        inside = os.path.dirname(path) in self._folders
        if event.mask & inotify.IS_FOLDER:
            return inside or path in self._watches or path in way.owners
        if not event.mask & _COMING:  # that a file has gone is found when it is read
            return False
        if path in way.owners:
            return path in way.shared or _is_special(path)
        if not inside:
            return False
        return self._endings is None or os.path.splitext(path)[1].lower() in self._endings or _is_special(path)


class _WatchedPaths:
    """How the paths of a package are reached: through which folders and links, and where nothing is yet."""

    def __init__(self) -> None:
        self.folders: set[str] = set()  # what happens in them is of interest
        self.passed: set[str] = set()  # folders of which only that they stay where they are
        # Links, what is missing or closed, files that decide: if one changes, the list may.
        self.turns: set[str] = set()
        self.shared: set[str] = set()  # files with several names: when another is used, the folder tells nothing
        self.owners: dict[str, list[str]] = {}  # by path: the keys of the sources whose content is there
        self._known: set[str] = set()  # folders on the way
        self._linked: list[str] = []  # where links on the way lead to

    def follow(self, sources: Sources) -> None:
        for name, path in sources.files.items():
            for place in self._trace(path):
                self.owners.setdefault(place, []).append(name)
                self.folders.add(os.path.dirname(place))
        for path in sources.deciding:
            for place in self._trace(path):
                self._turn(place)
        for path in sources.folders:
            if not os.access(path, os.R_OK, effective_ids=True):
                self._turn(path)  # until it is opened to us
        self._linked += sources.folders
        while self._linked:
            self._trace(self._linked.pop())

    def _trace(self, path: str) -> list[str]:
        """The path, and where it leads to as a link, step by step; notes all that is on the way."""
        places: list[str] = []
        while len(places) < MAX_LINKS:
            places.append(path)
            above = os.path.dirname(path)
            while above not in self._known:  # the last one is its own parent
                self._known.add(above)
                leads_to = self._note(above)
                if leads_to is not None:
                    self._linked.append(leads_to)
                above = os.path.dirname(above)
            target = self._note(path)
            if target is None:
                break
            path = target
        return places

    def _note(self, path: str) -> str | None:
        """What is there; where to, if that is a link. Not tidied: `..` behind a link leads elsewhere than it looks."""
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                self._turn(path)
                return os.path.join(os.path.dirname(path), os.readlink(path))
        except OSError:
            self._turn(path)
            return None
        if stat.S_ISDIR(status.st_mode):
            self.passed.add(path)
        elif status.st_nlink > 1:
            self.shared.add(path)
        return None

    def _turn(self, path: str) -> None:
        self.turns.add(path)
        self.folders.add(os.path.dirname(path))


def _is_special(path: str) -> bool:
    """Whether this is more than a file with one name: a link, which may lead to a folder, looks like one in events."""
    try:
        status = os.lstat(path)
    except OSError:  # gone again
        return False
    return not stat.S_ISREG(status.st_mode) or status.st_nlink > 1


def _check_device(path: str, known: set[int]) -> int:
    """The number of the device; raises Unwatchable if changes there are not reported."""
    device = os.stat(path).st_dev
    if device not in known:
        kind = file_system_of(_mounts(), os.path.realpath(path))
        if not reports_changes(kind):
            raise Unwatchable(f"{path} is on a file system ({kind or 'unknown'}) that does not report all changes")
    return device


def _mounts() -> str:
    try:
        with open(MOUNTS_FILE, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except OSError:  # there is no /proc
        return ""


def _limit(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the user's limit of watches is reached (fs.inotify.max_user_watches)"
    if error.errno == errno.EMFILE:
        return "the user's limit of watchers is reached (fs.inotify.max_user_instances)"
    return f"the system does not let us watch: {error}"
