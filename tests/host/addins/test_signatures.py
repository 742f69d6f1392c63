"""The annotations of a function are its contract: what is shown, and what is checked."""

from __future__ import annotations

import enum
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from uno_devserver.host.addins import Context
from uno_devserver.host.addins.signatures import BadArguments, description_of, name_of, object_schema, signature_of
from uno_devserver.host.addins.testing import Client, InProcessCall


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(Struct):
    x: int
    y: int = 0


@dataclass
class Box:
    width: float
    label: str = ""


class Options(TypedDict, total=False):
    deep: bool


class Tree(Struct):
    name: str
    children: list[Tree] = []


CONTEXT = Context(InProcessCall(Client(workspace="/"), "tools/call", {}), "tests")


def bind(function: Callable[..., Any], arguments: object, *, strict: bool = True) -> dict[str, Any]:
    return signature_of(function, globals()).bind(arguments, CONTEXT, strict=strict)


def problem(function: Callable[..., Any], arguments: object) -> str:
    with pytest.raises(BadArguments) as raised:
        bind(function, arguments)
    return str(raised.value)


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    shown: dict[str, Any] = signature_of(function, globals()).schema["properties"]
    return shown


def test_annotations_become_a_json_schema() -> None:
    def function(
        count: Annotated[int, Meta(description="how many", ge=1)],
        mode: Literal["fast", "slow"],
        ratio: float = 0.5,
        tags: list[str] | None = None,
    ) -> None: ...

    assert signature_of(function, {}).schema == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "description": "how many"},
            "mode": {"type": "string", "enum": ["fast", "slow"]},
            "ratio": {"type": "number", "default": 0.5},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        },
        "required": ["count", "mode"],
        "additionalProperties": False,
    }


def test_no_arguments_are_a_schema_too() -> None:
    def function() -> None: ...

    assert signature_of(function, {}).schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_an_argument_without_annotation_takes_anything() -> None:
    def function(anything) -> None: ...  # type: ignore[no-untyped-def]

    assert properties(function) == {"anything": {}}
    assert bind(function, {"anything": [1, {"a": None}]}) == {"anything": [1, {"a": None}]}


@pytest.mark.parametrize(
    ("annotation", "sent", "got"),
    [
        (Colour, "red", Colour.RED),
        (Point, {"x": 1}, Point(1, 0)),
        (Box, {"width": 2}, Box(2.0)),
        (Options, {"deep": True}, {"deep": True}),
        (Optional[int], None, None),  # noqa: UP045  # authors write it so, too
        (dict[str, list[int]], {"a": [1]}, {"a": [1]}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1, 2], {1, 2}),
        (int | str, "a", "a"),
        (bytes, "AAE=", b"\x00\x01"),
        (list[Point], [{"x": 1}, {"x": 2, "y": 3}], [Point(1), Point(2, 3)]),
        (Tree, {"name": "a", "children": [{"name": "b"}]}, Tree("a", [Tree("b")])),
    ],
)
def test_values_arrive_as_the_declared_type(annotation: Any, sent: object, got: object) -> None:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = annotation

    assert bind(function, {"value": sent}) == {"value": got}


def test_types_of_ones_own_are_described_where_the_schema_refers_to_them() -> None:
    def function(at: Point, colour: Colour) -> None: ...

    schema = signature_of(function, globals()).schema

    assert schema["properties"]["at"] == {"$ref": "#/$defs/Point"}
    assert schema["$defs"]["Colour"] == {"title": "Colour", "type": "string", "enum": ["blue", "red"]}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "Argument 'count' is missing. It takes: count, points (optional), mode (optional), colour (optional)."),
        ({"count": 1, "depth": 2}, "Argument 'depth' is unknown. It takes: count, points (optional), mode"),
        ({"count": "1"}, "Argument 'count' is wrong: expected int, got str."),
        ({"count": True}, "Argument 'count' is wrong: expected int, got bool."),
        ({"count": 0}, "Argument 'count' is wrong: expected int >= 1."),
        ({"count": 1, "points": [{"x": 1}, {"x": "a"}]}, "Argument 'points[1].x' is wrong: expected int, got str."),
        ({"count": 1, "points": [{}]}, "Argument 'points[0].x' is missing."),
        ({"count": 1, "mode": "odd"}, "Argument 'mode' is wrong: invalid enum value 'odd'; use one of 'fast', 'slow'."),
        (
            {"count": 1, "colour": "green"},
            "Argument 'colour' is wrong: invalid enum value 'green'; use one of 'blue', ",
        ),
        ([1], "The arguments are wrong: Expected object, got array. It takes: count,"),
        ("text", "The arguments are wrong: Expected object, got str."),
    ],
)
def test_a_wrong_argument_is_named_with_its_path(arguments: object, sentence: str) -> None:
    def function(
        count: Annotated[int, Meta(ge=1)],
        points: list[Point] = [],  # noqa: B006
        mode: Literal["fast", "slow"] = "fast",
        colour: Colour = Colour.RED,
    ) -> None: ...

    assert problem(function, arguments).startswith(sentence)


