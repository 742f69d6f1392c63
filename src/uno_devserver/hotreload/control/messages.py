"""The vocabulary of the control channel: its methods and notifications, and the JSON of the results.

Members of the wrong type in a peer's JSON are treated as absent, because the peer may be another version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..authority import CheckResult, Demand, RestartResult

PING = "system.ping"
GET_STATUS = "getStatus"
CHECK = "checkForChanges"
READY_TO_RESTART = "readyToRestart"
MCP_READY = "mcpReady"
OPEN_INSPECTOR = "openInspector"
METHODS = (PING, GET_STATUS, CHECK, READY_TO_RESTART, MCP_READY, OPEN_INSPECTOR)

PROGRESS = "hotReload/progress"  # {message}: the progress of a request of the peer
RESTARTING = "hotReload/restarting"  # {reason}: the receiver sends readyToRestart once none of its calls runs
RESTARTED = "hotReload/restarted"  # the result of the restart

NO_ANSWER = -32001  # the error code if the authority cannot answer; from the range that JSON-RPC leaves to programs

_CHECK_MEMBERS = {
    "mcpChanged": "server_changed",
    "mcpRebuilt": "server_rebuilt",
    "mcpBuildError": "server_build_error",
    "extChanged": "extension_changed",
    "extRebuilt": "extension_rebuilt",
    "extBuildError": "extension_build_error",
    "extClientReloaded": "client_reloaded",
}
# Omitted if None. A peer that does not know the digest tells failures apart by their output.
_OPTIONAL_MEMBERS = {
    "mcpDigest": "server_digest",
    "mcpOldOutput": "server_old_output",
    "extClientProblem": "client_problem",
    "refusal": "refusal",
}


def check_json(result: CheckResult) -> dict[str, Any]:
    document = {name: getattr(result, field) for name, field in _CHECK_MEMBERS.items()}
    optional = {
        name: value for name, field in _OPTIONAL_MEMBERS.items() if (value := getattr(result, field)) is not None
    }
    return {**document, **optional}


def check_of(document: Mapping[str, Any]) -> CheckResult:
    known: dict[str, Any] = {}
    for name, field in (_CHECK_MEMBERS | _OPTIONAL_MEMBERS).items():
        value = document.get(name)
        if isinstance(value, str if name in _OPTIONAL_MEMBERS or field.endswith("_error") else bool):
            known[field] = value
    return CheckResult(**known)


def demand_of(params: Mapping[str, Any]) -> Demand:
    """What a peer asks a check to do; peers of other versions and IDEs leave it out."""
    return next((demand for demand in Demand if demand.value == params.get("demand")), Demand.NEW_CODE)


def restart_json(result: RestartResult) -> dict[str, Any]:
    return {
        "ok": result.ok,
        "problem": result.problem,
        "lastLines": list(result.last_lines),
        "kept": result.kept,
        "lists": result.lists,
        "refusal": result.refusal,
    }


def restart_of(document: Mapping[str, Any]) -> RestartResult:
    lines = document.get("lastLines")
    return RestartResult(
        document.get("ok") is True,
        _text(document.get("problem")),
        tuple(line for line in lines if isinstance(line, str)) if isinstance(lines, list) else (),
        document.get("kept") is True,
        _text(document.get("lists")),
        refusal=_text(document.get("refusal")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
