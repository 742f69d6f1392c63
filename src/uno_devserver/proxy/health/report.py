"""Makes the HealthReport of a proxy from its facts.

Making it needs no I/O and no waiting, so it is available at any moment, even before the engine runs. Safe from any
thread: the facts are frozen.
"""

from __future__ import annotations

import os
import time

from ... import __version__
from ...instances.health import HealthFacts, health
from ...instances.probe import Probe
from ..state import UpstreamFacts
from .upstream_issues import upstream_issues, with_proxy_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..state import ProxyFacts


def report(facts: ProxyFacts) -> dict[str, Any]:
    """The HealthReport as JSON: the members of the .NET tool's, the Host's, and `proxy`."""
    upstream, host, workspace = facts.upstream or UpstreamFacts(), facts.host or Probe(), facts.workspace
    start = workspace.requested_directory if workspace else ""
    registered = (each.server for each in facts.servers if each.server.process_id == upstream.process_id)
    judged = health(
        HealthFacts(
            __version__,
            facts.discovery,
            facts.servers,
            started=facts.upstream is not None,
            process_id=upstream.process_id,
            endpoint=upstream.endpoint,
            started_at=next((server.started for server in registered), None),
            host=host.replace(  # the Host's last report about itself, with the state of the present connection
                mcp=facts.connected,
                kind=upstream.kind,
                version=host.version or upstream.version,
                tool_count=facts.tool_count,
            ),
            left_out=facts.left_out,
            log_file=upstream.log_file,
            connection=facts.state.value,
            solutions=tuple(os.path.relpath(path, start) for path in workspace.candidates) if workspace else None,
            upstream_issues=tuple(upstream_issues(facts)),
        )
    )
    worded = judged.replace(issues=tuple(with_proxy_step(issue, facts) for issue in judged.issues))
    return {**worded.to_json(), "proxy": _proxy_json(facts)}


def _proxy_json(facts: ProxyFacts) -> dict[str, object]:
    """The member `proxy`, which is also in the status file."""
    written, ending, upstream = facts.catalogue_written, facts.last_end, facts.upstream
    return {
        "processId": os.getpid(),
        "state": facts.state.value,
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
            "name": upstream.name,
            "version": upstream.version,
            "protocolVersion": upstream.protocol_version,
        },
        "toolCount": facts.tool_count,
        "listsFresh": facts.lists_fresh,
        "catalogueAgeSeconds": None if written is None else max(0.0, round(time.time() - written, 1)),
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
    """Whether the workspace has another SDK than when the lists were saved, which probably has other tools."""
    found = facts.discovery.sdk.global_json if facts.discovery else None
    now = found.uno_sdk.version if found and found.uno_sdk else None
    return not facts.lists_fresh and None not in (now, facts.catalogue_sdk) and now != facts.catalogue_sdk
