"""Wildcard patterns: finds matching files on disk, and tells whether a path matches.

`*` and `?` match within a name, `**` matches any number of folders. Case is ignored on every system, as in MSBuild;
the folders before the first wildcard are taken literally. The work is limited: visited directory entries and
compared characters are counted, and links that lead back to a visited folder are not followed.

Hand-written: `fnmatch` and `pathlib` treat case, `**` and unreadable folders differently, and have no limit.
"""

from __future__ import annotations

import os

from .paths import WINDOWS, full_path, ignoring_case, to_slashes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .expressions import EvaluationScope

# Longer than any path that a system accepts.
MAX_PATTERN = 4096

# Comparing this many characters takes about as long as visiting an item.
_COMPARISONS_PER_STEP = 10

_ANY_FOLDERS = "**"


class Glob:
    """A pattern: a literal folder, then folder patterns, then a pattern for the file name."""

    def __init__(self, fixed: str, folders: list[str], name: str, pattern: str, base: str) -> None:
        self._fixed = fixed
        self._folders = [ignoring_case(folder) for folder in folders]
        self._name = ignoring_case(name)
        self._pattern = pattern
        self._base = base
        self._start = full_path(fixed or ".", base)
        self._start_names = _names(ignoring_case(self._start))

    def files(
        self, scope: EvaluationScope, excluded: Callable[[str], bool] = lambda _folder: False
    ) -> list[tuple[str, str]]:
        """The matching files on disk, each with its folder relative to the literal part, in MSBuild's order.

        Folders for which `excluded` is true are not read.
        """
        found = [(self._fixed + below + name, below) for below, name in self._walk(scope, excluded)]
        found.sort(key=lambda pair: ignoring_case(pair[0]))
        return found

    def describes(self, path: str, scope: EvaluationScope) -> bool:
        """Whether a path matches the pattern; it need not exist."""
        return self.matches(comparable_names(path, self._base), scope)

    def matches(self, names: list[str], scope: EvaluationScope) -> bool:
        """Whether the path with these `comparable_names` matches the pattern."""
        fixed = self._start_names
        if len(names) <= len(fixed) or not _fits(self._name, names[-1], scope) or names[: len(fixed)] != fixed:
            return False
        return _folders_fit(self._folders, names[len(fixed) : -1], scope)

    def covers(self, folder: str, scope: EvaluationScope) -> bool:
        """Whether all files below a folder match the pattern."""
        is_open = self._name in ("*", "*.*") and self._folders[-1:] == [_ANY_FOLDERS]
        return is_open and self.describes(os.path.join(folder, "*"), scope)

    def _walk(self, scope: EvaluationScope, excluded: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """Yields the relative folder and the name of each matching file."""
        identity = _identity(self._start)
        waiting: list[tuple[str, frozenset[int], tuple[object, ...]]] = [("", self._reached({0}), (identity,))]
        while waiting:
            below, reached, ancestors = waiting.pop()
            folder = os.path.join(self._start, below)
            scope.folders.add(folder.rstrip(os.sep))
            try:
                entries = list(os.scandir(folder))
            except (OSError, ValueError):
                continue  # like MSBuild, a folder that cannot be listed has no files
            for entry in entries:
                # Each further '**' multiplies the work per entry.
                scope.count_entries(max(1, len(reached) // 2), self._pattern)
                name = ignoring_case(entry.name)
                if not _is_folder(entry):
                    if len(self._folders) in reached and _fits(self._name, name, scope):
                        yield below, entry.name
                elif (inside := self._reached(self._advance(reached, name, scope))) and not excluded(entry.path):
                    identity = _identity(entry.path)
                    if identity not in ancestors:
                        waiting.append((f"{below}{entry.name}{os.sep}", inside, (*ancestors, identity)))

    def _advance(self, reached: frozenset[int], name: str, scope: EvaluationScope) -> set[int]:
        """The positions in the folder patterns after one more folder with this name."""
        places = set()
        for place in reached:
            if place < len(self._folders):
                if self._folders[place] == _ANY_FOLDERS:
                    places.add(place)
                elif _fits(self._folders[place], name, scope):
                    places.add(place + 1)
        return places

    def _reached(self, places: set[int]) -> frozenset[int]:
        """The positions, and those after a '**', which may match no folder."""
        for place in sorted(places):
            while place < len(self._folders) and self._folders[place] == _ANY_FOLDERS:
                place += 1
                places.add(place)
        return frozenset(places)


def parse_glob(pattern: str, base: str) -> Glob | None:
    """Parses a pattern relative to the folder `base`; returns None if it is literal for MSBuild."""
    pattern = to_slashes(pattern)
    parts = _split(pattern)
    first_wild = next((place for place, part in enumerate(parts) if has_wildcards(part)), len(parts))
    folders, name = parts[first_wild:-1], parts[-1]
    misplaced = any(_ANY_FOLDERS in part and part != _ANY_FOLDERS for part in parts)
    strange = "..." in pattern or pattern.rfind(":") not in (-1, 1) or len(pattern) > MAX_PATTERN
    if first_wild == len(parts) or ".." in folders or misplaced or strange:
        return None
    if name == _ANY_FOLDERS:
        folders, name = [*folders, _ANY_FOLDERS], "*"
    fixed = pattern[: sum(len(part) + 1 for part in parts[: min(first_wild, len(parts) - 1)])]
    return Glob(fixed, [folder for folder in folders if folder], name, pattern, base)


def comparable_names(path: str, base: str) -> list[str]:
    """The names in the full path, in the form that is compared with patterns."""
    return _names(ignoring_case(full_path(path, base)))


def has_wildcards(text: str) -> bool:
    return "*" in text or "?" in text


def _fits(pattern: str, name: str, scope: EvaluationScope) -> bool:
    """Whether a name matches a pattern; both are in upper case.

    In the worst case the time is the product of their lengths, so the scope counts it in the loop.
    """
    if pattern in ("*", "*.*"):
        return True
    scope.count_steps(min(len(pattern), len(name)) // _COMPARISONS_PER_STEP)
    if pattern[0] == "*" and not has_wildcards(pattern[1:]):  # the most frequent kind
        return name.endswith(pattern[1:])
    place = position = repeated = 0
    star, resume = -1, 0
    while position < len(name):
        if place < len(pattern) and pattern[place] == "*":
            star, resume = place, position
            place += 1
        elif place < len(pattern) and pattern[place] in ("?", name[position]):
            place += 1
            position += 1
        elif star >= 0:
            # The last star matches one more character; earlier stars need not change.
            repeated += 1 + position - resume
            if repeated >= _COMPARISONS_PER_STEP:
                scope.count_steps(repeated // _COMPARISONS_PER_STEP)
                repeated %= _COMPARISONS_PER_STEP
            resume += 1
            place, position = star + 1, resume
        else:
            return False
    return not pattern[place:].strip("*")


def _folders_fit(folders: list[str], names: list[str], scope: EvaluationScope) -> bool:
    """Whether folders match folder patterns, where '**' matches any number of folders."""
    scope.count_steps(len(names) // _COMPARISONS_PER_STEP)
    place = position = 0
    star, resume = -1, 0
    while position < len(names):
        if place < len(folders) and folders[place] == _ANY_FOLDERS:
            star, resume = place, position
            place += 1
        elif place < len(folders) and _fits(folders[place], names[position], scope):
            place += 1
            position += 1
        elif star >= 0:
            if position > resume:
                scope.count_steps(position - resume)
            resume += 1
            place, position = star + 1, resume
        else:
            return False
    return all(folder == _ANY_FOLDERS for folder in folders[place:])


def _names(path: str) -> list[str]:
    return [name for name in _split(path) if name]


def _split(path: str) -> list[str]:
    return (path.replace("\\", "/") if WINDOWS else path).split("/")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _identity(folder: str) -> object:
    """Device and inode, which identify a folder independent of links."""
    try:
        status = os.stat(folder)
    except (OSError, ValueError):
        return folder
    return status.st_dev, status.st_ino
