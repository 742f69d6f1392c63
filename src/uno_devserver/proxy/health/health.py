"""How a proxy is, and what stands behind it: facts in, a HealthReport out, at the moment somebody asks.

The engine publishes its facts by assignment, the front asks from its own thread. Nothing is read or waited for here, so
there is an answer whatever the engine does, also before there is one.
"""

from __future__ import annotations

import os
import time

from ... import __version__
from ...instances.health import health
from ...instances.health_report import ConnectionState, HealthFacts
from ...instances.probe import HostKind, Probe
from ...system.values import Value
from .ailments import in_a_proxy, upstream_issues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...discovery.discover import Discovery
    from ...instances.health_report import ActiveServer
    from ...issues import Issue
    from ...workspace.resolver import Workspace
    from ..options import Options
    from ..upstream.upstream import Ending


class UpstreamFacts(Value):
    """The server behind the proxy, from the moment that it is launched or found."""

    kind: HostKind | None = None  # None: not known yet
    process_id: int | None = None
    endpoint: str | None = None
    owned: bool = False  # ours to end
    log_file: str | None = None  # what it prints
    name: str | None = None  # what it calls itself in MCP
    version: str | None = None
    protocol_version: str | None = None
    strayed: str = ""  # what it wrote last, instead of an answer, and is no MCP message


class ProxyFacts(Value):
    """What the proxy knows. A new one for every change; `ProxyFacts(options)` is how each begins."""

    options: Options
    state: ConnectionState = ConnectionState.INITIALIZING
    discovery: Discovery | None = None  # of the present workspace; None: not looked, or not needed
    issues: tuple[Issue, ...] = ()  # why the last start failed, until one succeeds; and what else is wrong
    named: str | None = None  # what the upstream is called, at the beginning of a sentence; None: by the options
    upstream: UpstreamFacts | None = None  # the present one or, where it died, the last; None: nothing was started
    host: Probe | None = None  # what the Host tells of itself, where it was asked
    left_out: tuple[str, ...] | None = None  # add-ins that the Host had to be launched without
    without_mcp: bool = False  # it answers over HTTP, but has no /mcp
    connect_error: str = ""  # a sentence: how the upstream refused to speak MCP
    last_end: Ending | None = None  # of the last upstream that ended without being told to
    generation: int = 0  # upstreams that were connected
    restarts: int = 0  # of these, the ones that took the place of one that had ended
    reloads: int = 0  # and those that were started because there was newer code
    tool_count: int = 0  # of the upstream
    lists_fresh: bool = False  # they come from the upstream that is connected
    catalogue_written: float | None = None  # when the lists that are offered were read, in seconds since 1970
    catalogue_sdk: str | None = None  # the Uno SDK that the workspace had then
    timeline: tuple[tuple[str, int], ...] = ()  # what was reached, in milliseconds after the process began
    fallback: bool = False  # waits for uno_app_initialize
    trusted: bool | None = None  # whether code of the workspace may run; None: there is none, or nobody looked
    refusal: str = "the user has not agreed to it"  # why not, where it may not
    wait_calls: bool = False
    http_endpoint: str | None = None  # where MCP is served over HTTP, too
    inspector: str | None = None  # the URL of its page, with the token
    clients: tuple[str, ...] = ()  # as they call themselves
    servers: tuple[ActiveServer, ...] = ()  # all Hosts of this machine, as last seen
    control_channel: str | None = None  # the path on which this proxy is asked for new code; None: it owns no upstream
    hot_reload: Mapping[str, object] | None = None  # as `getStatus` tells it; None: it is off
    hot_reload_off: str | None = None  # why, the end of a sentence

    @property
    def upstream_name(self) -> str:
        return self.named or self.options.upstream_name

    @property
    def connected(self) -> bool:
        return self.state is ConnectionState.CONNECTED

    @property
    def workspace(self) -> Workspace | None:
        return self.discovery.workspace if self.discovery else None


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
            connection=facts.state,
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
