"""The solutions a user may mean in a directory: those found, without the ones that git ignores or that are replaced."""

from __future__ import annotations

import os

from .finder import find_solutions
from .paths import path_key


def find_candidates(directory: str) -> tuple[str, ...]:
    found = find_solutions(directory)
    if len(found) > 1:  # a single solution is the user's only one, whatever git thinks of it
        found = _without_ignored(found, directory)
    modern = {_stem(path) for path in found if _extension(path) == ".slnx"}
    return tuple(path for path in found if _extension(path) == ".slnx" or _stem(path) not in modern)


def twins(one: str, other: str) -> bool:
    """A .sln and a .slnx of one name in one folder, as during a migration, are one solution."""
    return {_extension(one), _extension(other)} == {".sln", ".slnx"} and _stem(one) == _stem(other)


def _without_ignored(found: tuple[str, ...], directory: str) -> tuple[str, ...]:
    from .git import ignored  # rarely needed, and it starts a process

    unwanted = ignored(found, directory)
    # Generated solutions are often ignored; where there is nothing else, they are what the user works with.
    return tuple(path for path in found if path not in unwanted) or found


def _stem(path: str) -> tuple[str, str]:
    folder, name = os.path.split(path)
    return path_key(folder), os.path.splitext(name)[0].lower()


def _extension(path: str) -> str:
    return os.path.splitext(path)[1].lower()
