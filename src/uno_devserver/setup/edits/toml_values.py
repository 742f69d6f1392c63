"""Values and keys as TOML writes them, each on one line; and when two values mean the same."""

from __future__ import annotations

import json
import re

from .document import EditProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def pair_text(keys: Sequence[str], value: object) -> str:
    return f"{key_text(keys)} = {value_text(value)}"


def key_text(parts: Sequence[str]) -> str:
    return ".".join(part if _BARE_KEY.fullmatch(part) else value_text(part) for part in parts)


def value_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")  # JSON's escapes, and one more
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(pair_text((key,), one) for key, one in value.items())} }}" if value else "{}"
    raise EditProblem(f"TOML has no way to write {value!r}")


def same(one: object, other: object) -> bool:
    """Equality that tells true from 1 and 1 from 1.0, and takes nan for nan."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (one != one and other != other)
