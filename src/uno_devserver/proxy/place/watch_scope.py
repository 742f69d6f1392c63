"""Which folders and files decide what a workspace is, as they lie on disk now.

A recursive watch would put one on every folder of `node_modules` and `bin`. What can matter is little: the folders in
which solutions are looked for, the restore folders of projects, `.devtools`, and the way up to the root. The number of
folders is bounded, whatever the tree looks like.
"""

from __future__ import annotations

import os
from collections import deque
from stat import S_ISREG
from typing import TYPE_CHECKING

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
    from collections.abc import Iterable, Mapping

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
