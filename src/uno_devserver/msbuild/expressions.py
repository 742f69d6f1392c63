"""Text with $(...) references and %XX escapes, in two or three values.

A value is MSBuild's *escaped* text. In three-valued mode it can hold two marks that no XML document can contain:
UNKNOWN stands for the value of a property that nothing defines, and GUESS says that the value depends on a condition
that could not be decided. Marks travel through every concatenation, so whoever uses a value sees them.
"""

from __future__ import annotations

import os
import re

from .paths import WINDOWS, adjust
from .problems import LIMIT, EvaluationProblem
from .validation import is_valid_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .globs import Glob

UNKNOWN = "\0"
GUESS = "\1"

# A property that doubles itself sixty times must end before the memory does. Real values have some kilobytes.
MAX_TEXT = 4 * 1024 * 1024
# All longer values of one evaluation together; values up to FREE_TEXT are not counted.
MAX_TOTAL_TEXT = 64 * 1024 * 1024
FREE_TEXT = 256
# All directory entries that the wildcards of one evaluation may look at. A large package has some thousand files.
MAX_ENTRIES = 100_000
# How often lists, Remove and the like may look at items: a thousand items and a thousand Removes. Takes about a second.
# Long comparisons with wildcards count as several looks.
MAX_STEPS = 1_000_000

_SIMPLE_REFERENCE = re.compile(r"\$\(([A-Za-z_][-0-9A-Za-z_]*)\)")
# What MSBuild escapes, and our two marks: a function can make these characters out of %00 and %01.
_ESCAPES = str.maketrans({character: f"%{ord(character):02x}" for character in "%*?@$();'" + UNKNOWN + GUESS})


class EvaluationScope:
    """The properties as they are at this point of the evaluation, and the file that is being evaluated."""

    def __init__(self, folder: str, environment: Mapping[str, str], defined: set[str] | None) -> None:
        self.folder = folder
        self.environment = environment
        self.values: dict[str, str] = {}
        self.file_values: Mapping[str, str] = {}
        # The names that are empty until they are set; None: every name is (plain MSBuild).
        self.defined = defined
        self.missing: set[str] = set()
        # The function calls that are not implemented here, with their files.
        self.unsupported: list[tuple[str, str]] = []
        self._text_left = MAX_TOTAL_TEXT
        self._room = MAX_TEXT
        self._entries_left = MAX_ENTRIES
        self._steps_left = MAX_STEPS
        self._folders: dict[str, bool] = {}

    @property
    def three_valued(self) -> bool:
        return self.defined is not None

    def lookup(self, name: str) -> str:
        key = name.lower()
        value = self.values.get(key)
        if value is None:
            value = self.file_values.get(key)
        if value is not None:
            return value
        if self.defined is None or key in self.defined or not is_valid_name(name):
            return ""
        self.missing.add(key)
        return UNKNOWN

    def expand(self, text: str) -> str:
        """The text with its $(...) references replaced and backslashes turned where MSBuild does; still escaped."""
        if "$(" in text:
            references = text.count("$(")
            self._room = MAX_TEXT
            expanded, simple = _SIMPLE_REFERENCE.subn(self._simple_value, text)
            if simple == references:
                text = self.checked(expanded)
            else:
                from .functions.expansion import expand  # only files that call functions pay for them

                text = expand(text, self)
        return self.adjusted(text) if "\\" in text else text

    def adjusted(self, text: str) -> str:
        """Text that may be a path, with the separators of this system if it looks like one."""
        if GUESS in text:
            return guessed(self.adjusted(text.replace(GUESS, "")))
        return adjust(text, self.is_folder, WINDOWS)

    def is_folder(self, path: str) -> bool:
        """Whether a folder exists, seen from the project folder."""
        known = self._folders.get(path)
        if known is None:
            known = self._folders[path] = os.path.isdir(os.path.join(self.folder, unescape(path)))
        return known

    def checked(self, text: str) -> str:
        """The same text, unless there is too much of it."""
        length = len(text)
        if length > FREE_TEXT:
            self._text_left -= length
            if length > MAX_TEXT or self._text_left < 0:
                raise too_long(text)
        return text

    def count_entries(self, number: int, pattern: str) -> None:
        """Account for directory entries that a wildcard looks at."""
        self._entries_left -= number
        if self._entries_left < 0:
            raise EvaluationProblem(LIMIT, f"wildcards look at more than {MAX_ENTRIES:,} entries: {pattern!r}")

    def count_steps(self, number: int) -> None:
        """Account for items that are looked at."""
        self._steps_left -= number
        if self._steps_left < 0:
            raise EvaluationProblem(LIMIT, f"the items are looked at more than {MAX_STEPS:,} times")

    def _simple_value(self, reference: re.Match[str]) -> str:
        value = self.lookup(reference.group(1))
        # Thousands of references to a long value must end before their result is built.
        self._room -= len(value)
        if self._room < 0:
            raise too_long(value)
        return value


def too_long(text: str) -> EvaluationProblem:
    return EvaluationProblem(LIMIT, f"values grow beyond {MAX_TEXT:,} characters: {text[:60]!r}...")


def unescape(text: str) -> str:
    """%XX as the character it stands for."""
    if "%" not in text:
        return text
    return re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match.group(1), 16)), text)


def escape(text: str) -> str:
    """Text in which no character has a meaning for MSBuild any more."""
    return text.translate(_ESCAPES)


def guessed(text: str) -> str:
    """The same value as a guess, in each part of it if it is a list."""
    text = text.replace(GUESS, "")
    return GUESS + text.replace(";", ";" + GUESS)


def is_known(text: str) -> bool:
    """Whether a value is certain: neither unknown nor a guess."""
    return UNKNOWN not in text and GUESS not in text


def glob_of(escaped: str, folder: str) -> Glob | None:
    """The pattern that an escaped text stands for; None if it stands for itself."""
    if "*" not in escaped and "?" not in escaped:
        return None
    # With escaped wildcards in it, MSBuild takes the whole for a name.
    if "%" in escaped and ("%2a" in escaped.lower() or "%3f" in escaped.lower()):
        return None
    from .globs import parse_glob

    return parse_glob(unescape(escaped), folder)


def split_list(text: str) -> list[str]:
    """The parts of a;b;c without the blanks round them and without empty ones."""
    if ";" not in text:
        text = text.strip()
        return [text] if text else []
    return [part for part in map(str.strip, text.split(";")) if part]
