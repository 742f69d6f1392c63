"""Folders and JSON files, each read once for one listing of sources; and paths as TypeScript writes them.

These paths are absolute, with forward slashes on every system, without `.` and `..`. The folders that were read are
remembered, because a file that appears in one of them may be the target of an import. What cannot be read is treated as
missing, and reported; only the end of the budget raises.
"""

from __future__ import annotations

import os
import posixpath
import re
from enum import IntEnum

from ....system import jsonc
from ....system.files import FileProblem
from ....workspace.repository import ReadBudget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_CONFIG_BYTES = 4 * 1024 * 1024  # a tsconfig.json or package.json has a few KB
MAX_PROBLEMS = 50  # one broken folder may be the cause of all of them
# The extensions that files of one module can have, the preferred ones first.
TYPESCRIPT_GROUPS = ((".ts", ".tsx", ".d.ts"), (".cts", ".d.cts"), (".mts", ".d.mts"))
ALL_GROUPS = ((".ts", ".tsx", ".d.ts", ".js", ".jsx"), (".cts", ".d.cts", ".cjs"), (".mts", ".d.mts", ".mjs"))
DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs")
_PLAIN = frozenset((".ts", ".tsx", ".mts", ".cts", *JAVASCRIPT, ".json"))
_DRIVE = re.compile(r"[A-Za-z]:(?:/|$)")
IN_NODE_MODULES = "/node_modules/"
_NOTHING: Mapping[str, EntryKind] = {}


class EntryKind(IntEnum):
    FILE = 0
    FOLDER = 1
    LINKED_FOLDER = 2  # a link, so its real path differs


class Disk:
    """A view of the disk that does not change during its life."""

    def __init__(self, case_sensitive: bool = True, budget: ReadBudget | None = None) -> None:
        self.case_sensitive = case_sensitive
        self.budget = budget or ReadBudget()
        self.folders: set[str] = set()  # the folders that were read
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
        """The names in a folder; none if it does not exist or cannot be read."""
        found = self._entries.get(folder)
        if found is None:
            found = self._entries[folder] = self._read(folder)
        return found

    def is_file(self, path: str) -> bool:
        return self._kind(path) is EntryKind.FILE

    def is_folder(self, path: str) -> bool:
        return self._kind(path) in (EntryKind.FOLDER, EntryKind.LINKED_FOLDER)

    def has(self, path: str, *, folder: bool) -> bool:
        """Whether a file or folder exists; does not read its parent, which may be a large folder above the project."""
        if folder_of(path) in self._entries:
            return self.is_folder(path) if folder else self.is_file(path)
        if path not in self._stats:
            self.budget.path(path)
            self._stats[path] = os.path.isdir(native(path)) if folder else os.path.isfile(native(path))
        return self._stats[path]

    def real(self, path: str) -> str:
        try:
            return slashed(os.path.realpath(native(path)))
        except (OSError, ValueError):  # an impossible name
            return path

    def package(self, folder: str) -> dict[str, object] | None:
        """The content of the folder's `package.json`; empty if it is invalid, None if there is none."""
        if folder not in self._packages:
            path = f"{folder.rstrip('/')}/package.json"
            self._packages[folder] = self.configuration(path) if self.has(path, folder=False) else None
        return self._packages[folder]

    def scope(self, folder: str) -> str | None:
        """The folder of the nearest `package.json` at or above `folder`: the package of the files there."""
        found, passed = None, []
        for above in upwards(folder):
            if above in self._scopes:
                found = self._scopes[above]
                break
            passed.append(above)
            if self.package(above) is not None:
                found = above
                break
        self._scopes.update(dict.fromkeys(passed, found))
        return found

    def configuration(self, path: str) -> dict[str, object]:
        """The object in a JSON file with comments; if there is none, that is reported and the result is empty."""
        self.deciding.add(path)
        try:
            text = self.budget.read(native(path), MAX_CONFIG_BYTES)
            value = _parse(text)
        except FileNotFoundError:
            self.say(f"{path} no longer exists; the default settings apply instead.")
            return {}
        except FileProblem as problem:
            self.say(f"{path} cannot be read: {problem.reason}; the default settings apply instead.")
            return {}
        except jsonc.JsonProblem as problem:
            self.say(f"{path} is not JSON: {problem}; the default settings apply until it is corrected.")
            return {}
        if isinstance(value, list) and value:
            value = value[0]  # as TypeScript does, without a message
        if not isinstance(value, dict):
            self.say(f"{path} does not contain a JSON object; the default settings apply until it is corrected.")
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
            self.say(f"The folder {folder} cannot be read: {reason}; its files are ignored.")
            return _NOTHING
        self.budget.path(folder, *entries)
        self.folders.add(folder)
        return entries


def _kind_of(entry: os.DirEntry[str]) -> EntryKind | None:
    """The kind of an entry; None if it is neither a file nor a folder, such as a broken link or a socket."""
    try:
        if entry.is_file():
            return EntryKind.FILE
        if entry.is_dir():
            return EntryKind.LINKED_FOLDER if entry.is_symlink() else EntryKind.FOLDER
    except OSError:  # a loop of links
        pass
    return None


def _parse(text: bytes) -> object:
    """Parse JSON; an empty file gives an empty object, as in TypeScript."""
    return jsonc.parse(text) if text.strip() else {}


def slashed(path: str) -> str:
    """A path of this system, as TypeScript writes it."""
    return path.replace("\\", "/") if os.sep == "\\" else path


def native(path: str) -> str:
    """A path of TypeScript, as this system writes it."""
    return path.replace("/", "\\") if os.sep == "\\" else path


def rooted(path: str) -> bool:
    return path.startswith("/") or _DRIVE.match(path) is not None


def absolute(path: str, base: str) -> str:
    """`path`, which may be relative to `base`; a slash at its end is dropped."""
    whole = path if rooted(path) else f"{base}/{path}"
    if "/." in whole or "//" in whole or whole.endswith("/"):
        whole = posixpath.normpath(whole)
        return whole[1:] if whole.startswith("//") else whole
    return whole


def folder_of(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def upwards(folder: str) -> Iterator[str]:
    """The folder, then each of its parents."""
    while True:
        yield folder
        above = folder_of(folder)
        if above == folder:
            return
        folder = above


def name_of(path: str) -> str:
    return path[path.rfind("/") + 1 :]


def is_relative(name: str) -> bool:
    """Whether the name of a module is a path relative to the importing file."""
    return name in (".", "..") or name.startswith(("./", "../"))


def within(folder: str, path: str) -> bool:
    """Whether `path` is the folder or is below it."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def extension_of(path: str) -> str:
    """The extension by which TypeScript recognises a file; empty for other files."""
    dot = path.rfind(".")
    last = path[dot:]
    if last not in _PLAIN:
        return ""
    declaration = f".d{last}"
    return declaration if declaration in DECLARATIONS and path.endswith(".d", 0, dot) else last
