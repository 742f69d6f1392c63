"""The health report of a workspace's server: the facts, the issues, and both as JSON. Pure: it reads nothing."""

from __future__ import annotations

from enum import Enum

from ..issues import REMEDIES, RESTART_HOST, Issue, Severity, fatal, printed_in, warning
from ..system.values import Value
from ..workspace.resolver import ResolutionKind
from .host_kind import HostKind
from .probe import Probe
from .workspace_servers import ActiveServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..discovery.discover import Discovery
    from .probe import HostAddIn


USE_DOTNET_HOST = (
    "Install the .NET SDK if it is missing, run 'dotnet restore', then 'uno-devserver stop' and "
    "'uno-devserver start --host dotnet'."
)
WITHOUT_UNO = "The tools of Uno come with the SDK that global.json names, and need .NET."


class HealthStatus(Enum):
    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    UNHEALTHY = "Unhealthy"


class HealthFacts(Value):
    """Everything that the report is made from."""

    version: str  # of this program
    discovery: Discovery | None = None  # None: not done yet
    servers: tuple[ActiveServer, ...] = ()
    registry_problem: str = ""  # a sentence: why the running servers are not known
    started: bool = False  # a Host was started or found for the workspace, whether or not it still runs
    process_id: int | None = None
    endpoint: str | None = None
    started_at: str | None = None
    host: Probe = Probe()  # of that Host
    left_out: tuple[str, ...] | None = None  # add-ins that it was launched without; empty: it would have found them
    ended_process: int | None = None  # the workspace's last Host, if it ended without removing its entry
    failed_start: str = ""  # sentences: why the last start of a Host failed; `log_file` has its output
    log_file: str | None = None  # with the output of the Host
    connection: str | None = None  # state of a proxy's connection; None: a command, which does not stay connected
    solutions: tuple[str, ...] | None = None  # found by a proxy's scan, relative; None: no scan
    upstream_issues: tuple[Issue, ...] | None = None  # a proxy's issues of its connection; None: take them from `host`


class HealthReport(Value):
    status: HealthStatus
    issues: tuple[Issue, ...]
    facts: HealthFacts

    def to_json(self) -> dict[str, object]:
        """The members of the .NET tool's report in their order, then those of this program."""
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
        **workspace.to_json(),
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
    return {
        **active.server.to_json(),
        "isInWorkspace": active.in_workspace,
        "processChain": [{"processId": link.pid, "processName": link.name} for link in active.chain] or None,
    }


# Remarks of `disco` about what works, which do not affect the status.
REMARKS = frozenset({"PackageVersionOverridden", "AddInConditionUnknown", "AddInTargetsDeprecated"})
# Without its list of packages an SDK has no Host, but the add-ins of the projects are still found.
ONLY_WARNINGS = frozenset({"PackagesJsonNotFound", "PackagesJsonInvalid"})
# Do not matter where the bundled Host runs, which serves any folder.
NO_UNO = frozenset({"NoSolutionFound", "WorkspaceNotResolved", "GlobalJsonNotFound", "UnoSdkNotInGlobalJson"})


def health(facts: HealthFacts) -> HealthReport:
    told = tuple(_host_issues(facts) if facts.upstream_issues is None else facts.upstream_issues)
    found = tuple(_discovery_issues(facts))
    if not facts.started and facts.discovery and facts.discovery.workspace.kind is ResolutionKind.Ambiguous:
        return judged(facts, (*found, *told))  # the choice is the first step
    return judged(facts, (*told, *_addin_issues(facts), *found))


def started_before(packages: Iterable[str], discovery: Discovery) -> Issue:
    """The issue that the bundled Host runs without the .NET add-ins of these packages."""
    message = f"The Host was started before these add-ins were restored: {', '.join(packages)}."
    return warning("AddInNotLoaded", message, "" if discovery.host.program else USE_DOTNET_HOST)


