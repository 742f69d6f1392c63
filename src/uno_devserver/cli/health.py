"""`health`: what works, what does not, and what to do about it. Looks at the disk and asks the running Host."""

from __future__ import annotations

import os

from .. import __version__
from ..discovery.discover import DiscoveryRequest, discover
from ..instances.health import HealthFacts, HealthStatus, health, judged
from ..instances.host_kind import HostKind
from ..instances.probe import Probe
from ..instances.registry import full_solution, log_of, scan_registry
from ..instances.workspace_servers import ActiveServer, of_workspace, with_ancestors
from ..issues import Issue, Severity, fatal
from ..proxy.health.upstream_issues import ADDIN_STEPS
from ..proxy.state import ConnectionState
from ..system.folders import folders
from ..system.text import visible
from ..system.values import Value
from ..workspace.config import AS_BEFORE, read_config
from ..workspace.paths import same_place
from ..workspace.trust import AGREE, is_trusted, not_run, refusal
from .config import config_issues, keeps_from_starting
from .list import chain_text, started_text
from .parse import absolute
from .progress import say
from .proxies import proxies_of_workspace
from .result import Result
from .terminal import Style, folded, styled, terminal_width, with_short_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..instances.health import HealthFacts, HealthReport
    from ..instances.probe import HostAddIn
    from ..instances.registry import RegisteredServer
    from ..instances.workspace_servers import ActiveServer
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
    request = DiscoveryRequest(
        absolute(named or "."), explicit=named is not None, solution=invocation.value("solution")
    )
    discovery = discover(request, os.environ)
    registered = scan_registry(folders().registry, removing=False)
    servers = with_ancestors(registered.running, discovery.workspace)
    facts = HealthFacts(__version__, discovery, servers, registry_problem=" ".join(registered.problems))
    own = _own(servers, discovery.workspace)
    proxies = proxies_of_workspace(discovery.workspace)
    config = read_config(discovery.workspace.config)
    if own:
        report = with_proxy_issues(health(_with_host(facts, own)), proxies)
    else:
        report = reported_by_proxies(proxies, facts) or health(_without_host(facts, config, registered.ended))
    of_config = _of_config(config, discovery.workspace, proxies)
    # What runs has told how it is; what is to be started reads the config first.
    told_first, then = (report.issues, of_config) if own or proxies else (of_config, report.issues)
    report = judged(report.facts, (*told_first, *then))
    told = {**report.to_json(), "proxies": proxies}
    return Result(told, health_text(report, proxies), 0 if report.status is HealthStatus.HEALTHY else 1)


def _of_config(config: Config, workspace: Workspace, proxies: list[Status]) -> tuple[Issue, ...]:
    if config.readable or not proxies:
        return config_issues(config, workspace)
    return tuple(issue.replace(remediation=AS_BEFORE) for issue in config.issues)


def _own(servers: tuple[ActiveServer, ...], workspace: Workspace) -> RegisteredServer | None:
    """The server of the chosen solution; without one, the first of the workspace."""
    candidates = [active.server for active in servers if active.in_workspace]
    exact = [server for server in candidates if same_place(full_solution(server), workspace.solution)]
    return next(iter(exact or candidates), None)


def _with_host(facts: HealthFacts, server: RegisteredServer) -> HealthFacts:
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


def _without_host(facts: HealthFacts, config: Config, ended: tuple[RegisteredServer, ...]) -> HealthFacts:
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
    what, why = f"Code of the workspace {folder} (the commands of its config)", refusal(folders().state, folder)
    return (not_run(what, why, nothing_else=True, remediation=f"Run {AGREE}: it shows them, and agrees."),)


_STYLES = {HealthStatus.HEALTHY: Style.GOOD, HealthStatus.DEGRADED: Style.WARN, HealthStatus.UNHEALTHY: Style.BAD}


class HealthLine(Value):
    """What it is about, with the blanks and marks before that, and what is said."""

    key: str
    value: str = ""
    style: Style | None = None  # of the value
    key_style: Style | None = Style.NAME


def health_text(report: HealthReport, proxies: Sequence[Status] = ()) -> str:
    shown = _for_pipes if terminal_width() is None else _for_terminal
    return "\n".join(line for one in _lines(report, proxies) for line in shown(one))


def _for_pipes(line: HealthLine) -> Iterator[str]:
    yield visible(line.key + line.value, keep_odd_bytes=True)


def _for_terminal(line: HealthLine) -> Iterator[str]:
    key, value = visible(line.key), with_short_paths(visible(line.value))
    mark = len(key) - len(key.lstrip(" -"))
    first = key[:mark] + styled(key[mark:], line.key_style)
    if line.key_style is Style.HEADING:
        yield ""
    if line.style is not None:  # one word, or two
        yield first + styled(value, line.style)
    else:
        yield from folded(value, first, "    " if mark else "  ")


