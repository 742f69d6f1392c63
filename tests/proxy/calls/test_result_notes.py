from __future__ import annotations

import json

import msgspec
import pytest

from support.relays import said
from uno_devserver.protocol.service import Result
from uno_devserver.proxy.calls.reload_messages import META_KEY, Note, State
from uno_devserver.proxy.calls.result_notes import noted

NOTE = Note(State.EXTENSION_RELOADED, "Note: it was rebuilt.")
TEXT = {"type": "text", "text": "Note: it was rebuilt."}
STATE = {"state": "extensionReloaded", "run": True}


@pytest.mark.parametrize("raw", [True, False])
def test_a_note_stands_behind_the_content_and_nothing_of_the_upstream_is_lost(raw: bool) -> None:
    theirs: Result = {
        "content": [{"type": "image", "data": "x"}],
        "structuredContent": {"n": 1},
        "isError": False,
        "_meta": {"acme/x": [1]},
        "unknown": None,
    }

    result = noted(msgspec.Raw(json.dumps(theirs).encode()) if raw else theirs, [NOTE])

    assert result is not None
    assert said(result) == {
        **theirs,
        "content": [*theirs["content"], TEXT],
        "_meta": {"acme/x": [1], META_KEY: STATE},
    }
    assert theirs["content"] == [{"type": "image", "data": "x"}]


def test_what_the_upstream_wrote_stays_byte_for_byte() -> None:
    raw = msgspec.Raw(b' {"content":[ {"n":1.50,"big":123456789012345678901234567890} ],"e":"\\u00e9"}')

    result = noted(raw, [NOTE])

    assert result is not None
    written = msgspec.json.encode(result)
    assert b'{"n":1.50,"big":123456789012345678901234567890}' in written
    assert b'"\\u00e9"' in written


def test_a_result_without_content_or_meta_gets_both() -> None:
    result = noted(msgspec.Raw(b"{}"), [NOTE])

    assert result is not None
    assert said(result) == {"content": [TEXT], "_meta": {META_KEY: STATE}}


def test_what_only_programs_need_to_know_adds_no_text() -> None:
    result = noted({"content": []}, [Note(State.SWAPPED)])

    assert result == {"content": [], "_meta": {META_KEY: {"state": "swapped", "run": True}}}


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"null",
        b'"text"',
        b"3",
        b'{"content":"text"}',
        b'{"content":[],"_meta":7}',
        b'{"resultType":"input_required","inputRequests":{}}',
    ],
)
def test_where_there_is_no_place_for_a_note_the_result_stays(text: bytes) -> None:
    assert noted(msgspec.Raw(text), [NOTE]) is None


def test_a_complete_result_of_the_modern_era_is_noted() -> None:
    assert noted(msgspec.Raw(b'{"resultType":"complete","content":[]}'), [NOTE]) is not None
    assert noted({"resultType": "complete", "content": []}, [NOTE]) is not None
