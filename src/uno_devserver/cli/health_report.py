"""A HealthReport for people: the lines of the .NET tool, and below each issue what to do next."""

from __future__ import annotations

from ..system.text import visible
from .health_proxies import proxy_lines
from .server_data import chain_text, started_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..instances.health_report import ActiveServer, HealthReport
    from ..instances.probe import HostAddIn
    from ..proxy.health.status_file import Status


def text(report: HealthReport, proxies: Sequence[Status] = ()) -> str:
    return "\n".join(visible(line, keep_odd_bytes=True) for line in _lines(report, proxies))


def _lines(report: HealthReport, proxies: Sequence[Status]) -> Iterator[str]:
    facts, host = report.facts, report.facts.host
    assert facts.discovery, "the command line looks before it speaks"
    workspace = facts.discovery.workspace
    yield f"Status: {report.status.value}"
    yield f"Connection: {'Connected' if host.connected else 'Not connected'}"
    yield f"Workspace: {workspace.effective_directory or '<unresolved>'}"
    yield f"Solution: {workspace.solution or '<none>'}"
    yield f"Resolution: {workspace.kind.value}"
    yield f"Selection: {workspace.source.value}"
    yield f"Tools: {host.tool_count}"
    if facts.started:
        yield f"Host: {' '.join(filter(None, (host.kind and host.kind.value, host.version))) or '<unknown>'}"
        yield f"Endpoint: {facts.endpoint or '<none>'}"
    if facts.log_file:
        yield f"Log: {facts.log_file}"
    yield from _block("Candidates", [f"- {path}" for path in workspace.candidates])
    issues = [
        line
        for issue in report.issues
        for line in (f"- [{issue.severity.value}] {issue.code}: {issue.message}", f"  next: {issue.remediation}")
    ]
    yield from _block("Issues", issues)
    yield from _block("Add-Ins", _addins(report))
    yield from _block("Active Servers", [line for active in facts.servers for line in _server(active)])
    yield from _block("Proxies", [line for status in proxies for line in proxy_lines(status)])


def _block(title: str, lines: list[str]) -> list[str]:
    return [f"{title}:", *lines] if lines else []


def _addins(report: HealthReport) -> list[str]:
    host, left_out = report.facts.host, report.facts.left_out or ()
    return [
        *(f"- {_addin(addin, host.loading)}" for addin in host.add_ins),
        *(f"- {path}: left out" for path in left_out),
    ]


def _addin(addin: HostAddIn, loading: bool) -> str:
    if addin.loaded:
        state = "loaded, with errors" if addin.error else "loaded"
    else:
        state = "loading" if loading and addin.is_to_come else "not loaded"
    return f"{addin.name} {addin.version or ''}".strip() + f": {state}"


def _server(active: ActiveServer) -> Iterator[str]:
    server = active.server
    yield f"- PID: {server.process_id} (Port {server.port})"
    yield f"  Solution: {server.solution or '<none>'}"
    yield f"  IDE Channel: {server.ide_channel or '<none>'}"
    yield f"  Parent PID: {server.parent_process_id}"
    yield f"  Started: {started_text(server)}"
    yield f"  Workspace Match: {active.in_workspace}"
    if active.chain:
        yield f"  Process Chain: {chain_text(active.chain)}"
