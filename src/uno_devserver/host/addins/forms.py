"""A flat type as a form for the user: the schemas that elicitation allows have no references and no nesting."""

from __future__ import annotations

from typing import Any

from .signatures import schema_of

FIELDS = ("string", "number", "integer", "boolean", "array")


def form_schema(type_: type) -> dict[str, Any]:
    """The schema of the form; TypeError when the type is not flat."""
    schema = schema_of(type_)
    if schema.get("type") != "object":
        raise TypeError(f"{type_.__name__} cannot be asked for: a form is a Struct, dataclass or TypedDict")
    definitions = schema.get("$defs", {})
    properties = {name: _field(name, field, definitions) for name, field in schema["properties"].items()}
    form: dict[str, Any] = {"type": "object", "properties": properties}
    if "required" in schema:
        form["required"] = schema["required"]
    return form


def _field(name: str, schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:  # may be left out
        variants = [variant for variant in schema["anyOf"] if variant.get("type") != "null"]
        schema = variants[0] | {"anyOf": None} if len(variants) == 1 else schema
    if "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")] | schema
    field = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf") and value is not None}
    if field.get("type") not in FIELDS:
        raise TypeError(f"field '{name}' cannot be asked for: a form has text, numbers, yes/no and choices only")
    return field
