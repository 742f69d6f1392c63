"""Whether the lines that a document shows are among those that a program printed.

Numbers, times, paths and addresses are another machine's: any others fit. `…` stands for whatever was left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# What differs from run to run: how it looks in a document, and what it may be.
_PLACES = {
    "skip": ("…", ".*"),
    "link": (r"https?://localhost:\d+[^\s\"]*", r"https?://[^\s\"]+"),
    "time": (r"\d{4}-\d\d-\d\d[T ][\d:.]+Z?", r"\d{4}-\d\d-\d\d[T ][\d:.]+Z?"),
    "path": (r"(?<![\w.<])/\w[^\s;,\"]*", "/.*?"),
    "number": (r"(?<!\w)\d[\d.]*", r"\d[\d.]*"),
}
_PLACE = re.compile("|".join(f"(?P<{name}>{looks})" for name, (looks, _) in _PLACES.items()))


def missing(shown: tuple[str, ...], printed: str) -> list[str]:
    """The shown lines that were not printed, in this order."""
    lines = iter(printed.splitlines())
    return [line for line in shown if not _found(_pattern(line), lines)]


def _pattern(line: str) -> re.Pattern[str]:
    parts, end = [], 0
    for match in _PLACE.finditer(line):
        parts += [re.escape(line[end : match.start()]), _PLACES[str(match.lastgroup)][1]]
        end = match.end()
    return re.compile("".join([*parts, re.escape(line[end:].rstrip())]))


def _found(wanted: re.Pattern[str], lines: Iterator[str]) -> bool:
    return any(wanted.fullmatch(line.rstrip()) for line in lines)
