"""Reports in the width of a terminal: facts in two columns, sentences in lines, paths in one piece."""

from __future__ import annotations

import pytest

from uno_devserver.cli import terminal
from uno_devserver.cli.result import Bullets, Report, Row, Section
from uno_devserver.cli.terminal import MAX_KEY, laid_out

WIDTH = 40


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "terminal_width", lambda: WIDTH)


def facts(*rows: Row) -> list[str]:
    return laid_out(Report("Title", (Section("", rows),))).splitlines()[2:]


def items(*texts: str) -> list[str]:
    return laid_out(Report("Title", (Bullets("Items", texts),))).splitlines()[3:]


def test_a_value_stands_beside_its_key_as_long_as_it_fits() -> None:
    fits = "v" * (WIDTH - 9)

    assert facts(Row("short", "a"), Row("s", fits)) == ["  short  a", f"  s      {fits}"]
    assert facts(Row("short", "a"), Row("s", f"{fits}v")) == ["  short  a", "  s", f"    {fits}v"]


def test_a_long_key_does_not_push_all_values_to_the_right() -> None:
    assert facts(Row("short", "a"), Row("k" * (MAX_KEY + 1), "b")) == [
        "  short  a",
        f"  {'k' * (MAX_KEY + 1)}",
        "    b",
    ]


def test_control_characters_are_shown_and_take_the_room_that_they_need() -> None:
    assert facts(Row("a\x1b[7m", "b\x1b[7m"), Row("key", "c")) == ["  a\\x1b[7m  b\\x1b[7m", "  key       c"]
    assert laid_out(Report("a\x1b[7m", (Bullets("b\x1b[7m", ("c\x1b[7m",)),))).count("\\x1b[7m") == 3


def test_a_sentence_is_folded_and_a_path_is_not() -> None:
    path = "/a folder/" + "with a long name/" * 3

    assert facts(Row("where", path), Row("why", "because " * 6)) == [
        "  where",
        f"    {path}",
        "  why",
        "    because because because because",
        "    because because",
    ]


def test_items_are_paths_or_sentences_with_their_next_steps() -> None:
    path = "/a folder/" + "with a long name/" * 3

    assert items(path, "It is wrong.\n  next: Do what this long sentence says.", f"{path}: it is wrong") == [
        f"- {path}",
        "- It is wrong.",
        "  next: Do what this long sentence says.",
        "- /a folder/with a long name/with a long",
        "  name/with a long name/: it is wrong",
    ]
