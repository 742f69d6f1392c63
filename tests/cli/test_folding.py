"""Sentences fit the terminal, and no word is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from uno_devserver.cli import terminal
from uno_devserver.cli.terminal import MAX_WIDTH, WIDTH, folded, one_line, with_short_paths


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


def test_sentences_do_not_use_all_of_a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "terminal_width", lambda: 300)

    assert max(map(len, folded("word " * 100))) == MAX_WIDTH - 1


def test_a_line_end_in_a_name_makes_no_line() -> None:
    assert one_line("a\nb\x1b[7m") == "a\\nb\\x1b[7m"


# --- paths on a terminal ------------------------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The current folder, in the home folder, of somebody at a terminal."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(terminal, "terminal_width", lambda: WIDTH)
    return folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{here}/a", "./a"),
        ("'{here}/a b'", "'./a b'"),
        ("see {home}/a, {home}/b", "see ~/a, ~/b"),
        ("'{home}/a b'", "'{home}/a b'"),
        ("--log={home}/a", "--log={home}/a"),
        ("file://{home}/a", "file://{home}/a"),
        ("/mnt{here}/a", "/mnt{here}/a"),
        ("{here}", "~/here"),
        ("{home}", "{home}"),
        ("{home}-old/a", "{home}-old/a"),
    ],
)
def test_paths_are_said_as_one_can_type_them(here: Path, text: str, said: str) -> None:
    assert with_short_paths(text.format(here=here, home=here.parent)) == said.format(here=here, home=here.parent)


def test_in_the_root_folder_paths_stay_whole(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")

    assert with_short_paths("//etc/hosts /etc/hosts") == "//etc/hosts /etc/hosts"


def test_in_a_folder_that_was_removed_paths_stay_whole(here: Path) -> None:
    here.rmdir()

    assert with_short_paths("/etc/hosts") == "/etc/hosts"
