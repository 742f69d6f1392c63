"""Makes the HealthReport of a proxy from its facts.

Making it needs no I/O and no waiting, so it is available at any moment, even before the engine runs. Safe from any
thread: the facts are frozen.
"""

from __future__ import annotations

import json
import os
import time

from ... import __version__
from ...instances.health import HealthFacts, HealthStatus, health, judged
from ...instances.host_kind import HostKind
from ...instances.probe import Probe
from ...issues import warning
from ...system.text import shortened_output
from ..state import ConnectionState, UpstreamFacts
from .upstream_issues import upstream_issues, with_proxy_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ...issues import Issue
    from ..state import ProxyFacts

UNHEALTHY = HealthStatus.UNHEALTHY.value
# The members of `proxy` that each of `servers` has, too.
_OF_MEMBERS = (
    "state",
    "restarts",
    "reloads",
    "toolCount",
    "upstream",
    "lastExit",
    "trusted",
    "hotReload",
    "hotReloadOff",
)
BRIEF_SERVERS = 6  # those that do not work first
BRIEF_BYTES = 2000  # the most that an agent reads of a server that has nothing to do with Uno
BRIEF_ISSUES = 3  # the first are the cause of the others
BRIEF_NAMES = 5  # of files or tools in one list
BRIEF_CHARACTERS = 800  # of a text; fewer if the report would be too long


def report(facts: ProxyFacts) -> dict[str, Any]:
    """The HealthReport as JSON: the members of the .NET tool's, the Host's, `proxy`, and `servers` if there are some.

    A further server that fails makes the whole Degraded; Unhealthy only if there is no other that works.
    """
    upstream, host, workspace = facts.upstream or UpstreamFacts(), facts.host or Probe(), facts.workspace
    start = workspace.requested_directory if workspace else ""
    registered = (each.server for each in facts.servers if each.server.process_id == upstream.process_id)
    made = health(
        HealthFacts(
            __version__,
            facts.discovery,
            facts.servers,
            started=facts.upstream is not None or not facts.serves,
            process_id=upstream.process_id,
            endpoint=upstream.endpoint,
            started_at=next((server.started for server in registered), None),
            host=host.replace(  # the Host's last report about itself, with the state of the present connection
                mcp=facts.connected if facts.serves else any(member.connected for member in facts.members),
                kind=upstream.kind if facts.serves else HostKind.COMMAND,
                version=host.version or upstream.version,
                tool_count=facts.tool_count + sum(member.tool_count for member in facts.members),
            ),
            left_out=facts.left_out,
            log_file=upstream.log_file,
            connection=_connection(facts).value,
            solutions=tuple(os.path.relpath(path, start) for path in workspace.candidates) if workspace else None,
            upstream_issues=tuple(upstream_issues(facts)),
        )
    )
    if made.status is HealthStatus.HEALTHY:
        made = judged(made.facts, _not_known(facts))
    worded = made.replace(issues=tuple(with_proxy_step(issue, facts) for issue in made.issues))
    told: dict[str, Any] = {**worded.to_json(), "proxy": _proxy_json(facts)}
    if facts.members:
        issues = [_member_issues(member) for member in facts.members]
        told["servers"] = [_member_json(*each) for each in zip(facts.members, issues, strict=True)]
        told["issues"] += [issue for each in issues for issue in each]
        works = facts.serves or any(each["status"] != UNHEALTHY for each in told["servers"])
        if any(issues) and told["status"] != UNHEALTHY:
            told["status"] = HealthStatus.DEGRADED.value if works else UNHEALTHY
    return told


def _connection(facts: ProxyFacts) -> ConnectionState:
    """The state of the main server; without one, that of the first further server that is not connected."""
    if facts.serves:
        return facts.state
    others = (member.state for member in facts.members if not member.connected)
    return next(others, ConnectionState.CONNECTED if facts.members else facts.state)


def _member_issues(facts: ProxyFacts) -> list[dict[str, str]]:
    """The issues of a further server, each with its name."""
    found = []
    for issue in upstream_issues(facts):
        told = with_proxy_step(issue, facts)
        name = str(facts.options.server)
        named = told if name in told.message else told.replace(message=f"{facts.upstream_name}: {told.message}")
        found.append({**named.to_json(), "server": name})
    return found


def _member_json(facts: ProxyFacts, issues: list[dict[str, str]]) -> dict[str, object]:
    """One of `servers`."""
    worst = HealthStatus.UNHEALTHY if any(issue["severity"] == "Fatal" for issue in issues) else HealthStatus.DEGRADED
    status, own = worst if issues else HealthStatus.HEALTHY, _proxy_json(facts)
    of_it = {**{name: own[name] for name in _OF_MEMBERS}, "renamedTools": dict(facts.renamed)}
    return {"name": facts.options.server, "status": status.value, **of_it}


def _not_known(facts: ProxyFacts) -> Iterator[Issue]:
    """The warning that problems may follow: what has not been looked at is not called healthy."""
    upstream = facts.upstream
    unasked = upstream is not None and upstream.kind is HostKind.BUNDLED and facts.host is None
    if unasked or not facts.discovered:
        what = "The add-ins of the Host" if unasked else "The packages of the workspace"
        yield warning("HealthNotKnown", f"{what} have not been looked at yet, so there may be problems with them.")


