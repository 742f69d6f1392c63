"""What the tools that choose a workspace answer, in each state of affairs."""

from __future__ import annotations

from uno_devserver.issues import fatal, warning
from uno_devserver.proxy.workspace.tool_results import (
    initialization_rejected,
    initialized,
    selected,
    selection_rejected,
)
from uno_devserver.workspace.resolver import ResolutionKind, SelectionSource, Workspace
from uno_devserver.workspace.transitions import Transition

RESOLVED = Workspace(
    requested_directory="/w/src",
    working_directory="/w",
    effective_directory="/w",
    solution="/w/App.sln",
    global_json="/w/global.json",
    kind=ResolutionKind.AutoDiscovered,
    source=SelectionSource.UserSelected,
    candidates=("/w/App.sln",),
    config=None,
    issues=(),
)
AMBIGUOUS = warning("WorkspaceAmbiguous", "2 solutions in /w fit equally well: /w/A.sln, /w/B.sln.")


def test_a_server_that_is_ready_tells_its_tools() -> None:
    result = initialized(RESOLVED, tool_count=7, connected=True)

    assert (result["status"], result["toolCount"], result["workspaceDirectory"]) == ("ready", 7, "/w/src")
    assert "7 tools" in result["message"]
    assert result["issues"] is None


def test_a_server_that_takes_longer_is_starting() -> None:
    result = initialized(RESOLVED, tool_count=0, connected=False)

    assert (result["status"], result["toolCount"]) == ("starting", 0)
    assert "uno_discover_tools" in result["message"]


def test_a_server_that_did_not_start_sends_to_the_diagnosis() -> None:
    result = initialized(RESOLVED, tool_count=0, connected=False, degraded=True)

    assert result["status"] == "degraded"
    assert "uno_health" in result["message"]


def test_a_folder_that_is_no_workspace_says_why_and_what_an_agent_can_do() -> None:
    undecided = RESOLVED.replace(kind=ResolutionKind.Ambiguous, solution=None, issues=(AMBIGUOUS,))

    result = initialized(undecided, tool_count=0, connected=False, degraded=True)

    (issue,) = result["issues"]
    assert (issue["code"], issue["severity"]) == ("WorkspaceAmbiguous", "Warning")
    assert "uno_app_select_solution" in issue["remediation"]
    assert result["message"] == f"{AMBIGUOUS.message} {issue['remediation']}"


def test_a_selection_never_claims_more_than_was_done() -> None:
    """The answer comes while the server is being started."""
    started = selected(RESOLVED, Transition.START)["message"]
    same = selected(RESOLVED, Transition.REFRESH)["message"]

    assert started.startswith("/w/App.sln is selected, and its DevServer is being started.")
    assert "uno_health" in started
    assert same == "/w/App.sln is the one that is served already."


def test_a_rejection_holds_all_members_and_nothing_that_was_not_done() -> None:
    selection, initialization = selection_rejected(AMBIGUOUS), initialization_rejected("/x", AMBIGUOUS)

    assert selection == {
        "status": "rejected",
        "selectedSolutionPath": None,
        "effectiveWorkspaceDirectory": None,
        "devServerAction": "None",
        "message": selection["message"],
        "issues": selection["issues"],
    }
    assert (initialization["status"], initialization["workspaceDirectory"]) == ("rejected", "/x")
    assert initialization["message"] == selection["message"]
    assert initialization["message"].startswith(AMBIGUOUS.message)


def test_one_tool_is_one_tool() -> None:
    assert "with 1 tool." in initialized(RESOLVED, tool_count=1, connected=True)["message"]


def test_why_nothing_is_served_is_told_with_what_to_do() -> None:
    reason = fatal("WorkspaceNotTrusted", "It is a stranger's.")

    result = initialized(RESOLVED, tool_count=0, connected=False, degraded=True, reasons=(reason,))

    assert result["message"] == f"{reason.message} {reason.remediation}"
    assert [issue["code"] for issue in result["issues"]] == ["WorkspaceNotTrusted"]
