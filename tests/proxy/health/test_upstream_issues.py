"""The issues of the server in each state, and what to do: never a crash where there was none."""

from __future__ import annotations

from typing import Any

import pytest

from uno_devserver.instances.host_kind import HostKind
from uno_devserver.issues import fatal, warning
from uno_devserver.proxy.health.report import report
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import ConnectionState, ProxyFacts, UpstreamFacts
from uno_devserver.proxy.upstream.base import Ending
from uno_devserver.workspace.resolver import ResolutionKind

from .facts import BEGUN, CONNECTED, CRASH, DISCOVERY, HOST, issue, issues, unresolved

DEGRADED, LAUNCHING = ConnectionState.DEGRADED, ConnectionState.LAUNCHING
CONNECTING, RECONNECTING = ConnectionState.CONNECTING, ConnectionState.RECONNECTING
FAILED = CONNECTED.replace(state=DEGRADED, last_end=CRASH)
WITHOUT_MCP = CONNECTED.replace(state=DEGRADED, without_mcp=True)
URL = "http://127.0.0.1:9/mcp"
THERE = ProxyFacts(
    ProxyOptions("/ws", url=URL),
    DEGRADED,
    upstream=UpstreamFacts(HostKind.COMMAND, endpoint=URL),
    last_end=Ending("it does not answer any more"),
)
COMMAND = ProxyFacts(
    ProxyOptions("/ws", command=("my-server", "--stdio")),
    DEGRADED,
    upstream=UpstreamFacts(HostKind.COMMAND, 7, owned=True),
    last_end=CRASH,
    generation=4,
)
NO_ADDINS = DISCOVERY.replace(addins=DISCOVERY.addins.replace(found=()))
MISSING = fatal("SdkNotInCache", "Uno.Sdk 6.5.31 is in none of the package folders.")
TAKEN = fatal("HostNotStarted", "The Host cannot be started: port 5000 is taken.", "End that program.")
GONE = fatal("HostUnreachable", f"The server at {URL} cannot be reached.", "See that it runs.")
DIED = fatal("HostCrashed", "The Host did not start: it ended with exit code 3.", "Repair it.")
NOT_TRUSTED = fatal("WorkspaceNotTrusted", "There is nothing but code of the workspace.")
UNBUILT = ProxyFacts(
    COMMAND.options, DEGRADED, issues=(warning("ServerNotBuilt", "'npm run build' of it runs first."),)
)
NO_PROGRAM = fatal("UpstreamError", "There is no program 'my-server'.", "Install it.")

# Of new code that does not run, as hot reload tells it.
BUILD = {"role": "server", "step": "build", "at": "today", "named": "npm run build", "logFile": "/b.log"}
NO_NPM = BUILD | {"logFile": None, "problem": "npm is not on the PATH.", "role": "extension"}
START = {"role": "server", "step": "start", "at": "today", "ok": False, "problem": "It ended with exit code 1."}
CLIENT = {"running": True, "problem": "The client 'code' has not said that it is ready.", "logFile": "/c.log"}


def printing(line: str, **facts: Any) -> ProxyFacts:
    """A command that has printed a line that is not a message."""
    return CONNECTED.replace(upstream=UpstreamFacts(HostKind.COMMAND, 42, stray_line=line), **facts)


def without_workspace(code: str, *found: str, **facts: Any) -> ProxyFacts:
    kind = ResolutionKind.Ambiguous if found else ResolutionKind.NoCandidates
    return BEGUN.replace(state=DEGRADED, discovery=unresolved(kind, *found, code=code), **facts)


