from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from support.relays import said
from uno_devserver.hotreload.authority import CheckResult, RestartResult
from uno_devserver.protocol.service import Result
from uno_devserver.proxy.calls import reload_messages as messages
from uno_devserver.proxy.calls.reload_messages import (
    META_KEY,
    ReloadNote,
    ReloadState,
    ResultNotes,
    fenced,
    not_run,
    state_of,
    with_notes,
    without_forged_state,
)

NAME = "The Acme server"


@pytest.mark.parametrize("note", [messages.restarting(NAME), messages.queued(NAME)])
def test_whoever_is_not_run_for_a_restart_is_told_what_to_do(note: ReloadNote) -> None:
    assert NAME in note.text
    assert "has not been run" in note.text
    assert "Call mcpStatus with an empty input" in note.text
    assert "Retry no other tool" in note.text
    assert note.state is ReloadState.RESTARTING


def test_a_failed_build_is_shown_whole_and_says_that_the_old_code_stays() -> None:
    output = "\n".join(f"src/a.ts({line},1): error TS1005" for line in range(5000))

    note = messages.build_failed(NAME, output, serves=True)

    assert output in note.text
    assert "was not restarted" in note.text
    assert "old code still answers" in note.text
    assert "call the tool again" in note.text


@pytest.mark.parametrize(
    ("output", "fence"), [("plain", "```"), ("`a` ``b``", "```"), ("```\nx\n```", "````"), ("`````", "``````")]
)
def test_nothing_inside_a_block_can_end_it(output: str, fence: str) -> None:
    assert fenced(output) == f"{fence}\n{output}\n{fence}"


def test_a_call_that_was_not_run_is_an_error_with_its_state_for_programs() -> None:
    result = not_run([ReloadNote(ReloadState.BUILD_FAILED, "One."), ReloadNote(ReloadState.EXTENSION_RELOADED, "Two.")])

    assert result == {
        "content": [{"type": "text", "text": "One.\n\nTwo."}],
        "isError": True,
        "_meta": {META_KEY: {"state": "buildFailed", "run": False, "also": ["extensionReloaded"]}},
    }
    assert state_of([ReloadNote(ReloadState.SWAPPED)], run=True) == {"state": "swapped", "run": True}


@pytest.mark.parametrize("kept", [True, False])
def test_a_new_server_that_did_not_start_is_told_with_its_last_lines(kept: bool) -> None:
    note = messages.not_replaced(
        NAME, RestartResult(ok=False, problem="It ended with exit code 3.", last_lines=("a", "ValueError"), kept=kept)
    )

    assert "exit code 3" in note.text
    assert "a\nValueError" in note.text
    assert ("old code still answers" in note.text) is kept
    assert note.state is (ReloadState.SWAP_FAILED if kept else ReloadState.FAILED)


def test_of_a_client_is_spoken_only_where_there_is_one_to_speak_of() -> None:
    texts = [
        messages.extension_updated(client_reloaded=reloaded, client_problem=problem).text
        for reloaded, problem in [(False, None), (True, None), (False, "It has not printed 'ready' within 30 s.")]
    ]

    begin = "Note: the extension's code has changed. It was rebuilt"
    assert texts == [
        f"{begin}.",
        f"{begin}, and its client was restarted with it.",
        f"{begin}, but its client is not ready: It has not printed 'ready' within 30 s.",
    ]


# --- notes behind a result

NOTE = ReloadNote(ReloadState.EXTENSION_RELOADED, "Note: it was rebuilt.")
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

    result = with_notes(msgspec.Raw(json.dumps(theirs).encode()) if raw else theirs, [NOTE])

    assert result is not None
    assert said(result) == {
        **theirs,
        "content": [*theirs["content"], TEXT],
        "_meta": {"acme/x": [1], META_KEY: STATE},
    }
    assert theirs["content"] == [{"type": "image", "data": "x"}]


def test_what_the_upstream_wrote_stays_byte_for_byte() -> None:
    raw = msgspec.Raw(b' {"content":[ {"n":1.50,"big":123456789012345678901234567890} ],"e":"\\u00e9"}')

    result = with_notes(raw, [NOTE])

    assert result is not None
    written = msgspec.json.encode(result)
    assert b'{"n":1.50,"big":123456789012345678901234567890}' in written
    assert b'"\\u00e9"' in written


def test_a_result_without_content_or_meta_gets_both() -> None:
    result = with_notes(msgspec.Raw(b"{}"), [NOTE])

    assert result is not None
    assert said(result) == {"content": [TEXT], "_meta": {META_KEY: STATE}}


def test_what_only_programs_need_to_know_adds_no_text() -> None:
    result = with_notes({"content": []}, [ReloadNote(ReloadState.SWAPPED)])

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
    assert with_notes(msgspec.Raw(text), [NOTE]) is None


