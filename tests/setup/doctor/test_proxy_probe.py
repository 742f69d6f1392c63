"""What stands behind a proxy, by what it says of itself; a real one stands behind tests/cli/mcp/test_doctor.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from uno_devserver.setup.doctor.launch_spec import LaunchSpec
from uno_devserver.setup.doctor.proxy_probe import ProxyHealth, health_of_report
from uno_devserver.setup.doctor.trial import Trial, try_command

FATAL = {"code": "HostNotStarted", "severity": "Fatal", "message": "It was not started.", "remediation": "Trust it."}
WHY = {"code": "WorkspaceNotTrusted", "severity": "Fatal", "message": "Nobody agreed.", "remediation": "Agree."}
MILD = {"code": "AddInLoadFailed", "severity": "Warning", "message": "One does not load.", "remediation": "Mend it."}


@pytest.mark.parametrize(
    ("report", "standing"),
    [
        ({"upstreamConnected": True, "toolCount": 3}, ProxyHealth("x", 3)),
        ({"upstreamConnected": True, "toolCount": 0}, ProxyHealth("x", 0)),
        (
            {"upstreamConnected": True, "toolCount": 3, "issues": [MILD]},
            ProxyHealth("x", 3, "One does not load.", "Mend it."),
        ),
        (
            {"upstreamConnected": True, "toolCount": 0, "issues": [MILD]},
            ProxyHealth("x", 0, "One does not load.", "Mend it.", fatal=True),
        ),
        (
            {"upstreamConnected": True, "toolCount": 3, "issues": [MILD, FATAL]},
            ProxyHealth("x", 3, "One does not load. It was not started.", "Mend it.", fatal=True),
        ),
        (
            {"toolCount": 3, "issues": [FATAL, WHY, MILD]},  # of a catalogue, and of no use
            ProxyHealth("x", None, "It was not started. Nobody agreed.", "Trust it.", fatal=True),
        ),
        (
            {"issues": [FATAL], "proxy": {"fallback": True}},
            ProxyHealth("x", None, "It was not started.", "Trust it.", fatal=True, no_workspace=True),
        ),
        ({"upstreamConnected": True, "toolCount": 1, "proxy": {"fallback": True}}, ProxyHealth("x", 1)),
        ({"issues": None}, ProxyHealth("x", None, "It does not say why.", fatal=True)),
        ({"issues": [5, {"message": 5}]}, ProxyHealth("x", None, "It does not say why.", fatal=True)),
    ],
)
def test_what_a_proxy_says_is_judged_by_whether_anything_can_be_used(
    report: dict[str, Any], standing: ProxyHealth
) -> None:
    assert health_of_report({"status": "x", **report}) == standing


# Answers everything; what it is asked by `tools/call` it answers by the texts it was given, the last for ever.
SERVER = """
import json, sys
texts = sys.argv[1:]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {}},
        "tools/list": {"tools": [{"name": "uno_health"}, {"name": "other"}]},
    }.get(asked["method"]) or {"content": [{"type": "text", "text": texts.pop(0) if texts[1:] else texts[0]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
STARTING = '{"status": "Unhealthy", "connectionState": "Launching", "upstreamConnected": false}'
DEGRADED = '{"status": "Unhealthy", "connectionState": "Degraded", "upstreamConnected": false, "issues": []}'
CONNECTED = '{"status": "Healthy", "connectionState": "Connected", "upstreamConnected": true, "toolCount": 7}'
UNREAD = CONNECTED.replace("7}", '1, "proxy": {"listsFresh": false}}')
UNASKED = CONNECTED.replace("7}", '2, "hostKind": "bundled", "ideChannelConnected": null}')
LOADING = CONNECTED.replace("7}", '3, "addInsLoading": true}')


def tried(folder: Path, *texts: str) -> Trial:
    command = (sys.executable, "-c", SERVER, *texts)
    return try_command(command[0], LaunchSpec(command, str(folder), {"PATH": os.environ["PATH"]}, "", {}, None, ()))


def test_a_proxy_is_asked_until_its_start_is_over(tmp_path: Path) -> None:
    trial = tried(tmp_path, STARTING, UNREAD, UNASKED, LOADING, CONNECTED)

    assert (trial.problem, trial.tools, trial.behind) == ("", 7, ProxyHealth("Healthy", 7))
    assert list(trial.milliseconds) == ["spawn", "initialize", "tools", "ready"]


def test_a_proxy_is_asked_until_its_first_build_is_over(tmp_path: Path) -> None:
    unbuilt = DEGRADED.replace("[]", '[{"code": "HostNotStarted"}, {"code": "ServerNotBuilt"}]')
    failed = DEGRADED.replace("[]", '[{"code": "ReloadFailed", "message": "tsc: not found"}]')

    trial = tried(tmp_path, unbuilt, unbuilt, unbuilt, failed)

    assert trial.behind == ProxyHealth("Unhealthy", None, "tsc: not found", fatal=True)


def test_the_time_until_a_server_is_there_is_not_what_a_client_waits_for(tmp_path: Path) -> None:
    trial = tried(tmp_path, STARTING, CONNECTED)

    assert trial.milliseconds["ready"] > 0
    assert trial.seconds * 1000 == pytest.approx(sum(trial.milliseconds.values()) - trial.milliseconds["ready"])


@pytest.mark.parametrize("text", ["I am well", "[]", "{}", '{"status": 5}'])
def test_a_server_that_only_has_a_tool_of_that_name_counts_as_any_other(tmp_path: Path, text: str) -> None:
    trial = tried(tmp_path, text)

    assert (trial.problem, trial.tools, trial.behind) == ("", 2, None)