# The facts, the issues ("!" marks fatal ones), and for each of them parts of its message and of its next step.
CASES: dict[str, tuple[ProxyFacts, dict[str, tuple[str, ...]]]] = {
    "before the engine exists the step is to wait": (BEGUN, {"HostNotStarted!": ("Wait",)}),
    "in fallback mode the step is to name the workspace": (
        without_workspace("NoSolutionFound", fallback=True),
        {
            "HostNotStarted!": ("uno_app_initialize",),
            "NoSolutionFound": (".devtools/addins/", "uno_app_initialize"),
        },
    ),
    "several solutions lead to the tool that chooses": (
        without_workspace("WorkspaceAmbiguous", "/ws/A.sln", "/ws/B.sln"),
        {"WorkspaceAmbiguous": ("uno_app_select_solution",), "HostNotStarted!": ("uno_app_select_solution",)},
    ),
    "the proxy will notice a solution": (
        without_workspace("NoSolutionFound"),
        {"HostNotStarted!": (), "NoSolutionFound": ("by itself",)},
    ),
    "the proxy will notice a workspace": (
        without_workspace("WorkspaceNotResolved"),
        {"HostNotStarted!": (), "WorkspaceNotResolved!": ("by itself",)},
    ),
    "why a start failed is told once although discovery says it too": (
        BEGUN.replace(state=DEGRADED, discovery=DISCOVERY.replace(issues=(MISSING,)), issues=(MISSING,)),
        {"HostNotStarted!": ("'dotnet restore'",), "SdkNotInCache!": ("'dotnet restore'",)},
    ),
    "what a failed start has said is not said once more": (
        BEGUN.replace(state=DEGRADED, issues=(TAKEN,)),
        {"HostNotStarted!": ("port 5000",)},
    ),
    "what a server elsewhere has said is not said once more": (
        THERE.replace(issues=(GONE,), last_end=None),
        {"HostUnreachable!": ("cannot be reached",)},
    ),
    "a crash while it starts is told once with its last words": (
        FAILED.replace(issues=(DIED,)),
        {"HostCrashed!": ("boom",)},
    ),
    "a step that fits better than the usual one stays": (
        BEGUN.replace(issues=(fatal("SdkNotInCache", "It is missing.", "Connect to the network."),)),
        {"HostNotStarted!": (), "SdkNotInCache!": ("Connect to the network.",)},
    ),
    "a workspace that is not trusted is told with the command that agrees": (
        CONNECTED.replace(options=ProxyOptions("/elsewhere"), trusted=False),
        {"WorkspaceNotTrusted": ("workspace /ws ", "'uno-devserver trust'")},
    ),
    "a start that failed for lack of trust is told once": (
        BEGUN.replace(state=DEGRADED, trusted=False, issues=(NOT_TRUSTED,)),
        {"HostNotStarted!": (), "WorkspaceNotTrusted!": ()},
    ),
    "a failure with a reason of its own is no crash": (
        FAILED.replace(issues=(NOT_TRUSTED,), trusted=False),
        {"WorkspaceNotTrusted!": ()},
    ),
    "a Host that is launched is unreachable and nothing worse": (
        CONNECTED.replace(state=LAUNCHING),
        {"HostUnreachable": ("process 42",)},
    ),
    "a Host that is being connected is unreachable and nothing worse": (
        CONNECTED.replace(state=CONNECTING),
        {"HostUnreachable": ("process 42",)},
    ),
    "a restart that was wanted is no crash": (CONNECTED.replace(state=RECONNECTING), {"HostUnreachable": ()}),
    **{
        f"a crash is one warning with the last lines while it is {state.value}": (
            CONNECTED.replace(state=state, last_end=CRASH),
            {"HostCrashed": ("it ended with exit code 3", "Unhandled exception: boom")},
        )
        for state in (RECONNECTING, LAUNCHING, CONNECTING)
    },
    **{
        f"a Host that somebody stopped has not crashed: {ending.reason}": (
            CONNECTED.replace(state=RECONNECTING, last_end=ending),
            {"HostUnreachable": (f"The Host was stopped ({ending.reason}) and is being started again.",)},
        )
        for ending in (Ending("it ended with exit code 0", 0), Ending("it was ended by signal 15", -15))
    },
    "what a server prints instead of answering is quoted": (
        printing("Usage: server [options]" + 4000 * "!", state=CONNECTING),
        {"HostUnreachable": (), "UpstreamError": ("it has printed 'Usage: server [options]!!!",)},
    ),
    "what a server printed instead of answering is quoted when it has gone": (
        printing("Usage: server [options]" + 4000 * "!", state=CONNECTING, last_end=CRASH),
        {"HostCrashed": (), "UpstreamError": ("it has printed 'Usage: server [options]!!!",)},
    ),
    "what a connected server prints among its messages is a warning and nothing worse": (
        printing("starting up"),
        {"UpstreamError": ("printed 'starting up' on its standard output, which is not an MCP message", "stderr")},
    ),
    "crashes without end are fatal and name what ran": (
        FAILED,
        {
            "HostCrashed!": (
                *("/cache/host/Uno.UI.RemoteControl.Host.dll", "Uno.Sdk 6.5.31", "Sample.AddIn 1.0.0", "boom"),
                *("/logs/host.log", "An add-in that does not fit"),
            )
        },
    ),
    "a Host without MCP is not called crashed": (
        WITHOUT_MCP,
        {"HostMcpEndpointNotAvailable!": ("has no http://localhost:5651/mcp", "although add-ins were found")},
    ),
    "a Host without MCP and without add-ins is not called crashed": (
        WITHOUT_MCP.replace(discovery=NO_ADDINS),
        {"HostMcpEndpointNotAvailable!": ("has no http://localhost:5651/mcp", "no add-in was found")},
    ),
    "a server that refuses to speak MCP is an upstream error": (
        CONNECTED.replace(state=DEGRADED, connect_error="'initialize' was answered with status 500."),
        {"UpstreamError!": ("status 500. ",)},
    ),
    "a build that fails is told with its log while the old code serves": (
        CONNECTED.replace(hot_reload={"failing": [BUILD]}),
        {
            "ReloadFailed": (
                "The server runs with its old code: npm run build of its new code failed (today)",
                "printed is in /b.log.",
                "next tool call",
            )
        },
    ),
    "a build that failed before the server was started is not told as old code": (
        CONNECTED.replace(
            hot_reload={"failing": [BUILD], "packages": [{"role": "server", "sha256": {"running": None}}]}
        ),
        {"ReloadFailed": ("The server may run what a failed build wrote: npm run build of its new code failed",)},
    ),
    "a build that cannot run is told with its reason": (
        CONNECTED.replace(hot_reload={"failing": [NO_NPM]}),
        {"ReloadFailed": ("failed (today): npm is not on the PATH. ",)},
    ),
    "a first build that is still to run": (
        UNBUILT,
        {"HostNotStarted!": ("It is started when it is built.",), "ServerNotBuilt": ("runs first",)},
    ),
    "a first build that fails is told in its place": (
        UNBUILT.replace(hot_reload={"failing": [BUILD | {"problem": "tsc: not found\nexit code 127"}]}),
        {
            "HostNotStarted!": ("The server 'my-server' was not started. Fix it;", "is in /b.log."),
            "ReloadFailed": ("npm run build of the server failed (today):\ntsc: not found\nexit code 127",),
        },
    ),
    "a build that fails after a crash": (
        COMMAND.replace(hot_reload={"failing": [NO_NPM | {"role": "server"}]}),
        {
            "HostNotStarted!": ("does not run, and its present code cannot be used.",),
            "ReloadFailed": ("npm run build of the server failed (today): npm is not on the PATH. ",),
        },
    ),
    "new code that does not start while the old serves": (
        CONNECTED.replace(hot_reload={"failing": [START]}),
        {"ReloadFailed": ("The Host did not start with its new code (today): It ended with exit code 1.",)},
    ),
    "new code that does not start is told once": (
        FAILED.replace(hot_reload={"failing": [START]}),
        {"HostCrashed!": ("The Host did not start with its new code (today): it ended with exit code 3.",)},
    ),
    "a client that is not ready is told with its log": (
        CONNECTED.replace(hot_reload={"client": CLIENT}),
        {"ClientNotReady": (str(CLIENT["problem"]), "What it printed is in /c.log.")},
    ),
    "a command is called by its name": (
        COMMAND,
        {"HostCrashed!": ("The server 'my-server' ended unexpectedly, again and again: it ended with exit code 3.",)},
    ),
    "a command that never started is called by its name": (
        COMMAND.replace(generation=0),
        {"HostCrashed!": ("The server 'my-server' does not start: it ended with exit code 3.",)},
    ),
    "a command that was not started is not looked for in the workspace": (
        ProxyFacts(COMMAND.options, DEGRADED, issues=(NO_PROGRAM,)),
        {"HostNotStarted!": ("The server 'my-server' was not started. Install it.",), "UpstreamError!": ()},
    ),
    "a server elsewhere is out of reach but never crashed": (
        THERE,
        {"HostUnreachable!": (f"The server at {URL} is not connected: it does not answer any more. ",)},
    ),
    "a server elsewhere that is looked for is out of reach": (
        THERE.replace(state=RECONNECTING),
        {"HostUnreachable": (f"The server at {URL} is not connected: it does not answer any more. ",)},
    ),
    "a server elsewhere that was never there": (
        THERE.replace(last_end=None),
        {"HostUnreachable!": (f"The server at {URL} is not connected. ",)},
    ),
    "an address that is no MCP server is an upstream error": (
        THERE.replace(connect_error="it answered with HTML", last_end=None),
        {"UpstreamError!": (URL, "--upstream-url")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_state_has_its_issues_with_their_steps_and_no_others(name: str) -> None:
    facts, expected = CASES[name]

    assert issues(facts) == [(code.rstrip("!"), "Fatal" if "!" in code else "Warning") for code in expected]
    for code, parts in expected.items():
        found = issue(facts, code.rstrip("!"))
        for part in parts:
            assert part in f"{found['message']} {found['remediation']}"


def test_the_report_has_the_facts_behind_the_issues() -> None:
    begun, several = report(BEGUN), report(without_workspace("WorkspaceAmbiguous", "/ws/A.sln", "/ws/B.sln"))

    assert (begun["status"], begun["connectionState"], begun["discovery"]) == ("Unhealthy", "Initializing", None)
    assert several["candidateSolutions"] == ["/ws/A.sln", "/ws/B.sln"]
    assert report(WITHOUT_MCP)["upstreamConnected"] is False
    assert report(CONNECTED.replace(hot_reload={"failing": [BUILD]}))["status"] == "Degraded"


@pytest.mark.parametrize(
    ("facts", "code", "absent"),
    [
        (FAILED.replace(upstream=HOST.replace(kind=HostKind.BUNDLED)), "HostCrashed", "RemoteControl.Host.dll"),
        (
            CONNECTED.replace(state=DEGRADED, without_mcp=True, discovery=None),
            "HostMcpEndpointNotAvailable",
            "was found",
        ),
        (COMMAND, "HostCrashed", "add-in"),
    ],
    ids=["of a bundled Host no assembly is named", "before anybody has looked", "a command has no add-ins"],
)
def test_what_is_not_known_or_does_not_exist_is_not_said(facts: ProxyFacts, code: str, absent: str) -> None:
    found = issue(facts, code)

    assert absent not in found["message"]
    assert absent not in found["remediation"]


def test_only_the_end_of_what_a_server_printed_is_quoted() -> None:
    flood = Ending("it ended", 1, tuple(f"line {number} " + "x" * 500 for number in range(100)))

    message = issue(FAILED.replace(last_end=flood), "HostCrashed")["message"]

    assert "line 99" in message
    assert "line 90" not in message
    assert len(message) < 3000
    assert len(issue(printing(4000 * "!", state=CONNECTING), "UpstreamError")["message"]) < 2200


def test_an_error_of_node_is_quoted_with_the_sentence_that_it_begins_with() -> None:
    stack = [f"    at step{number} (node:internal/modules/cjs/loader:1517:15)" for number in range(8)]
    end = ["  code: 'MODULE_NOT_FOUND',", "  requireStack: []", "}", "", "Node.js v24.19.0"]
    printed = ("  throw err;", "  ^", "", "Error: Cannot find module", *stack, *end)

    message = issue(FAILED.replace(last_end=Ending("it ended", 1, printed)), "HostCrashed")["message"]

    assert "Error: Cannot find module" in message
