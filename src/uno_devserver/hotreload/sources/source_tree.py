"""The files below the root of a package, found folder by folder.

Links are followed, and each real folder is looked into once: first by its own path, then through a link, so a link that
leads back ends there. The work is bounded. What could not be looked into is told, and the rest counts.
"""

from __future__ import annotations

import os

from ...system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .globs import Globs

    # Given a folder's path from the root and the names in it: which folders in there are passed over; None: all of it.
    Passes = Callable[[str, Collection[str]], Collection[str] | None]
    Takes = Callable[[str], bool]
    from collections.abc import Mapping

MAX_FILES = 100_000
MAX_FOLDERS = 50_000
NEVER = frozenset({"node_modules", "__pycache__", "site-packages"})  # what others wrote, or a compiler


def hidden_and_foreign(names: Collection[str]) -> set[str]:
    return {name for name in names if name[0] == "." or name in NEVER}


class SourceTree:
    """Collects what is found below a root; as often as a walk begins."""

    def __init__(self, root: str, excluded: Globs) -> None:
        self.root = root
        self.files: dict[str, str] = {}
        self.folders: set[str] = set()
        self.deciding: set[str] = set()
        self.problems: list[str] = []
        self._excluded = excluded

    def walk(self, start: str, takes: Takes, passes: Passes, *, deciding: Collection[str] = ()) -> None:
        """All that `takes` says yes to, below the folder `start`: a path from the root, or empty.

        Files that are named in `deciding` are kept as such.
        """
        seen: set[tuple[int, int]] = set()
        own, linked = [start], list[str]()
        while own or linked:
            folder = own.pop() if own else linked.pop(0)
            path = self.path(folder)
            entries = self._entries(path, seen)
            if entries is None:
                continue
            names = {entry.name for entry in entries}
            self.deciding.update(os.path.join(path, name) for name in names.intersection(deciding))
            passed = passes(folder, names)
            if passed is None:
                continue
            prefix = folder + "/" if folder else ""
            for entry in entries:
                relative = prefix + entry.name
                try:
                    is_link = entry.is_symlink()
                    if entry.is_dir():
                        if entry.name not in passed and not self._excluded.describe(relative):
                            (linked if is_link else own).append(relative)
                        continue
                    if entry.is_file():
                        if takes(relative) and not self._excluded.describe(relative):
                            self.files[relative] = entry.path
                    elif is_link:  # where it leads to may come into being
                        self.deciding.add(entry.path)
                except OSError:  # a link in a circle, or into a folder that is not ours to read
                    self.deciding.add(entry.path)
            if len(self.files) > MAX_FILES or len(self.folders) > MAX_FOLDERS:
                self.problems.append(
                    f"{self.root} has more than {MAX_FILES:,} source files or {MAX_FOLDERS:,} folders; "
                    "the rest is not watched. Leave folders out with hotReload.exclude."
                )
                return

    def add(self, relative: str) -> None:
        """One file, if there is such a one; else its coming is awaited."""
        path = self.path(relative)
        if not os.path.isfile(path):
            self.deciding.add(path)
        elif not self._excluded.describe(relative):
            self.files[relative] = path

    def adopt(self, found: Sources) -> None:
        """What another finder has found, but for what is excluded."""
        excluded = self._excluded.describe
        self.files.update((relative, path) for relative, path in found.files.items() if not excluded(relative))
        self.folders |= found.folders
        self.deciding |= found.deciding
        self.problems += found.problems

    def path(self, relative: str) -> str:
        return os.path.join(self.root, *relative.split("/")) if relative else self.root

    def sources(self, endings: frozenset[str] | None) -> Sources:
        return Sources(
            self.root,
            self.files,
            frozenset(self.folders),
            frozenset(self.deciding),
            tuple(dict.fromkeys(self.problems)),
            endings,
        )

    def _entries(self, path: str, seen: set[tuple[int, int]]) -> list[os.DirEntry[str]] | None:
        """None: there is no such folder, or it was looked into already."""
        self.folders.add(path)
        try:
            status = os.stat(path)
            identity = (status.st_dev, status.st_ino)
            if identity in seen:
                return None
            seen.add(identity)
            with os.scandir(path) as entries:
                return sorted(entries, key=_name)
        except (FileNotFoundError, NotADirectoryError):  # gone since it was named
            return None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self.problems.append(f"The folder {path} cannot be read ({reason}), so its files do not count.")
            return None


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


class Sources(Value):
    """The code of one package, as it lies on disk now. All paths are absolute but for the keys of `files`."""

    root: str
    # By the path relative to the root, with forward slashes, also on Windows; a file beside the root begins with `../`.
    files: Mapping[str, str]
    folders: frozenset[str]  # that were looked into: what appears in one of them may be a source
    deciding: frozenset[str] = frozenset()  # files that decide which others count: tsconfig.json and what it extends
    problems: tuple[str, ...] = ()  # sentences: what could not be read, and what was taken instead
    # How the names of all that may count end, from the last dot on, in small letters; None: in any way. What appears in
    # one of the folders under another name is no reason to look at all of them again.
    endings: frozenset[str] | None = None
