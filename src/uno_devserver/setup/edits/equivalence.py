"""Whether a file without our entries says the same as before they came; pure."""

from __future__ import annotations

from ..profiles import Format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def means_the_same(original: str, removed: str, form: Format) -> bool:
    """Whether both say the same, apart from what we made to put the entries in, and which is empty now.

    Where that cannot be told, they do not.
    """
    try:
        now = _value(removed, form)
        try:
            before = _value(original, form)
        except ValueError:
            before = {}  # nothing but blanks and comments: what was there else would be in the other text, too
        return _same({} if before is None else before, now, set())  # an empty document can get settings
    except (ValueError, RecursionError):
        return False


def _value(text: str, form: Format) -> Any:
    """ValueError: it has none."""
    if form is Format.TOML:
        import tomllib

        return tomllib.loads(text)
    if form is Format.YAML:
        return _yaml_value(text)
    from ...system.jsonc import JsonProblem, parse

    try:
        return parse(text)
    except JsonProblem as problem:
        raise ValueError(str(problem)) from problem


def _yaml_value(text: str) -> Any:
    """As nodes: they know tags of all kinds, and an alias is not repeated."""
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return _of_node(node, {}) if node is not None else None


def _of_node(node: Any, known: dict[int, Any]) -> Any:
    import yaml

    if id(node) in known:
        return known[id(node)]
    if isinstance(node, yaml.MappingNode):
        mapping = known[id(node)] = {}
        for key, value in node.value:
            mapping[repr(_of_node(key, known))] = _of_node(value, known)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        sequence: list[Any] = []
        known[id(node)] = sequence
        sequence += [_of_node(one, known) for one in node.value]
        return sequence
    return None if node.tag == "tag:yaml.org,2002:null" else (node.tag, node.value)


def _same(original: Any, removed: Any, seen: set[tuple[int, int]]) -> bool:
    pair = id(original), id(removed)
    if pair in seen:  # an alias, perhaps of something that it is part of
        return True
    if isinstance(original, dict | list):
        seen.add(pair)
    if _is_empty(original) and _is_empty(removed):
        return True
    if isinstance(original, dict) and isinstance(removed, dict):
        added = [value for key, value in removed.items() if key not in original]
        return all(_holds_nothing(one) for one in added) and all(
            key in removed and _same(value, removed[key], seen) for key, value in original.items()
        )
    if isinstance(original, list) and isinstance(removed, list):
        return len(original) == len(removed) and all(
            _same(one, other, seen) for one, other in zip(original, removed, strict=True)
        )
    return type(original) is type(removed) and repr(original) == repr(removed)


def _is_empty(value: Any) -> bool:
    return value is None or value == {} or value == []


def _holds_nothing(value: Any) -> bool:
    return _is_empty(value) or (isinstance(value, dict) and all(_holds_nothing(one) for one in value.values()))
