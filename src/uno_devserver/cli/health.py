"""`health`: shows what works, what does not, and what to do about it.

The facts come from the disk, from the answers of the running Host, and from the status files of proxies.
"""

from __future__ import annotations

import os
import time

from .. import __version__
from ..discovery.discover import DiscoveryRequest, discover
from ..instances.csproj_user import knowing, projects_without
from ..instances.health import HealthFacts, HealthStatus, health, judged, started_before
from ..instances.host_kind import HostKind
from ..instances.host_program import not_told, restored_since
from ..instances.probe import Probe, probe_loaded
from ..instances.registry import full_solution, log_of, scan_registry
from ..instances.start import failed_start
from ..instances.workspace_servers import of_workspace, with_ancestors
from ..issues import Issue, Severity, fatal, listed, needs_bundled_host, warning
from ..proxy.health.upstream_issues import with_addin_step
from ..proxy.state import ConnectionState
from ..system.command_lines import quoted_line
from ..system.folders import folders
from ..system.processes import is_alive
from ..workspace.addins import workspace_addins
from ..workspace.config import AS_BEFORE, read_config
from ..workspace.paths import same_place
from ..workspace.server_command import header_problems
from ..workspace.solutions import uno_projects_outside
from ..workspace.trust import AGREE, is_trusted, not_run, refusal
from .health_report import health_text
from .progress import say
from .proxies import list_in, object_in, proxies_of_workspace, text_in
from .result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..instances.health import HealthReport
    from ..instances.registry import RegisteredServer
    from ..instances.workspace_servers import ActiveServer
    from ..proxy.health.status_file import Status
    from ..workspace.config import Config
    from ..workspace.resolver import Workspace
    from .parse import Invocation

NO_PROXY = "No proxy runs for this workspace, whose config names the MCP server that proxies start."
START_PROXY = (
    "Let an AI client start 'uno-devserver --mcp-app' there, or run 'uno-devserver inspect' to start one with a page; "
    "'uno-devserver config' shows the command that it starts."
)
NOT_KNOWN = "No proxy runs for this workspace, and none would start a server: the config does not say which."
AGREE_AND_RESTART = f"Run {AGREE}, then 'uno-devserver start --restart'."
BY_PROXY = "Call a tool through the proxy, which loads it first."
NO_SERVER = "No server runs for {}, the folder of a package without a config."
# Codes of issues that the Host reports itself: its answer is newer than the status file of a proxy.
OF_THE_HOST = frozenset(
    {"AddInsLoading", "AddInLoadFailed", "AddInCallsHang", "AddInsLeftOut", "AddInNotLoaded", "HealthNotKnown"}
)
# A proxy writes its status 50 ms after a change, on a busy machine later, and most servers start within a second.
SETTLE_SECONDS = 1.0
SETTLE_POLL_SECONDS = 0.02


def run(invocation: Invocation) -> Result:
    request = DiscoveryRequest(
        invocation.folder(), explicit=invocation.names_folder, solution=invocation.value("solution")
    )
    discovery = discover(request, os.environ)
    registered = scan_registry(folders().registry, removing=False)
    servers = with_ancestors(registered.running, discovery.workspace)
    if discovery.workspace.undecided:
        served = [full_solution(each.server) for each in servers if each.in_workspace]
        if len(served) == 1 and served[0]:  # of several solutions, the report is about the one that has a Host
            discovery = discover(request.replace(solution=served[0]), os.environ)
            servers = with_ancestors(registered.running, discovery.workspace)
    facts = HealthFacts(__version__, discovery, servers, registry_problem=" ".join(registered.problems))
    own = _own(servers, discovery.workspace)
    proxies = settled_proxies(discovery.workspace)
    config = read_config(discovery.workspace.config)
    if own:
        report = health(_with_host(facts, own))
        report = _with_restored_since(_with_addins_not_run(report, own, proxies), own, proxies)
        report = _with_proxy_issues(report, proxies)
    else:
        report = (
            _reported_by_proxies(proxies, facts)
            or _of_package(facts)
            or health(_without_host(facts, config, registered.ended))
        )
    config_problems = _config_problems(config, discovery.workspace, proxies)
    # Issues of a running server or proxy come first; otherwise those of the config, which the next start reads.
    first, then = (report.issues, config_problems) if own or proxies else (config_problems, report.issues)
    report = judged(report.facts, (*first, *then, *_project_issues(discovery.workspace, own, servers)))
    data = {**report.to_json(), "proxies": proxies}
    return Result(data, health_text(report, proxies), 0 if report.status is HealthStatus.HEALTHY else 1)


def _own(servers: tuple[ActiveServer, ...], workspace: Workspace) -> RegisteredServer | None:
    """The server of the selected solution; if none is selected, the first server of the workspace, if any."""
    mine = [active.server for active in servers if active.in_workspace]
    if workspace.solution is not None:
        mine = [server for server in mine if _serves(server, workspace.solution)]
    return next(iter(mine), None)


def _serves(server: RegisteredServer, solution: str) -> bool:
    """Whether it is the solution's server; one whose solution is not known may be."""
    served = full_solution(server)
    return served is None or same_place(served, solution)