def judged(facts: HealthFacts, found: Iterable[Issue]) -> HealthReport:
    """The report with these issues."""
    first: dict[tuple[str, str], Issue] = {}  # two sources may report the same with different severities
    for issue in found:
        first.setdefault((issue.code, issue.message), issue)
    issues = tuple(first.values())
    if any(issue.fatal for issue in issues):
        return HealthReport(HealthStatus.UNHEALTHY, issues, facts)
    return HealthReport(HealthStatus.DEGRADED if issues else HealthStatus.HEALTHY, issues, facts)


# The Host.


def _host_issues(facts: HealthFacts) -> Iterator[Issue]:
    host = facts.host
    if not facts.started:
        yield _nothing_runs(facts)
        return
    without_mcp = host.answers and not host.mcp
    if host.error:
        yield fatal("UpstreamError", f"The Host cannot be used over MCP: {host.error.rstrip('.')}.")
    elif not host.connected and not without_mcp:
        yield warning("HostUnreachable", _silence(facts))
    if without_mcp:
        yield fatal("HostMcpEndpointNotAvailable", *_why_no_mcp(facts))


def _nothing_runs(facts: HealthFacts) -> Issue:
    if facts.registry_problem:
        message = f"Whether a Host runs for this workspace is not known. {facts.registry_problem}"
        return fatal("HostNotStarted", message, "Make sure that you can read and write that folder.")
    if facts.failed_start:
        message = f"No Host runs for this workspace, because its last start failed. {facts.failed_start}"
        return fatal(
            "HostNotStarted", message, f"Mend that, then run 'uno-devserver start'.{printed_in(facts.log_file)}"
        )
    if facts.ended_process is None:
        return fatal("HostNotStarted", "No Host runs for this workspace.", _how_to_start(facts))
    message = f"No Host runs for this workspace: the last one (process {facts.ended_process}) crashed or was killed."
    next_step = f"Run 'uno-devserver start'.{printed_in(facts.log_file)}"
    return fatal("HostCrashed", message, next_step)


def _how_to_start(facts: HealthFacts) -> str:
    """The next step where the workspace is not resolved; empty: the usual one."""
    workspace = facts.discovery.workspace if facts.discovery else None
    if workspace is None or workspace.resolved:
        return ""
    if workspace.kind is ResolutionKind.Ambiguous:
        return "Run 'uno-devserver start --solution <path>' with the solution that you mean."
    return "For an Uno app, resolve the other issues first. Then run 'uno-devserver start', which serves any folder."


def _silence(facts: HealthFacts) -> str:
    who = f"The Host (process {facts.process_id})" if facts.process_id else "The Host"
    if facts.host.problem and facts.endpoint:
        return f"{who} was started, but {facts.endpoint} {facts.host.problem}."
    return f"{who} was started, but is not connected yet."


def _why_no_mcp(facts: HealthFacts) -> tuple[str, str]:
    """Message and next step. A .NET Host gets /mcp from an add-in, so the usual cause is one that was not found."""
    message = f"The Host answers over HTTP, but has no {facts.endpoint or '/mcp'}"
    found = facts.discovery.addins.found if facts.discovery else ()
    if found:
        return f"{message}, although add-ins were found: it may have been started without them.", ""
    return f"{message}: no add-in is known that could provide it.", (
        f"Run 'dotnet restore' in the workspace, then {RESTART_HOST}; "
        "'uno-devserver disco' shows which add-ins are found."
    )


# Its add-ins.


