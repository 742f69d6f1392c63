"""What is said where the upstream gave no answer: whether the request may have run, why, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from support.relays import DEGRADED, RECONNECTING, ScriptedLink, state_of
from uno_devserver.protocol.client.connection import AccessDenied, Denial, UnusableServer
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.proxy.calls.failure_answers import (
    ANSWER_TOO_LONG,
    OUTCOME_UNKNOWN,
    QUOTED_ISSUES,
    TIMED_OUT,
    UNAVAILABLE,
    UnansweredRequest,
    ended,
    failed,
    known_issues,
    refused,
    silent,
    too_long,
    unavailable,
    unreachable,
)
from uno_devserver.proxy.calls.forwarder import ForwardedRequest
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import ConnectionState, ProxyFacts

ACT = ForwardedRequest("tools/call", {"name": "act"})
NOT_RUN = "This request has not been run."


def issue(number: int, severity: str = "Warning", **more: Any) -> dict[str, Any]:
    return {
        "severity": severity,
        "message": f"Problem {number}.",
        "remediation": f"Solve problem {number}.",
        "code": f"Code{number}",
        **more,
    }


class ScriptedReloader:
    def __init__(self, status: dict[str, object] | None) -> None:
        self._status = status

    def status(self) -> dict[str, object] | None:
        return self._status


@pytest.mark.parametrize(
    ("none", "code", "may_have_run"),
    [
        (unreachable(30.0), UNAVAILABLE, False),
        (refused(UnusableServer("it speaks HTTP 0.9.")), UNAVAILABLE, False),
        (
            refused(AccessDenied("The server asks for credentials.", Denial(401, "https://host/mcp"))),
            UNAVAILABLE,
            False,
        ),
        (ended(ACT, 1), OUTCOME_UNKNOWN, True),
        (ended(ACT, 3), OUTCOME_UNKNOWN, True),
        (silent(ACT, 300.0), TIMED_OUT, True),
        (too_long(ACT), ANSWER_TOO_LONG, True),
    ],
)
def test_an_answer_says_whether_the_request_may_have_run(
    none: UnansweredRequest, code: int, may_have_run: bool
) -> None:
    assert (none.code, none.may_have_run) == (code, may_have_run)
    assert (NOT_RUN in none.message) is not may_have_run
    assert none.remedy.endswith(".")
    assert "uno_health" in none.remedy or code == ANSWER_TOO_LONG


def test_a_tool_call_gets_a_result_and_any_other_request_an_error() -> None:
    none = UnansweredRequest(UNAVAILABLE, "It is gone.", "Wait.", connectionState="Reconnecting")

    with pytest.raises(RpcError) as raised:
        none.answer("prompts/get")

    meta = {"uno-devserver/unavailable": {"connectionState": "Reconnecting"}}
    assert none.answer("tools/call") == {**failed("It is gone. Wait."), "_meta": meta}
    assert failed("No.") == {"content": [{"type": "text", "text": "No."}], "isError": True}
    assert (raised.value.code, raised.value.message) == (UNAVAILABLE, "It is gone. Wait.")
    assert raised.value.data == {"remedy": "Wait.", "connectionState": "Reconnecting"}


@pytest.mark.parametrize(
    ("method", "params", "named"),
    [
        ("tools/call", {"name": "act"}, "'act'"),
        ("tools/call", {"name": 5}, "'tools/call'"),
        ("prompts/get", {"name": "p"}, "'prompts/get'"),
        ("tools/call", {"name": "x" * 200}, f"'{'x' * 100}…'"),
    ],
)
def test_what_ran_is_named(method: str, params: dict[str, Any], named: str) -> None:
    assert f"while it ran {named}." in ended(ForwardedRequest(method, params), 1).message
    assert f"heard from {named} for" in silent(ForwardedRequest(method, params), 300.0).message


def test_a_request_that_ended_the_upstream_several_times_is_suspected() -> None:
    none = ended(ACT, 3)

    assert "each of the 3 times" in none.message
    assert "Probably 'act' makes the dev server end" in none.remedy


@pytest.mark.parametrize(
    ("state", "generation", "words"),
    [
        (ConnectionState.LAUNCHING, 0, "is starting, and is not ready yet"),
        (ConnectionState.LAUNCHING, 1, "has gone, and is not back yet"),
        (RECONNECTING, 0, "has gone, and is not back yet"),
        (DEGRADED, 1, "The dev server does not work. It could not be started. This request has not been run."),
        (ConnectionState.SHUTDOWN, 1, "uno-devserver is ending."),
    ],
)
async def test_why_there_is_no_upstream_depends_on_its_state(
    state: ConnectionState, generation: int, words: str
) -> None:
    link = ScriptedLink(state)
    link.generation = generation

    none = unavailable(link, state_of())

    assert words in none.message
    assert NOT_RUN in none.message
    assert none.data["connectionState"] == state.value


async def test_while_the_workspace_is_unknown_the_tool_for_it_is_named() -> None:
    link = ScriptedLink(ConnectionState.INITIALIZING)
    link.fallback = True

    none = unavailable(link, state_of())

    assert "which workspace to serve" in none.message
    assert "uno_app_initialize" in none.remedy


@pytest.mark.parametrize("state", [RECONNECTING, DEGRADED])
async def test_what_health_knows_is_quoted_with_the_fatal_issues_first(state: ConnectionState) -> None:
    issues = [issue(1), issue(2), issue(3), issue(4, "Fatal"), "no issue", issue(5, message=None)]

    none = unavailable(ScriptedLink(state), state_of(health={"issues": issues}))

    assert "Problem 4. Problem 1. Problem 2." in none.message
    assert "Problem 3." not in none.message
    assert none.remedy.startswith("Solve problem 4. Solve problem 1. Solve problem 2.")
    assert none.has_reasons is (state is DEGRADED)
    if none.has_reasons:
        assert [each["message"] for each in none.data["issues"]] == [f"Problem {number}." for number in (4, 1, 2, 3)]


@pytest.mark.parametrize(
    ("code", "asks"), [("WorkspaceNotTrusted", False), ("ConfigInvalid", False), ("HostCrashed", True)]
)
async def test_another_attempt_is_promised_unless_a_person_has_to_act(code: str, asks: bool) -> None:
    state = state_of(health={"issues": [issue(1, "Fatal", code=code)]})

    none = unavailable(ScriptedLink(DEGRADED), state)

    assert ("Each call makes a new attempt" in none.remedy) is asks
    assert (none.remedy == "Solve problem 1. uno_health has the details.") is not asks


@pytest.mark.parametrize(
    ("hot_reload", "told"),
    [
        (None, "Each call in 4 s or later makes"),
        ({}, "Each call in 4 s or later, or after a change of its code, makes"),
    ],
)
async def test_the_pause_between_attempts_does_not_hold_up_new_code(
    monkeypatch: pytest.MonkeyPatch, hot_reload: dict[str, object] | None, told: str
) -> None:
    link, state = ScriptedLink(DEGRADED), state_of()
    monkeypatch.setattr(link, "retry_due_in", lambda: 3.2)
    state.follow_reloader(ScriptedReloader(hot_reload))

    none = unavailable(link, state)

    assert told in none.remedy


async def test_what_quotes_lines_of_the_upstream_ends_its_paragraph() -> None:
    quoting = issue(1, "Fatal", message="It printed:\n\n    boom")

    none = unavailable(ScriptedLink(DEGRADED), state_of(health={"issues": [quoting]}))

    assert f"    boom\n\n{NOT_RUN}" in none.message


@pytest.mark.parametrize(
    "report", [{}, {"issues": None}, {"issues": "odd"}, {"issues": []}, {"issues": ["odd", {"code": "no message"}]}]
)
def test_a_report_without_issues_says_nothing(report: dict[str, object]) -> None:
    assert known_issues(state_of(health={"status": "Healthy", **report})) == ([], [])


def test_issues_of_one_code_are_found() -> None:
    state = state_of(health={"issues": [issue(1), *(issue(7) for _ in range(QUOTED_ISSUES + 1))]})

    assert known_issues(state, "Code7") == (["Problem 7."] * QUOTED_ISSUES, ["Solve problem 7."])


_BROKEN = "The dev server does not work. The server 'mine.js' ended. This request has not been run."


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("node", "mine.js"), "The server 'mine.js' ended. This request has not been run. Ask the server 'mine.js'."),
        ((), f"{_BROKEN} Ask the dev server."),
    ],
    ids=["a command", "a Host"],
)
def test_a_server_of_the_users_own_has_one_name(command: tuple[str, ...], told: str) -> None:
    failure = UnansweredRequest(UNAVAILABLE, _BROKEN, "Ask the dev server.")

    failure.of_server(ProxyFacts(ProxyOptions("/here", command=command)))

    assert f"{failure.message} {failure.remedy}" == told
    assert "server" not in failure.data
