"""Why a Host could not be had, in words for somebody who has a proxy and not a command line. Pure."""

from __future__ import annotations

from ...instances.launch import LaunchFailure, Reason
from ...issues import Issue, UserError, fatal, warning
from .upstream import Ending, StartFailure

# What may be otherwise a moment later; every other refusal stays until somebody changes something.
PASSING = frozenset({"WorkspaceBusy", "HostUnreachable"})
_AGAIN = "the next tool call makes the proxy start the Host again."
# Next steps of `uno-devserver start` that are none here, where nobody runs it.
_HERE = {
    "PortTaken": "Start the proxy with another --port or without.",
    "WorkspaceBusy": f"Look at what it does, or end it; {_AGAIN}",
    "StateNotWritable": f"See that the disk has room, and that folder and file are yours; {_AGAIN}",
}


def launch_failed(failure: LaunchFailure) -> StartFailure:
    final = failure.reason in (Reason.NOT_STARTED, Reason.NOT_READY) or failure.refusal is not None
    died = failure.reason is Reason.DIED
    ending = Ending(how_it_ended(failure.exit_code), failure.exit_code, tuple(failure.text.splitlines()))
    return StartFailure(_issue(failure), final=final, ending=ending if died else None)


def user_error(error: UserError) -> StartFailure:
    issue = fatal(error.code, error.message, _HERE.get(error.code, error.next_step))
    return StartFailure(issue, final=error.code not in PASSING)


def how_it_ended(exit_code: int | None) -> str:
    """As a sentence without a full stop."""
    if exit_code is None:
        return "it ended"
    return f"it ended with exit code {exit_code}" if exit_code >= 0 else f"it was ended by signal {-exit_code}"


def _issue(failure: LaunchFailure) -> Issue:
    port, log = failure.port, failure.log_file
    if failure.reason is Reason.GIVEN_UP:
        return warning("HostNotStarted", "The start of the Host was given up.", "It is started again when needed.")
    if failure.reason is Reason.PORT_TAKEN:
        message = f"The Host cannot be started: port {port} is taken by another program."
        return fatal("HostNotStarted", message, "End that program, or start the proxy with another --port or without.")
    if failure.reason is Reason.NOT_STARTED:
        message = f"The Host cannot be started: {failure.text.rstrip('.')}."
        return fatal("HostNotStarted", message, f"Repair that; {_AGAIN}")
    if failure.reason is Reason.NOT_READY:
        message = f"The Host did not answer on port {port} within {failure.seconds:g} s and was stopped."
        return fatal("HostUnreachable", message, f"What it printed is in {log}.")
    if failure.refusal is not None:
        reason, next_step = failure.refusal
        return fatal("HostNotStarted", f"The Host cannot be started: {reason}", next_step)
    message = f"The Host did not start: {how_it_ended(failure.exit_code)}."
    return fatal("HostCrashed", message, f"Repair what it reports; what it printed is in {log}.")