def _addin_issues(facts: HealthFacts) -> Iterator[Issue]:
    log = f" The log is {facts.log_file}." if facts.log_file else ""
    if facts.left_out is not None:
        left_out = ", ".join(facts.left_out) or "all of them"
        message = f"The Host died with its add-ins and runs without: {left_out}."
        yield warning("AddInsLeftOut", message, REMEDIES["AddInsLeftOut"] + printed_in(facts.log_file))
    if facts.host.loading:
        names = ", ".join(addin.name for addin in facts.host.add_ins if addin.is_to_come)
        message = f"The Host is still loading its add-ins{f': {names}' if names else ''}."
        yield warning("AddInsLoading", message, REMEDIES["AddInsLoading"] + log)
    well = facts.host.loading or facts.host.status == HealthStatus.HEALTHY.value
    # In a healthy Host, and in one that is loading, an add-in that is neither loaded nor failed will be loaded later.
    failed = [addin for addin in facts.host.add_ins if addin.error or (addin.is_to_come and not well)]
    for addin in failed:
        yield warning("AddInLoadFailed", addin.failure, _for_dotnet_only(addin, facts.host.kind))
    for problem in facts.host.busy:
        yield warning("AddInCallsHang", f"Calls hang: {problem}.", REMEDIES["AddInCallsHang"] + log)
    message = ""
    if facts.host.discovery_error:
        message = f"The Host could not find out which add-ins it has to load: {facts.host.discovery_error.rstrip('.')}."
    elif not failed and not facts.host.busy and not well and facts.host.status is not None:
        message = f"The Host calls itself {facts.host.status} and does not say why."
    if message:
        yield warning("AddInLoadFailed", message, "Look at what the Host prints, and run 'uno-devserver disco'.")


def _for_dotnet_only(addin: HostAddIn, kind: HostKind | None) -> str:
    if kind is not HostKind.BUNDLED or not _is_assembly(addin.path):
        return ""
    if (addin.error or "").endswith("does not exist"):
        return f"Run 'dotnet restore --force' in the workspace, then {RESTART_HOST}."
    return USE_DOTNET_HOST


def _is_assembly(path: str | None) -> bool:
    return bool(path) and str(path).lower().endswith((".dll", ".exe"))


# The workspace and the packages.


class _DotNet(Enum):
    """How much a workspace depends on a .NET Host."""

    NEEDED = "only it can serve the workspace"
    WANTED = "the bundled Host serves or can serve, perhaps without some add-ins"
    ABSENT = "the bundled Host serves without the tools of Uno, which come with packages that only .NET restores"
    UNUSED = "the bundled Host or another server serves everything"


def _discovery_issues(facts: HealthFacts) -> Iterator[Issue]:
    if facts.discovery is None:
        return
    of_the_workspace = frozenset(facts.discovery.workspace.issues)
    role = _role_of_dotnet(facts, facts.discovery)
    for issue in facts.discovery.issues:
        if issue.code in REMARKS:
            continue
        if issue in of_the_workspace:
            if issue.code not in NO_UNO or not _serves_without_uno(facts):
                yield issue
        elif role is _DotNet.ABSENT:
            if issue.code == "DotNetNotFound":
                yield warning(issue.code, f"{issue.message} {WITHOUT_UNO}", USE_DOTNET_HOST)
        elif role is not _DotNet.UNUSED:
            mild = role is _DotNet.WANTED or issue.code in ONLY_WARNINGS
            yield issue.replace(severity=Severity.WARNING) if mild else issue


def _serves_without_uno(facts: HealthFacts) -> bool:
    return facts.started and facts.host.kind in (HostKind.BUNDLED, HostKind.COMMAND)


def _role_of_dotnet(facts: HealthFacts, discovery: Discovery) -> _DotNet:
    """What discovery looks for outside the workspace is needed by the .NET Host only."""
    workspace, kind = discovery.workspace, facts.host.kind
    by_config = workspace.resolved and workspace.global_json is None  # not necessarily an Uno workspace
    if by_config or (facts.started and kind is HostKind.COMMAND):
        return _DotNet.UNUSED
    if facts.started and kind is HostKind.BUNDLED:
        lost = any(not addin.loaded and _is_assembly(addin.path) for addin in facts.host.add_ins)
        absent = any(issue.code == "DotNetNotFound" for issue in discovery.issues)
        return _DotNet.ABSENT if absent and not lost else _DotNet.WANTED
    if not facts.started and not any(_is_assembly(addin.path) for addin in discovery.addins.found):
        return _DotNet.WANTED
    return _DotNet.NEEDED
