"""Watches the sources of a package with inotify; the next call reports every write that has returned.

It watches the folders that were read, those of all sources and deciding files, and each link and folder on the way to
them. Events that cannot change the sources (a log next to the code, an editor's swap file) are dropped; all others are
reported, because the caller compares contents anyway.

It does not notice a write through a hard link that was created after the file was last read.
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

# Writing to mapped memory causes no MODIFY, but CLOSE_WRITE at the end. ATTRIB: the permission to read may change; a
# `touch` only causes one more read.
_CONTENT = inotify.MODIFY | inotify.CLOSE_WRITE | inotify.ATTRIB
_COMING = inotify.CREATE | inotify.MOVED_TO
_GOING = inotify.DELETE | inotify.MOVED_FROM
_SELF = inotify.DELETE_SELF | inotify.MOVE_SELF
_WRITTEN = inotify.MODIFY | _COMING  # `touch` causes CLOSE_WRITE
_GONE = _SELF | inotify.UNMOUNT | inotify.IGNORED
_IN_FOLDER = _CONTENT | _COMING | _GOING | _SELF | inotify.ONLY_FOLDERS
_ANCESTOR = _SELF | inotify.ONLY_FOLDERS
MAX_LINKS = 40  # links that lead to links; the limit of Linux


class Unwatchable(Exception):
    """Some sources cannot be watched, so reports would be incomplete; the text says why, without a full stop."""


class SeenChanges(Value):
    files: frozenset[str]  # keys of Sources.files whose content may have changed
    listing: bool  # the set of files may have changed


NOTHING = SeenChanges(frozenset(), False)


class SourceWatch:
    """Must be used by one thread at a time."""

    def __init__(self) -> None:
        try:
            self._inotify = Inotify()
        except OSError as error:
            raise Unwatchable(error.strerror) from error
        self._watched = _WatchedPaths()
        self._folders: frozenset[str] = frozenset()
        self._endings: frozenset[str] | None = None
        self._paths: dict[int, list[str]] = {}  # by watch; links may lead to one folder by several paths
        self._watches: dict[str, int] = {}
        self._files: set[str] = set()
        self._listing = self._lost = False
        self._outputs: frozenset[str] = frozenset()
        self.output_is_newest = False  # whether an output was written, and no source changed after that

    def cover(self, sources: Sources) -> bool:
        """Watch these sources from now on; return whether all were watched before, so that the list is up to date.

        Raises Unwatchable.
        """
        paths = _WatchedPaths()
        paths.follow(sources)
        watches = self._add(paths, sources)
        same = watches == self._watches and paths.decisive == self._watched.decisive
        for watch in set(self._watches.values()).difference(watches.values()):
            self._inotify.remove(watch)
        self._watched, self._watches = paths, watches
        self._folders, self._endings, self._outputs = sources.folders, sources.endings, sources.outputs
        self._paths = {}
        for path, watch in watches.items():
            self._paths.setdefault(watch, []).append(path)
        return same

    def news(self) -> bool:
        """Whether there are changes that `take` has not returned yet."""
        for event in self._inotify.read():
            self._sort(event)
        return self._lost or self._listing or bool(self._files)

    def take(self) -> SeenChanges | None:
        """The changes since the last call; None if they are unknown, so everything may have changed."""
        if not self.news():
            return NOTHING
        seen = None if self._lost else SeenChanges(frozenset(self._files), self._listing)
        self._files.clear()
        self._listing = self._lost = False
        return seen

    def distrust(self) -> None:
        """Let the next `take` return None."""
        self._lost = True

    def close(self) -> None:
        self._inotify.close()

    def _add(self, paths: _WatchedPaths, sources: Sources) -> dict[str, int]:
        watches: dict[str, int] = {}
        devices: set[int] = set()
        wanted = [(path, _ANCESTOR) for path in paths.ancestors]
        outputs = set(map(os.path.dirname, sources.outputs))
        wanted += [(path, _IN_FOLDER) for path in paths.folders | sources.folders | outputs]
        wanted += [(path, _CONTENT | _SELF) for path in paths.hard_linked]
        for path, mask in wanted:
            try:
                watches[path] = self._inotify.add(path, mask)
                if mask != _ANCESTOR:
                    devices.add(_check_device(path, devices))
            except (FileNotFoundError, NotADirectoryError):  # its path is watched as a deciding one
                continue
            except PermissionError as error:
                # Other users' folders above the code are rarely moved; an unreadable folder is reported by its parent.
                if mask != _ANCESTOR and path not in paths.decisive:
                    raise Unwatchable(f"the system does not let us watch {path}") from error
            except OSError as error:
                if error.errno == errno.ELOOP:
                    continue
                raise Unwatchable(error.strerror) from error
        return watches

    def _sort(self, event: InotifyEvent) -> None:
        if event.mask & inotify.OVERFLOW:
            self._lost, self.output_is_newest = True, False
        for watched in self._paths.get(event.watch, ()):
            path = os.path.join(watched, event.name) if event.name else watched
            if path in self._outputs and event.mask & _WRITTEN:
                self.output_is_newest = True
            elif path in self._watched.owners or path in self._watched.decisive:
                self.output_is_newest = False
            self._files.update(self._watched.owners.get(path, ()))
            if event.name:
                self._listing = self._listing or self._may_change_the_list(event, path)
            elif watched not in self._watched.hard_linked or event.mask & _GONE:
                self._listing = True

    def _may_change_the_list(self, event: InotifyEvent, path: str) -> bool:
        paths = self._watched
        if path in paths.decisive:
            return True
        inside = os.path.dirname(path) in self._folders
        if event.mask & inotify.IS_FOLDER:
            return inside or path in self._watches or path in paths.owners
        if not event.mask & _COMING:  # a missing file is noticed when it is read
            return False
        if path in paths.owners:
            return path in paths.hard_linked or _is_special(path)
        if not inside:
            return False
        return self._endings is None or _ending(path) in self._endings or _is_special(path)


class _WatchedPaths:
    """The folders and links on the paths to the sources of a package, and the paths that do not exist yet."""

    def __init__(self) -> None:
        self.folders: set[str] = set()  # folders whose entries are watched
        self.ancestors: set[str] = set()  # folders of which only moves and removals are watched
        # Links, missing and unreadable paths, deciding files: if one of them changes, the list of sources may change.
        self.decisive: set[str] = set()
        self.hard_linked: set[str] = (
            set()
        )  # files with other names, through which writes are not reported by the folder
        self.owners: dict[str, list[str]] = {}  # by path: the keys of the sources with this content
        self._known: set[str] = set()  # folders that were followed
        self._linked: list[str] = []  # targets of links that are still to be followed

    def follow(self, sources: Sources) -> None:
        for name, path in sources.files.items():
            for place in self._trace(path):
                self.owners.setdefault(place, []).append(name)
                self.folders.add(os.path.dirname(place))
        for path in sources.deciding:
            for place in self._trace(path):
                self._note_decisive(place)
        for path in sources.folders:
            if not os.access(path, os.R_OK, effective_ids=True):
                self._note_decisive(path)  # the user may get permission to read it
        self._linked += sources.folders
        while self._linked:
            self._trace(self._linked.pop())

    def _trace(self, path: str) -> list[str]:
        """The path and, if it is a link, the places that it leads to; notes all folders and links on the way."""
        places: list[str] = []
        while len(places) < MAX_LINKS:
            places.append(path)
            above = os.path.dirname(path)
            while above not in self._known:  # the root folder is its own parent
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
        """Note what the path is; return a link's target, not normalised, because `..` after a link leads elsewhere."""
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                self._note_decisive(path)
                return os.path.join(os.path.dirname(path), os.readlink(path))
        except OSError:
            self._note_decisive(path)
            return None
        if stat.S_ISDIR(status.st_mode):
            self.ancestors.add(path)
        elif status.st_nlink > 1:
            self.hard_linked.add(path)
        return None

    def _note_decisive(self, path: str) -> None:
        self.decisive.add(path)
        self.folders.add(os.path.dirname(path))


def _ending(path: str) -> str:
    """The name from its last dot on; all of it for a name like `.env`."""
    name = os.path.basename(path)
    return name[name.rfind(".") :].lower() if "." in name else ""


def _is_special(path: str) -> bool:
    """Whether this is not a plain file with one name; events do not tell links to folders from files."""
    try:
        status = os.lstat(path)
    except OSError:  # removed meanwhile
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
