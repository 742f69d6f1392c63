"""What is wrong with the server in each state, and what to do: never a crash where there was none."""

from __future__ import annotations

import pytest

from uno_devserver.instances.host_kind import HostKind
from uno_devserver.issues import fatal
from uno_devserver.proxy.health.report import report
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import ConnectionState, ProxyFacts, UpstreamFacts
from uno_devserver.proxy.upstream.base import Ending
from uno_devserver.workspace.resolver import ResolutionKind

from .facts import BEGUN, CONNECTED, CRASH, DISCOVERY, HOST, issue, issues, unresolved

# --- before there is a server ---------------------------------------------------------------------------------------


def test_before_the_engine_exists_the_host_is_not_started_and_the_step_is_to_wait() -> None:
    told = report(BEGUN)

    assert (told["status"], told["connectionState"], told["discovery"]) == ("Unhealthy", "Initializing", None)
    assert issues(BEGUN) == [("HostNotStarted", "Fatal")]
    assert "Wait" in issue(BEGUN, "HostNotStarted")["remediation"]


def test_in_fallback_mode_the_step_is_to_name_the_workspace() -> None:
    nothing = unresolved(ResolutionKind.NoCandidates, code="NoSolutionFound")
    facts = BEGUN.replace(state=ConnectionState.DEGRADED, fallback=True, discovery=nothing)

    assert issues(facts) == [("HostNotStarted", "Fatal"), ("NoSolutionFound", "Warning")]
    assert ".devtools/addins/" in issue(facts, "NoSolutionFound")["remediation"]
    for code in ("HostNotStarted", "NoSolutionFound"):
        assert "uno_app_initialize" in issue(facts, code)["remediation"]


def test_several_solutions_lead_to_the_tool_that_chooses() -> None:
    several = unresolved(ResolutionKind.Ambiguous, "/ws/A.sln", "/ws/B.sln", code="WorkspaceAmbiguous")
    facts = BEGUN.replace(state=ConnectionState.DEGRADED, discovery=several)

    assert issues(facts) == [("HostNotStarted", "Fatal"), ("WorkspaceAmbiguous", "Warning")]
    for code in ("WorkspaceAmbiguous", "HostNotStarted"):
        assert "uno_app_select_solution" in issue(facts, code)["remediation"]
    assert report(facts)["candidateSolutions"] == ["/ws/A.sln", "/ws/B.sln"]


@pytest.mark.parametrize("code", ["NoSolutionFound", "WorkspaceNotResolved"])
def test_without_a_workspace_it_says_that_the_proxy_will_notice(code: str) -> None:
    facts = BEGUN.replace(
        state=ConnectionState.DEGRADED, discovery=unresolved(ResolutionKind.NoValidWorkspace, code=code)
    )

    assert "by itself" in issue(facts, code)["remediation"]


def test_why_a_start_failed_is_told_once_although_discovery_says_it_too() -> None:
    missing = fatal("SdkNotInCache", "Uno.Sdk 6.5.31 is in none of the package folders.")
    facts = BEGUN.replace(
        state=ConnectionState.DEGRADED, discovery=DISCOVERY.replace(issues=(missing,)), issues=(missing,)
    )

    assert issues(facts) == [("HostNotStarted", "Fatal"), ("SdkNotInCache", "Fatal")]
    assert "'dotnet restore'" in issue(facts, "SdkNotInCache")["remediation"]
    assert issue(facts, "HostNotStarted")["remediation"] == issue(facts, "SdkNotInCache")["remediation"]


def test_what_a_failed_start_has_said_is_not_said_once_more() -> None:
    taken = fatal("HostNotStarted", "The Host cannot be started: port 5000 is taken.", "End that program.")
    gone = fatal("HostUnreachable", "The server at http://127.0.0.1:9/mcp cannot be reached.", "See that it runs.")
    there = UpstreamFacts(HostKind.COMMAND, endpoint="http://127.0.0.1:9/mcp")
    away = ProxyFacts(ProxyOptions("/ws", url="http://127.0.0.1:9/mcp"), ConnectionState.DEGRADED, upstream=there)

    assert issues(BEGUN.replace(state=ConnectionState.DEGRADED, issues=(taken,))) == [("HostNotStarted", "Fatal")]
    assert issues(away.replace(issues=(gone,))) == [("HostUnreachable", "Fatal")]


