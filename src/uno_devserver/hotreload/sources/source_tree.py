"""Collects the files below the root of a package.

Links are followed; those that patterns meet only inside the given folders, because a pattern may lead anywhere. Each
real folder is read once, by its own path if it is below the root, otherwise through a link; a link to a folder that was
read, or to one around the root, adds nothing. The budget of the look limits the number of files and folders. What
cannot be read is reported and left out.
"""

from __future__ import annotations

import os
import posixpath

from ...system.values import Value
from ...workspace.repository import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ...workspace.repository import ReadBudget
    from .globs import Globs

    # Takes a folder's path below the root and the names in it; returns the folders to skip, None for the folder itself.
    Skipped = Callable[[str, Collection[str]], Collection[str] | None]

FOREIGN = frozenset({"node_modules", "__pycache__", "site-packages"})  # packages of others, and compiled code


class SourcePackage(Value):
    """One of the packages whose files are the code of a package."""

    root: str
    kind: str
    files: int  # how many files of it count


class Sources(Value):
    """The source files of a package, as they are on disk now. All paths are absolute except the keys of `files`."""

    root: str
    # The keys are relative to the root, with forward slashes on every system; those outside the root begin with `../`.
    files: Mapping[str, str]
    folders: frozenset[str]  # the folders that were read; a file that appears in one of them may be a source
    deciding: frozenset[str] = frozenset()  # files that decide which others are sources, such as tsconfig.json
    problems: tuple[str, ...] = ()  # sentences that say what could not be read, and what is used instead
    # The endings of all names that may be sources, from the last dot on, in lower case; None: any. If files with other
    # endings appear in the folders, the sources need not be listed again.
    endings: frozenset[str] | None = None
    packages: tuple[SourcePackage, ...] = ()  # the package itself, then those of the same repository that it uses
    outputs: frozenset[str] = frozenset()  # files that are started and built from the sources; only writes are watched


class SourceTree:
    """The files found so far below a root. `base` is the path from which `exclude` counts to the root, or empty."""

    def __init__(self, root: str, exclude: Globs, budget: ReadBudget, base: str = "") -> None:
        self.root = root
        self.budget = budget
        self.exclude = exclude
        self._base = base
        self.files: dict[str, str] = {}
        self.folders: set[str] = set()
        self.deciding: set[str] = set()
        self.problems: list[str] = []
        self._led_out = False  # whether a link was reported that leads out

    def walk(
        self,
        start: str,
        wanted: Callable[[str], object],
        skipped: Skipped,
        *,
        deciding: Collection[str] = (),
        within: Collection[str] = (),
    ) -> None:
        """Add all files that are `wanted` below the folder `start`: a path from the root, or empty.

        Files with a name in `deciding` are added as deciding files. Links are followed into the folders `within`, real
        paths, if there are any; a problem names the first one that leads elsewhere.
        """
        seen: set[tuple[int, int]] = set()
        root = os.path.realpath(self.root)
        own, linked = [start], list[str]()
        while own or linked:
            folder = own.pop() if own else linked.pop(0)
            path = self.path(folder)
            entries = self._entries(path, seen)
            if entries is None:
                continue
            names = {entry.name for entry in entries}
            self.deciding.update(os.path.join(path, name) for name in names.intersection(deciding))
            skipped_here = skipped(folder, names)
            if skipped_here is None:
                continue
            prefix = folder + "/" if folder else ""
            for entry in entries:
                relative = prefix + entry.name
                try:
                    is_link = entry.is_symlink()
                    if entry.is_dir():
                        counts = entry.name not in skipped_here and not self.excludes(relative)
                        real = os.path.realpath(entry.path) if counts and is_link else ""
                        if counts and not (
                            real and (is_inside(root, real) or self._leads_out(entry.path, real, within))
                        ):
                            (linked if is_link else own).append(relative)
                        continue
                    if entry.is_file():
                        counts = bool(wanted(relative)) and not self.excludes(relative)
                        real = os.path.realpath(entry.path) if counts and is_link else ""
                        if counts:
                            self.budget.path(entry.path)
                        if counts and not (real and self._leads_out(entry.path, real, within)):
                            self.files[relative] = entry.path
                    elif is_link:  # a broken link, whose target may appear
                        self.budget.path(entry.path)
                        self.deciding.add(entry.path)
                except OSError:  # a loop of links, or a target that this user may not read
                    self.deciding.add(entry.path)

    def add(self, relative: str) -> None:
        """Add one file; if it does not exist, add its path as a deciding one, because the file may appear."""
        path = self.path(relative)
        if not os.path.isfile(path):
            self.deciding.add(path)
        elif not self.excludes(relative):
            self.files[relative] = path

    def _leads_out(self, path: str, real: str, within: Collection[str]) -> bool:
        """Whether the real path is outside of the folders that bound the search; reports the first one."""
        if not within or any(is_inside(real, folder) for folder in within):
            return False
        if not self._led_out:
            self._led_out = True
            self.problems.append(f"{path} is a link out of the workspace and its repository; no pattern follows it.")
        return True

    def add_matching(self, globs: Globs, within: Collection[str]) -> None:
        """Add all files that match, in hidden folders and in those of others only where a pattern names them.

        Links are followed into the folders `within`, and to a file that a pattern names without a wildcard.
        """

        def skipped(_folder: str, names: Collection[str]) -> Collection[str]:
            return {name for name in hidden_and_foreign(names) if not globs.name_folder(name)}

        for start, matches in globs.by_start().items():
            if os.path.isdir(path := self.path(start)):
                if not self._leads_out(path, os.path.realpath(path), within):
                    self.walk(start, matches, skipped, within=within)
            else:
                self.add(start)

    def excludes(self, relative: str) -> bool:
        return self.exclude.match(posixpath.normpath(f"{self._base}/{relative}") if self._base else relative)

    def path(self, relative: str) -> str:
        if relative == ".." or relative.startswith(
            "../"
        ):  # what is above the root does not depend on the link that leads to the root
            return os.path.normpath(os.path.join(os.path.realpath(self.root), *relative.split("/")))
        return os.path.join(self.root, *relative.split("/")) if relative else self.root

    def sources(self, endings: frozenset[str] | None, packages: tuple[SourcePackage, ...] = ()) -> Sources:
        return Sources(
            self.root,
            self.files,
            frozenset(self.folders),
            frozenset(self.deciding),
            tuple(dict.fromkeys(self.problems)),
            endings,
            packages,
        )

    def _entries(self, path: str, seen: set[tuple[int, int]]) -> list[os.DirEntry[str]] | None:
        """The entries of a folder; None if there is no such folder or it was read before."""
        self.folders.add(path)
        try:
            status = os.stat(path)
            identity = (status.st_dev, status.st_ino)
            if identity in seen:
                return None
            seen.add(identity)
            with os.scandir(path) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            self.budget.path(path, *(entry.name for entry in found))
            return found
        except (FileNotFoundError, NotADirectoryError):  # removed since it was listed
            return None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self.problems.append(f"The folder {path} cannot be read ({reason}), so its files are ignored.")
            return None


def hidden_and_foreign(names: Collection[str]) -> set[str]:
    return {name for name in names if name[0] == "." or name in FOREIGN}
