"""References, escapes, and values that are not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from uno_devserver.msbuild.expressions import (
    GUESS,
    MAX_TEXT,
    UNKNOWN,
    EvaluationScope,
    escape,
    guessed,
    is_known,
    unescape,
)
from uno_devserver.msbuild.problems import EvaluationProblem


def scope(defined: set[str] | None = None, folder: str = "/p", **values: str) -> EvaluationScope:
    created = EvaluationScope(folder, {}, defined)
    created.values.update(values)
    return created


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[$(A)]", "[v]"),
        ("$(a)$(A)", "vv"),
        ("$(Nope)", ""),
        ("$( A )", ""),
        ("$()", ""),
        ("$(A", "$(A"),
        ("x$(A.Trim()", "x$(A.Trim()"),
        ("$ (A)", "$ (A)"),
        ("$$(A)", "$v"),
        ("100$", "100$"),
        ("$(1x)", ""),
        ("$(Registry:HKEY_LOCAL_MACHINE\\Software@X)", ""),
        ("%24(A)", "%24(A)"),
        ("@(A) %(A)", "@(A) %(A)"),
    ],
)
def test_only_whole_references_are_replaced(text: str, expected: str) -> None:
    assert scope(a="v").expand(text) == expected


def test_a_value_is_not_looked_at_again() -> None:
    assert scope(a="$(B)", b="x").expand("$(A)") == "$(B)"


def test_the_file_that_is_evaluated_has_its_own_values() -> None:
    here = scope()
    here.file_values = {"msbuildthisfilename": "Acme"}

    assert here.expand("$(MSBuildThisFileName)") == "Acme"


def test_backslashes_turn_round_when_the_first_folder_exists_in_the_project_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    here = scope(folder=str(tmp_path), a="sub")

    assert here.expand("$(A)\\x") == "sub/x"
    assert here.expand("other\\x") == "other\\x"


def test_in_two_values_an_undefined_property_is_empty_and_in_three_unknown() -> None:
    assert scope(None).expand("[$(Nope)]") == "[]"
    assert scope(set()).expand("[$(Nope)]") == f"[{UNKNOWN}]"


def test_a_property_that_a_file_defines_is_empty_before_it_is_set() -> None:
    here = scope({"later"})

    assert here.expand("[$(Later)]") == "[]"
    assert here.missing == set()


def test_a_name_that_no_property_can_have_is_empty_in_three_values_too() -> None:
    assert scope(set()).expand("[$( A )]") == "[]"


def test_what_was_unknown_is_remembered() -> None:
    here = scope(set())

    here.expand("$(Nope)$(nope)$(More)")

    assert here.missing == {"nope", "more"}


def test_a_guess_marks_every_part_of_a_list_and_is_no_part_of_the_path(tmp_path: Path) -> None:
    here = scope(folder=str(tmp_path), a=guessed("..;b"))

    assert here.values["a"] == f"{GUESS}..;{GUESS}b"
    assert here.expand(f"{GUESS}..\\x") == f"{GUESS}../x"
    assert not is_known(here.expand("$(A)"))


def test_escapes_are_undone_and_made() -> None:
    assert unescape("a%3Bb%20c%25%zz%") == "a;b c%%zz%"
    assert escape("a;b(c)'*?@$%") == "a%3bb%28c%29%27%2a%3f%40%24%25"
    assert unescape(escape("%41;")) == "%41;"


def test_one_value_cannot_grow_without_end() -> None:
    here = scope(a="x" * (MAX_TEXT // 2))
    assert len(here.expand("$(A)$(A)")) == MAX_TEXT

    with pytest.raises(EvaluationProblem) as raised:
        here.expand("$(A)$(A)x")

    assert raised.value.code == "Limit"


def test_many_references_to_a_long_value_end_before_the_result_is_built() -> None:
    here = scope(a="x" * MAX_TEXT)

    with pytest.raises(EvaluationProblem, match="grow"):
        here.expand("$(A)" * 100_000)


def test_many_long_values_cannot_fill_the_memory() -> None:
    here = scope(a="x" * (MAX_TEXT // 2))

    def keep_many() -> None:
        for number in range(1000):
            here.values[f"b{number}"] = here.expand("$(A)y")

    with pytest.raises(EvaluationProblem, match="grow"):
        keep_many()