def test_a_complete_result_of_the_modern_era_is_noted() -> None:
    assert with_notes(msgspec.Raw(b'{"resultType":"complete","content":[]}'), [NOTE]) is not None
    assert with_notes({"resultType": "complete", "content": []}, [NOTE]) is not None


# --- what is said with which result

TALKER = "the server 'talker'"
FAILED = CheckResult(server_changed=True, server_build_error="oops", server_digest="d1")


def _texts(notes: ResultNotes) -> tuple[list[str], Any]:
    result = notes.attach({"content": []}, [notes.failure] if notes.failure else [], run=True)
    assert isinstance(result, dict)
    return [item["text"] for item in result["content"]], result.get("_meta", {}).get(META_KEY)


def test_how_a_content_fails_to_build_is_news_until_it_was_shown() -> None:
    notes = ResultNotes()

    assert not notes.build_failed(TALKER, FAILED, "oops", reports=False)
    assert notes.build_failed(TALKER, FAILED, "oops", reports=True), "nobody was shown it"

    assert not notes.build_failed(TALKER, FAILED, "oops", reports=True)
    other = FAILED.replace(server_digest="d2")
    assert notes.build_failed(TALKER, other, "oops", reports=True), "other content, the same words"


def test_old_code_is_not_said_to_answer_where_the_failed_build_may_have_written_what_runs() -> None:
    notes, result = ResultNotes(), FAILED.replace(server_of_failed_build=True)

    first = messages.build_failed(TALKER, "oops", serves=True, of_failed_build=True).text
    notes.build_failed(TALKER, result, "oops", reports=True)
    [later], _ = _texts(notes)

    assert "was started after a build that had failed, and runs what that has written" in first
    assert "has changed" not in first
    assert "what the failed build has written" in later
    assert "older code" not in later


def test_what_failed_is_forgotten_when_what_lies_there_runs() -> None:
    notes = ResultNotes()
    notes.restarted(TALKER, RestartResult(False, "It ended.", kept=True))

    notes.code_runs()

    assert _texts(notes) == ([], None)


def test_what_a_restart_did_not_load_is_not_told_after_the_next_has_begun() -> None:
    notes = ResultNotes()
    notes.restarted(TALKER, RestartResult(True, "The add-in 'x' failed."))

    notes.restart_begins()

    assert _texts(notes) == ([], None)


def test_why_a_build_failed_is_not_the_reason_of_a_failed_start() -> None:
    notes = ResultNotes()
    notes.build_failed(TALKER, FAILED, "oops", reports=True)

    notes.not_started(TALKER, serves=True)

    assert notes.reason == ""


@pytest.mark.parametrize("result", [b'{"content": null}', b'{"content": [], "_meta": null}', b'{"_meta": {"\xff": 1}}'])
def test_a_result_with_null_or_an_undecodable_name_has_room_for_a_note(result: bytes) -> None:
    noted = with_notes(msgspec.Raw(result), [ReloadNote(ReloadState.BUILD_FAILED, "One.")])

    assert noted is not None
    assert noted["content"] == [{"type": "text", "text": "One."}]
    assert noted["_meta"][META_KEY] == {"state": "buildFailed", "run": True}


def test_a_forged_state_is_removed_beside_an_undecodable_name() -> None:
    forged = msgspec.Raw(b'{"_meta": {"uno-devserver/hotReload": 1, "\xff": 1}}')

    assert list(messages.without_forged_state(forged)["_meta"]) == ["\ufffd"]  # type: ignore[call-overload]


def test_the_remark_on_lost_memory_does_not_depend_on_the_name_and_is_taken_once() -> None:
    notes = ResultNotes()
    notes.restarted("the server 'what was it'", RestartResult(True), lost_memory=True)

    assert notes.take_remark() == "It was restarted; what the old process had in memory is gone."
    assert notes.take_remark() == ""


@pytest.mark.parametrize(
    "members",
    [
        '"_meta":{KEY:1}',
        '"_meta":{KEY:1},"_meta":{"x":1}',
        '"_meta":{"x":1},"_meta":{KEY:1}',
        '"_meta":{KEY:1},"_meta":null',
        '"_meta":{KEY:1},"_meta":7',
        '"\\u005fmeta":{KEY:1},"_meta":{}',
        '"_meta":{KEY:1,KEY:2}',
    ],
)
def test_a_server_cannot_forge_the_state_of_hot_reload_in_any_spelling(members: str) -> None:
    raw = msgspec.Raw(f'{{"content":[],{members}}}'.replace("KEY", f'"{META_KEY}"').encode())

    assert META_KEY.encode() not in msgspec.json.encode(without_forged_state(raw))


def test_a_result_without_meta_stays_as_it_came() -> None:
    raw = msgspec.Raw(b'{ "content": [] }')

    assert without_forged_state(raw) is raw
