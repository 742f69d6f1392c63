"""Items chosen by path."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.expressions import UNKNOWN, EvaluationScope, guessed
from uno_devserver.msbuild.items import Selection
from uno_devserver.msbuild.metadata import ItemEntry
from uno_devserver.msbuild.problems import EvaluationProblem


@pytest.mark.parametrize(
    ("part", "identity", "expected"),
    [
        ("b", "b", True),
        ("B", "b", True),
        ("./d/b.dll", "d/b.dll", True),
        ("d\\b.dll", "d/b.dll", True),
        ("/p/b", "b", True),
        ("*.dll", "x.DLL", True),
        ("%2a.dll", "*.dll", True),
        ("%2a.dll", "x.dll", False),
        ("**x", "**x", True),
        ("c", "b", False),
    ],
)
def test_spelling_and_case_do_not_matter(part: str, identity: str, expected: bool) -> None:
    selection = Selection(EvaluationScope("/p", {}, None))

    selection.add(part)

    assert selection.matches(ItemEntry(identity, "X", "", certain=True)) is expected
    assert selection.complete


def test_an_unknown_part_leaves_the_selection_incomplete() -> None:
    selection = Selection(EvaluationScope("/p", {}, None))

    selection.add(f"{UNKNOWN}/x")
    selection.add(guessed("b"))

    assert not selection.complete
    assert selection.matches(ItemEntry("b", "X", "", certain=True)) is None
    assert selection.matches(ItemEntry("c", "X", "", certain=True)) is False


def test_a_huge_path_uses_up_what_an_evaluation_may_do() -> None:
    selection = Selection(EvaluationScope("/p", {}, None))
    for number in range(500):
        selection.add(f"*.{number}")

    with pytest.raises(EvaluationProblem) as raised:
        selection.matches(ItemEntry("x" * 4_000_000, "X", "", certain=True))

    assert raised.value.code == "Limit"


def test_nothing_selected_matches_nothing() -> None:
    assert Selection(EvaluationScope("/p", {}, None)).matches(ItemEntry("", "X", "", certain=True)) is False
