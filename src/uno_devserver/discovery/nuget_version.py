"""Parses and compares version numbers as NuGet and .NET do, and spells them as folder names.

The result for text that is not a version is None. The order is that of SemVer, ignoring case and metadata, as in NuGet.

Hand-written: `packaging` has Python's rules (PEP 440), which differ in order and spelling.
"""

from __future__ import annotations

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Nine digits stay below .NET's 32-bit limit, and keep int() fast.
MAX_DIGITS = 9
_NOT_IN_NAMES = frozenset("/\\:\0")


class NuGetVersion(Value):
    """A NuGet version: four numbers (0 for missing ones), and the prerelease labels in lower case."""

    numbers: tuple[int, ...]
    labels: tuple[str, ...]

    def __str__(self) -> str:
        """The normalised spelling: three numbers, a fourth only if it is not 0, no metadata."""
        shown = self.numbers if self.numbers[3] else self.numbers[:3]
        release = ".".join(map(str, shown))
        return f"{release}-{'.'.join(self.labels)}" if self.labels else release

    def __lt__(self, other: NuGetVersion) -> bool:
        return self._rank() < other._rank()

    def __le__(self, other: NuGetVersion) -> bool:
        return self._rank() <= other._rank()

    def _rank(self) -> tuple[object, ...]:
        # A prerelease precedes its release; labels are compared in order, and fewer labels precede more.
        return (self.numbers, not self.labels, tuple(map(_label_rank, self.labels)))


def parse_version(text: str) -> NuGetVersion | None:
    body, plus, metadata = text.strip().partition("+")
    release, dash, prerelease = body.partition("-")
    numbers = _numbers(release, least=1)
    if numbers is None or (dash and not _are_labels(prerelease)) or (plus and not _are_labels(metadata)):
        return None
    return NuGetVersion(numbers, tuple(prerelease.lower().split(".")) if dash else ())


def folder_spellings(version: str) -> Iterator[str]:
    """Yields the folder names that `version` may have, the likeliest first; none if they would lead elsewhere."""
    written = version.strip()
    if not written or written in (".", "..") or not _NOT_IN_NAMES.isdisjoint(written):
        return
    yield written
    if (lower := written.lower()) != written:
        yield lower
    if (parsed := parse_version(written)) and (normal := str(parsed)) not in (written, lower):
        yield normal


def highest(versions: Iterable[str]) -> str:
    """The highest of some versions; what is not a version is lower than all."""
    return max(versions, key=lambda text: parsed._rank() if (parsed := parse_version(text)) else ((),))


def at_least(host: str, minimum: str) -> bool | None:
    """Whether the numbers of `host` are at least those of `minimum`; None if one is not a version of 1 to 4 numbers.

    For System.Version 6.0 is older than 6.0.0. Authors of a minimum do not mean that, so here both are equal.
    """
    have, want = _system_numbers(host), _system_numbers(minimum)
    return None if have is None or want is None else have >= want


def _numbers(text: str, least: int) -> tuple[int, ...] | None:
    parts = text.split(".")
    if not least <= len(parts) <= 4:
        return None
    if not all(part.isascii() and part.isdigit() and len(part) <= MAX_DIGITS for part in parts):
        return None
    return (*map(int, parts), *[0] * (4 - len(parts)))


def _are_labels(text: str) -> bool:
    return text.isascii() and all(label.replace("-", "0").isalnum() for label in text.split("."))


def _label_rank(label: str) -> tuple[int, int, str]:
    # Numbers precede words. Comparing the digits by length, then as text, works for numbers of any size.
    if label.isdigit():
        digits = label.lstrip("0")
        return (0, len(digits), digits)
    return (1, 0, label)


def _system_numbers(text: str) -> tuple[int, ...] | None:
    return _numbers(text.strip().partition("-")[0].partition("+")[0], least=1)
