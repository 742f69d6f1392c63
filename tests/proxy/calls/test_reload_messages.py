from __future__ import annotations

import pytest

from uno_devserver.hotreload.authority import Restarted
from uno_devserver.proxy.calls import reload_messages as messages
from uno_devserver.proxy.calls.reload_messages import META_KEY, Note, State, fenced, not_run, state_of
from uno_devserver.proxy.health.upstream_issues import TRY_AGAIN

NAME = "The Acme server"


@pytest.mark.parametrize("note", [messages.restarting(NAME), messages.queued(NAME)])
def test_whoever_is_not_run_for_a_restart_is_told_what_to_do(note: Note) -> None:
    assert NAME in note.text
    assert "has not been run" in note.text
    assert "Call mcpStatus with an empty input" in note.text
    assert "Retry no other tool" in note.text
    assert note.state is State.RESTARTING


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
    result = not_run([Note(State.BUILD_FAILED, "One."), Note(State.EXTENSION_RELOADED, "Two.")])

    assert result == {
        "content": [{"type": "text", "text": "One.\n\nTwo."}],
        "isError": True,
        "_meta": {META_KEY: {"state": "buildFailed", "run": False, "also": ["extensionReloaded"]}},
    }
    assert state_of([Note(State.SWAPPED)], run=True) == {"state": "swapped", "run": True}


@pytest.mark.parametrize("kept", [True, False])
def test_a_new_server_that_did_not_start_is_told_with_its_last_lines(kept: bool) -> None:
    note = messages.not_replaced(
        NAME, Restarted(ok=False, problem="It ended with exit code 3.", last_lines=("a", "ValueError"), kept=kept)
    )

    assert "exit code 3" in note.text
    assert "a\nValueError" in note.text
    assert ("old code still answers" in note.text) is kept
    assert note.state is (State.SWAP_FAILED if kept else State.FAILED)


def test_ready_says_not_to_ask_again_and_where_to_look() -> None:
    result = messages.ready(NAME, log_file="/var/log/acme.log", source="/work/acme")

    text = result["content"][0]["text"]
    assert text.startswith(f"{NAME} is ready.")
    assert "Do not call mcpStatus again" in text
    assert all(word in text for word in ("uno_health", "/var/log/acme.log", "/work/acme"))
    assert result["isError"] is False
    assert "log" not in messages.ready(NAME, log_file=None, source=None)["content"][0]["text"]


def test_not_ready_says_why_and_what_next() -> None:
    waiting = messages.still_restarting(NAME, 60, waits_for="it is Launching")
    failed = messages.not_started(NAME, ["It ended."], ["Run 'npm install'."], ["Error: x"])
    unknown = messages.not_started(NAME, [], [], [])

    assert "not ready after 60 s: it is Launching." in waiting["content"][0]["text"]
    assert waiting["_meta"][META_KEY] == {"state": "restarting", "run": False}
    text = failed["content"][0]["text"]
    assert text.startswith(f"{NAME} does not run. It ended.")
    assert "Error: x" in text
    assert "Run 'npm install'. Then call one of its tools" in text
    assert failed["isError"] is True
    assert "Fix its code. Then" in unknown["content"][0]["text"]


def test_what_the_health_report_says_already_is_not_said_twice() -> None:
    result = messages.not_started(
        NAME, ["It ended. Its last lines:\nError: x"], [f"{TRY_AGAIN} What it printed is in /a.log."], ["Error: x"]
    )

    text = result["content"][0]["text"]
    assert text.count("Error: x") == 1
    assert "Repair it. What it printed is in /a.log. Then call one of its tools" in text
    assert "next tool call" not in text


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
