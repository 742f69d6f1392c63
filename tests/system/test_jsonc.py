"""JSON with comments and trailing commas: what is read, what is refused, and where the fault is said to be."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uno_devserver.system.jsonc import JsonPositions, JsonProblem, parse

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

# Between two tokens; the texts of the comments look like the ends and beginnings of everything else.
NOISE = [
    "",
    " ",
    "\t",
    "\n",
    "\r\n",
    "/**/",
    "/***/",
    "/*/*/",
    '/* , ] } " // \r\n */',
    "// , ] } /* \n",
    '// "\r\n',
    "////////////////\n",
    "// \\\n",
]

# What a careless reader takes for a comment, or for the end of a string.
TRAPS = [
    "//",
    "/*",
    "*/",
    "/* x */",
    "http://localhost/",
    '"',
    '\\"',
    "\\",
    "\\\\",
    ",]",
    ",}",
    '",]',
    "\u2028",
    "\ud800",
]


# --- what is read -------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(JSON_VALUES, st.randoms(use_true_random=False))
def test_any_value_with_comments_and_trailing_commas_is_read_as_itself(value: object, chance: random.Random) -> None:
    assert parse(_written(value, chance)) == value


@settings(deadline=None)
@given(JSON_VALUES, st.randoms(use_true_random=False), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_any_encoding_with_a_byte_order_mark_is_read(value: object, chance: random.Random, encoding: str) -> None:
    data = _written(value, chance).encode(encoding)

    assert parse(data) == value


@settings(deadline=None)
@given(st.lists(st.sampled_from(TRAPS), max_size=6), st.randoms(use_true_random=False))
def test_strings_that_look_like_comments_stay_as_they_are(parts: list[str], chance: random.Random) -> None:
    text = "".join(parts)

    assert parse(_written({text: [text]}, chance)) == {text: [text]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2, ]", [1, 2]),
        ('{"a": 1 , // last\n }', {"a": 1}),
        ("// first\n1", 1),
        ("1 // no line break at the end", 1),
        ("/* one */ /* two */ [ /* three */ ]", []),
        ('{"a": [1,],}', {"a": [1]}),
        ('["a", //]\n"b"]', ["a", "b"]),
        ('{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_json_as_people_write_it(text: str, value: object) -> None:
    assert parse(text) == value


def _written(value: Any, chance: random.Random) -> str:
    """The value as JSON text with noise between all tokens, and a trailing comma here and there."""
    tokens = _tokens(value, chance)
    return "".join(chance.choice(NOISE) + token for token in tokens) + chance.choice(NOISE)


def _tokens(value: Any, chance: random.Random) -> list[str]:
    if isinstance(value, list):
        return ["[", *_members([_tokens(item, chance) for item in value], chance), "]"]
    if isinstance(value, dict):
        pairs = [[json.dumps(key), ":", *_tokens(item, chance)] for key, item in value.items()]
        return ["{", *_members(pairs, chance), "}"]
    return [json.dumps(value)]


def _members(members: list[list[str]], chance: random.Random) -> list[str]:
    tokens = [token for number, member in enumerate(members) for token in ([","] if number else []) + member]
    return [*tokens, ","] if tokens and chance.random() < 0.5 else tokens


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "// only a comment",
        "[1 2]",
        "[1,, 2]",
        "[1,,]",
        "[,]",
        "{ /* nothing */ , }",
        "{'a': 1}",
        "{a: 1}",
        '{"a" 1}',
        '["a]',
        '"a\nb"',
        "[1] 2",
        "[1] /* never closed",
        "[1] /*/",
        "[1] / * x */",
        "# hash",
        "[1, # hash\n]",
        "\0",
        "nul",
        "NaN",
        "// NaN\n[-Infinity]",
    ],
)
def test_what_is_still_no_json_is_a_problem(text: str) -> None:
    with pytest.raises(JsonProblem):
        parse(text)


@settings(deadline=None)
@given(st.lists(st.sampled_from(NOISE), max_size=8))
def test_the_problem_is_where_it_is_in_the_text_as_written(noise: list[str]) -> None:
    before = "[1," + "".join(noise)

    with pytest.raises(JsonProblem) as problem:
        parse(before + "@]")

    last_line = before.rpartition("\n")[2]
    assert (problem.value.line, problem.value.column) == (before.count("\n") + 1, len(last_line) + 1)
    assert f"(line {problem.value.line}, column {problem.value.column})" in str(problem.value)


@pytest.mark.parametrize("text", ["[" * 1_000_000, "// comment\n" + "[" * 1_000_000, '{"a":' * 1_000_000], ids=len)
def test_a_million_levels_are_a_problem_and_no_crash(text: str) -> None:
    with pytest.raises(JsonProblem, match="nested too deeply"):
        parse(text)


@pytest.mark.parametrize("comment", ["", "// comment\n"])
def test_a_number_of_thousands_of_digits_is_a_problem_in_words_for_a_user(comment: str) -> None:
    with pytest.raises(JsonProblem, match="a number has too many digits"):
        parse(comment + '{"version": ' + "9" * 5000 + "}")


@settings(deadline=None)
@given(st.text() | st.binary())
def test_whatever_the_input_is_there_is_a_value_or_a_problem(data: str | bytes) -> None:
    try:
        parse(data)
    except JsonProblem:
        pass  # anything else fails the test


@settings(deadline=None)
@given(st.lists(st.sampled_from(["[", "]", "{", "}", ",", ":", '"', "\\", "/", "*", "\n", "1", "a", " "])).map("".join))
def test_texts_made_of_jsons_own_characters_are_read_or_refused_like_the_rest(text: str) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        try:
            parse(text)
        except JsonProblem:
            pass
    else:
        assert parse(text) == value


# --- hostile input ------------------------------------------------------------------------------------------------


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "piece",
    [
        "/* ",
        "/*",
        '"\\',
        '\\"',
        '"',
        "//",
        "/",
        ",",
        ", ",
        ",/*",
        ",/* */",
        ",//\n",
        " ",
        "\n",
        "*/",
        '"",',
        '/*"',
        "\\",
    ],
)
@pytest.mark.parametrize("start", ["", "[1,", '["a",\n'])
def test_100_kb_of_anything_take_no_longer_than_their_length_explains(start: str, piece: str) -> None:
    text = start + piece * (100_000 // len(piece))

    with pytest.raises(JsonProblem):
        parse(text)


@pytest.mark.timeout(10)
def test_a_line_of_slashes_between_two_values_is_an_ordinary_comment() -> None:
    assert parse("[1,\n" + "/" * 120 + "\n2]") == [1, 2]


# Where something stands.

DOCUMENT = """// a comment {
{
  "a": 1, /* "b": */ "b": {
    "c": [1, {"d": "x"}],
    "a": "twin",
  },
  "esc\\u0061ped": null, "b2": { }, "a": 3
}"""


@pytest.mark.parametrize(
    ("trail", "at_value", "at_key"),
    [
        ((), (2, 1), (2, 1)),
        (("b",), (3, 27), (3, 22)),
        (("b", "c"), (4, 10), (4, 5)),
        (("b", "a"), (5, 10), (5, 5)),
        (("escaped",), (7, 19), (7, 3)),
        (("a",), (7, 41), (7, 36)),
        (("b2", "gone"), (7, 31), (7, 31)),
        (("b", "c", "d"), (4, 10), (4, 10)),
    ],
)
def test_the_place_of_a_value_and_of_its_name_is_found(
    trail: tuple[str, ...], at_value: tuple[int, int], at_key: tuple[int, int]
) -> None:
    places = JsonPositions(DOCUMENT)

    assert places.position(trail) == at_value
    assert places.position(trail, at_key=True) == at_key


@given(st.recursive(st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=8))
def test_every_value_begins_where_its_place_says(value: object) -> None:
    def check(part: object, trail: tuple[str, ...]) -> None:
        line, column = JsonPositions(text).position(trail)
        begin = sum(len(before) + 1 for before in text.split("\n")[: line - 1]) + column - 1
        assert json.JSONDecoder().raw_decode(text, begin)[0] == part
        if isinstance(part, dict):
            for name, inner in part.items():
                check(inner, (*trail, name))

    text = json.dumps(value, indent=2)
    check(value, ())


def test_a_carriage_return_alone_ends_a_comment() -> None:
    assert parse('// one\r{"a": 1}') == {"a": 1}
