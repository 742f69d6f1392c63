"""Finds out whether a file without our entries means the same as the file before they were added."""

from __future__ import annotations

from ..profiles import Format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .yaml_nodes import YamlNode


def means_the_same(original: str, removed: str, form: Format) -> bool:
    """Whether both texts mean the same, apart from empty collections that were added for the entries.

    False if a text cannot be parsed.
    """
    try:
        now = _value(removed, form)
        try:
            before = _value(original, form)
        except ValueError:
            before = {}  # the text has only blanks and comments: other content would be in the second text, too
        return _same({} if before is None else before, now, set())  # an empty document can get settings
    except (ValueError, RecursionError):
        return False


def _value(text: str, form: Format) -> Any:
    """Parse a text; raises ValueError."""
    if form is Format.TOML:
        from ...system.toml import parse as parse_toml

        return parse_toml(text)
    if form is Format.YAML:
        return _yaml_value(text)
    from ...system.jsonc import JsonProblem, parse

    try:
        return parse(text)
    except JsonProblem as problem:
        raise ValueError(str(problem)) from problem


def _yaml_value(text: str) -> Any:
    from .document import EditProblem
    from .yaml_nodes import read

    try:
        top = read(text).top
    except EditProblem as problem:
        raise ValueError(str(problem)) from problem
    return None if top is None else _value_of_node(top, {})


def _value_of_node(node: YamlNode, known: dict[int, Any]) -> Any:
    """The value with all tags; an alias shares the value that it refers to instead of repeating it."""
    from .yaml_nodes import ALIAS, MAPPING, SCALAR, is_null

    if node.kind == ALIAS:
        return (ALIAS, node.value) if node.target is None else _value_of_node(node.target, known)
    if node.kind == SCALAR:
        return None if node.tag is None and is_null(node) else (node.tag, bool(node.style), node.value)
    if id(node) not in known:
        values = [_value_of_node(item, known) for item in node.items]
        known[id(node)] = (
            dict(zip(map(repr, values[::2]), values[1::2], strict=True)) if node.kind == MAPPING else values
        )
    return known[id(node)]


def _same(original: Any, removed: Any, compared: set[tuple[int, int]]) -> bool:
    pair = id(original), id(removed)
    if pair in compared:  # reached before through an alias
        return True
    if isinstance(original, dict | list):
        compared.add(pair)
    if _is_empty(original) and _is_empty(removed):
        return True
    if isinstance(original, dict) and isinstance(removed, dict):
        added = [value for key, value in removed.items() if key not in original]
        return all(_holds_nothing(one) for one in added) and all(
            key in removed and _same(value, removed[key], compared) for key, value in original.items()
        )
    if isinstance(original, list) and isinstance(removed, list):
        return len(original) == len(removed) and all(
            _same(one, other, compared) for one, other in zip(original, removed, strict=True)
        )
    return type(original) is type(removed) and repr(original) == repr(removed)


def _is_empty(value: Any) -> bool:
    return value is None or value == {} or value == []


def _holds_nothing(value: Any) -> bool:
    return _is_empty(value) or (isinstance(value, dict) and all(_holds_nothing(one) for one in value.values()))
