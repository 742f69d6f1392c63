"""Finds solution and project files near a directory.

The search goes a fixed number of levels down, skips folders that cannot be read, and follows a symbolic link only if
its target is not searched anyway.
"""

from __future__ import annotations

import os

from .paths import absolute, path_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS_BELOW = 3  # as in all launchers of the DevServer; enough for repository/src/App
# Folders of tools, downloads or build output, without solutions or projects of the user; in lower case.
SKIPPED = frozenset({".git", "node_modules", "bin", "obj", ".vs", ".idea", "packages"})
SKIPPED_PREFIX = ".codex"


def find_candidates(directory: str) -> tuple[str, ...]:
    """The solutions near a directory, without a .sln that has a .slnx next to it, and without those ignored by git."""
    found = find_files(directory, (".sln", ".slnx"))
    if len(found) > 1:  # a single solution is a candidate even if git ignores it
        found = _without_ignored(found, directory)
    modern = {_stem(path) for path in found if _extension(path) == ".slnx"}
    return tuple(path for path in found if _extension(path) == ".slnx" or _stem(path) not in modern)


def twins(one: str, other: str) -> bool:
    """Whether these are a .sln and a .slnx with the same name in one folder: the same solution during a migration."""
    return {_extension(one), _extension(other)} == {".sln", ".slnx"} and _stem(one) == _stem(other)


def _without_ignored(found: tuple[str, ...], directory: str) -> tuple[str, ...]:
    from .git import ignored  # rarely needed, and it starts a process

    unwanted = ignored(found, directory)
    # git often ignores generated solutions; if there are no others, the user works with them.
    return tuple(path for path in found if path not in unwanted) or found


def _stem(path: str) -> tuple[str, str]:
    folder, name = os.path.split(path)
    return path_key(folder), os.path.splitext(name)[0].lower()


def _extension(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def find_files(directory: str, extensions: tuple[str, ...]) -> tuple[str, ...]:
    """The files at most three levels below: by folder, then in the order of the extensions, then by name."""
    return tuple(_Search(absolute(directory), extensions).found)


def is_searched(folder_name: str) -> bool:
    """Whether a folder of this name may contain a user's own solution or project."""
    name = folder_name.lower()
    return name not in SKIPPED and not name.startswith(SKIPPED_PREFIX)


class _Search:
    def __init__(self, start: str, extensions: tuple[str, ...]) -> None:
        self.found: list[str] = []
        self._rank = {extension: rank for rank, extension in enumerate(extensions)}
        # The searched real paths; filled at the first symbolic link, because most workspaces have none.
        self._searched: list[str] = []
        self._start = start
        self._search(start, LEVELS_BELOW)

    def _search(self, folder: str, levels: int) -> None:
        files, folders = self._look_into(folder, descend=levels > 0)
        self.found += [os.path.join(folder, name) for _, name in sorted(files)]
        for name in sorted(folders):
            self._search(os.path.join(folder, name), levels - 1)

    def _look_into(self, folder: str, *, descend: bool) -> tuple[list[tuple[int, str]], list[str]]:
        """The wanted files, each with the rank of its extension, and the names of the folders to search."""
        files: list[tuple[int, str]] = []
        folders: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    rank = self._rank.get(name[name.rfind(".") :].lower())
                    if rank is not None and _is(entry.is_file):
                        files.append((rank, name))
                    elif descend and self._leads_on(entry):
                        folders.append(name)
        except OSError:
            pass  # the folder is unreadable or was just removed; the entries before the failure are used
        return files, folders

    def _leads_on(self, entry: os.DirEntry[str]) -> bool:
        # Known from the listing of the folder; only a link costs another system call.
        return (
            is_searched(entry.name)
            and _is(entry.is_dir)
            and (not entry.is_symlink() or self._leads_elsewhere(entry.path))
        )

    def _leads_elsewhere(self, link: str) -> bool:
        """Whether the target of a link is outside of everything searched so far, so that no file is found twice."""
        if not self._searched:
            self._searched.append(_real_key(self._start))
        target = _real_key(link)
        for searched in self._searched:
            if target.startswith(searched) or searched.startswith(target):
                return False
        self._searched.append(target)
        return True


def _is(kind: Callable[[], bool]) -> bool:
    try:
        return kind()
    except OSError:  # a link that leads to itself
        return False


def _real_key(path: str) -> str:
    return path_key(os.path.realpath(path)).rstrip("/") + "/"
