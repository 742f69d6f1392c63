"""The HealthReport of the seeds: the facts about a workspace's dev server, what is wrong, and both as JSON."""

from __future__ import annotations

from enum import Enum

from ..issues import Issue
from ..system.values import Value
from .probe import Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..discovery.discover import Discovery
    from ..system.processes import Process
    from .entries import Server


class HealthStatus(Enum):
    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    UNHEALTHY = "Unhealthy"


class ActiveServer(Value):
    server: Server
    in_workspace: bool
    chain: tuple[Process, ...]  # the server's process and its ancestors


class HealthFacts(Value):
    """All that the report is made of."""

    version: str  # of this program
    discovery: Discovery | None = None  # None: not looked yet
    servers: tuple[ActiveServer, ...] = ()
    registry_problem: str = ""  # a sentence: why nobody knows which servers there are
    started: bool = False  # a Host was started or found for the workspace, whatever became of it
    process_id: int | None = None
    endpoint: str | None = None
    started_at: str | None = None
    host: Probe = Probe()  # what is known of that Host
    left_out: tuple[str, ...] | None = None  # add-ins that it was launched without; empty: it would have found them
    ended_process: int | None = None  # the workspace's last Host, where it has gone without signing out
    log_file: str | None = None  # what the Host printed
    connection: str | None = None  # of a proxy with its upstream; None: the command line, which does not stay connected
    solutions: tuple[str, ...] | None = None  # found by a proxy's scan, relative; None: no scan
    upstream_issues: tuple[Issue, ...] | None = None  # a proxy's judgement of its connection; None: judge by `host`


class HealthReport(Value):
    status: HealthStatus
    issues: tuple[Issue, ...]
    facts: HealthFacts

    def to_json(self) -> dict[str, object]:
        """The members of the seeds in their order; ours follow."""
        facts, host = self.facts, self.facts.host
        found = _discovery_json(facts)
        return {
            "status": self.status.value,
            "devServerVersion": facts.version,
            "hostProcessId": facts.process_id,
            "hostEndpoint": facts.endpoint,
            "upstreamConnected": host.connected,
            "toolCount": host.tool_count,
            "unoSdkVersion": found["unoSdkVersion"] if found else None,
            "discoveryDurationMs": facts.discovery.duration_ms if facts.discovery else 0,
            "connectionState": facts.connection,
            "discoveredSolutions": None if facts.solutions is None else list(facts.solutions),
            **{name: found[name] if found else None for name in _RESOLUTION},
            "issues": [issue.to_json() for issue in self.issues],
            "discovery": found,
            "hostKind": host.kind.value if host.kind else None,
            "hostVersion": host.version,
            "startedAt": facts.started_at,
            "ideChannelConnected": host.ide_channel_connected,
            "addIns": [
                {
                    "name": addin.name,
                    "version": addin.version,
                    "assemblyPath": addin.path,
                    "loaded": addin.loaded,
                    "error": addin.error,
                }
                for addin in host.add_ins
            ],
            "addInsLoading": host.loading,
            "leftOutAddIns": None if facts.left_out is None else list(facts.left_out),
            "logFile": facts.log_file,
        }


_RESOLUTION = (
    "effectiveWorkspaceDirectory",
    "selectedSolutionPath",
    "resolutionKind",
    "selectionSource",
    "candidateSolutions",
)


def _discovery_json(facts: HealthFacts) -> dict[str, object] | None:
    if facts.discovery is None:
        return None
    discovery, workspace = facts.discovery, facts.discovery.workspace
    uno_sdk = discovery.sdk.global_json.uno_sdk if discovery.sdk.global_json else None
    return {
        "requestedWorkingDirectory": workspace.requested_directory,
        "workingDirectory": workspace.working_directory,
        "effectiveWorkspaceDirectory": workspace.effective_directory,
        "selectedSolutionPath": workspace.solution,
        "selectedGlobalJsonPath": workspace.global_json,
        "resolutionKind": workspace.kind.value,
        "selectionSource": workspace.source.value,
        "candidateSolutions": list(workspace.candidates) or None,
        "dotNetVersion": discovery.dotnet.version if discovery.dotnet else None,
        "unoSdkVersion": uno_sdk.version if uno_sdk else None,
        "unoSdkPath": discovery.sdk.path,
        "hostPath": discovery.host.program,
        "settingsPath": discovery.settings.program,
        "addIns": [
            {
                "packageName": addin.package,
                "packageVersion": addin.version,
                "entryPointDll": addin.path,
                "discoverySource": addin.source,
            }
            for addin in discovery.addins.found
        ],
        "activeServers": [_server_json(active) for active in facts.servers] or None,
    }


def _server_json(active: ActiveServer) -> dict[str, object]:
    server = active.server
    return {
        "processId": server.process_id,
        "port": server.port,
        "mcpEndpoint": server.mcp_endpoint,
        "parentProcessId": server.parent_process_id,
        "startTime": server.started,
        "ideChannelId": server.ide_channel,
        "solutionPath": server.solution,
        "isInWorkspace": active.in_workspace,
        "processChain": [{"processId": link.pid, "processName": link.name} for link in active.chain] or None,
    }
