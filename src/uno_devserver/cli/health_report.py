"""The text of `health`, which shows every fact of its report and those that proxies tell of themselves."""

from __future__ import annotations

from ..instances.health import HealthStatus
from ..instances.host_kind import HostKind
from ..system.text import visible
from ..system.values import Value
from .list import chain_text, started_text
from .proxies import client_names, list_in, object_in, text_in
from .terminal import Style, folded, styled, terminal_width, with_short_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..instances.health import HealthReport
    from ..instances.probe import HostAddIn
    from ..instances.workspace_servers import ActiveServer
    from ..issues import Issue
    from ..proxy.health.status_file import Status

_STYLES = {HealthStatus.HEALTHY: Style.GOOD, HealthStatus.DEGRADED: Style.WARN, HealthStatus.UNHEALTHY: Style.BAD}


class HealthLine(Value):
    key: str  # the key with its indentation and bullet
    value: str = ""
    style: Style | None = None  # the style of the value
    key_style: Style | None = Style.NAME


def health_text(report: HealthReport, proxies: Sequence[Status]) -> str:
    lines = _lines(report, proxies)
    if terminal_width() is None:
        return "\n".join(visible(line.key + line.value, keep_odd_bytes=True) for line in lines)
    return "\n".join(text for line in lines for text in _for_terminal(line))


def _for_terminal(line: HealthLine) -> Iterator[str]:
    key, value = visible(line.key), with_short_paths(visible(line.value))
    indent = len(key) - len(key.lstrip(" -"))
    first = key[:indent] + styled(key[indent:], line.key_style)
    if line.key_style is Style.HEADING:
        yield ""
    if line.style is not None:  # such a value has one or two words, which are not folded
        yield first + styled(value, line.style)
    else:
        yield from folded(value, first, "    " if indent else "  ")


def _lines(report: HealthReport, proxies: Sequence[Status]) -> Iterator[HealthLine]:
    facts, host = report.facts, report.facts.host
    assert facts.discovery
    workspace = facts.discovery.workspace
    yield HealthLine("Status: ", report.status.value, _STYLES[report.status])
    connected = ("Connected", Style.GOOD) if host.connected else ("Not connected", Style.WARN)
    yield HealthLine("Connection: ", *connected)
    if not workspace.resolved and not {*workspace.issues}.intersection(report.issues):  # no workspace is needed
        yield HealthLine("Folder: ", workspace.requested_directory)
    else:
        yield HealthLine("Workspace: ", workspace.effective_directory or "<unresolved>")
        if not workspace.resolved or workspace.global_json:  # otherwise it is one without Uno, by its config or add-ins
            yield HealthLine("Solution: ", workspace.solution or "<none>")
            yield HealthLine("Resolution: ", workspace.kind.value)
            yield HealthLine("Selection: ", workspace.source.value)
    yield HealthLine("Tools: ", str(host.tool_count))
    if facts.started:
        is_command = host.kind is HostKind.COMMAND
        name = _reported_name(proxies, facts.process_id) if is_command else host.kind and host.kind.value
        named = " ".join(filter(None, (name, host.version))) or "<unknown>"
        yield HealthLine("Server: " if is_command else "Host: ", named)
        opened = f" (open to the network and to other users, by --bind {host.bind})" if host.bind else ""
        if facts.endpoint or not is_command:  # a command without one uses standard input and output
            yield HealthLine("Endpoint: ", f"{facts.endpoint or '<none>'}{opened}", Style.WARN if opened else None)
    if facts.log_file:
        yield HealthLine("Log: ", facts.log_file)
    yield from _block("Candidates", [HealthLine("- ", path) for path in workspace.candidates])
    yield from _block("Issues", [*_issue_lines(report.issues)])
    yield from _block("Add-Ins", [*_addins(report)])
    yield from _block("Active Servers", [line for active in facts.servers for line in _server(active)])
    yield from _block("Proxies", [line for status in proxies for line in _proxy(status, report.issues)])


def _reported_name(proxies: Sequence[Status], pid: int | None) -> str:
    """The name that the server with this process id has reported over MCP."""
    upstreams = (object_in(status, "upstream") for status in proxies)
    return next((text_in(each, "name") for each in upstreams if each.get("processId") == pid), "")


def _block(title: str, lines: list[HealthLine]) -> list[HealthLine]:
    return [HealthLine(f"{title}:", key_style=Style.HEADING), *lines] if lines else []


def _issue_lines(issues: Sequence[Issue]) -> Iterator[HealthLine]:
    """Each issue, with its next step unless an issue before it has the same."""
    steps: set[str] = set()
    for issue in issues:
        style = Style.BAD if issue.fatal else Style.WARN
        yield HealthLine(f"- [{issue.severity.value}] ", f"{issue.code}: {issue.message}", key_style=style)
        if issue.remediation not in steps:
            steps.add(issue.remediation)
            yield HealthLine("  next: ", issue.remediation)


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


