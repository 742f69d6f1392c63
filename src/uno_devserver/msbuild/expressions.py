"""Expands $(...) references and %XX escapes in text.

A value is *escaped* text, as in MSBuild. If undefined properties are unknown, a value can contain two marks that no XML
document can contain: UNKNOWN stands for the value of an undefined property, and GUESS means that the value depends on
an undecided condition. Concatenation keeps the marks, so every user of a value sees them.
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

# Stops properties that double themselves before the memory is full. Real values have a few kilobytes.
MAX_TEXT = 4 * 1024 * 1024
# The limit for all values of one evaluation together; values up to FREE_TEXT are not counted.
MAX_TOTAL_TEXT = 64 * 1024 * 1024
FREE_TEXT = 256
# How many directory entries the wildcards of one evaluation may visit. A large package has a few thousand files.
MAX_ENTRIES = 100_000
# How many items lists, Remove and the like may visit: a thousand items times a thousand Removes, about a second.
# A long comparison with wildcards counts as several visits.
MAX_STEPS = 1_000_000

# Evaluations that share a cache of project files may together do SHARED times the work of one. The first part of each,
# 1 / FREE_PART of its limit, is not counted, so that a large solution never comes near.
SHARED, FREE_PART = 4, 50

_SIMPLE_REFERENCE = re.compile(r"\$\(([A-Za-z_][-0-9A-Za-z_]*)\)")
# What MSBuild escapes, and the two marks, because a function can create these characters from %00 and %01.
_ESCAPES = str.maketrans({character: f"%{ord(character):02x}" for character in "%*?@$();'" + UNKNOWN + GUESS})


class SharedWork:
    """What is left of the limits for several evaluations together."""

    def __init__(self) -> None:
        self.text = [SHARED * MAX_TOTAL_TEXT]
        self.entries = [SHARED * MAX_ENTRIES]
        self.steps = [SHARED * MAX_STEPS]


class _Allowance:
    """What is left of a limit for one evaluation, and of that for all."""

    def __init__(self, limit: int, shared: list[int]) -> None:
        self._left = limit
        self._counted_below = limit - limit // FREE_PART
        self._shared = shared

    def take(self, number: int) -> bool:
        """Count a piece of work; returns whether it is within both limits."""
        self._left -= number
        if self._left < self._counted_below:
            self._shared[0] -= number
            return self._left >= 0 and self._shared[0] >= 0
        return True


class EvaluationScope:
    """The current properties of an evaluation, and the file that is being evaluated."""

    def __init__(
        self,
        folder: str,
        environment: Mapping[str, str],
        defined: set[str] | None,
        families: tuple[str, ...] = (),
        shared: SharedWork | None = None,
    ) -> None:
        self.folder = folder
        self.families = families
        self.environment = environment
        self.values: dict[str, str] = {}
        self.file_values: Mapping[str, str] = {}
        # The properties that are empty while they are not set; None for all properties, as in MSBuild.
        self.defined = defined
        self.missing: set[str] = set()
        # Calls of functions that are not implemented here, with their files.
        self.unsupported: list[tuple[str, str]] = []
        # The folders that wildcards have read.
        self.folders: set[str] = set()
        shared = shared or SharedWork()
        self._text = _Allowance(MAX_TOTAL_TEXT, shared.text)
        self._entries = _Allowance(MAX_ENTRIES, shared.entries)
        self._steps = _Allowance(MAX_STEPS, shared.steps)
        self._room = MAX_TEXT
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
        if self.defined is None or key in self.defined or not is_valid_name(name) or self._is_of_family(name):
            return ""
        self.missing.add(key)
        return UNKNOWN

    def _is_of_family(self, name: str) -> bool:
        """Whether the name is one of the families, or begins with one as its first word: AcmeFeature, _Acme_Feature."""
        bare = name.lstrip("_")
        return any(
            bare.lower().startswith(family) and not bare[len(family) : len(family) + 1].islower()
            for family in self.families
        )

    def expand(self, text: str) -> str:
        """Replaces $(...) references, and backslashes where MSBuild does; the result is still escaped."""
        if "$(" in text:
            references = text.count("$(")
            self._room = MAX_TEXT
            expanded, simple = _SIMPLE_REFERENCE.subn(self._simple_value, text)
            if simple == references:
                text = self.checked(expanded)
            else:
                from .functions.expansion import expand  # imported only for files that call functions

                text = expand(text, self)
        return self.adjusted(text) if "\\" in text else text

    def adjusted(self, text: str) -> str:
        """The text with this system's separators if it looks like a path."""
        if GUESS in text:
            return guessed(self.adjusted(text.replace(GUESS, "")))
        return adjust(text, self.is_folder, WINDOWS)

    def is_folder(self, path: str) -> bool:
        """Whether a folder exists; relative paths are relative to the project folder."""
        known = self._folders.get(path)
        if known is None:
            known = self._folders[path] = os.path.isdir(os.path.join(self.folder, unescape(path)))
        return known

    def checked(self, text: str) -> str:
        """Returns the text, or raises EvaluationProblem if there is too much of it."""
        length = len(text)
        if length > FREE_TEXT and not (self._text.take(length) and length <= MAX_TEXT):
            raise too_long(text)
        return text

    def count_entries(self, number: int, pattern: str) -> None:
        """Counts directory entries that a wildcard visits, against MAX_ENTRIES."""
        if not self._entries.take(number):
            raise EvaluationProblem(LIMIT, f"wildcards look at too many entries: {pattern!r}")

    def count_steps(self, number: int) -> None:
        """Counts items that are visited, against MAX_STEPS."""
        if not self._steps.take(number):
            raise EvaluationProblem(LIMIT, "the items are looked at too often")

    def _simple_value(self, reference: re.Match[str]) -> str:
        value = self.lookup(reference.group(1))
        # Checked before the result is built: there may be thousands of references to a long value.
        self._room -= len(value)
        if self._room < 0:
            raise too_long(value)
        return value


def too_long(text: str) -> EvaluationProblem:
    return EvaluationProblem(LIMIT, f"values grow beyond {MAX_TEXT:,} characters: {text[:60]!r}...")


def unescape(text: str) -> str:
    """Replaces each %XX by its character."""
    if "%" not in text:
        return text
    return re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match.group(1), 16)), text)


def escape(text: str) -> str:
    """Escapes all characters that are special in MSBuild."""
    return text.translate(_ESCAPES)


def guessed(text: str) -> str:
    """Marks a value, or each part of a list, as a guess."""
    text = text.replace(GUESS, "")
    return GUESS + text.replace(";", ";" + GUESS)


def is_known(text: str) -> bool:
    """Whether a value is neither unknown nor a guess."""
    return UNKNOWN not in text and GUESS not in text


def glob_of(escaped: str, folder: str) -> Glob | None:
    """The pattern in an escaped text; None if the text has no wildcards or is literal for MSBuild."""
    if "*" not in escaped and "?" not in escaped:
        return None
    # For MSBuild a text with escaped wildcards is literal.
    if "%" in escaped and ("%2a" in escaped.lower() or "%3f" in escaped.lower()):
        return None
    from .globs import parse_glob

    return parse_glob(unescape(escaped), folder)


def split_list(text: str) -> list[str]:
    """The parts of a;b;c, stripped, without empty ones."""
    if ";" not in text:
        text = text.strip()
        return [text] if text else []
    return [part for part in map(str.strip, text.split(";")) if part]
