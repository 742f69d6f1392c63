"""What a condition's words are worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from uno_devserver.msbuild.conditions import PropertyOperands
from uno_devserver.msbuild.expressions import EvaluationScope, glob_of, guessed, split_list


@pytest.fixture
def scope(tmp_path: Path) -> EvaluationScope:
    created = EvaluationScope(str(tmp_path), {}, set())
    created.values.update(a="v", list="a%3Bb; c ;;", guess=guessed("x"))
    return created


def test_text_is_expanded_and_unescaped(scope: EvaluationScope) -> None:
    assert PropertyOperands(scope, scope.folder).text("[$(A)%3B]") == "[v;]"


def test_what_is_unknown_or_guessed_has_no_text_and_no_paths(scope: EvaluationScope) -> None:
    operands = PropertyOperands(scope, scope.folder)

    assert operands.text("x$(Nope)") is None
    assert operands.text("$(Guess)") is None
    assert operands.paths("$(A);$(Nope)") is None


def test_paths_are_a_list_with_this_systems_slashes(scope: EvaluationScope) -> None:
    assert PropertyOperands(scope, scope.folder).paths("a\\b;$(List)") == ["a/b", "a;b", "c"]


def test_a_relative_path_exists_in_the_given_folder(scope: EvaluationScope, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").touch()
    operands = PropertyOperands(scope, str(tmp_path / "sub"))

    assert operands.exists("file")
    assert operands.exists("../sub")
    assert operands.exists("missing/../file")
    assert not operands.exists("file/")
    assert not operands.exists("sub")
    assert not operands.exists("nul\0byte")


def test_a_list_has_no_empty_parts_and_no_outer_blanks() -> None:
    assert split_list(" a ;; b c;\n") == ["a", "b c"]
    assert split_list(" a ") == ["a"]
    assert split_list("  ") == []


def test_escaped_wildcards_make_no_pattern() -> None:
    assert glob_of("a.dll", "/p") is None
    assert glob_of("%2a.dll", "/p") is None
    assert glob_of("*/%2A.dll", "/p") is None
    assert glob_of("*%3B.dll", "/p") is not None
