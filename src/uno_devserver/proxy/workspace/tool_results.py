"""The results of uno_app_initialize and uno_app_select_solution.

Members and status values are those of the .NET proxy; the messages say what was done and what to do next.
"""

from __future__ import annotations

from ...issues import Issue, Severity
from ...workspace.transitions import Transition
from ..health.upstream_issues import with_proxy_step
from ..lists.merge import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...workspace.resolver import Workspace


REJECTED = "rejected"  # a result with this status is an error, and nothing was changed

# By transition: the status, devServerAction, and the end of the sentence.
_SELECTED = {
    Transition.START: ("started", "Start", "is selected, and its DevServer is being started"),
    Transition.RESTART: ("restarted", "Restart", "is selected, and the DevServer is being restarted for it"),
    Transition.REFRESH: ("already_selected", "None", "is the one that is served already"),
}


def selected(workspace: Workspace, due: Transition) -> dict[str, Any]:
    status, action, what = _SELECTED[due]
    hint = "" if due is Transition.REFRESH else " Call uno_health to see when it is ready."
    return {
        "status": status,
        "selectedSolutionPath": workspace.solution,
        "effectiveWorkspaceDirectory": workspace.effective_directory,
        "devServerAction": action,
        "message": f"{workspace.solution} {what}.{hint}",
        "issues": _json(workspace.issues),
    }


def selection_rejected(*issues: Issue) -> dict[str, Any]:
    nothing = {"selectedSolutionPath": None, "effectiveWorkspaceDirectory": None, "devServerAction": "None"}
    return {"status": REJECTED, **nothing, **_rejection(issues)}


def initialized(
    workspace: Workspace,
    *,
    tool_count: int,
    connected: bool,
    degraded: bool = False,
    reasons: tuple[Issue, ...] = (),
) -> dict[str, Any]:
    """The result after the wait for the upstream; `reasons`: why there is none."""
    issues = (*reasons, *workspace.issues)
    if connected:
        status = "ready"
        message = f"The DevServer is ready, with {counted(tool_count)}. Use them directly, or through uno_execute_tool."
    elif degraded:
        status = "degraded"
        message = _explained(issues) or "The DevServer could not be started. Call uno_health for the reason."
    else:
        status = "starting"
        message = "The DevServer is still starting. Call uno_discover_tools, which waits for it, or uno_health."
    return {
        "status": status,
        "workspaceDirectory": workspace.requested_directory,
        "toolCount": tool_count,
        "message": message,
        "issues": _json(issues),
    }


def initialization_rejected(directory: str, *issues: Issue) -> dict[str, Any]:
    return {"status": REJECTED, "workspaceDirectory": directory, "toolCount": 0, **_rejection(issues)}


def _rejection(issues: Iterable[Issue]) -> dict[str, Any]:
    """A rejected request keeps what is served, so none of its issues is fatal."""
    warnings = [issue.replace(severity=Severity.WARNING) for issue in issues]
    return {"message": _explained(warnings), "issues": _json(warnings)}


def _explained(issues: Iterable[Issue]) -> str:
    return " ".join(f"{issue.message} {issue.remediation}" for issue in map(with_proxy_step, issues))


def _json(issues: Iterable[Issue]) -> list[dict[str, str]] | None:
    return [with_proxy_step(issue).to_json() for issue in issues] or None
