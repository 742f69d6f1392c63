from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.protocol.client.http_modern import argument_headers, marks_in, routing_headers
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.versions import decoded_header, encoded_header


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_from_a_header(text: str) -> None:
    value = encoded_header(text)

    assert decoded_header(value) == text
    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()


def test_readable_names_stay_readable() -> None:
    assert encoded_header("file:///a b.txt") == "file:///a b.txt"
    assert encoded_header("=?base64?eA==?=") == "=?base64?PT9iYXNlNjQ/ZUE9PT89?="


@pytest.mark.parametrize(
    ("method", "params", "headers"),
    [
        ("tools/call", {"name": "t"}, b"Mcp-Method: tools/call\r\nMcp-Name: t\r\n"),
        ("prompts/get", {"name": "p"}, b"Mcp-Method: prompts/get\r\nMcp-Name: p\r\n"),
        ("resources/read", {"uri": "a:b"}, b"Mcp-Method: resources/read\r\nMcp-Name: a:b\r\n"),
        ("tools/list", {"name": "t"}, b"Mcp-Method: tools/list\r\n"),
        ("tools/call", {}, b"Mcp-Method: tools/call\r\n"),
        ("tools/call", {"name": 5}, b"Mcp-Method: tools/call\r\n"),
    ],
)
def test_headers_repeat_the_method_and_the_name(method: str, params: dict[str, Any], headers: bytes) -> None:
    assert routing_headers(method, params) == headers


@pytest.mark.parametrize("method", ["", "ü", "a\r\nX: y", " x"])
def test_a_method_that_no_header_can_carry_is_refused(method: str) -> None:
    with pytest.raises(RpcError):
        routing_headers(method, {})


def marked(kind: str, name: object) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


def test_marks_are_found_where_an_argument_certainly_is() -> None:
    schema = {
        "properties": {
            "a": marked("string", "A"),
            "b": {"properties": {"c": marked("integer", "C"), "d": {"items": marked("string", "D")}}},
            "e": marked("string", "not a token"),
            "f": marked("string", 5),
            "x-mcp-header": marked("string", "X"),
        },
        "anyOf": [{"properties": {"g": marked("string", "G")}}],
        "x-mcp-header": "Root",
    }

    assert marks_in(schema) == ((("a",), "A"), (("b", "c"), "C"), (("x-mcp-header",), "X"))


@pytest.mark.parametrize("schema", [None, [], {"properties": 5}, {"properties": {"a": 5}}])
def test_a_schema_that_is_none_has_no_marks(schema: object) -> None:
    assert marks_in(schema) == ()


def test_a_schema_without_an_end_is_not_followed_for_ever() -> None:
    schema: dict[str, Any] = {}
    schema["properties"] = {"a": schema}

    assert marks_in(schema) == ()


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"a": "x"}, b"Mcp-Param-A: x\r\n"),
        ({"a": "ü"}, b"Mcp-Param-A: =?base64?w7w=?=\r\n"),
        ({"a": True}, b"Mcp-Param-A: true\r\n"),
        ({"a": False}, b"Mcp-Param-A: false\r\n"),
        ({"a": 42}, b"Mcp-Param-A: 42\r\n"),
        ({"b": {"c": "x"}}, b"Mcp-Param-C: x\r\n"),
        ({"a": None}, b""),
        ({"a": ["x"], "b": "x"}, b""),
        ({}, b""),
        (None, b""),
    ],
)
def test_headers_repeat_marked_arguments(arguments: object, headers: bytes) -> None:
    assert argument_headers(((("a",), "A"), (("b", "c"), "C")), {"arguments": arguments}) == headers
