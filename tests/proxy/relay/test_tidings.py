"""What results have to tell besides: whole once, and while it lasts in a sentence."""

from __future__ import annotations

from typing import Any

from uno_devserver.hotreload.authority import CheckResult, Restarted
from uno_devserver.proxy.calls.reload_messages import META_KEY, State
from uno_devserver.proxy.calls.result_notes import ResultNotes

NAME = "the server 'talker'"
FAILED = CheckResult(server_changed=True, server_build_error="oops", server_digest="d1")


def _texts(tidings: ResultNotes, *, run: bool = True) -> tuple[list[str], Any]:
    result = tidings.put_on({"content": []}, [tidings.lasting] if tidings.lasting else [], run=run)
    assert isinstance(result, dict)
    return [item["text"] for item in result["content"]], result.get("_meta", {}).get(META_KEY)


def test_how_a_content_fails_to_build_is_news_until_it_was_shown() -> None:
    tidings = ResultNotes()

    assert tidings.build_failed(NAME, FAILED, "oops")
    assert tidings.build_failed(NAME, FAILED, "oops"), "nobody was shown it"
    tidings.shown(FAILED, "oops")

    assert not tidings.build_failed(NAME, FAILED, "oops")
    assert tidings.build_failed(NAME, FAILED.replace(server_digest="d2"), "oops"), "other content, the same words"


def test_a_failed_swap_is_told_whole_once_and_in_a_sentence_from_then_on() -> None:
    tidings = ResultNotes()
    tidings.restarted(NAME, Restarted(False, "It ended.", ("Traceback", "boom"), kept=True))

    (first,), state = _texts(tidings)
    (second,), _ = _texts(tidings)

    assert "boom" in first
    assert state == {"state": State.SWAP_FAILED.value, "run": True}
    assert "boom" not in second
    assert NAME in second


def test_what_failed_is_forgotten_when_what_lies_there_runs() -> None:
    tidings = ResultNotes()
    tidings.restarted(NAME, Restarted(False, "It ended.", kept=True))

    tidings.current()

    assert _texts(tidings) == ([], None)


def test_an_extension_that_fails_as_before_is_not_quoted_again() -> None:
    tidings = ResultNotes()
    failed = CheckResult(extension_changed=True, extension_build_error="error TS1005")

    (first,), (second,) = tidings.of_extension(failed), tidings.of_extension(failed)

    assert "TS1005" in first.text
    assert "TS1005" not in second.text


def test_what_a_restart_did_not_load_is_not_told_after_the_next_has_begun() -> None:
    tidings = ResultNotes()
    tidings.restarted(NAME, Restarted(True, "The add-in 'x' failed."))

    tidings.restart_begins()

    assert _texts(tidings) == ([], None)


def test_why_a_build_failed_is_not_the_reason_of_a_failed_start() -> None:
    tidings = ResultNotes()
    tidings.build_failed(NAME, FAILED, "oops")

    tidings.not_started(NAME, serves=True)

    assert tidings.why == ""
