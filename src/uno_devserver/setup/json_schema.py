"""Validates a value against a JSON schema, with messages for users.

Supports the part of JSON Schema that our schemas use, as listed in `KEYWORDS`.

Hand-written, because importing `jsonschema` takes longer than any command, and its messages do not name the position in
a user's file.
"""

from __future__ import annotations

import re

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

ANNOTATIONS = ("$schema", "$defs", "title", "description")
KEYWORDS = (
    *("$ref", "anyOf", "type", "enum", "minLength", "pattern", "exclusiveMinimum", "items", "minItems"),
    *("required", "properties", "propertyNames", "additionalProperties", "minProperties"),
)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),  # comes before the numbers, because in Python a bool is an int
    "number": (int, float),
    "null": (type(None),),
}
_ARTICLES = {"object": "an object", "array": "an array", "null": "null"}


class SchemaProblem(Value):
    path: str  # `cursor.configPaths[1]`; "" for the whole value
    reason: str  # "must be a string, not a number"
    unknown: bool = False  # whether it is about a name that is not known, whose value is ignored


def problems(value: object, schema: Mapping[str, Any]) -> Iterator[SchemaProblem]:
    return _problems(value, schema, schema, "")


def _problems(value: object, schema: Mapping[str, Any], whole: Mapping[str, Any], path: str) -> Iterator[SchemaProblem]:
    schema = _resolved(schema, whole)
    if "anyOf" in schema:
        # The option with the value's type shows the error inside the value; without such an option, the type is wrong.
        options = [_resolved(option, whole) for option in schema["anyOf"]]
        schema = next((one for one in options if _has_type(value, one)), {"type": [one["type"] for one in options]})
    if not _has_type(value, schema):
        wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        yield SchemaProblem(path, f"must be {' or '.join(map(_named, wanted))}, not {_named(_type_of(value))}")
    elif isinstance(value, dict):
        yield from _object_problems(value, schema, whole, path)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield SchemaProblem(path, "must not be empty")
        for index, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), whole, f"{path}[{index}]")
    else:
        yield from _simple_problems(value, schema, path)


def _object_problems(
    value: dict[str, object], schema: Mapping[str, Any], whole: Mapping[str, Any], path: str
) -> Iterator[SchemaProblem]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    names = schema.get("propertyNames", {})
    for name in value:  # reported before missing names, since one of them may be mistyped
        if others is False and name not in known:
            yield SchemaProblem(f"{path}.{name}" if path else name, f"is not known{_close(name, known)}", unknown=True)
    for name in schema.get("required", ()):
        if name not in value:
            yield SchemaProblem(path, f"'{name}' is missing")
    if len(value) < schema.get("minProperties", 0):
        yield SchemaProblem(path, "must not be empty")
    for name, inner in value.items():
        place = f"{path}.{name}" if path else name
        if name in known:
            yield from _problems(inner, known[name], whole, place)
        elif "pattern" in names and not re.search(names["pattern"], name):
            yield SchemaProblem(place, f"is no name that can stand here ({names['pattern']})")
        elif others is not False:
            yield from _problems(inner, others, whole, place)


def _simple_problems(value: object, schema: Mapping[str, Any], path: str) -> Iterator[SchemaProblem]:
    if "enum" in schema and value not in schema["enum"]:
        yield SchemaProblem(path, f"must be one of {', '.join(schema['enum'])}, not '{value}'")
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield SchemaProblem(path, "must not be empty")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield SchemaProblem(path, f"must have the form {schema['pattern']}, not '{value}'")
    if isinstance(value, int | float) and "exclusiveMinimum" in schema and not value > schema["exclusiveMinimum"]:
        yield SchemaProblem(path, f"must be greater than {schema['exclusiveMinimum']}")


def _resolved(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def _has_type(value: object, schema: Mapping[str, Any]) -> bool:
    wanted = schema.get("type")
    return wanted is None or _type_of(value) in (wanted if isinstance(wanted, list) else [wanted])


def _type_of(value: object) -> str:
    return next(name for name, types in _TYPES.items() if isinstance(value, types))


def _named(type_: str) -> str:
    return _ARTICLES.get(type_, f"a {type_}")


def _close(name: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), lower, 1)
    return f": did you mean '{lower[close[0]]}'?" if close else f"; known are {', '.join(known)}"
