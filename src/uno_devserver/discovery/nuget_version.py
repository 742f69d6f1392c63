"""Version numbers as NuGet and .NET write, order and file them.

Reading never raises: what is no version is None. Ordering is SemVer's, ignoring case and metadata, as NuGet does.
"""

from __future__ import annotations

from ..system.values import Value

# Nine digits stay below .NET's 32-bit limit, and keep int() away from hostile lengths.
MAX_DIGITS = 9


class NuGetVersion(Value):
    """A NuGet version: four numbers (absent ones are 0) and the prerelease labels in lower case."""

    numbers: tuple[int, ...]
    labels: tuple[str, ...]

    def __str__(self) -> str:
        """The normalised spelling: three numbers, the fourth only if it counts, no metadata."""
        shown = self.numbers if self.numbers[3] else self.numbers[:3]
        release = ".".join(map(str, shown))
        return f"{release}-{'.'.join(self.labels)}" if self.labels else release

    def __lt__(self, other: NuGetVersion) -> bool:
        return self._rank() < other._rank()

    def __le__(self, other: NuGetVersion) -> bool:
        return self._rank() <= other._rank()

    def _rank(self) -> tuple[object, ...]:
        # A prerelease comes before its release; then label by label, where more labels come later.
        return (self.numbers, not self.labels, tuple(map(_label_rank, self.labels)))


def parse_version(text: str) -> NuGetVersion | None:
    body, plus, metadata = text.strip().partition("+")
    release, dash, prerelease = body.partition("-")
    numbers = _numbers(release, least=1)
    if numbers is None or (dash and not _are_labels(prerelease)) or (plus and not _are_labels(metadata)):
        return None
    return NuGetVersion(numbers, tuple(prerelease.lower().split(".")) if dash else ())


def folder_spellings(version: str) -> tuple[str, ...]:
    """Names under which a package folder may hold `version`, the likeliest first; none if it would lead elsewhere."""
    written = version.strip()
    if not written or written in (".", "..") or any(separator in written for separator in "/\\:\0"):
        return ()
    parsed = parse_version(written)
    spellings = [written, written.lower()]
    if parsed:
        spellings.append(str(parsed))
    return tuple(dict.fromkeys(spellings))


def at_least(host: str, minimum: str) -> bool | None:
    """Whether `host` reaches `minimum` by numbers alone; None if one of them is no version of one to four numbers.

    System.Version reads 6.0 as older than 6.0.0. Nobody who writes a minimum means that: here they are equal.
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
    # Numbers come before words. Comparing digits by length and then as text takes numbers of any size.
    if label.isdigit():
        digits = label.lstrip("0")
        return (0, len(digits), digits)
    return (1, 0, label)


def _system_numbers(text: str) -> tuple[int, ...] | None:
    return _numbers(text.strip().partition("-")[0].partition("+")[0], least=1)
