"""Text from files is shown without doing anything to the terminal."""

from __future__ import annotations

import pytest

from uno_devserver.system.text import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, é, 日本", "plain text, é, 日本"),
        ("two\nlines", "two\nlines"),
        ("\x1b[31mred\x07\t", r"\x1b[31mred\x07\x09"),
        ("\x9b31m\u202e", r"\x9b31m\u202e"),
        ("caf\udce9", r"caf\udce9"),
    ],
)
def test_control_characters_are_shown_by_their_number(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_odd_bytes_of_file_names_can_be_kept_for_a_pipe() -> None:
    assert visible("caf\udce9\x1b", keep_odd_bytes=True) == "caf\udce9" + r"\x1b"
