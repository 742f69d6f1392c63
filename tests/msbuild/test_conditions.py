"""Conditions in three values."""

from __future__ import annotations

import operator
import time
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uno_devserver.msbuild.conditions import BUILT_IN, CUSTOM_METADATA, END, ITEMS, MAX_NESTING, Condition, tokens_of
from uno_devserver.msbuild.problems import EvaluationProblem


class Words:
    """Words that are worth themselves, and $(Nope), which is unknown."""

    def text(self, raw: str) -> str | None:
        return None if "$(Nope)" in raw else raw

    def paths(self, raw: str) -> list[str] | None:
        return None if "$(Nope)" in raw else [path for path in raw.split(";") if path]

    def exists(self, path: str) -> bool:
        return path.startswith("there")


def value(condition: str) -> bool | None:
    return Condition(condition, ITEMS).evaluate(Words())


def code(condition: str) -> str:
    with pytest.raises(EvaluationProblem) as raised:
        value(condition)
    return raised.value.code


@pytest.mark.parametrize(
    "condition",
    [
        "'1' == '1.0'",
        "'010' == '10'",
        "'0x10' == '16'",
        "'0xFFFFFFFF' == '-1'",
        "'+5' == '5'",
        "'5.' == '5'",
        "'true' == 'on'",
        "'!false' == 'true'",
        "'ABC' == 'abc'",
        "'É' == 'é'",
        "'1e1' != '10'",
        "' 5' != '5'",
        "'1.0.0' != '1.0'",
        "'' == ''",
        "'' != 'false'",
        "'0x100000000' != '4294967296'",
    ],
)
def test_equality_is_of_numbers_then_of_truth_then_of_text(condition: str) -> None:
    assert value(condition) is True


@pytest.mark.parametrize(
    "condition",
    [
        "'10' > '9'",
        "'2.10' < '2.9'",
        "'2.10.0' > '2.9.0'",
        "'10.0.401' > '10'",
        "'10' < '10.0.401'",
        "'10' <= '10.0.401'",
        "'11' > '10.0.401'",
        "'10.0' >= '9.0.100'",
        "'1.2.3' <= '1.2.3'",
        "!('1.2.3' > '2')",
    ],
)
def test_order_is_of_numbers_or_of_versions(condition: str) -> None:
    assert value(condition) is True


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("Exists('there')", True),
        ("exists('there;there too')", True),
        ("Exists('there;nowhere')", False),
        ("Exists('')", False),
        ("HasTrailingSlash('a/')", True),
        ("HasTrailingSlash('a\\')", True),
        ("HasTrailingSlash('')", False),
        ("Exists('there') == 'true'", True),
        ("!Exists('nowhere') and ('a' == 'b' or 'a' == 'a')", True),
        ("true or true and false", True),
        ("!'true' == 'false'", True),
        ("!!true", True),
    ],
)
def test_calls_and_operators_bind_as_in_msbuild(condition: str, expected: bool) -> None:
    assert value(condition) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("$(Nope)", None),
        ("!$(Nope)", None),
        ("'$(Nope)' == ''", None),
        ("'$(Nope)' != 'x'", None),
        ("'$(Nope)' > 5", None),
        ("Exists('$(Nope)/x')", None),
        ("!Exists('$(Nope)')", None),
        ("'$(Nope)' == 'a' and false", False),
        ("false and '$(Nope)' == 'a'", False),
        ("true and '$(Nope)' == 'a'", None),
        ("'$(Nope)' == 'a' or true", True),
        ("'$(Nope)' == 'a' or false", None),
        ("('$(Nope)' == 'a') == 'true'", None),
    ],
)
def test_an_unknown_word_makes_unknown_what_it_decides_and_nothing_else(condition: str, expected: bool | None) -> None:
    assert value(condition) is expected


def test_an_error_behind_an_unknown_word_may_never_happen() -> None:
    assert value("'$(Nope)' == 'a' and 'x' > 5") is None
    assert value("'$(Nope)' == 'a' and 'x' > 5 and false") is False
    assert code("'x' > 5 and '$(Nope)' == 'a'") == "MSB4086"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("", "MSB4092"),
        ("'a' ==", "MSB4092"),
        ("'a' == 'b' == 'c'", "MSB4092"),
        ("(true", "MSB4092"),
        ("true)", "MSB4092"),
        ("not true", "MSB4092"),
        ("Exists('a' 'b')", "MSB4092"),
        ("Exists(!true)", "MSB4092"),
        ("Exists()", "MSB4089"),
        ("Exists('a',)", "MSB4089"),
        ("Missing('a')", "MSB4091"),
        ("HasTrailingSlash('a;b')", "MSB4115"),
        ("maybe", "MSB4113"),
        ("1", "MSB4113"),
        ("!maybe", "MSB4100"),
        ("maybe and true", "MSB4100"),
        ("Exists('a') == 'maybe'", "MSB4088"),
        ("Exists('a') > 1", "MSB4086"),
        # What comes first counts: the second word here, not the bad character behind it.
        ("a b &", "MSB4092"),
    ],
)
def test_an_error_has_msbuilds_code(condition: str, expected: str) -> None:
    assert code(condition) == expected


def test_parentheses_nest_to_a_limit() -> None:
    assert value("(" * MAX_NESTING + "true" + ")" * MAX_NESTING) is True
    assert code("(" * 100_000 + "true") == "Limit"
    assert code("!" * 100_000 + "true") == "Limit"


def test_a_chain_may_be_as_long_as_it_likes() -> None:
    assert value(" or ".join(["false"] * 20_000 + ["true"])) is True
    assert value(" and ".join(["true"] * 20_000)) is True