def _lines(report: HealthReport, proxies: Sequence[Status]) -> Iterator[HealthLine]:
    facts, host = report.facts, report.facts.host
    assert facts.discovery, "the command line looks before it speaks"
    workspace = facts.discovery.workspace
    yield HealthLine("Status: ", report.status.value, _STYLES[report.status])
    connected = ("Connected", Style.GOOD) if host.connected else ("Not connected", Style.WARN)
    yield HealthLine("Connection: ", *connected)
    yield HealthLine("Workspace: ", workspace.effective_directory or "<unresolved>")
    yield HealthLine("Solution: ", workspace.solution or "<none>")
    yield HealthLine("Resolution: ", workspace.kind.value)
    yield HealthLine("Selection: ", workspace.source.value)
    yield HealthLine("Tools: ", str(host.tool_count))
    if facts.started:
        yield HealthLine("Host: ", " ".join(filter(None, (host.kind and host.kind.value, host.version))) or "<unknown>")
        yield HealthLine("Endpoint: ", facts.endpoint or "<none>")
    if facts.log_file:
        yield HealthLine("Log: ", facts.log_file)
    yield from _block("Candidates", [HealthLine("- ", path) for path in workspace.candidates])
    yield from _block("Issues", [line for issue in report.issues for line in _issue(issue)])
    yield from _block("Add-Ins", [*_addins(report)])
    yield from _block("Active Servers", [line for active in facts.servers for line in _server(active)])
    yield from _block("Proxies", [_told(line) for status in proxies for line in proxy_lines(status)])


def _block(title: str, lines: list[HealthLine]) -> list[HealthLine]:
    return [HealthLine(f"{title}:", key_style=Style.HEADING), *lines] if lines else []


def _issue(issue: Issue) -> Iterator[HealthLine]:
    style = Style.BAD if issue.fatal else Style.WARN
    yield HealthLine(f"- [{issue.severity.value}] ", f"{issue.code}: {issue.message}", key_style=style)
    yield HealthLine("  next: ", issue.remediation)


def _told(line: str) -> HealthLine:
    """What a proxy said: a fact, or a line that its server printed."""
    key, colon, value = line.partition(": ")
    return HealthLine(key + colon, value) if colon else HealthLine(line, key_style=None)


def _addins(report: HealthReport) -> Iterator[HealthLine]:
    host, left_out = report.facts.host, report.facts.left_out or ()
    for addin in host.add_ins:
        name = f"{addin.name} {addin.version or ''}".strip()
        yield HealthLine(f"- {name}: ", *_state(addin, host.loading))
    for path in left_out:
        yield HealthLine(f"- {path}: ", "left out", Style.WARN)


def _state(addin: HostAddIn, loading: bool) -> tuple[str, Style]:
    if addin.loaded:
        return ("loaded, with errors", Style.WARN) if addin.error else ("loaded", Style.GOOD)
    return ("loading", Style.WARN) if loading and addin.is_to_come else ("not loaded", Style.BAD)


def _server(active: ActiveServer) -> Iterator[HealthLine]:
    server = active.server
    yield HealthLine("- PID: ", f"{server.process_id} (Port {server.port})")
    yield HealthLine("  Solution: ", server.solution or "<none>")
    yield HealthLine("  IDE Channel: ", server.ide_channel or "<none>")
    yield HealthLine("  Parent PID: ", str(server.parent_process_id))
    yield HealthLine("  Started: ", started_text(server))
    yield HealthLine("  Workspace Match: ", str(active.in_workspace))
    if active.chain:
        yield HealthLine("  Process Chain: ", chain_text(active.chain))


SHOWN_LINES = 5  # of what a server printed last; --json has them all


def proxy_lines(status: Status) -> Iterator[str]:
    restarts = status.get("restarts")
    again = f", {restarts} restart{'' if restarts == 1 else 's'}" if restarts else ""
    yield f"- PID: {status.get('processId')} ({status.get('state')}{again})"
    clients = status.get("clients")
    if isinstance(clients, list) and clients:
        yield f"  Client: {', '.join(map(str, clients))}"
    upstream = _object(status.get("upstream"))
    if upstream:
        yield f"  Upstream: {_upstream(upstream)}"
    if "toolCount" in status:  # one that has just started does not know it yet
        yield f"  Tools: {status['toolCount']}, {_origin(status)}"
    if status.get("httpEndpoint"):
        yield f"  HTTP: {status['httpEndpoint']}"
    if status.get("inspector"):
        yield f"  Inspector: {status['inspector']}"
    if status.get("controlChannel"):
        yield f"  Control Channel: {status['controlChannel']}"
    if "hotReload" in status:  # a proxy of an older version says nothing of it
        yield from _hot_reload(_object(status["hotReload"]), status.get("hotReloadOff"))
    timeline = _object(status.get("timeline"))
    if timeline:
        yield "  Timeline: " + ", ".join(f"{name} {reached} ms" for name, reached in timeline.items())
    ending = _object(status.get("lastExit"))
    if ending:
        yield f"  Last Exit: {ending.get('reason')}"
        lines = ending.get("lastLines")
        yield from (f"    {line}" for line in (lines if isinstance(lines, list) else [])[-SHOWN_LINES:])