@pytest.mark.parametrize(("count", "listed"), [(20, True), (21, False)])
def test_choices_are_listed_unless_there_are_too_many(count: int, listed: bool) -> None:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = Literal[tuple(f"choice{number}" for number in range(count))]

    assert ("use one of 'choice0', " in problem(function, {"value": "other"})) is listed


def test_a_function_without_arguments_says_so() -> None:
    def function() -> None: ...

    assert problem(function, {"a": 1}) == "Argument 'a' is unknown. It takes no arguments."
    assert bind(function, None) == {}


def test_only_given_arguments_are_passed_so_the_functions_own_defaults_count() -> None:
    def function(a: int, b: list[int] = [1, 2], c: object = object()) -> None: ...  # noqa: B006

    function.__annotations__["c"] = Any

    assert bind(function, {"a": 1}) == {"a": 1}
    assert properties(function)["b"]["default"] == [1, 2]
    assert "default" not in properties(function)["c"]  # has no JSON form


def test_text_is_converted_where_everything_is_text() -> None:
    def function(count: int, deep: bool, name: str) -> None: ...

    sent = {"count": "3", "deep": "true", "name": "7"}

    assert bind(function, sent, strict=False) == {"count": 3, "deep": True, "name": "7"}
    assert problem(function, sent).startswith("Argument 'count' is wrong")


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"count": "x"}, "Argument 'count' is wrong: 'x' is not a whole number."),
        ({"count": "1.5"}, "Argument 'count' is wrong: '1.5' is not a whole number."),
        ({"count": "1", "size": "big"}, "Argument 'size' is wrong: 'big' is not a number."),
        ({"count": "1", "deep": "very"}, "Argument 'deep' is wrong: 'very' is neither true nor false."),
        ({"count": "x" * 99}, f"Argument 'count' is wrong: '{'x' * 40}' is not a whole number."),
        ({"count": [1]}, "Argument 'count' is wrong: expected int, got array."),
    ],
)
def test_a_text_that_is_no_number_is_called_that_where_arguments_come_as_text(
    sent: dict[str, object], sentence: str
) -> None:
    def function(count: int, size: float | None = None, deep: bool = False) -> None: ...

    with pytest.raises(BadArguments) as raised:
        bind(function, sent, strict=False)

    assert str(raised.value) == sentence


def test_the_context_is_no_argument_of_the_caller() -> None:
    def optional(name: str, ctx: Context | None = None) -> None: ...

    def function(name: str, ctx: Context) -> None: ...

    assert bind(optional, {"name": "a"}) == {"name": "a", "ctx": CONTEXT}
    assert list(properties(function)) == ["name"]
    assert bind(function, {"name": "a"}) == {"name": "a", "ctx": CONTEXT}
    assert problem(function, {"name": "a", "ctx": 1}).startswith("Argument 'ctx' is unknown")


def test_other_arguments_are_taken_only_by_a_function_that_wants_them() -> None:
    def function(name: str, **others: Any) -> None: ...

    assert "additionalProperties" not in signature_of(function, {}).schema
    assert bind(function, {"name": "a", "more": [1]}) == {"name": "a", "more": [1]}


def test_annotations_may_name_types_that_are_local_to_register() -> None:
    class Local(Struct):
        x: int

    def function(value: Local) -> None: ...

    assert bind_with(function, {"Local": Local}, {"value": {"x": 1}}) == {"value": Local(1)}


def bind_with(function: Callable[..., Any], names: dict[str, Any], arguments: object) -> dict[str, Any]:
    return signature_of(function, names).bind(arguments, CONTEXT)


def test_an_object_that_can_be_called_is_a_function_too() -> None:
    class Greeter:
        def __call__(self, name: str) -> str:
            return name

    assert bind(Greeter(), {"name": "a"}) == {"name": "a"}


def test_a_partial_keeps_the_annotations_and_the_docstring_of_its_function() -> None:
    def repeat(text: str, times: int, mark: str = "!") -> str:
        """Say it again."""
        return text * times + mark

    partial = functools.partial(functools.partial(repeat, times=2), mark="?")

    assert properties(partial) == {
        "text": {"type": "string"},
        "times": {"type": "integer", "default": 2},
        "mark": {"type": "string", "default": "?"},
    }
    assert description_of(partial, "again", None, None)["description"] == "Say it again."
    with pytest.raises(TypeError, match="has no name of its own; give it one: name="):
        name_of(partial)


