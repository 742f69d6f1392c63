"""The folders whose packages may belong to the code of a package: its Git repository, and the workspace folder.

Looking at them happens before the user has agreed to anything, so each look has a budget.
"""

from __future__ import annotations

import os
import time

from ..system.files import is_foreign, names_in, read_bytes
from ..system.values import Value
from .config import can_be_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    T = TypeVar("T")

# The files that a package is known by, each with the command, if any, that builds and runs its code in one step.
# A .NET project is known by the ending of its name.
MANIFESTS = {
    **dict.fromkeys(("package.json", "pyproject.toml", "setup.py", "deno.json", "deno.jsonc"), ""),
    **dict.fromkeys(("Gemfile", "composer.json", "mix.exs", "pom.xml", "build.gradle", "build.gradle.kts"), ""),
    "go.mod": "go run",
    "Cargo.toml": "cargo run",
    "Package.swift": "swift run",
    "build.zig": "zig build run",
}
MAX_PACKAGES = 200  # of one repository that one package uses; large ones have a few dozen
MAX_NAMED = 1000  # packages that one file names; large manifests have some hundred, and each takes a look at the disk
# The budget of one look.
MAX_CHARACTERS = 32_000_000  # of the paths that are asked for, and the names that are listed: 200,000 files
MAX_BYTES = 1024 * 1024 * 1024  # of the files that are read
MAX_SECONDS = 10.0  # of processor time; 20,000 files take 0.1 s, and a busy machine must not change the result


class BudgetSpent(Exception):
    """A look at a repository ends here; the message is the end of a sentence that says why."""


class ReadBudget:
    """Limits the work of one look at a repository. All methods raise BudgetSpent when it is spent."""

    def __init__(self, seconds: float = MAX_SECONDS, clock: Callable[[], float] = time.thread_time) -> None:
        """`clock`: of the thread that looks, or a wall clock if something waits for it."""
        self._characters = MAX_CHARACTERS
        self._bytes = MAX_BYTES
        self._seconds = seconds
        self._clock = clock
        self._end = clock() + seconds
        self._known: dict[str, Any] = {}

    @property
    def is_late(self) -> bool:
        """Whether the time is over: another look may get further, so what this one has found is no result."""
        return self._clock() > self._end

    def check(self) -> None:
        if self.is_late:
            raise BudgetSpent(f"it took more than {self._seconds:g} s")

    def path(self, path: str, *names: str) -> None:
        """Count a path before it is asked for, or kept; with the names of a folder."""
        self._characters -= len(path) + sum(map(len, names))
        if self._characters < 0:
            raise BudgetSpent("there are too many files and folders")
        self.check()

    def read(self, path: str, limit: int) -> bytes:
        """The content of a file, as `read_bytes` returns it."""
        self.path(path)
        content = read_bytes(path, limit)
        self._bytes -= len(content)
        if self._bytes < 0:
            raise BudgetSpent(f"the files have more than {MAX_BYTES >> 20:,} MB")
        return content

    def names(self, folder: str) -> list[str]:
        """The sorted names in a folder; none if it cannot be read."""
        names = names_in(folder)
        self.path(folder, *names)
        return names

    def once(self, path: str, read: Callable[[], T]) -> T:
        """What `read` returns for the file that several packages share; it is called once for each path."""
        if path not in self._known:
            self._known[path] = read()
        found: T = self._known[path]
        return found


class Repository(Value):
    """All paths are real ones, because dependencies are often links."""

    root: str  # of the package that uses the others
    tops: tuple[str, ...]  # the folders that bound the search
    budget: ReadBudget  # of the look that it was made for
    environment: str = ""  # the virtual environment that the package runs in, if it is known

    def packages(self, folder: str, places: Iterable[str]) -> list[str]:
        """The folders at these places, relative to `folder`, that another package of this repository can have."""
        found = (self._real(os.path.join(folder, place)) for place in places if can_be_given(place))
        return [place for place in dict.fromkeys(found) if self._may_use(place) and os.path.isdir(place)]

    def _real(self, path: str) -> str:
        self.budget.path(path)
        return os.path.realpath(path)

    def upwards(self, folder: str) -> Iterator[str]:
        """The folder and its parents, as far as they are in the repository."""
        while self.has(folder):
            self.budget.path(folder)
            yield folder
            above = os.path.dirname(folder)
            if above == folder:
                return
            folder = above

    def has(self, path: str) -> bool:
        return any(is_inside(path, top) for top in self.tops)

    def _may_use(self, folder: str) -> bool:
        # A folder around the package would count everything beside it; from another drive no relative path leads here.
        same_drive = os.path.splitdrive(folder)[0] == os.path.splitdrive(self.root)[0]
        own = "node_modules" not in folder.split(os.sep)
        return same_drive and own and self.has(folder) and not is_inside(self.root, folder)


def repository_of(root: str, workspace: str, environment: str = "", budget: ReadBudget | None = None) -> Repository:
    """The repository of the package in `root`; `workspace` is the workspace folder, or empty."""
    budget = budget or ReadBudget()
    root = os.path.realpath(root)
    tops = [root, *([os.path.realpath(workspace)] if workspace else [])]
    folder = root
    while not belongs_to_us(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:  # there is no repository
            return Repository(root, tuple(tops), budget, environment)
        folder = above
    return Repository(root, (folder, *tops), budget, environment)


def limited(named: Iterable[T], path: str, problems: list[str]) -> Iterator[T]:
    """The first MAX_NAMED of the packages that the file names; if there are more, `problems` gets a sentence."""
    for number, each in enumerate(named):
        if number == MAX_NAMED:
            problems.append(f"{path} names more than {MAX_NAMED:,} packages; edits in the others are not noticed.")
            return
        yield each


def belongs_to_us(path: str) -> bool:
    """Whether a file exists that no other user could have put there; where others may write, they could lure us."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return not is_foreign(status) or os.geteuid() == 0  # root runs what others own as a matter of course


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is the folder or is below it."""
    return path == folder or path.startswith(os.path.join(folder, ""))
