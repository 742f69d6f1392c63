"""Our own validator, for the schemas that we have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from uno_devserver.setup.definitions import CLIENTS, SERVERS, packaged
from uno_devserver.setup.json_schema import ANNOTATIONS, KEYWORDS, problems

NAMES = ("properties", "$defs")  # below them stand names, not keywords


@pytest.mark.parametrize("kind", [CLIENTS, SERVERS])
def test_our_schemas_have_no_keyword_that_our_validator_ignores(kind: str) -> None:
    used = set(_keywords(packaged(f"{kind}.schema.json")))

    assert used - set(KEYWORDS) - set(ANNOTATIONS) == set()


def test_our_validator_has_no_keyword_that_our_schemas_do_not_use() -> None:
    used = {word for kind in (CLIENTS, SERVERS) for word in _keywords(packaged(f"{kind}.schema.json"))}

    assert set(KEYWORDS) - used == set()


def _keywords(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for word, inner in schema.items():
            yield word
            if word in NAMES:
                for one in inner.values():
                    yield from _keywords(one)
            else:
                yield from _keywords(inner)
    elif isinstance(schema, list):
        for one in schema:
            yield from _keywords(one)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["paths"],
    "additionalProperties": False,
    "minProperties": 1,
    "properties": {
        "paths": {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/place"}]}},
        "format": {"type": "string", "enum": ["json", "toml"]},
        "target": {"type": ["string", "null"], "minLength": 2},
        "seconds": {"type": "number", "exclusiveMinimum": 0},
        "checked": {"type": "string", "pattern": "^[0-9]{4}$"},
        "variables": {
            "type": "object",
            "propertyNames": {"pattern": "^[A-Z]+$"},
            "additionalProperties": {"type": "string"},
        },
        "on": {"type": "boolean"},
    },
    "$defs": {"place": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}},
}
GOOD = {
    "paths": ["a", {"path": "b", "more": 1}],
    "format": "toml",
    "target": None,
    "seconds": 0.5,
    "checked": "2026",
    "variables": {"HOME": "x"},
    "on": False,
}


def test_what_fits_has_no_problem() -> None:
    assert next(problems(GOOD, SCHEMA), None) is None
    assert next(problems({"paths": ["a"]}, SCHEMA), None) is None


@pytest.mark.parametrize(
    ("change", "path", "reason"),
    [
        ({"paths": None}, "paths", "must be an array, not null"),
        ({"paths": []}, "paths", "must not be empty"),
        ({"paths": ["a", 5]}, "paths[1]", "must be a string or an object, not a number"),
        ({"paths": ["a", True]}, "paths[1]", "must be a string or an object, not a boolean"),
        ({"paths": [{}]}, "paths[0]", "'path' is missing"),
        ({"paths": [{"path": []}]}, "paths[0].path", "must be a string, not an array"),
        ({"format": "xml"}, "format", "must be one of json, toml, not 'xml'"),
        ({"target": 1}, "target", "must be a string or null, not a number"),
        ({"target": "x"}, "target", "must not be empty"),
        ({"seconds": 0}, "seconds", "must be greater than 0"),
        ({"seconds": -1.5}, "seconds", "must be greater than 0"),
        ({"seconds": float("nan")}, "seconds", "must be greater than 0"),
        ({"seconds": True}, "seconds", "must be a number, not a boolean"),
        ({"on": 1}, "on", "must be a boolean, not a number"),
        ({"checked": "26"}, "checked", "must have the form ^[0-9]{4}$, not '26'"),
        ({"variables": {"home": "x"}}, "variables.home", "is no name that can stand here (^[A-Z]+$)"),
        ({"variables": {"HOME": 1}}, "variables.HOME", "must be a string, not a number"),
        ({"Path": []}, "Path", "is not known: did you mean 'paths'?"),
        ({"zzzz": 1}, "zzzz", f"is not known; known are {', '.join(SCHEMA['properties'])}"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(change: dict[str, object], path: str, reason: str) -> None:
    problem = next(problems({**GOOD, **change}, SCHEMA), None)

    assert problem is not None
    assert (problem.path, problem.reason) == (path, reason)


def test_what_is_mistyped_is_told_before_what_is_missing_for_that() -> None:
    problem = next(problems({"on": 1, "pahts": ["a"]}, SCHEMA), None)

    assert problem is not None
    assert (problem.path, problem.reason) == ("pahts", "is not known: did you mean 'paths'?")


@pytest.mark.parametrize(
    ("value", "reason"),
    [([], "must be an object, not an array"), ("x", "must be an object, not a string"), ({}, "'paths' is missing")],
)
def test_the_whole_can_be_wrong(value: object, reason: str) -> None:
    problem = next(problems(value, SCHEMA), None)

    assert problem is not None
    assert (problem.path, problem.reason) == ("", reason)
