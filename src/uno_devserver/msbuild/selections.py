"""Items chosen by path, as Exclude, Remove and Update choose them: spelling and case do not matter."""

from __future__ import annotations

from .expressions import GUESS, UNKNOWN, is_known, unescape
from .operands import glob_of
from .paths import comparison_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .globs import Glob
    from .metadata import Entry


class Selection:
    """A set of paths and patterns."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._keys: set[str] = set()
        self._globs: list[Glob] = []
        # Whether every part was certain.
        self.complete = True

    def add(self, part: str) -> None:
        if not is_known(part):
            self.complete = False
            part = part.replace(GUESS, "")
        if UNKNOWN in part:
            return
        if glob := glob_of(part, self._folder):
            self._globs.append(glob)
        else:
            self._keys.add(comparison_key(unescape(part), self._folder))

    def matches(self, entry: Entry) -> bool:
        if not self._keys and not self._globs:
            return False
        path = unescape(entry.identity)
        return comparison_key(path, self._folder) in self._keys or any(glob.describes(path) for glob in self._globs)
