"""The JSON inside frames, as .NET reads and writes it."""

from __future__ import annotations

import json
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.golden import GOLDEN
from uno_devserver.host.remote_control.frames import ContentProblem, Members, read_content, read_members, write_content

# The strings that were serialised for the record, by the record's label.
STRINGS = {
    "string ASCII letters": "abc XYZ 09",
    "string + < > & ' \" \\ / `": "+<>&'\"\\/`",
    "string control characters": "\b\t\n\f\r\x00\x01\x1f\x7f\x80\u2028\u2029",
    "string non-ASCII BMP": "Příliš ж 中 € \u00a0",
    "string emoji (surrogate pair)": "\U0001f680",
    "string lone surrogate": "x\ud800y",
    "string empty": "",
    "string with path C:\\a\\b": "C:\\a\\b",
    "string BOM U+FEFF and noncharacter U+FFFE": "\ufeff\ufffe",
}
SERIALIZERS = {
    record["value"]: record["stj"]
    for record in json.loads((GOLDEN / "bytes" / "json" / "serializers.json").read_text("utf-8"))
}


class State(IntEnum):
    DISABLED = -1


@pytest.mark.parametrize("label", STRINGS)
def test_strings_are_escaped_as_by_system_text_json(label: str) -> None:
    assert write_content(STRINGS[label]) == SERIALIZERS[label]


def test_members_keep_their_order_and_nulls_are_written() -> None:
    value = {"B": None, "A": [True, 1, 0.5, {"x": ()}], "State": State.DISABLED}

    assert write_content(value) == '{"B":null,"A":[true,1,0.5,{"x":[]}],"State":-1}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", object(), {"x": {1}}])
def test_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError), match="no JSON form"):
        write_content(value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(JSON)
def test_what_is_written_can_be_read(value: object) -> None:
    assert read_content(write_content(value)) == value


def test_names_of_members_ignore_case_and_the_last_one_counts() -> None:
    members = read_members('{"requestid":"a","REQUESTID":"b","isallowed":true,"step":1,"edits":[{"filepath":"f"}]}')

    assert members.text("RequestId") == "b"
    assert members.flag("IsAllowed") is True
    assert members.number("Step") == 1
    assert [edit.text("FilePath") for edit in members.objects("Edits")] == ["f"]


def test_absent_members_have_defaults() -> None:
    members = Members({})

    assert (members.text("A"), members.flag("A"), members.number("A"), members.objects("A")) == (None, False, None, ())


@pytest.mark.parametrize(
    "content", ["", "zzz", "{", "[1]", "null", "5", '{"a":1,}', "// c\n{}", "[" * 100_000, '{"\ud800":1}']
)
def test_what_is_no_json_object_is_a_problem(content: str) -> None:
    with pytest.raises(ContentProblem):
        read_members(content)


@pytest.mark.parametrize(
    ("ask", "content"),
    [
        (lambda m: m.text("A"), '{"A":5}'),
        (lambda m: m.flag("A"), '{"A":null}'),
        (lambda m: m.flag("A"), '{"A":"true"}'),
        (lambda m: m.number("A"), '{"A":"5"}'),
        (lambda m: m.number("A"), '{"A":5.0}'),
        (lambda m: m.number("A"), '{"A":true}'),
        (lambda m: m.number("A"), '{"A":null}'),
        (lambda m: m.objects("A"), '{"A":{}}'),
        (lambda m: m.objects("A"), '{"A":[1]}'),
    ],
)
def test_a_member_of_another_type_is_a_problem_that_names_it(ask: object, content: str) -> None:
    assert callable(ask)
    with pytest.raises(ContentProblem, match="A is n"):
        ask(read_members(content))
