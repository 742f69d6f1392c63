"""JSON and times exactly as .NET writes them, for files that are shared with .NET programs.

`to_json` writes what System.Text.Json writes with WriteIndented and its default escaping; times are those of a UTC
DateTime. Both were compared with recorded output.
"""

from __future__ import annotations

import re

STEP = "  "
# All characters outside ASCII, control characters, and those that could end a string or begin markup inside HTML.
_ESCAPED = r"[^ -~]|[\"&'<>+`\\]"
_SHORT = {"\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def to_json(value: object, indent: str = "") -> str:
    """The value (dict, list, text, number, boolean or None) as JSON, one member per line, no newline at the end."""
    if isinstance(value, dict):
        members = [f"{quoted(str(name))}: {to_json(member, indent + STEP)}" for name, member in value.items()]
        return _lines("{", members, "}", indent)
    if isinstance(value, list):
        return _lines("[", [to_json(member, indent + STEP) for member in value], "]", indent)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value) if isinstance(value, int | float) else quoted(str(value))


def _lines(opening: str, members: list[str], closing: str, indent: str) -> str:
    if not members:
        return opening + closing
    return f"{opening}\n" + ",\n".join(indent + STEP + member for member in members) + f"\n{indent}{closing}"


def quoted(text: str) -> str:
    """The text in quotes, with the default escaping of System.Text.Json."""
    return '"' + re.sub(_ESCAPED, _escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in _SHORT:
        return _SHORT[character]
    if "\ud800" <= character <= "\udfff":
        character = "\ufffd"  # for a lone surrogate, which stands for a byte of a file name that is not valid text
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))


def to_time(nanoseconds: int) -> str:
    """The time (of `time.time_ns()`) as a UTC DateTime: up to seven digits of a second, without trailing zeros."""
    import time

    seconds, rest = divmod(nanoseconds, 10**9)
    fraction = f".{rest // 100:07d}".rstrip("0").rstrip(".")
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + fraction + "Z"


def from_time(text: str) -> float | None:
    """The time in seconds since 1970; None if the text is not a time since then (.NET's default is the year 1)."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
        # Hosts write only UTC, some of them without a zone.
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None
