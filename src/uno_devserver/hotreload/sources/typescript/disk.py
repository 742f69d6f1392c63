"""What lies on the disk, looked at once per listing: folders, `package.json` files, and what was wrong with them.

Each folder is read once, however many imports are looked for in it, and remembered, because a file that appears there
may be the one that an import means. Nothing here raises: what cannot be read is as good as not there, and is said.
"""

from __future__ import annotations

import os
from enum import IntEnum

from ....system import jsonc
from ....system.files import FileProblem, read_bytes
from .paths import folder_of, name_of, native, slashed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CONFIG_BYTES = 4 * 1024 * 1024  # a tsconfig.json or package.json has some KB; what is larger is something else
MAX_PROBLEMS = 50  # nobody reads more, and one broken folder may be behind all of them
_NOTHING: Mapping[str, EntryKind] = {}


class EntryKind(IntEnum):
    FILE = 0
    FOLDER = 1
    LINKED_FOLDER = 2  # its real path is not its parent's with its name


class Disk:
    """One look at the disk: what it has said once stays true for its whole life."""

    def __init__(self, case_sensitive: bool = True) -> None:
        self.case_sensitive = case_sensitive
        self.folders: set[str] = set()  # that were read
        self.deciding: set[str] = set()  # configuration files that were read
        self.problems: dict[str, None] = {}  # sentences, in the order in which they were found
        self._entries: dict[str, Mapping[str, EntryKind]] = {}
        self._folded: dict[str, Mapping[str, EntryKind]] = {}
        self._packages: dict[str, dict[str, object] | None] = {}
        self._scopes: dict[str, str | None] = {}
        self._stats: dict[str, bool] = {}

    def say(self, problem: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems[problem] = None

    def entries(self, folder: str) -> Mapping[str, EntryKind]:
        """The names in a folder; none if it is not there, or cannot be read."""
        found = self._entries.get(folder)
        if found is None:
            found = self._entries[folder] = self._read(folder)
        return found

    def is_file(self, path: str) -> bool:
        return self._kind(path) is EntryKind.FILE

    def is_folder(self, path: str) -> bool:
        return self._kind(path) in (EntryKind.FOLDER, EntryKind.LINKED_FOLDER)

    def has(self, path: str, *, folder: bool) -> bool:
        """Whether a file or folder is there, without reading the folder that it is in: that may be a large one above
        the project, and what else appears there is no concern of ours."""
        if folder_of(path) in self._entries:
            return self.is_folder(path) if folder else self.is_file(path)
        if path not in self._stats:
            self._stats[path] = os.path.isdir(native(path)) if folder else os.path.isfile(native(path))
        return self._stats[path]

    def real(self, path: str) -> str:
        try:
            return slashed(os.path.realpath(native(path)))
        except (OSError, ValueError):  # a name that no file can have
            return path

    def package(self, folder: str) -> dict[str, object] | None:
        """The content of the folder's `package.json`: empty where that is broken, None where there is none."""
        if folder not in self._packages:
            path = f"{folder.rstrip('/')}/package.json"
            self._packages[folder] = self.configuration(path) if self.has(path, folder=False) else None
        return self._packages[folder]

    def scope(self, folder: str) -> str | None:
        """The folder of the nearest `package.json` at or above `folder`: the package that files there belong to."""
        passed = []
        while folder not in self._scopes:
            passed.append(folder)
            above = folder_of(folder)
            if self.package(folder) is not None:
                self._scopes[folder] = folder
            elif above == folder:
                self._scopes[folder] = None
            else:
                folder = above
        found = self._scopes[folder]
        self._scopes.update(dict.fromkeys(passed, found))
        return found

    def configuration(self, path: str) -> dict[str, object]:
        """The object in a JSON file with comments; empty, and a problem, where there is none."""
        self.deciding.add(path)
        try:
            text = read_bytes(native(path), MAX_CONFIG_BYTES)
            value = _parse(text)
        except FileNotFoundError:
            self.say(f"{path} is not there any more; the default settings are taken instead.")
            return {}
        except FileProblem as problem:
            self.say(f"{path} cannot be read: {problem.reason}; the default settings are taken instead.")
            return {}
        except jsonc.JsonProblem as problem:
            self.say(f"{path} is not JSON: {problem}; the default settings are taken until it is corrected.")
            return {}
        if isinstance(value, list) and value:
            value = value[0]  # TypeScript reads it so, and says nothing
        if not isinstance(value, dict):
            self.say(f"{path} holds no JSON object; the default settings are taken until it is corrected.")
            return {}
        return value

    def _kind(self, path: str) -> EntryKind | None:
        folder, name = folder_of(path), name_of(path)
        if self.case_sensitive:
            return self.entries(folder).get(name)
        if folder not in self._folded:
            self._folded[folder] = {key.lower(): kind for key, kind in self.entries(folder).items()}
        return self._folded[folder].get(name.lower())

    def _read(self, folder: str) -> Mapping[str, EntryKind]:
        entries: dict[str, EntryKind] = {}
        try:
            with os.scandir(native(folder)) as listed:
                for entry in listed:
                    kind = _kind_of(entry)
                    if kind is not None:
                        entries[entry.name] = kind
        except (FileNotFoundError, NotADirectoryError):
            return _NOTHING
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            self.say(f"The folder {folder} cannot be read: {reason}; what is in it does not count.")
            return _NOTHING
        self.folders.add(folder)
        return entries


def _kind_of(entry: os.DirEntry[str]) -> EntryKind | None:
    """None for what is neither a file nor a folder: a broken link, a socket."""
    try:
        if entry.is_file():
            return EntryKind.FILE
        if entry.is_dir():
            return EntryKind.LINKED_FOLDER if entry.is_symlink() else EntryKind.FOLDER
    except OSError:  # a loop of links
        pass
    return None


def _parse(text: bytes) -> object:
    """An empty file is an empty object, as for TypeScript."""
    return jsonc.parse(text) if text.strip() else {}
