"""Parses version numbers by MSBuild's two rules."""

from __future__ import annotations

import re

# .NET stores each part as a 32-bit integer.
_MAX_PART = 2**31 - 1

_SIMPLE_VERSION = r"(?as)[vV]?(\d+(?:\.\d+){0,3})(?:[-+].*)?"
_SYSTEM_PART = r"(?a)\s*\+?(\d+)\s*"


def parse_simple(text: str) -> tuple[int, int, int, int] | None:
    """Parses as [MSBuild]::VersionEquals does: one to four numbers; ignores a leading v and a suffix."""
    match = re.fullmatch(_SIMPLE_VERSION, text.strip())
    if not match:
        return None
    parts = _numbers(match.group(1).split("."))
    if parts is None:
        return None
    return (*parts, 0, 0, 0)[:4]  # type: ignore[return-value]  # one to four parts, padded to four


def parse_system(text: str) -> tuple[int, ...] | None:
    """Parses as System.Version and conditions do: two to four numbers and nothing else."""
    if "." not in text:
        return None
    matches = [re.fullmatch(_SYSTEM_PART, part) for part in text.split(".")]
    if not 2 <= len(matches) <= 4 or None in matches:
        return None
    return _numbers([match.group(1) for match in matches if match])


def _numbers(parts: list[str]) -> tuple[int, ...] | None:
    significant = [part.lstrip("0") or "0" for part in parts]
    # A part has at most ten digits, and Python refuses to convert thousands.
    if any(len(part) > 10 for part in significant):
        return None
    numbers = tuple(map(int, significant))
    return numbers if max(numbers) <= _MAX_PART else None
