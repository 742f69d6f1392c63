"""Asks a proxy, of this program or of its .NET counterpart, for the health of the server behind it.

A proxy answers whether or not its server runs, so its first answers prove nothing about the server. The report is JSON
from a foreign process, so any field may have any type.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from ...instances.host_kind import HostKind
from ...instances.probe import HEALTH_TOOL
from ...issues import Severity
from ...protocol.client.raw_messages import object_in
from ...system.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...protocol.client.connection import Connection, Peer

SETTLE_SECONDS = 15.0  # a .NET Host starts in 1 to 3 s; a server that a runner has to build needs longer
POLL_SECONDS = 0.1  # one request takes a millisecond
UNBUILT = "ServerNotBuilt"  # the code of the issue while a first build is still to run
CONNECTED, DEGRADED = "Connected", "Degraded"  # connection states; the second one of a proxy that has given up
MAX_ISSUES = 2  # the first issue says what is wrong, the second usually why
MAX_CHARACTERS = 1000  # the limit for the messages of the issues


class ProxyHealth(Value):
    health: str  # as in the report: Healthy, Degraded or Unhealthy
    tools: int | None  # the number of tools of the server behind it; None if there is no server
    problem: str = ""  # one or more sentences
    next_step: str = ""
    fatal: bool = False  # whether the problem makes the server unusable
    no_workspace: bool = False  # whether the problem is an unknown workspace, which a client may name later


async def probe_proxy(connection: Connection, peer: Peer, connected: Callable[[], None]) -> ProxyHealth | None:
    """Poll the proxy until its server has started or failed, for a limited time; call `connected` when it has one.

    Returns None if the answer is not a health report.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    is_connected = False
    before: ProxyHealth | None = None  # facts arrive one by one, so a report is final when it comes twice
    while (report := await _asked(connection, peer)) is not None:
        if report.get("upstreamConnected") is True and not is_connected:
            is_connected = True
            connected()
        now = health_of_report(report)
        if (_is_settled(report) and now == before) or time.monotonic() >= deadline:
            return now
        before = now
        await asyncio.sleep(POLL_SECONDS)
    return None


async def _asked(connection: Connection, peer: Peer) -> Mapping[str, Any] | None:
    asked = {"name": HEALTH_TOOL, "arguments": {"details": True}}  # the brief form lacks what is read here
    result = object_in(await connection.request("tools/call", asked, peer)) or {}
    try:
        report = json.loads(result["content"][0]["text"])
    except (ValueError, LookupError, TypeError):
        return None
    return report if isinstance(report, dict) and isinstance(report.get("status"), str) else None


def _is_settled(report: Mapping[str, Any]) -> bool:
    further = report.get("servers")  # of the config, beside the main one
    states = [_object(server).get("state") for server in further] if isinstance(further, list) else []
    if any(state not in (CONNECTED, DEGRADED) for state in states):
        return False
    if report.get("connectionState") == DEGRADED:
        return all(issue.get("code") != UNBUILT for issue in _issues(report))
    # `ideChannelConnected` is null until the proxy has asked the bundled Host, soon after it is connected.
    unasked = report.get("hostKind") == HostKind.BUNDLED.value and report.get("ideChannelConnected") is None
    fresh = _object(report.get("proxy")).get("listsFresh", True)
    return report.get("upstreamConnected") is True and bool(fresh) and not unasked and not report.get("addInsLoading")


def health_of_report(report: Mapping[str, Any]) -> ProxyHealth:
    issues = _issues(report)[:MAX_ISSUES]
    count = report.get("toolCount")
    tools = (count if isinstance(count, int) else 0) if report.get("upstreamConnected") is True else None
    severe = any(issue.get("severity") == Severity.FATAL.value for issue in issues)
    words = " ".join(_text(issue.get("message")) for issue in issues).split()  # they may quote lines of a server
    problem = " ".join(words)[:MAX_CHARACTERS]
    if tools is None:
        problem = problem or "It does not say why."
    step = _text(issues[0].get("remediation")) if issues else ""
    no_workspace = tools is None and _object(report.get("proxy")).get("fallback") is True
    return ProxyHealth(report["status"], tools, problem, step, severe or (bool(problem) and not tools), no_workspace)


def _issues(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = report.get("issues")
    return [_object(issue) for issue in listed] if isinstance(listed, list) else []


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
