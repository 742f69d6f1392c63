"""Items chosen by path, as Exclude, Remove and Update choose them: spelling and case do not matter."""

from __future__ import annotations

from .expressions import GUESS, UNKNOWN, unescape
from .operands import glob_of
from .paths import comparison_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .expressions import Scope
    from .globs import Glob
    from .metadata import Entry

# Taking so many characters of a path apart takes about as long as one look at an item.
_CHARACTERS_PER_STEP = 1024


class Selection:
    """A set of paths and patterns, some of which may be guesses."""

    def __init__(self, scope: Scope) -> None:
        self._certain = _Paths(scope)
        self._guessed = _Paths(scope)
        # Whether no part was unknown.
        self.complete = True

    def add(self, part: str) -> None:
        if UNKNOWN in part:
            self.complete = False
        elif GUESS in part:
            self._guessed.add(part.replace(GUESS, ""))
        else:
            self._certain.add(part)

    def matches(self, entry: Entry) -> bool | None:
        """Whether an item is chosen; None if only by a guess."""
        if self._certain.contain(entry):
            return True
        return None if self._guessed.contain(entry) else False


class _Paths:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._keys: set[str] = set()
        self._globs: list[Glob] = []

    def add(self, part: str) -> None:
        if glob := glob_of(part, self._scope.folder):
            self._globs.append(glob)
        else:
            self._keys.add(comparison_key(unescape(part), self._scope.folder))

    def contain(self, entry: Entry) -> bool:
        if not self._keys and not self._globs:
            return False
        path = unescape(entry.identity)
        # Each pattern takes the path apart again, and a path may be as long as any value.
        self._scope.count_steps(len(self._globs) * (1 + len(path) // _CHARACTERS_PER_STEP))
        if comparison_key(path, self._scope.folder) in self._keys:
            return True
        return any(glob.describes(path, self._scope) for glob in self._globs)