def _proxy(status: Status, issues: Sequence[Issue]) -> Iterator[HealthLine]:
    restarts = status.get("restarts")
    again = f", {restarts} restart{'' if restarts == 1 else 's'}" if restarts else ""
    yield HealthLine("- PID: ", f"{status.get('processId')} ({status.get('state')}{again})")
    further = list_in(status, "servers")
    facts = {
        "Client": client_names(status),
        "Upstream": _upstream(object_in(status, "upstream")),
        # A proxy that has just started has no count yet.
        "Tools": f"{status['toolCount']}, {_origin(status)}" if "toolCount" in status else "",
        "HTTP": status.get("httpEndpoint"),
        "Inspector": status.get("inspector"),
        "Control Channel": status.get("controlChannel"),
        # Older versions do not write it, and where there are only further servers, each has its own.
        **(_hot_reload(status) if "hotReload" in status and (status.get("upstream") or not further) else {}),
        "Timeline": ", ".join(f"{name} {reached} ms" for name, reached in object_in(status, "timeline").items()),
        "Last Exit": object_in(status, "lastExit").get("reason"),
    }
    yield from (HealthLine(f"  {title}: ", str(fact)) for title, fact in facts.items() if fact)
    yield from (HealthLine("  Server ", _further(server)) for server in further if server)
    lines = [str(line) for line in list_in(object_in(status, "lastExit"), "lastLines")]
    if not any("\n".join(lines).strip() in issue.message for issue in issues):  # an issue of a lost server quotes them
        yield from (HealthLine(f"    {line}", key_style=None) for line in lines)


def _further(server: object) -> str:
    if not isinstance(server, dict):
        return ""
    known = {"tools": server.get("toolCount"), "restarts": server.get("restarts"), "reloads": server.get("reloads")}
    counts = ", ".join(f"{name}: {count}" for name, count in known.items() if count)
    reloads = f"hot reload {_hot_reload(server)['Hot Reload']}"
    parts = (str(server.get("state")), counts, _upstream(object_in(server, "upstream")), reloads)
    return f"{server.get('name')}: {', '.join(filter(None, parts))}"


def _upstream(upstream: Mapping[str, object]) -> str:
    if not upstream:
        return ""
    pid, endpoint = upstream.get("processId"), upstream.get("endpoint")
    is_url = endpoint and upstream.get("kind") == HostKind.COMMAND.value and not upstream.get("owned")
    if is_url:
        return f"at {endpoint}"
    parts = [str(upstream.get("kind") or "<unknown>")]
    parts += [f"process {pid}"] if pid else []
    parts += [str(endpoint)] if endpoint else []
    return ", ".join((*parts, "started by it" if upstream.get("owned") else "found by it"))


def _origin(status: Status) -> str:
    if status.get("listsFresh"):
        return "as the upstream has them"
    age = status.get("catalogueAgeSeconds")
    return "from no catalogue" if age is None else f"from a catalogue that is {age} s old"


def _hot_reload(status: Status) -> dict[str, str]:
    told, off = object_in(status, "hotReload"), status.get("hotReloadOff")
    if not told:
        return {"Hot Reload": f"off{f', because {off}' if off else ''}"}
    if told.get("owner") is False:
        return {"Hot Reload": "on, by the proxy that started the Host"}
    build, restart, client = (object_in(told, name) for name in ("lastBuild", "lastRestart", "client"))
    log_file = f"; see {build['logFile']}" if build.get("logFile") else ""
    return {
        "Hot Reload": f"on, {told.get('strategy')}, {_watched(told)}",
        "Last Build": f"{build.get('named')}, {_outcome(build)}{log_file}" if build else "",
        "Last Reload": _outcome(restart) if restart else "none since the proxy started",
        "Client Process": _client(client) if client else "",
    }


def _watched(told: Mapping[str, object]) -> str:
    counts = [package.get("files") for package in list_in(told, "packages") if isinstance(package, dict)]
    known = [count for count in counts if isinstance(count, int)]
    if not known:
        return "files counted at the first call"
    return f"{sum(known)} file{'' if sum(known) == 1 else 's'} watched"


def _outcome(what: Mapping[str, object]) -> str:
    """A reload that is "ok" but has a problem loaded only a part of the new code."""
    why = what.get("problem")
    became = "failed" if what.get("ok") is False else "loaded in part" if why else "succeeded"
    return f"{what.get('at')}, {became}{f': {why}' if why else ''}"


def _client(client: Mapping[str, object]) -> str:
    pid = f" (process {client['processId']})" if client.get("processId") else ""
    state = "does not run" if not client.get("running") else f"{'ready' if client.get('ready') else 'not ready'}{pid}"
    return f"{state}; see {client.get('logFile')}" if client.get("problem") else state