# A condition as text, and what it must be worth.
Worth = tuple[str, bool | None]
COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le}


@st.composite
def comparisons(draw: st.DrawFn) -> Worth:
    left, right = draw(st.tuples(st.integers(-3, 3), st.integers(-3, 3)))
    name = draw(st.sampled_from(sorted(COMPARISONS)))
    if draw(st.integers(0, 4)) == 0:
        return f"'$(Nope)' {name} '{right}'", None
    return f"'{left}' {name} {right}", COMPARISONS[name](left, right)


def negated(inner: Worth) -> Worth:
    return f"!({inner[0]})", None if inner[1] is None else not inner[1]


def joined(parts: list[Worth], word: str) -> Worth:
    decisive = word == "or"
    values = [part[1] for part in parts]
    text = f" {word} ".join(f"({part[0]})" for part in parts)
    return text, decisive if decisive in values else None if None in values else not decisive


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        inner.map(negated),
        st.builds(joined, st.lists(inner, min_size=2, max_size=3), st.sampled_from(["and", "or"])),
    ),
    max_leaves=12,
)


@given(CONDITIONS)
@settings(max_examples=200, deadline=None)
def test_any_condition_is_worth_what_kleenes_logic_says(condition: Worth) -> None:
    text, expected = condition

    assert value(text) is expected


@given(st.text("'$@%(). ano<=>!-x,1", max_size=25))
@settings(max_examples=300, deadline=None)
def test_any_text_has_a_value_or_a_problem_with_a_code(text: str) -> None:
    outcome: bool | str | None
    try:
        outcome = Condition(text, ITEMS | CUSTOM_METADATA | BUILT_IN).evaluate(Words())
    except EvaluationProblem as problem:
        outcome = problem.code

    assert outcome in (True, False, None) or str(outcome).startswith("MSB")


def test_a_word_that_begins_as_a_long_number_is_read_in_a_moment() -> None:
    digits = "1" * 400_000
    start = time.process_time()

    assert value(f"'{digits}x' == '{digits}y'") is False
    # Trying every place for the point would take minutes.
    assert time.process_time() - start < 5


ALL = ITEMS | CUSTOM_METADATA | BUILT_IN


def words(condition: str, allowed: int = ALL) -> list[tuple[str, str]]:
    return list(takewhile(lambda token: token is not END, tokens_of(condition, allowed)))


def test_quoted_text_numbers_words_and_operators_are_told_apart() -> None:
    assert words(" 'a b'==-1.5 and\tNot!=( 0x1F , on)") == [
        ("text", "a b"),
        ("==", "=="),
        ("number", "-1.5"),
        ("and", "and"),
        ("text", "Not"),
        ("!=", "!="),
        ("(", "("),
        ("number", "0x1F"),
        (",", ","),
        ("text", "on"),
        (")", ")"),
    ]


def test_a_word_before_a_parenthesis_is_a_call_whatever_blanks_are_between() -> None:
    assert words("Exists ('x')")[0] == ("call", "Exists")


def test_and_needs_no_blanks() -> None:
    assert [kind for kind, _ in words("'a'and'b'OR'c'")] == ["text", "and", "text", "or", "text"]


def test_a_bare_word_ends_at_a_dot() -> None:
    assert words("net10.0") == [("text", "net10"), ("number", ".0")]


def test_a_reference_ends_where_its_parentheses_are_balanced() -> None:
    assert words("$(A.Replace('x', $(B))) == @(C->'%(D)', ')')") == [
        ("text", "$(A.Replace('x', $(B)))"),
        ("==", "=="),
        ("text", "@(C->'%(D)', ')')"),
    ]


def test_quotes_inside_an_item_list_do_not_end_the_quoted_text() -> None:
    assert words("'@(C->'%(D)')' == ''") == [("text", "@(C->'%(D)')"), ("==", "=="), ("text", "")]


@pytest.mark.parametrize(
    ("condition", "allowed", "code"),
    [
        ("'a", ALL, "MSB4101"),
        ("a = b", ALL, "MSB4105"),
        ("a & b", ALL, "MSB4090"),
        ("$x", ALL, "MSB4110"),
        ("$", ALL, "MSB4109"),
        ("$(x", ALL, "MSB4109"),
        ("$( x )", ALL, "MSB4259"),
        ("$(A.Trim($( x )))", ALL, "MSB4259"),
        ("%x", ALL, "MSB4090"),
        ("@x", ALL, "MSB4107"),
        ("@(x", ALL, "MSB4106"),
        ("@(x->'", ALL, "MSB4108"),
        ("@(x)", 0, "MSB4099"),
        ("'@(x)'", 0, "MSB4099"),
        ("%(Filename)", ITEMS, "MSB4190"),
        ("'%(x.Identity)'", CUSTOM_METADATA, "MSB4190"),
        ("'%(Kind)'", ITEMS, "MSB4191"),
    ],
)
def test_a_bad_word_has_msbuilds_code(condition: str, allowed: int, code: str) -> None:
    with pytest.raises(EvaluationProblem) as raised:
        words(condition, allowed)

    assert raised.value.code == code


@pytest.mark.parametrize("part", ["%(", "1 ", "'%(a)' ", "$(", "(", "'@(a)'"])
def test_a_very_long_condition_is_cut_in_linear_time(part: str) -> None:
    start = time.process_time()

    try:
        words("'" * (part == "%(") + part * 20_000)
    except EvaluationProblem:
        pass

    assert time.process_time() - start < 2
