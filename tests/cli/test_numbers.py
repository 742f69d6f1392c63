from __future__ import annotations

import pytest

from uno_devserver.cli.numbers import MAX_PORT, number
from uno_devserver.cli.parse import parse
from uno_devserver.issues import UserError


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("65535", 65_535), (" 80 ", 80), ("00080", 80)])
def test_a_number_is_read(text: str, value: int) -> None:
    assert number(parse(["mcp", "start", "--port", text]), "port", 1, MAX_PORT) == value


def test_one_that_was_not_given_is_none() -> None:
    assert number(parse(["mcp", "start"]), "port", 1, MAX_PORT) is None


@pytest.mark.parametrize("text", ["0", "65536", "+1", "1.0", "x", "\uff11", "9" * 5000])
def test_what_is_none_of_the_numbers_allowed_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UserError) as refused:
        number(parse(["mcp", "start", "--port", text]), "port", 1, MAX_PORT)

    assert (refused.value.code, refused.value.exit_code) == ("BadValue", 2)
    assert "--port" in refused.value.message
    assert "from 1 to 65535" in refused.value.next_step
