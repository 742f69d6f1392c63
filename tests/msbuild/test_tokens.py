"""How a condition is cut into words."""

from __future__ import annotations

import time
from itertools import takewhile

import pytest

from uno_devserver.msbuild.conditions import BUILT_IN, CUSTOM_METADATA, END, ITEMS, tokens_of
from uno_devserver.msbuild.problems import EvaluationProblem

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
