"""What is said on the control channel: the methods, the notifications, and what became of a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..authority import RestartResult

PING = "system.ping"
GET_STATUS = "getStatus"
CHECK = "checkForChanges"
READY_TO_RESTART = "readyToRestart"
MCP_READY = "mcpReady"
OPEN_INSPECTOR = "openInspector"
METHODS = (PING, GET_STATUS, CHECK, READY_TO_RESTART, MCP_READY, OPEN_INSPECTOR)

PROGRESS = "hotReload/progress"  # {message}: what a check or a restart of the peer is at
RESTARTING = "hotReload/restarting"  # {reason}: say readyToRestart as soon as nothing of yours runs
RESTARTED = "hotReload/restarted"  # what became of it

# Where the authority itself has no answer; JSON-RPC leaves the codes around to programs.
NO_ANSWER = -32001


def restarted_json(outcome: RestartResult) -> dict[str, Any]:
    return {
        "ok": outcome.ok,
        "problem": outcome.problem,
        "lastLines": list(outcome.last_lines),
        "kept": outcome.kept,
        "lists": outcome.lists,
    }


def restarted_of(document: Mapping[str, Any]) -> RestartResult:
    """Members that are missing, or of another kind, are as good as absent: the peer may be another version."""
    lines = document.get("lastLines")
    return RestartResult(
        document.get("ok") is True,
        _text(document.get("problem")),
        tuple(line for line in lines if isinstance(line, str)) if isinstance(lines, list) else (),
        document.get("kept") is True,
        _text(document.get("lists")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
