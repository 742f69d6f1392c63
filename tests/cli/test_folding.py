"""Sentences fit the terminal, and no word is broken."""

from __future__ import annotations

from uno_devserver.cli.folding import WIDTH, folded


def test_words_are_put_into_lines_of_the_width() -> None:
    lines = list(folded("word " * 40, "first: ", "  "))

    assert all(len(line) <= WIDTH for line in lines)
    assert lines[0].startswith("first: word word")
    assert lines[1].startswith("  word word")
    assert " ".join(" ".join(lines).split()[1:]) == ("word " * 40).strip()


def test_a_line_may_have_the_whole_width_and_no_column_more() -> None:
    exactly = f"{'a' * (WIDTH - 4)} bb"

    assert list(folded(f"{exactly} c", "-")) == [f"-{exactly}", "c"]


def test_a_long_word_has_a_line_of_its_own_and_stays_whole() -> None:
    assert list(folded(f"a {'b' * 100} c", "- ", "  ")) == ["- a", "  " + "b" * 100, "  c"]


def test_nothing_is_the_first_line_alone() -> None:
    assert list(folded("", "- ", "  ")) == ["- "]
