"""The difference between two contents of a file, as `diff -u` shows it."""

from __future__ import annotations

import re

from ..system.files import decode

CONTEXT = 3  # lines around a change, as usual
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


def unified_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    from difflib import unified_diff as compare

    old, new = _lines(before), _lines(after)
    # Almost all of a big file is the same, and comparing it line by line takes seconds.
    skipped = max(0, _common(old, new) - CONTEXT)
    tail = max(0, _common(old[skipped:][::-1], new[skipped:][::-1]) - CONTEXT)
    name = path.replace("\\", "/").lstrip("/")
    end = "\t" if " " in name else ""  # tells programs that the name goes up to here
    lines = compare(
        old[skipped : len(old) - tail],
        new[skipped : len(new) - tail],
        "/dev/null" if before is None else f"a/{name}{end}",
        "/dev/null" if after is None else f"b/{name}{end}",
        n=CONTEXT,
    )
    return "".join(_finished(_HUNK.sub(lambda hunk: _moved(hunk, skipped), line)) for line in lines)


def _lines(content: bytes | None) -> list[str]:
    return [] if content is None else re.findall(r"[^\n]*\n|[^\n]+", decode(content))


def _common(one: list[str], other: list[str]) -> int:
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))


def _moved(hunk: re.Match[str], by: int) -> str:
    return f"@@ -{int(hunk[1]) + by}{hunk[2] or ''} +{int(hunk[3]) + by}{hunk[4] or ''} @@"


def _finished(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
