"""A HealthReport for people: the lines of the .NET tool, and below each issue what to do next."""

from __future__ import annotations

from ..instances.health_report import HealthStatus
from ..system.text import visible
from ..system.values import Value
from .colours import Style, styled
from .folding import folded, nearer, terminal_width
from .health_proxies import proxy_lines
from .server_data import chain_text, started_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..instances.health_report import ActiveServer, HealthReport
    from ..instances.probe import HostAddIn
    from ..issues import Issue
    from ..proxy.health.status_file import Status


_STYLES = {HealthStatus.HEALTHY: Style.GOOD, HealthStatus.DEGRADED: Style.WARN, HealthStatus.UNHEALTHY: Style.BAD}


class Line(Value):
    """What it is about, with the blanks and marks before that, and what is said."""

    key: str
    value: str = ""
    style: Style | None = None  # of the value
    key_style: Style | None = Style.NAME


def text(report: HealthReport, proxies: Sequence[Status] = ()) -> str:
    shown = _for_pipes if terminal_width() is None else _for_terminal
    return "\n".join(line for one in _lines(report, proxies) for line in shown(one))


def _for_pipes(line: Line) -> Iterator[str]:
    yield visible(line.key + line.value, keep_odd_bytes=True)


def _for_terminal(line: Line) -> Iterator[str]:
    key, value = visible(line.key), nearer(visible(line.value))
    mark = len(key) - len(key.lstrip(" -"))
    first = key[:mark] + styled(key[mark:], line.key_style)
    if line.key_style is Style.HEADING:
        yield ""
    if line.style is not None:  # one word, or two
        yield first + styled(value, line.style)
    else:
        yield from folded(value, first, "    " if mark else "  ")


def _lines(report: HealthReport, proxies: Sequence[Status]) -> Iterator[Line]:
    facts, host = report.facts, report.facts.host
    assert facts.discovery, "the command line looks before it speaks"
    workspace = facts.discovery.workspace
    yield Line("Status: ", report.status.value, _STYLES[report.status])
    connected = ("Connected", Style.GOOD) if host.connected else ("Not connected", Style.WARN)
    yield Line("Connection: ", *connected)
    yield Line("Workspace: ", workspace.effective_directory or "<unresolved>")
    yield Line("Solution: ", workspace.solution or "<none>")
    yield Line("Resolution: ", workspace.kind.value)
    yield Line("Selection: ", workspace.source.value)
    yield Line("Tools: ", str(host.tool_count))
    if facts.started:
        yield Line("Host: ", " ".join(filter(None, (host.kind and host.kind.value, host.version))) or "<unknown>")
        yield Line("Endpoint: ", facts.endpoint or "<none>")
    if facts.log_file:
        yield Line("Log: ", facts.log_file)
    yield from _block("Candidates", [Line("- ", path) for path in workspace.candidates])
    yield from _block("Issues", [line for issue in report.issues for line in _issue(issue)])
    yield from _block("Add-Ins", [*_addins(report)])
    yield from _block("Active Servers", [line for active in facts.servers for line in _server(active)])
    yield from _block("Proxies", [_told(line) for status in proxies for line in proxy_lines(status)])


def _block(title: str, lines: list[Line]) -> list[Line]:
    return [Line(f"{title}:", key_style=Style.HEADING), *lines] if lines else []


def _issue(issue: Issue) -> Iterator[Line]:
    style = Style.BAD if issue.fatal else Style.WARN
    yield Line(f"- [{issue.severity.value}] ", f"{issue.code}: {issue.message}", key_style=style)
    yield Line("  next: ", issue.remediation)


def _told(line: str) -> Line:
    """What a proxy said: a fact, or a line that its server printed."""
    key, colon, value = line.partition(": ")
    return Line(key + colon, value) if colon else Line(line, key_style=None)


def _addins(report: HealthReport) -> Iterator[Line]:
    host, left_out = report.facts.host, report.facts.left_out or ()
    for addin in host.add_ins:
        name = f"{addin.name} {addin.version or ''}".strip()
        yield Line(f"- {name}: ", *_state(addin, host.loading))
    for path in left_out:
        yield Line(f"- {path}: ", "left out", Style.WARN)


def _state(addin: HostAddIn, loading: bool) -> tuple[str, Style]:
    if addin.loaded:
        return ("loaded, with errors", Style.WARN) if addin.error else ("loaded", Style.GOOD)
    return ("loading", Style.WARN) if loading and addin.is_to_come else ("not loaded", Style.BAD)


def _server(active: ActiveServer) -> Iterator[Line]:
    server = active.server
    yield Line("- PID: ", f"{server.process_id} (Port {server.port})")
    yield Line("  Solution: ", server.solution or "<none>")
    yield Line("  IDE Channel: ", server.ide_channel or "<none>")
    yield Line("  Parent PID: ", str(server.parent_process_id))
    yield Line("  Started: ", started_text(server))
    yield Line("  Workspace Match: ", str(active.in_workspace))
    if active.chain:
        yield Line("  Process Chain: ", chain_text(active.chain))