def test_a_decorated_function_is_the_one_inside() -> None:
    def twice(function: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> str:
            return function(*args, **kwargs) * 2

        return wrapper

    @twice
    def say(text: str) -> str:
        """Say it."""
        return text

    assert properties(say) == {"text": {"type": "string"}}
    assert description_of(say, name_of(say), None, None) == {"name": "say", "description": "Say it."}


def test_a_path_is_sent_as_text() -> None:
    def function(file: Path, others: dict[str, PurePosixPath] | None = None) -> None: ...

    assert properties(function)["file"] == {"type": "string"}
    assert bind(function, {"file": "a/b", "others": {"c": "d"}}) == {
        "file": Path("a/b"),
        "others": {"c": PurePosixPath("d")},
    }
    assert problem(function, {"file": 1}) == "Argument 'file' is wrong: expected str, got int."


def test_local_types_that_use_each_other_are_refused_with_advice() -> None:
    class Inner(Struct):
        x: int

    class Outer(Struct):
        inner: Inner

    def function(value: Outer) -> None: ...

    with pytest.raises(
        TypeError, match=r"argument 'value' of function\(\): name 'Inner' is not defined; define types .* at the top"
    ):
        signature_of(function, {"Outer": Outer})


def _star(*names: str) -> None: ...
def _positional(name: str, /) -> None: ...
def _custom(path: Box | Point) -> None: ...
def _unknown(value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def _unknown_result(name: str) -> Missing: ...  # type: ignore[name-defined]  # noqa: F821
def _foreign(name: str, value: pytest.Item) -> None: ...
def _yields() -> Iterator[str]:
    yield ""


async def _yields_too() -> AsyncIterator[str]:
    yield ""


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (_star, "_star(): '*names' is not supported; every argument is passed by its name"),
        (_positional, "_positional(): 'name' is not supported"),
        (_custom, "argument 'path' of _custom(): Type unions "),
        (_unknown, "argument 'value' of _unknown(): the annotation cannot be read: name 'Missing' is not defined"),
        (_unknown_result, "the result of _unknown_result(): the annotation cannot be read: name 'Missing' is not"),
        (_yields, "_yields() yields; return a list"),
        (_yields_too, "_yields_too() yields; return a list"),
        (_foreign, "argument 'value' of _foreign(): type Item is not supported; use str, int, "),
    ],
)
def test_what_cannot_be_offered_is_refused_with_a_reason(function: Callable[..., Any], sentence: str) -> None:
    with pytest.raises(TypeError) as raised:
        signature_of(function, globals())

    assert str(raised.value).startswith(sentence)


def test_a_text_that_is_half_a_surrogate_pair_is_no_number() -> None:
    def function(size: float) -> None: ...

    with pytest.raises(BadArguments, match="half a surrogate pair"):
        bind(function, {"size": "2\ud800"}, strict=False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["count", "at", "mode", "__class__", "__struct_fields__", "self", "ctx", ""])


@given(st.dictionaries(NAMES, JSON) | JSON, st.booleans())
def test_whatever_is_sent_is_bound_or_refused_with_a_sentence(arguments: object, strict: bool) -> None:
    def closed(count: int, at: Point | None = None, mode: Literal["a"] = "a") -> None: ...

    def open_(count: int, **others: Any) -> None: ...

    for function in (closed, open_):
        try:
            bound = bind(function, arguments, strict=strict)
        except BadArguments as refusal:
            problem = str(refusal)
        else:
            assert isinstance(arguments, dict)
            assert bound.keys() == arguments.keys()
            assert type(bound["count"]) is int
            assert bound.get("__class__") is arguments.get("__class__")
            continue
        assert problem.startswith(("Argument '", "The arguments are wrong: "))


@pytest.mark.parametrize("type_", [Point, Box, Options, dict[str, int], dict, Tree])
def test_types_of_objects_have_a_schema_for_results(type_: Any) -> None:
    schema = object_schema(type_)

    assert schema is not None
    assert schema["type"] == "object"


@pytest.mark.parametrize("type_", [int, str, list[Point], Point | None, Any, pytest.Item, bytes])
def test_other_types_have_none(type_: Any) -> None:
    assert object_schema(type_) is None


def test_a_type_that_contains_itself_keeps_its_definition() -> None:
    schema = object_schema(Tree)

    assert schema is not None
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert "Tree" in schema["$defs"]
