"""Every key that tomllib sees is found, and each value's bytes are that value."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from support.toml_texts import VALUES, toml_texts
from uno_devserver.setup.edits.document import EditProblem, same_value
from uno_devserver.setup.edits.toml_splices import InlineMember, Statement, scan


def pairs(text: str) -> list[Statement | InlineMember]:
    outline = scan(text)
    return [*outline.statements, *(member for table in outline.tables for member in table.members)]


def leaves(data: dict[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


@settings(max_examples=100, deadline=None)
@given(toml_texts())
def test_whatever_is_written_each_key_is_found_with_the_bytes_of_its_value(text: str) -> None:
    found = pairs(text)

    for path, value in leaves(tomllib.loads(text)):
        here = [one for one in found if one.path == path]
        assert here, path
        for one in here:
            if one.value is not None and not isinstance(value, list):  # arrays may have many headers
                assert same_value(tomllib.loads("it = " + text[slice(*one.value)])["it"], value)


@settings(max_examples=100, deadline=None)
@given(toml_texts())
def test_statements_cover_all_but_blank_lines_and_comments(text: str) -> None:
    end = 0
    for one in scan(text).statements:
        between, end = text[end : one.start], one.end
        assert all(not line.strip() or line.strip().startswith("#") for line in between.split("\n"))
    assert all(not line.strip() or line.strip().startswith("#") for line in text[end:].split("\n"))


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("end", ["", "\n", " # comment", "\r\n[next]"])
def test_a_value_ends_where_it_ends(value: str, end: str) -> None:
    statement = scan(f"key = {value}{end}").statements[0]

    assert statement.value == (6, 6 + len(value))


@pytest.mark.parametrize("value", VALUES)
def test_a_value_in_an_inline_table_ends_where_it_ends(value: str) -> None:
    (table, *_) = scan(f"key = {{ a = {value}, b.c={value} }}").tables

    first, second = table.members
    assert (first.path, first.value) == (("key", "a"), (12, 12 + len(value)))
    assert (second.path, second.value[1]) == (("key", "b", "c"), 12 + len(value) + len(", b.c=") + len(value))


def test_names_are_what_they_mean_however_they_are_quoted() -> None:
    paths = [one.path for one in scan('[ a . \'b.c\' ]\n"\\u0041" . x = 1\n[["d]"]]\n').statements]

    assert paths == [("a", "b.c"), ("a", "b.c", "A", "x"), ("d]",)]


def test_inline_tables_over_several_lines_as_newer_toml_has_them_are_found() -> None:
    text = "x = {\n  a = 1, # one }\n  b = { c = 2 },\n}\ny = 3\n"

    outline = scan(text)

    assert [one.path for one in outline.statements] == [("x",), ("y",)]
    assert [[member.path for member in table.members] for table in outline.tables] == [
        [("x", "a"), ("x", "b")],
        [("x", "b", "c")],
    ]


def test_what_is_not_understood_is_a_problem_with_its_place() -> None:
    with pytest.raises(EditProblem) as caught:
        scan("a = 1\n  ? = 2\n")

    assert str(caught.value).endswith("(line 2, column 3)")
