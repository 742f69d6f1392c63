"""What mcpStatus says. `test_own_tool_answers.py` has how long it waits, and for what."""

from __future__ import annotations

from uno_devserver.proxy.calls.mcp_status import not_started, ready, still_restarting
from uno_devserver.proxy.calls.reload_messages import META_KEY
from uno_devserver.proxy.health.upstream_issues import TRY_AGAIN

NAME = "The Acme server"


def test_ready_says_not_to_ask_again_and_where_to_look() -> None:
    result = ready(NAME, log_file="/var/log/acme.log", source="/work/acme")

    text = result["content"][0]["text"]
    assert text.startswith(f"{NAME} is ready.")
    assert "Do not call mcpStatus again" in text
    assert all(word in text for word in ("uno_health", "/var/log/acme.log", "/work/acme"))
    assert result["isError"] is False
    assert "log" not in ready(NAME, log_file=None, source=None)["content"][0]["text"]


def test_not_ready_says_why_and_what_next() -> None:
    waiting = still_restarting(NAME, 60, waits_for="it is Launching")
    failed = not_started(NAME, ["It ended."], ["Run 'npm install'."], ["Error: x"])
    unknown = not_started(NAME, [], [], [])

    assert "not ready after 60 s: it is Launching." in waiting["content"][0]["text"]
    assert waiting["_meta"][META_KEY] == {"state": "restarting", "run": False}
    text = failed["content"][0]["text"]
    assert text.startswith(f"{NAME} does not run. It ended.")
    assert "Error: x" in text
    assert "Run 'npm install'. Then call mcpStatus or one of its tools" in text
    assert failed["isError"] is True
    assert "Fix its code. Then" in unknown["content"][0]["text"]


def test_only_a_whole_line_that_is_said_already_is_left_out() -> None:
    for last in ("", ".", "x"):
        text = not_started(NAME, ["It exited with code 1."], [], ["ImportError: no x", last])["content"][0]["text"]

        assert "ImportError: no x" in text


def test_what_the_health_report_says_already_is_not_said_twice() -> None:
    result = not_started(
        NAME, ["It ended. Its last lines:\nError: x"], [f"{TRY_AGAIN} What it printed is in /a.log."], ["Error: x"]
    )

    text = result["content"][0]["text"]
    assert text.count("Error: x") == 1
    assert "Fix it. What it printed is in /a.log. Then call mcpStatus or one of its tools" in text
    assert "next tool call" not in text
