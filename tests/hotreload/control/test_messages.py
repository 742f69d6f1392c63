"""What became of a restart, on the wire: whole, and from a peer that says it otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from uno_devserver.hotreload.authority import RestartResult
from uno_devserver.hotreload.control.messages import restart_json, restart_of


def test_all_of_it_arrives() -> None:
    outcome = RestartResult(False, "It died.", ("one", "two"), True, "changed")

    assert restart_of(restart_json(outcome)) == outcome


@pytest.mark.parametrize(
    "told", [{}, {"ok": "yes", "problem": 5, "lastLines": "one", "kept": 1, "lists": None}, {"lastLines": [1, None]}]
)
def test_members_of_another_kind_are_as_good_as_absent(told: dict[str, Any]) -> None:
    assert restart_of(told) == RestartResult(False)
