"""What a condition's words are worth: properties, and where they are allowed item lists and metadata."""

from __future__ import annotations

import os

from .expressions import is_known, unescape
from .paths import full_path, to_slashes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .expressions import Scope
    from .globs import Glob


class PropertyOperands:
    """For conditions that may refer to properties only."""

    def __init__(self, scope: Scope, folder: str, expand: Callable[[str], str] | None = None) -> None:
        """`folder` is where Exists looks; `expand` replaces more than properties."""
        self._folder = folder
        self._expand = expand or scope.expand

    def text(self, raw: str) -> str | None:
        value = self._expand(raw)
        return unescape(value) if is_known(value) else None

    def paths(self, raw: str) -> list[str] | None:
        value = self._expand(to_slashes(raw))
        if not is_known(value):
            return None
        return [unescape(to_slashes(path)) for path in split_list(value)]

    def exists(self, path: str) -> bool:
        return os.path.exists(full_path(path, self._folder))


def glob_of(escaped: str, folder: str) -> Glob | None:
    """The pattern that an escaped text stands for; None if it stands for itself."""
    if "*" not in escaped and "?" not in escaped:
        return None
    # With escaped wildcards in it, MSBuild takes the whole for a name.
    if "%" in escaped and ("%2a" in escaped.lower() or "%3f" in escaped.lower()):
        return None
    from .globs import parse

    return parse(unescape(escaped), folder)


def split_list(text: str) -> list[str]:
    """The parts of a;b;c without the blanks round them and without empty ones."""
    if ";" not in text:
        text = text.strip()
        return [text] if text else []
    return [part for part in map(str.strip, text.split(";")) if part]
