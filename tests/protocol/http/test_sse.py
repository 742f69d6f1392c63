from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.protocol.http import sse


def test_an_event_has_its_id_first_and_ends_with_an_empty_line() -> None:
    assert sse.event(b'{"a":1}', "3-7") == b'id: 3-7\nevent: message\ndata: {"a":1}\n\n'
    assert sse.event(b"{}") == b"event: message\ndata: {}\n\n"


def test_priming_is_an_event_with_an_id_and_empty_data() -> None:
    assert sse.priming("3-0", 500) == b"id: 3-0\nretry: 500\ndata: \n\n"


def test_a_retry_alone_is_no_event() -> None:
    assert sse.retry(500) == b"retry: 500\n\n"


@given(st.sampled_from(["s", "1", "12345"]), st.integers(0, 10**12))
def test_an_event_id_leads_back_to_its_place(stream: str, number: int) -> None:
    assert sse.position(sse.event_id(stream, number)) == (stream, number)


@pytest.mark.parametrize("name", ["", "x", "1", "1-", "1-x", "1-1.0", "1- 1", "1-١", "1-" + "9" * 5000])
def test_other_ids_lead_nowhere(name: str) -> None:
    assert sse.position(name) is None