def test_a_crash_while_it_starts_is_told_once_with_its_last_words() -> None:
    died = fatal("HostCrashed", "The Host did not start: it ended with exit code 3.", "Repair it.")
    facts = CONNECTED.replace(state=ConnectionState.DEGRADED, last_end=CRASH, issues=(died,))

    assert issues(facts) == [("HostCrashed", "Fatal")]
    assert "boom" in issue(facts, "HostCrashed")["message"]


def test_a_step_that_fits_better_than_the_usual_one_stays() -> None:
    better = fatal("SdkNotInCache", "It is missing.", "Connect to the network.")

    assert issue(BEGUN.replace(issues=(better,)), "SdkNotInCache")["remediation"] == "Connect to the network."


def test_a_workspace_that_is_not_trusted_is_told_with_the_command_that_agrees() -> None:
    facts = CONNECTED.replace(options=ProxyOptions("/elsewhere"), trusted=False)

    assert issues(facts) == [("WorkspaceNotTrusted", "Warning")]
    found = issue(facts, "WorkspaceNotTrusted")
    assert "workspace /ws " in found["message"]
    assert "'uno-devserver trust'" in found["remediation"]


def test_a_start_that_failed_for_lack_of_trust_is_told_once() -> None:
    failure = fatal("WorkspaceNotTrusted", "There is nothing but code of the workspace.")
    facts = BEGUN.replace(state=ConnectionState.DEGRADED, trusted=False, issues=(failure,))

    assert issues(facts) == [("HostNotStarted", "Fatal"), ("WorkspaceNotTrusted", "Fatal")]


# --- a server that does not answer ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [ConnectionState.LAUNCHING, ConnectionState.CONNECTING])
def test_a_host_that_is_coming_up_is_unreachable_and_nothing_worse(state: ConnectionState) -> None:
    facts = CONNECTED.replace(state=state)

    assert issues(facts) == [("HostUnreachable", "Warning")]
    assert "process 42" in issue(facts, "HostUnreachable")["message"]


@pytest.mark.parametrize("state", [ConnectionState.RECONNECTING, ConnectionState.LAUNCHING, ConnectionState.CONNECTING])
def test_a_crash_that_is_being_healed_is_one_warning_with_the_last_lines(state: ConnectionState) -> None:
    facts = CONNECTED.replace(state=state, last_end=CRASH)

    assert issues(facts) == [("HostCrashed", "Warning")]
    message = issue(facts, "HostCrashed")["message"]
    assert "it ended with exit code 3" in message
    assert message.endswith("Unhandled exception: boom")


@pytest.mark.parametrize("gone", [None, CRASH])
def test_what_a_server_prints_instead_of_answering_is_quoted(gone: Ending | None) -> None:
    upstream = UpstreamFacts(HostKind.COMMAND, 42, stray_line="Usage: server [options]" + 4000 * "!")
    facts = CONNECTED.replace(state=ConnectionState.CONNECTING, upstream=upstream, last_end=gone)

    message = issue(facts, "UpstreamError")["message"]

    assert "it has printed 'Usage: server [options]!!!" in message
    assert len(message) < 2200


def test_what_a_connected_server_prints_among_its_messages_is_a_warning_and_nothing_worse() -> None:
    upstream = UpstreamFacts(HostKind.COMMAND, 42, stray_line="starting up")
    facts = CONNECTED.replace(upstream=upstream)

    found = issue(facts, "UpstreamError")

    assert issues(facts) == [("UpstreamError", "Warning")]
    assert "has printed 'starting up' on its standard output, which is not an MCP message" in found["message"]
    assert "stderr" in found["remediation"]


def test_a_restart_that_was_wanted_is_no_crash() -> None:
    assert issues(CONNECTED.replace(state=ConnectionState.RECONNECTING)) == [("HostUnreachable", "Warning")]


def test_crashes_without_end_are_fatal_and_name_what_ran() -> None:
    facts = CONNECTED.replace(state=ConnectionState.DEGRADED, last_end=CRASH)

    assert issues(facts) == [("HostCrashed", "Fatal")]
    found = issue(facts, "HostCrashed")
    for part in ("/cache/host/Uno.UI.RemoteControl.Host.dll", "Uno.Sdk 6.5.31", "Sample.AddIn 1.0.0", "boom"):
        assert part in found["message"]
    assert "/logs/host.log" in found["remediation"]
    assert "add-in" in found["remediation"]