def _config_problems(config: Config, workspace: Workspace, proxies: list[Status]) -> tuple[Issue, ...]:
    if not config.readable and proxies:
        return tuple(issue.replace(remediation=AS_BEFORE) for issue in config.issues)
    if config.unclear is None:
        # A proxy tells of the variables that it has itself.
        return config.issues if proxies else (*config.issues, *header_problems(config, os.environ))
    from .config import config_issues  # imports the search for sources, which is rarely needed here

    return config_issues(config, workspace)


def _project_issues(
    workspace: Workspace, server: RegisteredServer | None, servers: Sequence[ActiveServer]
) -> Iterator[Issue]:
    """Uno projects that no Host knows of, and projects of the solution whose apps do not know the Host."""
    if workspace.global_json is None or workspace.solution is None:
        return
    outside = uno_projects_outside(workspace)
    if outside:
        what = f"{workspace.solution} does not contain {listed(outside)}"
        message = f"{what}; an app of a project outside gets no port of the Host."
        yield warning("ProjectNotInSolution", message)
    if server is not None and server.log_file is not None:  # otherwise another program launched it, and tells its port
        without = projects_without(server.port, workspace.solution)
        if without:
            message = f"The apps of {listed(without)} do not know port {server.port} of the Host."
            for each in servers:
                if theirs := knowing(each.server, without):
                    message += (
                        f" Those of {listed(theirs)} know port {each.server.port} of the Host of "
                        f"{each.server.solution} (process {each.server.process_id}): a project has the port of one."
                    )
            yield warning("ProjectWithoutPort", message, _how_to_write_the_port(workspace, workspace.solution))


def _how_to_write_the_port(workspace: Workspace, solution: str) -> str:
    """The next step where `start` alone would not know which solution is meant; empty: the usual one."""
    if len(workspace.candidates) < 2:
        return ""
    command = quoted_line(["uno-devserver", "start", "--solution", solution])
    return f"Run {command}: it writes the port, and keeps the Host."


# The facts.