def _upstream(upstream: Mapping[str, object]) -> str:
    pid, endpoint = upstream.get("processId"), upstream.get("endpoint")
    parts = [str(upstream.get("kind") or "<unknown>")]
    parts += [f"process {pid}"] if pid else []
    parts += [str(endpoint)] if endpoint else []
    return ", ".join((*parts, "started by it" if upstream.get("owned") else "found by it"))


def _hot_reload(told: Mapping[str, object], off: object) -> Iterator[str]:
    if not told:
        yield f"  Hot Reload: off{f', because {off}' if off else ''}"
        return
    if told.get("owner") is False:
        yield "  Hot Reload: on, by the proxy that started the Host"
        return
    yield f"  Hot Reload: on, {told.get('strategy')}, {_watched(told.get('packages'))}"
    build, restart, client = (_object(told.get(name)) for name in ("lastBuild", "lastRestart", "client"))
    if build:
        printed = f"; see {build['logFile']}" if build.get("logFile") else ""
        yield f"  Last Build: {build.get('named')}, {_outcome(build)}{printed}"
    yield f"  Last Reload: {_outcome(restart) if restart else 'none since the proxy started'}"
    if client:
        yield f"  Client Process: {_client(client)}"


def _watched(packages: object) -> str:
    counts = [_object(package).get("files") for package in packages] if isinstance(packages, list) else []
    known = [count for count in counts if isinstance(count, int)]
    if not known:
        return "files counted at the first call"
    return f"{sum(known)} file{'' if sum(known) == 1 else 's'} watched"


def _outcome(what: Mapping[str, object]) -> str:
    """A problem of what went well: not all of the new code works."""
    why = what.get("problem")
    became = "failed" if what.get("ok") is False else "in part" if why else "well"
    return f"{what.get('at')}, {became}{f': {why}' if why else ''}"


def _client(client: Mapping[str, object]) -> str:
    pid = f" (process {client['processId']})" if client.get("processId") else ""
    state = "does not run" if not client.get("running") else f"{'ready' if client.get('ready') else 'not ready'}{pid}"
    problem = client.get("problem")
    return f"{state}; see {client.get('logFile')}" if problem else state


def _origin(status: Status) -> str:
    if status.get("listsFresh"):
        return "as the upstream has them"
    age = status.get("catalogueAgeSeconds")
    return "from no catalogue" if age is None else f"from a catalogue that is {age} s old"


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


# What a Host tells of itself; it was asked just now, its proxies some time ago.
OF_THE_HOST = frozenset({"AddInsLoading", "AddInLoadFailed", "AddInCallsHang", "AddInsLeftOut"})


def reported_by_proxies(proxies: Sequence[Status], facts: HealthFacts) -> HealthReport | None:
    """The report where no Host runs: as the proxies see it. None: there is none that says how it is."""
    telling = [status for status in proxies if isinstance(status.get("issues"), list)]
    if not telling:
        return None
    served = next((status for status in telling if status.get("state") == ConnectionState.CONNECTED.value), telling[0])
    return judged(_with_upstream(facts, served), (issue for status in telling for issue in _issues(status)))


def with_proxy_issues(report: HealthReport, proxies: Sequence[Status]) -> HealthReport:
    """The report of a Host that runs, with what only its proxies know."""
    known = OF_THE_HOST | {issue.code for issue in report.issues}
    told = [issue for status in proxies for issue in _issues(status) if issue.code not in known]
    own: Sequence[Issue] = report.issues
    if any(_reloads(status, report.facts) for status in proxies):
        own = [issue.replace(remediation=ADDIN_STEPS.get(issue.code, issue.remediation)) for issue in own]
    return judged(report.facts, (*own, *told))


def _reloads(status: Status, facts: HealthFacts) -> bool:
    """Whether this proxy loads the add-ins of the Host anew, when they were mended."""
    upstream = status.get("upstream")
    if not isinstance(upstream, dict) or upstream.get("processId") != facts.process_id:
        return False
    return upstream.get("owned") is True and facts.host.kind is HostKind.BUNDLED


def _with_upstream(facts: HealthFacts, status: Status) -> HealthFacts:
    found, tools = status.get("upstream"), status.get("toolCount")
    upstream = found if isinstance(found, dict) else {}
    pid = upstream.get("processId")
    return facts.replace(
        started=bool(upstream),
        process_id=pid if isinstance(pid, int) else None,
        endpoint=_string(upstream.get("endpoint")) or None,
        log_file=_string(upstream.get("logFile")) or None,
        host=Probe(
            mcp=status.get("state") == ConnectionState.CONNECTED.value,
            kind=next((kind for kind in HostKind if kind.value == upstream.get("kind")), None),
            version=_string(upstream.get("version")) or None,
            tool_count=tools if isinstance(tools, int) else 0,
        ),
    )


def _issues(status: Status) -> Iterator[Issue]:
    issues = status.get("issues")
    for issue in issues if isinstance(issues, list) else ():
        if isinstance(issue, dict):
            severity = Severity.FATAL if issue.get("severity") == Severity.FATAL.value else Severity.WARNING
            yield Issue(
                _string(issue.get("code")), severity, _string(issue.get("message")), _string(issue.get("remediation"))
            )


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
