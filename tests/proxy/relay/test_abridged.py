"""What people who look on read of a call: short, true texts of whatever clients and servers send."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.proxy.inspection.call_recorder import (
    CUT,
    MOST_BYTES,
    MOST_CHARACTERS,
    arguments_of,
    name_of,
    outcome_of,
    short_json,
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def raw(result: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(result).encode())


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


# --- what it was given


@pytest.mark.parametrize(
    ("method", "params", "name", "arguments"),
    [
        ("tools/call", {"name": "echo", "arguments": {"a": [1, "ü"]}}, "echo", '{"a": [1, "ü"]}'),
        ("tools/call", {"name": "echo"}, "echo", ""),
        ("tools/call", {"name": 5, "arguments": {}}, None, ""),
        ("prompts/get", {"name": "greet", "arguments": {"who": "you"}}, "greet", '{"who": "you"}'),
        ("resources/read", {"uri": "file:///a", "_meta": {"x": 1}}, "file:///a", ""),
        ("completion/complete", {"ref": {"name": "p"}, "_meta": {}}, None, '{"ref": {"name": "p"}}'),
        ("tools/list", {}, None, ""),
    ],
)
def test_a_call_is_named_by_what_it_is_about(
    method: str, params: dict[str, Any], name: str | None, arguments: str
) -> None:
    assert name_of(method, params) == name
    assert arguments_of(method, params) == arguments


@given(ANYTHING)
def test_json_is_whole_or_cut_where_the_whole_would_have_been(value: Any) -> None:
    shown, whole = short_json(value), json.dumps(value, ensure_ascii=False)

    if len(whole) <= MOST_CHARACTERS:
        assert shown == whole
    else:
        assert shown == whole[: MOST_CHARACTERS - 1] + CUT


@pytest.mark.parametrize(
    "value",
    [
        "x" * 50_000_000,
        {"a": ["y" * 50_000_000] * 20},
        [[list(range(1000))] * 1000] * 1000,
        {str(number): "z" for number in range(200_000)},
    ],
    ids=["a text", "texts", "lists", "an object"],
)
def test_what_is_not_shown_is_not_looked_at(value: Any) -> None:
    begun = time.process_time()

    shown = short_json(value)

    assert len(shown) == MOST_CHARACTERS
    assert shown.endswith(CUT)
    assert time.process_time() - begun < 0.05, "all of it would take seconds"


def test_arguments_that_are_nested_too_deep_to_be_followed_are_said_to_be() -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}

    assert arguments_of("tools/call", {"name": "echo", "arguments": deep}) == "[JSON that cannot be shown]"


# --- what it was answered


@pytest.mark.parametrize("wrap", [raw, dict], ids=["as bytes", "as an object"])
@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"content": [text("one"), text("two\nthree")]}, "one\ntwo\nthree"),
        ({"content": [{"type": "image", "mimeType": "image/png", "data": "A" * 4096}]}, "[image/png, 3 KB]"),
        ({"content": [{"type": "audio", "data": "A" * 40}]}, "[audio, 30 bytes]"),
        ({"content": [{"type": "resource", "resource": {"uri": "a", "text": "inside"}}]}, "inside"),
        ({"content": [{"type": "resource", "resource": {"uri": "a", "blob": "A" * 4_194_304}}]}, "[binary, 3.0 MB]"),
        ({"content": [{"type": "resource_link", "uri": "a"}]}, '{"type": "resource_link", "uri": "a"}'),
        ({"content": [], "structuredContent": {"sum": 3}}, '{"structuredContent": {"sum": 3}}'),
        ({"content": []}, ""),
        ({"contents": [{"uri": "a", "text": "read"}]}, "read"),
        ({"messages": [{"role": "user", "content": text("Hello!")}]}, "user: Hello!"),
        ({"tools": [{"name": "t"}]}, '{"tools": [{"name": "t"}]}'),
        ({"content": "odd"}, ""),
        ({"content": [5, None]}, "5\nnull"),
    ],
)
def test_a_result_is_shown_by_its_texts_and_the_rest_is_named(wrap: Any, result: Any, shown: str) -> None:
    assert outcome_of(wrap(result)) == (False, shown)


def test_members_that_are_still_bytes_are_read() -> None:
    result = {"content": [raw(text("theirs")), text("ours")], "isError": raw(True)}

    assert outcome_of(result) == (True, "theirs\nours")
    assert outcome_of({"tools": raw([{"name": "t"}])}) == (False, '{"tools": [{"name": "t"}]}')


@pytest.mark.parametrize(("said", "is_error"), [(True, True), (False, False), ("yes", False), (None, False)])
def test_an_error_is_what_says_so_of_itself(said: object, is_error: bool) -> None:
    assert outcome_of(raw({"content": [], "isError": said}))[0] is is_error


def test_a_long_result_is_cut_and_a_huge_one_is_named() -> None:
    _, long = outcome_of(raw({"content": [text("x" * 5000)]}))
    _, huge = outcome_of(raw({"content": [text("x" * MOST_BYTES)]}))

    assert (len(long), long[-1]) == (MOST_CHARACTERS, CUT)
    assert huge == "[8.0 MB, which is too much to show]"


@pytest.mark.parametrize(
    "result",
    [{"content": [1] * 200_000}, {"structuredContent": [{"id": number} for number in range(100_000)]}],
    ids=["items", "structured"],
)
def test_of_a_large_result_only_the_beginning_is_made_into_objects(result: Any) -> None:
    received = raw(result)
    tracemalloc.start()

    is_error, shown = outcome_of(received)

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (is_error, len(shown), shown[-1]) == (False, MOST_CHARACTERS, CUT)
    assert most < 4 * len(memoryview(received)), "the objects of all of it take ten times the bytes"


@pytest.mark.parametrize("spaced", [b'{"content" : [ 1 ,\n\t"a" ] }', b'{"content":[1,"a"]}'])
def test_the_spaces_between_items_do_not_matter(spaced: bytes) -> None:
    assert outcome_of(msgspec.Raw(spaced)) == (False, '1\n"a"')


@pytest.mark.parametrize("odd", [b"[1]", b'"text"', b"{", b"{}x", b'{"content":[{]}', b'{"a":' * 5000, b""])
def test_what_is_no_result_is_said_to_be_none(odd: bytes) -> None:
    assert outcome_of(msgspec.Raw(odd)) == (False, "[JSON that cannot be shown]")