def settled_proxies(workspace: Workspace) -> list[Status]:
    """The proxies of the workspace, after a bounded wait for those whose status is about to change."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while any(map(_is_passing, proxies := proxies_of_workspace(workspace))) and time.monotonic() < deadline:
        say("Waiting for the server to answer")
        time.sleep(SETTLE_POLL_SECONDS)
    return proxies


def _is_passing(status: Status) -> bool:
    if status.get("state") in (ConnectionState.DEGRADED.value, ConnectionState.SHUTDOWN.value):
        return False
    pid = object_in(status, "upstream").get("processId")
    has_ended = isinstance(pid, int) and not is_alive(pid)
    unasked = any(issue.code == "HealthNotKnown" for issue in _issues(status))
    is_new = status.get("state") != ConnectionState.CONNECTED.value or status.get("listsFresh") is False
    return is_new or has_ended or unasked


def _with_host(facts: HealthFacts, server: RegisteredServer) -> HealthFacts:
    say(f"Asking the Host (process {server.process_id}, port {server.port})")
    return facts.replace(
        started=True,
        process_id=server.process_id,
        endpoint=server.mcp_endpoint,
        started_at=server.started or None,
        host=probe_loaded(server),
        left_out=server.left_out,
        log_file=log_of(server),
    )


def _without_host(facts: HealthFacts, config: Config, ended: tuple[RegisteredServer, ...]) -> HealthFacts:
    """The facts, with the reason why no Host runs if it is known: the config, or the crash of the last Host."""
    assert facts.discovery
    workspace = facts.discovery.workspace
    if not os.path.isdir(workspace.requested_directory):
        return facts.replace(upstream_issues=())  # that there is no such folder says it all; no start could help
    if config.names_server or config.servers:
        issues = (fatal("HostNotStarted", NO_PROXY, START_PROXY), *_not_trusted(workspace))
        return facts.replace(upstream_issues=issues)
    if config.unclear is not None:
        from .config import keeps_from_starting

        if keeps_from_starting(config, workspace):
            issue = fatal("HostNotStarted", NOT_KNOWN, f"Correct the config first. {START_PROXY}")
            return facts.replace(upstream_issues=(issue,))
    failed = failed_start(folders().state, workspace.working_directory, workspace.solution)
    if failed is not None:
        return facts.replace(failed_start=failed.message, log_file=failed.log_file)
    last = next(iter(reversed(of_workspace(ended, workspace))), None)
    if last is None:
        return facts
    return facts.replace(ended_process=last.process_id, log_file=log_of(last))


def _not_trusted(workspace: Workspace) -> tuple[Issue, ...]:
    folder = workspace.working_directory
    if is_trusted(os.environ, folder):
        return ()
    what, why = f"Code of the workspace {folder} (the commands of its config)", refusal(folders().state, folder)
    return (not_run(what, why, nothing_else=True, remediation=f"Run {AGREE}: it shows them, and agrees."),)


def _with_addins_not_run(report: HealthReport, server: RegisteredServer, proxies: Sequence[Status]) -> HealthReport:
    """The report of a running Host, and which Python add-ins of the workspace it has not loaded, and why."""
    assert report.facts.discovery
    folder, host = report.facts.discovery.workspace.working_directory, report.facts.host
    missing = host.lacks(workspace_addins(folder))
    if not missing or server.names_addins or server.left_out is not None:
        return report
    if host.kind is HostKind.DOTNET:
        return judged(report.facts, (*report.issues, needs_bundled_host(missing)))
    if host.kind is not HostKind.BUNDLED:
        return report
    reloads = any(_reloads_addins(status, report.facts) for status in proxies)
    names = ", ".join(missing)
    if is_trusted(os.environ, folder):
        if server.log_file is None:  # another program launched it, with the add-ins of its choice
            return report
        issue = not_told(missing, BY_PROXY if reloads else "")
    else:
        issue = not_run(names, refusal(folders().state, folder), remediation="" if reloads else AGREE_AND_RESTART)
    return judged(report.facts, (*report.issues, issue))


def _with_restored_since(report: HealthReport, server: RegisteredServer, proxies: Sequence[Status]) -> HealthReport:
    """The report of a running bundled Host, and which .NET add-ins were not there when it was started."""
    assert report.facts.discovery
    host = report.facts.host
    if host.kind is not HostKind.BUNDLED or any(_reloads_addins(status, report.facts) for status in proxies):
        return report  # a proxy starts its Host again after a restore
    missing = restored_since(server, host, report.facts.discovery, os.environ)
    if not missing:
        return report
    return judged(report.facts, (*report.issues, started_before(missing, report.facts.discovery)))


def _reported_by_proxies(proxies: Sequence[Status], facts: HealthFacts) -> HealthReport | None:
    """The report for a workspace without a Host, from its proxies; None if no proxy reports issues."""
    reporting = [status for status in proxies if isinstance(status.get("issues"), list)]
    if not reporting:
        return None
    connected = (status for status in reporting if status.get("state") == ConnectionState.CONNECTED.value)
    facts = _with_upstream(facts, next(connected, reporting[0]))
    return judged(facts, (issue for status in reporting for issue in _issues(status)))


def _of_package(facts: HealthFacts) -> HealthReport | None:
    """The report for a package that is no workspace, so that nothing of Uno is missing; None for other folders."""
    assert facts.discovery
    workspace, folder = facts.discovery.workspace, facts.discovery.workspace.requested_directory
    from .config import RUN_WITHOUT, WRITE_CONFIG, is_undeclared_package  # few reports need it

    if facts.registry_problem or not is_undeclared_package(workspace):
        return None
    return judged(facts, (fatal("HostNotStarted", NO_SERVER.format(folder), f"{WRITE_CONFIG} {RUN_WITHOUT}"),))


def _with_upstream(facts: HealthFacts, status: Status) -> HealthFacts:
    upstream, tools = object_in(status, "upstream"), status.get("toolCount")
    pid, servers = upstream.get("processId"), [each for each in list_in(status, "servers") if isinstance(each, dict)]
    states = [status.get("state"), *(() if upstream else (each.get("state") for each in servers))]
    return facts.replace(
        started=bool(upstream),
        process_id=pid if isinstance(pid, int) else None,
        endpoint=text_in(upstream, "endpoint") or None,
        log_file=text_in(upstream, "logFile") or None,
        host=Probe(
            mcp=ConnectionState.CONNECTED.value in states,
            kind=HostKind.named(upstream.get("kind")),
            version=text_in(upstream, "version") or None,
            tool_count=tools if isinstance(tools, int) else 0,
        ),
    )


def _with_proxy_issues(report: HealthReport, proxies: Sequence[Status]) -> HealthReport:
    """The report of a running Host, with the issues that only its proxies report."""
    known = OF_THE_HOST | {issue.code for issue in report.issues}
    told = [issue for status in proxies for issue in _issues(status) if issue.code not in known]
    own: Sequence[Issue] = report.issues
    if any(_reloads_addins(status, report.facts) for status in proxies):
        own = [with_addin_step(issue) for issue in own]
    return judged(report.facts, (*own, *told))


def _reloads_addins(status: Status, facts: HealthFacts) -> bool:
    """Whether this proxy restarts the Host when its add-ins change."""
    upstream = object_in(status, "upstream")
    is_its_host = upstream.get("processId") == facts.process_id and upstream.get("owned") is True
    return is_its_host and facts.host.kind is HostKind.BUNDLED


def _issues(status: Status) -> Iterator[Issue]:
    for issue in list_in(status, "issues"):
        if isinstance(issue, dict):
            code, message, remediation = (text_in(issue, name) for name in ("code", "message", "remediation"))
            # A further server that fails degrades the whole; what else is served works.
            mild = "server" in issue and status.get("status") != HealthStatus.UNHEALTHY.value
            is_fatal = issue.get("severity") == Severity.FATAL.value and not mild
            severity = Severity.FATAL if is_fatal else Severity.WARNING
            yield Issue(code, severity, message, remediation)
