"""The patterns of `hotReload.include` and `exclude`: paths from a root, with `**`, `*`, `?` and `{a,b}`.

`*` and `?` stay within a name, `**` spans folders. A pattern that describes a folder describes all that is in it.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_PATTERN = 1024  # characters: longer than any that a person writes
MAX_ALTERNATIVES = 256  # that braces may stand for
_BRACES = re.compile(r"\{([^{}]*)\}")
_WILD = re.compile(r"[*?]")


class Globs:
    """A list of patterns; those that cannot be used are told in `problems`, and left out."""

    def __init__(self, patterns: Iterable[str], setting: str) -> None:
        self.patterns: list[str] = []  # without braces
        self.problems: list[str] = []
        for pattern in patterns:
            problem = _problem(pattern)
            if problem:
                self.problems.append(f'{setting}: "{pattern[:100]}" {problem}; it is left out.')
            else:
                self.patterns += [_tidy(each) for each in _alternatives(pattern)]
        expression = "|".join(_expression(pattern) for pattern in self.patterns)
        self._fits = re.compile(expression, re.DOTALL).fullmatch if self.patterns else None

    def describe(self, path: str) -> bool:
        """Whether a file or folder, as a path from the root, is meant, or lies in a folder that is."""
        return self._fits is not None and self._fits(path) is not None

    def starts(self) -> set[str]:
        """The folders or files where the literal parts of the patterns end; the root is the empty path."""
        return {"/".join(_literal(pattern.split("/"))) for pattern in self.patterns}

    def name_folder(self, name: str) -> bool:
        """Whether a pattern has this name of a folder in so many letters: only so it leads into hidden folders."""
        return any(name in pattern.split("/") for pattern in self.patterns)

    def endings(self) -> frozenset[str] | None:
        """How the names of described files end, from the last dot on; None: in any way."""
        found = set()
        for pattern in self.patterns:
            name = pattern.rpartition("/")[2]
            _, dot, ending = name.rpartition(".")
            if not dot or _WILD.search(ending):  # a name without a dot may be a folder: then anything may be in it
                return None
            found.add(dot + ending.lower())
        return frozenset(found)


def _problem(pattern: str) -> str:
    if not pattern.strip():
        return "is empty"
    if len(pattern) > MAX_PATTERN:
        return f"has more than {MAX_PATTERN} characters"
    alternatives = list(_alternatives(pattern))
    if len(alternatives) > MAX_ALTERNATIVES:
        return f"stands for more than {MAX_ALTERNATIVES} patterns"
    if any(_leads_out(path.replace("\\", "/")) for path in alternatives):
        return "leads out of the package, and patterns begin at its root"
    return ""


def _leads_out(path: str) -> bool:
    return path.startswith("/") or path[1:2] == ":" or ".." in path.split("/")


def _alternatives(pattern: str) -> Iterator[str]:
    """The pattern without braces, once for each choice; stops beyond the bound."""
    waiting, count = [pattern], 0
    while waiting and count <= MAX_ALTERNATIVES:
        pattern = waiting.pop()
        braces = _BRACES.search(pattern)
        if braces is None:
            count += 1
            yield pattern
        else:
            choices = braces[1].split(",")[: MAX_ALTERNATIVES + 1]
            waiting += [pattern[: braces.start()] + choice + pattern[braces.end() :] for choice in reversed(choices)]


def _tidy(pattern: str) -> str:
    """With forward slashes, and without the parts that mean nothing: `./src//a/` is `src/a`."""
    parts = [part for part in pattern.replace("\\", "/").split("/") if part not in ("", ".")]
    return "/".join(part for place, part in enumerate(parts) if part != "**" or parts[place - 1 : place] != ["**"])


def _literal(parts: list[str]) -> list[str]:
    wild = next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts))
    return parts[:wild]


def _expression(pattern: str) -> str:
    """A regular expression of the described paths, and of all below them.

    What stands behind a wildcard is looked for once (`(?>`): the first place where it fits leaves the most for the
    rest, and trying all of them would take for ever.
    """
    runs: list[list[str]] = [[]]  # of names, between one `**` and the next
    for part in pattern.split("/") if pattern else ["**"]:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_name(part))
    text = "/".join(runs[0])
    for run in runs[1:]:
        text += "/" if text else ""
        text += f"(?>(?:[^/]+/)*?{'/'.join(run)}(?=/|\\Z))" if run else ".*"
    return text if not runs[-1] else text + "(?:/.*)?"


def _name(part: str) -> str:
    pieces = ["".join("[^/]" if letter == "?" else re.escape(letter) for letter in piece) for piece in part.split("*")]
    if len(pieces) == 1:
        return pieces[0]
    return f"{pieces[0]}{''.join(f'(?>[^/]*?{piece})' for piece in pieces[1:-1])}[^/]*{pieces[-1]}"
