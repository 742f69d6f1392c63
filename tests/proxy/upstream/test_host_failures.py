"""The words for Hosts that could not be had, and whether trying again makes sense."""

from __future__ import annotations

import pytest

from uno_devserver.instances.launch import LaunchFailure, Reason
from uno_devserver.issues import UserError
from uno_devserver.proxy.upstream.base import Ending
from uno_devserver.proxy.upstream.host import how_it_ended, launch_failed, user_error


@pytest.mark.parametrize(
    ("reason", "final", "code"),
    [
        (Reason.PORT_TAKEN, False, "HostNotStarted"),
        (Reason.NOT_STARTED, True, "HostNotStarted"),
        (Reason.NOT_READY, True, "HostUnreachable"),
        (Reason.DIED, False, "HostCrashed"),
        (Reason.GIVEN_UP, False, "HostNotStarted"),
    ],
)
def test_a_failed_launch_says_what_happened_and_whether_it_may_go_better_the_next_time(
    reason: Reason, final: bool, code: str
) -> None:
    failed = launch_failed(LaunchFailure(reason, 5000, exit_code=3, text="boom", seconds=30, log_file="/logs/host.log"))

    [issue] = failed.issues
    assert (failed.final, issue.code) == (final, code)
    assert issue.message.endswith(".")
    assert issue.remediation.endswith(".")


def test_of_one_that_died_the_end_is_told() -> None:
    failed = launch_failed(LaunchFailure(Reason.DIED, 5000, exit_code=3, text="a\nb", log_file="/logs/host.log"))

    assert failed.ending == Ending("it ended with exit code 3", 3, ("a", "b"))
    assert "/logs/host.log" in failed.issues[0].remediation


def test_what_the_host_itself_refuses_stays_refused() -> None:
    text = "error: The value 'x' of --bind cannot be used.\nnext: Use an address.\n"

    failed = launch_failed(LaunchFailure(Reason.DIED, 5000, exit_code=1, text=text))

    assert failed.final
    assert "The value 'x' of --bind cannot be used." in failed.issues[0].message
    assert failed.issues[0].remediation == "Use an address."


@pytest.mark.parametrize(
    ("code", "final"), [("WorkspaceBusy", False), ("HostUnreachable", False), ("StateNotWritable", True)]
)
def test_what_is_in_the_way_may_pass_or_not(code: str, final: bool) -> None:
    failed = user_error(UserError(code, "It is so.", "Do that."))

    assert (failed.final, failed.issues[0].message) == (final, "It is so.")


@pytest.mark.parametrize("code", ["PortTaken", "WorkspaceBusy", "StateNotWritable"])
def test_a_step_that_needs_the_command_line_becomes_one_for_the_user_of_a_proxy(code: str) -> None:
    remediation = user_error(UserError(code, "It is so.", "Run start with another --httpPort.")).issues[0].remediation

    assert "proxy" in remediation
    assert "--httpPort" not in remediation


def test_any_other_step_stays_as_it_is() -> None:
    assert user_error(UserError("HostUnreachable", "It is so.", "Do that.")).issues[0].remediation == "Do that."


@pytest.mark.parametrize(
    ("code", "words"),
    [(None, "it ended"), (0, "it ended with exit code 0"), (-11, "it was ended by signal 11")],
)
def test_a_signal_is_told_from_an_exit_code(code: int | None, words: str) -> None:
    assert how_it_ended(code) == words