def test_of_a_bundled_host_no_assembly_is_named() -> None:
    upstream = HOST.replace(kind=HostKind.BUNDLED)
    facts = CONNECTED.replace(state=ConnectionState.DEGRADED, last_end=CRASH, upstream=upstream)

    assert "Uno.UI.RemoteControl.Host.dll" not in issue(facts, "HostCrashed")["message"]


def test_only_the_end_of_what_a_server_printed_is_quoted() -> None:
    flood = Ending("it ended", 1, tuple(f"line {number} " + "x" * 500 for number in range(100)))

    message = issue(CONNECTED.replace(state=ConnectionState.DEGRADED, last_end=flood), "HostCrashed")["message"]

    assert "line 99" in message
    assert "line 90" not in message
    assert len(message) < 3000


def test_an_error_of_node_is_quoted_with_the_sentence_that_it_begins_with() -> None:
    stack = [f"    at step{number} (node:internal/modules/cjs/loader:1517:15)" for number in range(8)]
    end = ["  code: 'MODULE_NOT_FOUND',", "  requireStack: []", "}", "", "Node.js v24.19.0"]
    printed = ("  throw err;", "  ^", "", "Error: Cannot find module", *stack, *end)
    facts = CONNECTED.replace(state=ConnectionState.DEGRADED, last_end=Ending("it ended", 1, printed))

    assert "Error: Cannot find module" in issue(facts, "HostCrashed")["message"]


@pytest.mark.parametrize("found", [True, False], ids=["with an add-in", "without add-ins"])
def test_a_host_without_mcp_is_not_called_crashed(found: bool) -> None:
    addins = DISCOVERY.addins if found else DISCOVERY.addins.replace(found=())
    facts = CONNECTED.replace(
        state=ConnectionState.DEGRADED, without_mcp=True, discovery=DISCOVERY.replace(addins=addins)
    )

    assert issues(facts) == [("HostMcpEndpointNotAvailable", "Fatal")]
    message = issue(facts, "HostMcpEndpointNotAvailable")["message"]
    assert "has no http://localhost:5651/mcp" in message
    assert ("no add-in was found" in message) is not found
    assert report(facts)["upstreamConnected"] is False


def test_before_anybody_has_looked_it_does_not_claim_that_there_are_no_add_ins() -> None:
    facts = CONNECTED.replace(state=ConnectionState.DEGRADED, without_mcp=True, discovery=None)

    assert "was found" not in issue(facts, "HostMcpEndpointNotAvailable")["message"]


def test_a_server_that_refuses_to_speak_mcp_is_an_upstream_error() -> None:
    facts = CONNECTED.replace(
        state=ConnectionState.DEGRADED, connect_error="'initialize' was answered with status 500."
    )

    assert issues(facts) == [("UpstreamError", "Fatal")]
    assert issue(facts, "UpstreamError")["message"].endswith("status 500.")


@pytest.mark.parametrize("ending", [Ending("it ended with exit code 0", 0), Ending("it was ended by signal 15", -15)])
def test_a_host_that_somebody_stopped_has_not_crashed(ending: Ending) -> None:
    facts = CONNECTED.replace(state=ConnectionState.RECONNECTING, last_end=ending)

    assert issues(facts) == [("HostUnreachable", "Warning")]
    assert issue(facts, "HostUnreachable")["message"] == (
        f"The Host was stopped ({ending.reason}) and is being started again."
    )


def test_where_a_start_failed_for_a_reason_of_its_own_nothing_is_said_of_crashes() -> None:
    failure = fatal("WorkspaceNotTrusted", "There is nothing but code of the workspace.")
    facts = CONNECTED.replace(state=ConnectionState.DEGRADED, last_end=CRASH, issues=(failure,), trusted=False)

    assert issues(facts) == [("WorkspaceNotTrusted", "Fatal")]


# --- new code that does not run -------------------------------------------------------------------------------------

BUILD = {
    "role": "server",
    "step": "build",
    "at": "today",
    "named": "npm run build",
    "logFile": "/b.log",
    "problem": None,
}
START = {"role": "server", "step": "start", "at": "today", "ok": False, "problem": "It ended with exit code 1."}


def test_a_build_that_fails_is_told_with_its_log_while_the_old_code_serves() -> None:
    facts = CONNECTED.replace(hot_reload={"failing": [BUILD]})

    told = issue(facts, "ReloadFailed")

    assert told["severity"] == "Warning"
    assert told["message"] == (
        "The server runs with its old code: npm run build of its new code failed, at today. "
        "What it printed is in /b.log."
    )
    assert "next tool call" in told["remediation"]
    assert report(facts)["status"] == "Degraded"


