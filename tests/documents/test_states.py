"""The picture of a connection's states is the table that the proxy goes by."""

from __future__ import annotations

import re

from documents.blocks import ROOT, blocks
from uno_devserver.proxy.state import ConnectionState
from uno_devserver.proxy.upstream.lifecycle import TRANSITIONS

SAID_BELOW = {"Discovering", "Shutdown"}  # where everything leads


def test_the_picture_shows_every_way_from_one_state_to_another_and_no_other() -> None:
    (picture,) = blocks("mermaid", pages=(ROOT / "docs" / "architecture.md",))

    drawn = set(re.findall(r"^    (\w+) --> (\w+): .", picture.text, re.MULTILINE))

    real = {(state.value, other.value) for state, others in TRANSITIONS.items() for other in others}
    assert drawn <= real
    assert {pair for pair in real - drawn if pair[1] not in SAID_BELOW} == set()
    assert {state.value for state in ConnectionState} - {name for pair in drawn for name in pair} == {"Shutdown"}


def test_what_is_said_to_lead_from_everywhere_does() -> None:
    for state, others in TRANSITIONS.items():
        if state not in (ConnectionState.SHUTDOWN, ConnectionState.DISCOVERING):
            assert {other.value for other in others} >= SAID_BELOW
