"""`health`: what works, what does not, and what to do about it. Looks at the disk and asks the running Host."""

from __future__ import annotations

import os

from .. import __version__
from ..discovery.discover import Request, discover
from ..instances.active import with_ancestors
from ..instances.health import health, judged
from ..instances.health_report import ActiveServer, HealthFacts, HealthStatus
from ..instances.membership import full_solution, of_workspace, same_place
from ..instances.survey import survey
from ..instances.workspace_state import log_of
from ..issues import fatal
from ..system.folders import folders
from ..workspace.config import AS_BEFORE, read_config
from ..workspace.trust import is_trusted, refusal
from .config_issues import config_issues, keeps_from_starting
from .health_report import text
from .parse import absolute
from .progress import say
from .proxy_reports import also_told, told_by
from .results import Result
from .workspace_proxies import proxies_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..instances.registry import Server
    from ..issues import Issue
    from ..proxy.health.status_file import Status
    from ..workspace.config import Config
    from ..workspace.resolver import Workspace
    from .parse import Invocation


NO_PROXY = "No proxy runs for this workspace, whose config names the MCP server that proxies start."
START_PROXY = (
    "Let an AI client start 'uno-devserver --mcp-app' there, or run 'uno-devserver inspect' to have one with a page; "
    "'uno-devserver config' shows what that starts."
)
NOT_KNOWN = "No proxy runs for this workspace, and none would start a server: which one its config names is not known."


def run(invocation: Invocation) -> Result:
    named = invocation.value("solution-dir")
    request = Request(absolute(named or "."), explicit=named is not None, solution=invocation.value("solution"))
    discovery = discover(request, os.environ)
    registered = survey(folders().registry, removing=False)
    servers = with_ancestors(registered.running, discovery.workspace)
    facts = HealthFacts(__version__, discovery, servers, registry_problem=" ".join(registered.problems))
    own = _own(servers, discovery.workspace)
    proxies = proxies_of(discovery.workspace)
    config = read_config(discovery.workspace.config)
    if own:
        report = also_told(health(_with_host(facts, own)), proxies)
    else:
        report = told_by(proxies, facts) or health(_without_host(facts, config, registered.ended))
    of_config = _of_config(config, discovery.workspace, proxies)
    # What runs has told how it is; what is to be started reads the config first.
    told_first, then = (report.issues, of_config) if own or proxies else (of_config, report.issues)
    report = judged(report.facts, (*told_first, *then))
    told = {**report.to_json(), "proxies": proxies}
    return Result(told, text(report, proxies), 0 if report.status is HealthStatus.HEALTHY else 1)


def _of_config(config: Config, workspace: Workspace, proxies: list[Status]) -> tuple[Issue, ...]:
    if config.readable or not proxies:
        return config_issues(config, workspace)
    return tuple(issue.replace(remediation=AS_BEFORE) for issue in config.issues)


def _own(servers: tuple[ActiveServer, ...], workspace: Workspace) -> Server | None:
    """The server of the chosen solution; without one, the first of the workspace."""
    candidates = [active.server for active in servers if active.in_workspace]
    exact = [server for server in candidates if same_place(full_solution(server), workspace.solution)]
    return next(iter(exact or candidates), None)


def _with_host(facts: HealthFacts, server: Server) -> HealthFacts:
    from ..instances.probe import probe_loaded

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


def _without_host(facts: HealthFacts, config: Config, ended: tuple[Server, ...]) -> HealthFacts:
    """Whether there was one that could not sign out, or none is wanted."""
    assert facts.discovery
    if config.names_server:
        issues = (fatal("HostNotStarted", NO_PROXY, START_PROXY), *_not_trusted(facts.discovery.workspace))
        return facts.replace(upstream_issues=issues)
    if keeps_from_starting(config, facts.discovery.workspace):
        issue = fatal("HostNotStarted", NOT_KNOWN, f"Correct the config first. {START_PROXY}")
        return facts.replace(upstream_issues=(issue,))
    last = next(iter(reversed(of_workspace(ended, facts.discovery.workspace))), None)
    if last is None:
        return facts
    return facts.replace(ended_process=last.process_id, log_file=log_of(last))


def _not_trusted(workspace: Workspace) -> tuple[Issue, ...]:
    """A proxy would start nothing there, and say the same."""
    folder = workspace.working_directory
    if is_trusted(os.environ, folder):
        return ()
    message = f"The commands of the config of {folder} would not be run: {refusal(folders().state, folder)}."
    return (fatal("WorkspaceNotTrusted", message, "Run 'uno-devserver trust' there: it shows them, and agrees."),)
