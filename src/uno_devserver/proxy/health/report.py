"""Makes the HealthReport of a proxy from its facts.

Nothing is read from disk or waited for here, so there is an answer at any moment, also before there is an engine. Safe
from any thread: the facts are frozen.
"""

from __future__ import annotations

import os
import time

from ... import __version__
from ...instances.health import health
from ...instances.health_report import HealthFacts
from ...instances.probe import Probe
from ..state import UpstreamFacts
from .upstream_issues import upstream_issues, with_proxy_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...workspace.resolver import Workspace
    from ..state import ProxyFacts
    from ..upstream.base import Ending


def report(facts: ProxyFacts) -> dict[str, object]:
    """The HealthReport as JSON: the members of the .NET tool's, the Host's, and `proxy`."""
    upstream = facts.upstream
    judged = health(
        HealthFacts(
            __version__,
            facts.discovery,
            facts.servers,
            started=upstream is not None,
            process_id=upstream.process_id if upstream else None,
            endpoint=upstream.endpoint if upstream else None,
            started_at=_started_at(facts),
            host=_host(facts),
            left_out=facts.left_out,
            log_file=upstream.log_file if upstream else None,
            connection=facts.state.value,
            solutions=_solutions(facts.workspace),
            upstream_issues=tuple(upstream_issues(facts)),
        )
    )
    worded = judged.replace(issues=tuple(with_proxy_step(issue, facts) for issue in judged.issues))
    return {**worded.to_json(), "proxy": proxy_json(facts)}


def proxy_json(facts: ProxyFacts) -> dict[str, object]:
    """The member `proxy`, which the status file holds, too."""
    age = None if facts.catalogue_written is None else max(0.0, round(time.time() - facts.catalogue_written, 1))
    return {
        "processId": os.getpid(),
        "state": facts.state.value,
        "generation": facts.generation,
        "restarts": facts.restarts,
        "reloads": facts.reloads,
        "lastExit": _ending_json(facts.last_end),
        "upstream": _upstream_json(facts.upstream),
        "toolCount": facts.tool_count,
        "listsFresh": facts.lists_fresh,
        "catalogueAgeSeconds": age,
        "catalogueStale": _is_stale(facts),
        "timeline": dict(facts.timeline),
        "fallback": facts.fallback,
        "trusted": facts.trusted,
        "waitCalls": facts.wait_calls,
        "httpEndpoint": facts.http_endpoint,
        "inspector": facts.inspector,
        "clients": list(facts.clients),
        "controlChannel": facts.control_channel,
        "hotReload": None if facts.hot_reload is None else dict(facts.hot_reload),
        "hotReloadOff": facts.hot_reload_off if facts.hot_reload is None else None,
    }


def _started_at(facts: ProxyFacts) -> str | None:
    """As the Host has registered it."""
    pid = facts.upstream.process_id if facts.upstream else None
    return next((each.server.started for each in facts.servers if each.server.process_id == pid), None)


def _host(facts: ProxyFacts) -> Probe:
    """The Host's last report of itself, with what is known of the present connection."""
    known = facts.host or Probe()
    upstream = facts.upstream or UpstreamFacts()
    return known.replace(
        mcp=facts.connected,
        kind=upstream.kind,
        version=known.version or upstream.version,
        tool_count=facts.tool_count,
    )


def _solutions(workspace: Workspace | None) -> tuple[str, ...] | None:
    if workspace is None:
        return None
    return tuple(os.path.relpath(path, workspace.requested_directory) for path in workspace.candidates)


def _is_stale(facts: ProxyFacts) -> bool:
    """Whether the lists are older than a change of the workspace to another SDK, which probably has other tools."""
    found = facts.discovery.sdk.global_json if facts.discovery else None
    now = found.uno_sdk.version if found and found.uno_sdk else None
    return not facts.lists_fresh and None not in (now, facts.catalogue_sdk) and now != facts.catalogue_sdk


def _ending_json(ending: Ending | None) -> dict[str, object] | None:
    if ending is None:
        return None
    return {"reason": ending.reason, "exitCode": ending.exit_code, "lastLines": list(ending.last_lines)}


def _upstream_json(upstream: UpstreamFacts | None) -> dict[str, object] | None:
    if upstream is None:
        return None
    return {
        "kind": upstream.kind.value if upstream.kind else None,
        "processId": upstream.process_id,
        "endpoint": upstream.endpoint,
        "owned": upstream.owned,
        "logFile": upstream.log_file,
        "name": upstream.name,
        "version": upstream.version,
        "protocolVersion": upstream.protocol_version,
    }
