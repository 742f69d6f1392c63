"""What a `package.json` says about its files: the maps `exports` and `imports`, with conditions and patterns.

`None` means that the map does not have the name, which ends the search: a package with `exports` hides the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_DEPTH = 30  # of conditions within conditions: nobody nests more than three
_FORBIDDEN = frozenset(("..", ".", "node_modules"))  # a target stays inside its package


def split_name(name: str) -> tuple[str, str]:
    """A module's name as the package's name and the path inside it."""
    parts = name.split("/", 2 if name.startswith("@") else 1)
    head = 2 if name.startswith("@") else 1
    return "/".join(parts[:head]), "/".join(parts[head:])


def export_targets(exports: object, path: str, conditions: Sequence[str]) -> list[str] | None:
    """The targets for a path inside the package ('' is the package itself), in the order to be tried."""
    if not path:
        if isinstance(exports, dict) and any(key.startswith(".") for key in exports):
            exports = exports.get(".")
        return _targets(exports, None, conditions) if exports else None
    if not isinstance(exports, dict) or not all(key.startswith(".") for key in exports):
        return None
    return mapped_targets(exports, f"./{path}", conditions)


def mapped_targets(table: Mapping[str, object], name: str, conditions: Sequence[str]) -> list[str] | None:
    """The targets of a name in a map whose keys may hold one `*`, or end with a slash."""
    if not name.endswith("/") and "*" not in name and name in table:
        return _targets(table[name], None, conditions)
    for key in sorted((key for key in table if key.count("*") == 1 or key.endswith("/")), key=_specificity):
        head, star, tail = key.partition("*")
        if star and name.startswith(head) and name.endswith(tail) and len(name) >= len(key):
            middle = name[len(head) : len(name) - len(tail)]
            return [] if _leaves(middle) else _targets(table[key], middle, conditions)
        if not star and name.startswith(key):
            rest = name[len(key) :]
            found = _targets(table[key], None, conditions)
            return [] if _leaves(rest) else [target + rest for target in found if target.endswith("/")]
    return None


def _specificity(key: str) -> tuple[int, int]:
    """Longer beginnings first, then longer keys."""
    star = key.find("*")
    return (-(len(key) if star < 0 else star + 1), -len(key))


def _targets(target: object, middle: str | None, conditions: Sequence[str]) -> list[str]:
    """The texts below a target whose conditions hold."""
    found: list[str] = []
    _collect(target, middle, conditions, found, MAX_DEPTH)
    return found


def _collect(target: object, middle: str | None, conditions: Sequence[str], found: list[str], depth: int) -> bool:
    """Whether the search ends here: null closes what would come behind it."""
    if target is None or depth == 0:
        return True
    if isinstance(target, str):
        if not _leaves(target.removeprefix("./")):
            found.append(target.replace("*", middle) if middle is not None else target)
        return False
    if isinstance(target, dict):
        inside = [inner for condition, inner in target.items() if condition == "default" or condition in conditions]
    else:
        inside = target if isinstance(target, list) else []
    return any(_collect(inner, middle, conditions, found, depth - 1) for inner in inside)


def _leaves(path: str) -> bool:
    return not _FORBIDDEN.isdisjoint(path.split("/"))