def test_a_build_that_cannot_run_is_told_with_its_reason() -> None:
    build = BUILD | {"logFile": None, "problem": "npm is not on the PATH.", "role": "extension"}
    facts = CONNECTED.replace(hot_reload={"failing": [build]})

    assert issue(facts, "ReloadFailed")["message"].endswith("failed, at today: npm is not on the PATH.")


def test_new_code_that_does_not_start_is_told_once() -> None:
    kept = CONNECTED.replace(hot_reload={"failing": [START]})
    gone = kept.replace(state=ConnectionState.DEGRADED, last_end=CRASH)

    assert issue(kept, "ReloadFailed")["message"] == (
        "The Host did not start with its new code, at today: It ended with exit code 1."
    )
    assert issues(gone) == [("HostCrashed", "Fatal")]
    message = issue(gone, "HostCrashed")["message"]
    assert message.startswith("The Host did not start with its new code, at today: it ended with exit code 3.")


def test_a_client_that_is_not_ready_is_told_with_its_log() -> None:
    client = {"running": True, "problem": "The client 'code' has not said that it is ready.", "logFile": "/c.log"}
    facts = CONNECTED.replace(hot_reload={"client": client})

    told = issue(facts, "ClientNotReady")

    assert (told["severity"], told["message"]) == ("Warning", client["problem"])
    assert told["remediation"].endswith("What it printed is in /c.log.")


# --- servers that are no Hosts --------------------------------------------------------------------------------------


def test_a_command_is_called_by_its_name() -> None:
    facts = ProxyFacts(
        ProxyOptions("/ws", command=("my-server", "--stdio")),
        ConnectionState.DEGRADED,
        upstream=UpstreamFacts(HostKind.COMMAND, 7, owned=True),
        last_end=CRASH,
        generation=4,
    )

    message = issue(facts, "HostCrashed")["message"]
    assert message.startswith("The server 'my-server' ended unexpectedly, again and again: it ended with exit code 3.")
    never = issue(facts.replace(generation=0), "HostCrashed")["message"]
    assert never.startswith("The server 'my-server' does not start: it ended with exit code 3.")
    assert "add-in" not in issue(facts, "HostCrashed")["remediation"]


def test_a_command_that_was_not_started_is_not_looked_for_in_the_workspace() -> None:
    missing = fatal("UpstreamError", "There is no program 'my-server'.", "Install it.")
    facts = ProxyFacts(ProxyOptions("/ws", command=("my-server",)), ConnectionState.DEGRADED, issues=(missing,))

    assert issues(facts) == [("HostNotStarted", "Fatal"), ("UpstreamError", "Fatal")]
    started = issue(facts, "HostNotStarted")
    assert started["message"] == "The server 'my-server' was not started."
    assert started["remediation"] == "Install it."


@pytest.mark.parametrize(
    ("state", "severity"), [(ConnectionState.RECONNECTING, "Warning"), (ConnectionState.DEGRADED, "Fatal")]
)
def test_a_server_elsewhere_is_out_of_reach_but_never_crashed(state: ConnectionState, severity: str) -> None:
    facts = ProxyFacts(
        ProxyOptions("/ws", url="http://127.0.0.1:9/mcp"),
        state,
        upstream=UpstreamFacts(HostKind.COMMAND, endpoint="http://127.0.0.1:9/mcp"),
        last_end=Ending("it does not answer any more"),
    )

    assert issues(facts) == [("HostUnreachable", severity)]
    assert issue(facts, "HostUnreachable")["message"] == (
        "The server at http://127.0.0.1:9/mcp is not connected: it does not answer any more."
    )
    assert issue(facts.replace(last_end=None), "HostUnreachable")["message"].endswith("/mcp is not connected.")


def test_an_address_that_is_no_mcp_server_is_an_upstream_error() -> None:
    facts = ProxyFacts(
        ProxyOptions("/ws", url="http://127.0.0.1:9/"),
        ConnectionState.DEGRADED,
        upstream=UpstreamFacts(HostKind.COMMAND, endpoint="http://127.0.0.1:9/"),
        connect_error="it answered with HTML",
    )

    assert issues(facts) == [("UpstreamError", "Fatal")]
    assert "http://127.0.0.1:9/" in issue(facts, "UpstreamError")["message"]
