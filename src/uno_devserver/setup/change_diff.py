"""The diff of a dry run: a patch that shows our own entries, and of all other text only brackets.

Files of clients contain secrets of other servers. What is shown is therefore decided by the positions of our entries in
the text, not by lines: a file may have all its servers on one line.
"""

from __future__ import annotations

import bisect
import itertools
import json
import re

from ..system.files import decode
from ..system.text import HIDDEN, names_secret, shown_text, shown_variable, shown_words
from .config_file import parse_place
from .edits.document import EditProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .edits.document import Document
    from .plan.changes import FileChange

    Part = tuple[int, int, str]  # start and end of our own text, and how it is shown, in as many lines

CONTEXT = 3  # lines around a change
FUZZ = 2  # lines of context that `patch` can do without
_BRACKETS = " \t\r\n{}[],"


def change_diff(change: FileChange) -> str:
    return unified_diff(change.path, _shown_text(change.before, change), _shown_text(change.after, change))


def _shown_text(content: bytes | None, change: FileChange) -> ShownText | None:
    if content is None:
        return None
    text, parts = decode(content), []
    for place in change.places:
        config = parse_place(place, content, change.servers)
        for match in config.matches:
            if config.document is not None and match.certain:
                parts += _parts(text, _spans(config.document, match.index), match.entry.settings or {})
        if place.new_text and text.startswith(place.new_text):
            parts.append((0, len(place.new_text), place.new_text))
    return ShownText(text, parts, {name for place in change.places for name in place.root})


def _spans(document: Document, index: int) -> tuple[tuple[int, int], ...]:
    try:
        return document.spans(index)
    except EditProblem:  # it can be read, but not changed
        return ()


def _parts(text: str, spans: tuple[tuple[int, int], ...], settings: Mapping[str, object]) -> list[Part]:
    """The parts of an entry without its secrets; none if a secret is written in another way than its value."""
    hidden = {value: shown for value, shown in _values(settings) if value != shown}
    written = {form: shown for value, shown in hidden.items() for form in _forms(value)}
    secrets = "|".join(map(re.escape, sorted(written, key=len, reverse=True))) or "(?!)"
    whole = "".join(text[start:end] for start, end in spans)
    if not all(any(form in whole for form in _forms(value)) for value in hidden):
        return []
    parts = []
    for start, end in spans:
        shown = re.sub(rf"(?<!\w)(?:{secrets})(?!\w)", lambda found: written[found[0]], text[start:end])
        shown = "".join(map(shown_text, _split(shown)))
        if shown.count("\n") == text.count("\n", start, end):  # a secret in several lines would move the others
            parts.append((start, end, shown))
    return parts


def _forms(value: str) -> tuple[str, str]:
    """How a text is written: as it is, or as in JSON and TOML."""
    return value, json.dumps(value, ensure_ascii=False)[1:-1]


def _values(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """The texts in a value, and how they are shown."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _values(item, str(key))
    elif isinstance(value, list):
        words = [one for one in value if isinstance(one, str)]
        yield from zip(
            words, [HIDDEN] * len(words) if names_secret(name) else shown_words(("", *words))[1:], strict=True
        )
        for item in value:
            yield from _values(item, name) if not isinstance(item, str) else ()
    elif value is not None and not isinstance(value, bool):
        yield str(value), shown_variable(name, str(value))


class ShownText:
    """The lines of a text, and how each is shown: other text than ours is `…`, except brackets and some names."""

    def __init__(self, text: str, ours: Iterable[Part] = (), names: Iterable[str] = ()) -> None:
        """`names` are the keys on the path to our entries."""
        self.lines = _split(text)
        self._text = text
        self._begins = [0, *itertools.accumulate(map(len, self.lines))]
        self._ours: list[tuple[int, int, int, list[str]]] = []  # start, end, number of the first line, lines
        for start, end, shown in sorted(ours):
            if not self._ours or start >= self._ours[-1][1]:  # one file can be two places
                self._ours.append((start, end, bisect.bisect_right(self._begins, start) - 1, _split(shown)))
        known = "|".join(re.escape(one) for name in names for one in (name, json.dumps(name, ensure_ascii=False)[1:-1]))
        name = rf"""|["']?(?:{known})["']?\s*[:=.\]]""" if known else ""
        self._structure = re.compile(rf"(?:[{re.escape(_BRACKETS)}]{name})*")

    def shown(self, number: int) -> str:
        begin, end = self._begins[number], self._begins[number + 1]
        pieces, at = [], begin
        for start, stop, first, shown in self._ours:
            if start < end and stop > begin:
                pieces += [self._hidden(self._text[at : max(at, start)]), shown[number - first]]
                at = min(stop, end)
        return "".join((*pieces, self._hidden(self._text[at:end])))

    def _hidden(self, text: str) -> str:
        structure = self._structure.match(text)
        begin = structure.end() if structure else 0
        end = max(begin, len(text.rstrip(_BRACKETS)))
        return text[:begin] + HIDDEN * (begin < end) + text[end:]


def unified_diff(path: str, before: ShownText | None, after: ShownText | None) -> str:
    """The change as a patch, in which each line is as it is shown; the lines around it only if nothing is hidden."""
    from difflib import SequenceMatcher

    was, now = before or ShownText(""), after or ShownText("")
    old, new = was.lines, now.lines
    # Equal lines at both ends are skipped, because comparing all lines of a big file would take seconds.
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    compared = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail])
    changes = [
        (head + i1, head + i2, head + j1, head + j2) for tag, i1, i2, j1, j2 in compared.get_opcodes() if tag != "equal"
    ]
    if not changes:
        return ""
    name = path.replace("\\", "/").lstrip("/")
    end = "\t" if " " in name else ""  # marks the end of a name with blanks
    lines = [f"--- {'/dev/null' if before is None else f'a/{name}{end}'}\n"]
    lines += [f"+++ {'/dev/null' if after is None else f'b/{name}{end}'}\n"]
    done = 0  # the old lines up to this one are in the diff, or were passed
    for (i1, i2, j1, j2), following in zip(changes, [*changes[1:], (len(old), 0, 0, 0)], strict=True):
        above = _context(was, range(i1 - 1, max(done, i1 - CONTEXT) - 1, -1))[::-1]
        below = _context(was, range(i2, min(following[0], i2 + CONTEXT)))
        # To `patch`, a side with much less context is the beginning or the end of the file.
        if i2 + len(below) < len(old):
            above = above[max(0, len(above) - len(below) - FUZZ) :]
        if i1 > len(above):
            below = below[: len(above) + FUZZ]
        first = _range(i1 - len(above), len(above) + i2 - i1 + len(below))
        second = _range(j1 - len(above), len(above) + j2 - j1 + len(below))
        lines += [f"@@ -{first} +{second} @@\n", *(f" {line}" for line in above)]
        lines += [f"-{was.shown(number)}" for number in range(i1, i2)]
        lines += [f"+{now.shown(number)}" for number in range(j1, j2)]
        lines += [f" {line}" for line in below]
        done = i2 + len(below)
    return "".join(map(_finished, lines))


def _range(start: int, count: int) -> str:
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"


def _context(text: ShownText, numbers: range) -> list[str]:
    """The first of these lines, as far as nothing in them is hidden."""
    return [
        text.lines[number]
        for number in itertools.takewhile(lambda number: text.shown(number) == text.lines[number], numbers)
    ]


def _split(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of equal items at the beginning."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))


def _finished(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