def _proxy_json(facts: ProxyFacts) -> dict[str, object]:
    """The member `proxy`, which is also in the status file."""
    written, ending, upstream = facts.catalogue_written, facts.last_end, facts.upstream
    return {
        "processId": os.getpid(),
        "state": _connection(facts).value,
        "generation": facts.generation,
        "restarts": facts.restarts,
        "reloads": facts.reloads,
        "lastExit": ending
        and {"reason": ending.reason, "exitCode": ending.exit_code, "lastLines": list(ending.last_lines)},
        "upstream": upstream
        and {
            "kind": upstream.kind.value if upstream.kind else None,
            "processId": upstream.process_id,
            "endpoint": upstream.endpoint,
            "owned": upstream.owned,
            "logFile": upstream.log_file,
            "name": _name(facts, upstream),
            "version": upstream.version,
            "protocolVersion": upstream.protocol_version,
            "transport": upstream.transport,
            "standby": facts.standby,
        },
        "toolCount": facts.tool_count if facts.serves else sum(member.tool_count for member in facts.members),
        "listsFresh": facts.lists_fresh if facts.serves else all(member.lists_fresh for member in facts.members),
        "catalogueAgeSeconds": None if written is None else max(0.0, round(time.time() - written, 1)),
        "catalogueStale": _is_stale(facts),
        "timeline": dict(facts.timeline),
        "fallback": facts.fallback,
        "trusted": facts.trusted,
        "waitCalls": facts.wait_calls,
        "httpEndpoint": facts.http_endpoint,
        "inspector": facts.inspector,
        "clients": list(facts.clients),
        "controlChannel": next(
            (each.control_channel for each in (facts, *facts.members) if each.control_channel), None
        ),
        "hotReload": None if facts.hot_reload is None else dict(facts.hot_reload),
        "hotReloadOff": facts.hot_reload_off if facts.hot_reload is None else None,
    }


def _name(facts: ProxyFacts, upstream: UpstreamFacts) -> str | None:
    """The name that messages and the log use; of others than `The server 'x'` the one that the server reports."""
    name = facts.upstream_name.partition("'")[2]
    return name.removesuffix("'") or upstream.name


def _is_stale(facts: ProxyFacts) -> bool:
    """Whether the workspace has another SDK than when the lists were saved, which probably has other tools."""
    found = facts.discovery.sdk.global_json if facts.discovery else None
    now = found.uno_sdk.version if found and found.uno_sdk else None
    return not facts.lists_fresh and None not in (now, facts.catalogue_sdk) and now != facts.catalogue_sdk


def brief(told: Mapping[str, Any]) -> dict[str, object]:
    """The report, as `report` makes it, in at most BRIEF_BYTES of JSON: what matters first, and nothing of Uno."""
    characters = BRIEF_CHARACTERS
    while True:
        form: dict[str, object] = _shortened(_brief_form(told), characters)
        if len(json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")) <= BRIEF_BYTES:
            return form
        characters = characters * 3 // 4


def _brief_form(told: Mapping[str, Any]) -> dict[str, object]:
    own, issues = told["proxy"], sorted(told["issues"], key=lambda issue: issue["severity"] != "Fatal")
    upstream, reloads = own["upstream"] or {}, own["hotReload"] or {}
    server = {name: upstream.get(name) for name in ("name", "version", "processId", "endpoint", "logFile", "standby")}
    off = own["hotReloadOff"]
    return {
        "status": told["status"],
        "connectionState": told["connectionState"],
        **({"server": _known(server)} if upstream or not told.get("servers") else {}),
        "toolCount": told["toolCount"],
        "issues": issues[:BRIEF_ISSUES],
        **_known(
            {
                "moreIssues": len(issues[BRIEF_ISSUES:]) or None,
                "servers": _brief_servers(told.get("servers", ())) or None,
                "moreServers": len(told.get("servers", ())[BRIEF_SERVERS:]) or None,
                "hotReload": f"off, because {off}" if off else reloads.get("state"),
                "lastReload": _brief_reload((reloads.get("history") or [None])[-1]),
            }
        ),
        "restarts": own["restarts"] + sum(server["restarts"] for server in told.get("servers", ())),
        "devServerVersion": told["devServerVersion"],
    }


def _brief_servers(servers: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    first = sorted(servers, key=lambda server: server["state"] == ConnectionState.CONNECTED.value)[:BRIEF_SERVERS]
    return [
        {
            "name": server["name"],
            "state": server["state"],
            "tools": server["toolCount"],
            "restarts": server["restarts"],
            "reloads": server["reloads"],
            **_known({"renamedTools": list(server["renamedTools"])[:BRIEF_NAMES] or None}),  # as clients see them
        }
        for server in first
    ]


def _brief_reload(reload: Mapping[str, Any] | None) -> dict[str, object] | None:
    if reload is None:
        return None
    tools = {change: names[:BRIEF_NAMES] for change, names in (reload.get("tools") or {}).items() if names}
    return _known(
        {
            "at": reload["at"],
            "ok": reload["ok"],
            "problem": reload.get("problem"),
            "changed": [os.path.basename(path) for path in reload["changed"][:BRIEF_NAMES]],
            "tools": tools or None,
            "buildSeconds": reload["buildSeconds"] if reload["build"] else None,
            "restartSeconds": reload.get("restartSeconds"),
            "logFile": reload.get("logFile"),
        }
    )


def _known(members: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


def _shortened(value: Any, characters: int) -> Any:
    """The value with each text shortened."""
    if isinstance(value, dict):
        return {name: _shortened(member, characters) for name, member in value.items()}
    if isinstance(value, list):
        return [_shortened(member, characters) for member in value]
    return shortened_output(value, characters) if isinstance(value, str) else value
