"""The patterns of `hotReload.include`, `exclude` and `watch`: paths from a root, with `**`, `*`, `?` and `{a,b}`.

`*` and `?` stay within a name, `**` spans folders. A pattern that matches a folder matches everything in it. A pattern
may begin with `../` where its user allows that.

Hand-written: in `fnmatch` a `*` crosses folders, and there is no `{a,b}`.
"""

from __future__ import annotations

import re
from itertools import takewhile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_PATTERN = 1024  # characters
MAX_PATTERNS = 500  # of one list, with their alternatives: each is compared with each file
MAX_ALTERNATIVES = 256  # the most patterns that the braces of one pattern produce
LEADS_OUT = "leads out of the package, and patterns begin at its root"
_BRACES = re.compile(r"\{([^{}]*)\}")
_WILD = re.compile(r"[*?]")


class Globs:
    """A list of patterns; each one that cannot be used is left out, and a sentence in `problems` says why.

    `outside` is given the start of a pattern that begins with `../`, and returns why it may not lead there, or an empty
    text. Without it, no pattern may lead out.
    """

    def __init__(
        self, patterns: Iterable[str], setting: str, outside: Callable[[str], str] = lambda _start: LEADS_OUT
    ) -> None:
        self.patterns: list[str] = []  # without braces
        self.problems: list[str] = []
        for pattern in patterns:
            problem = _problem(pattern, outside)
            if problem:
                self.problems.append(f'{setting}: "{pattern[:100]}" {problem}; it is left out.')
            else:
                self.patterns += [_tidy(each) for each in _alternatives(pattern)]
            if len(self.patterns) > MAX_PATTERNS or len(self.problems) > MAX_PATTERNS:
                del self.patterns[MAX_PATTERNS:]
                self.problems.append(f"{setting} has more than {MAX_PATTERNS} patterns; those after them are left out.")
                break
        self._match = _matcher(self.patterns) if self.patterns else None

    def match(self, path: str) -> bool:
        """Whether a pattern matches this path from the root, or a folder above it."""
        return self._match is not None and self._match(path) is not None

    def by_start(self) -> dict[str, Callable[[str], object]]:
        """What matches the patterns, by their literal start, a folder or file; the root is the empty path."""
        found: dict[str, list[str]] = {}
        for pattern in self.patterns:
            found.setdefault(_start(pattern), []).append(pattern)
        return {start: _matcher(patterns) for start, patterns in sorted(found.items())}

    def name_folder(self, name: str) -> bool:
        """Whether a pattern contains this folder name literally; only such patterns lead into hidden folders."""
        return any(name in pattern.split("/") for pattern in self.patterns)

    def endings(self) -> frozenset[str] | None:
        """The endings, from the last dot on, of the names that may match; None if any name may."""
        found = set()
        for pattern in self.patterns:
            name = pattern.rpartition("/")[2]
            _, dot, ending = name.rpartition(".")
            if not dot or _WILD.search(ending):  # a name without a dot may be a folder with any files
                return None
            found.add(dot + ending.lower())
        return frozenset(found)


def _matcher(patterns: list[str]) -> Callable[[str], re.Match[str] | None]:
    return re.compile("|".join(_expression(pattern) for pattern in patterns), re.DOTALL).fullmatch


def _problem(pattern: str, outside: Callable[[str], str]) -> str:
    if not pattern.strip():
        return "is empty"
    if len(pattern) > MAX_PATTERN:
        return f"has more than {MAX_PATTERN} characters"
    alternatives = [_tidy(each) for each in _alternatives(pattern)]
    if len(alternatives) > MAX_ALTERNATIVES:
        return f"stands for more than {MAX_ALTERNATIVES} patterns"
    for path in alternatives:
        below = path
        while below.startswith("../"):
            below = below[3:]
        if path.startswith("/") or path[1:2] == ":" or ".." in below.split("/"):
            return LEADS_OUT
        reason = outside(_start(path)) if below != path else ""
        if reason:
            return reason
    return ""


def _alternatives(pattern: str) -> Iterator[str]:
    """The patterns without braces, one for each choice; stops when there are more than the limit."""
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
    """The pattern with forward slashes and without superfluous parts: `./src//a/` becomes `src/a`."""
    pattern = pattern.replace("\\", "/")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    tidy = "/".join(part for place, part in enumerate(parts) if part != "**" or parts[place - 1 : place] != ["**"])
    return f"/{tidy}" if pattern.startswith("/") else tidy


def _start(pattern: str) -> str:
    return "/".join(takewhile(_is_literal, pattern.split("/")))


def _is_literal(part: str) -> bool:
    return not _WILD.search(part)


def _expression(pattern: str) -> str:
    """A regular expression for the matching paths and all paths below them.

    The text after a wildcard is searched for once (`(?>`): the first place where it fits leaves the most for the rest,
    and trying all places would take exponential time.
    """
    runs: list[list[str]] = [[]]  # the names between one `**` and the next
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
