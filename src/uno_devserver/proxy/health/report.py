"""How a proxy is, and what stands behind it: facts in, a HealthReport out, at the moment somebody asks.

The engine publishes its facts by assignment, the front asks from its own thread. Nothing is read or waited for here, so
there is an answer whatever the engine does, also before there is one.
"""

from __future__ import annotations

import os
import time

from ... import __version__
from ...instances.health import health
from ...instances.health_report import HealthFacts
from ...instances.probe import Probe
from ..state import UpstreamFacts
from .upstream_issues import in_a_proxy, upstream_issues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...workspace.resolver import Workspace
    from ..state import ProxyFacts
    from ..upstream.base import Ending


def report(facts: ProxyFacts) -> dict[str, object]:
    """The HealthReport as JSON: the members of the seeds, the Host's, and `proxy`."""
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
    told = judged.replace(issues=tuple(in_a_proxy(issue, facts) for issue in judged.issues))
    return {**told.to_json(), "proxy": proxy_json(facts)}


def proxy_json(facts: ProxyFacts) -> dict[str, object]:
    """What is the proxy's own; its status file holds it, too."""
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


def _is_stale(facts: ProxyFacts) -> bool:
    """Whether the lists are from before the workspace changed to another SDK, and its tools probably with it."""
    found = facts.discovery.sdk.global_json if facts.discovery else None
    now = found.uno_sdk.version if found and found.uno_sdk else None
    return not facts.lists_fresh and None not in (now, facts.catalogue_sdk) and now != facts.catalogue_sdk


def _started_at(facts: ProxyFacts) -> str | None:
    """As the Host itself has registered it."""
    pid = facts.upstream.process_id if facts.upstream else None
    return next((each.server.started for each in facts.servers if each.server.process_id == pid), None)


def _host(facts: ProxyFacts) -> Probe:
    """Fit for work is what is connected now; what the Host once told of its add-ins stays true meanwhile."""
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
