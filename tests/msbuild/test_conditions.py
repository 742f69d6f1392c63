"""Conditions in three values."""

from __future__ import annotations

import operator
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uno_devserver.msbuild.conditions import BUILT_IN, CUSTOM_METADATA, ITEMS, MAX_NESTING, Condition
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
