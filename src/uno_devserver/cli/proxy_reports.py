"""How a workspace is by what its proxies say, so that `health` and `uno_health` never contradict each other.

What they say comes from files, which may say anything; a proxy of an older version does not say how it is.
"""

from __future__ import annotations

from ..instances.health import judged
from ..instances.host_kind import HostKind
from ..instances.probe import Probe
from ..issues import Issue, Severity
from ..proxy.health.upstream_issues import ADDIN_STEPS
from ..proxy.state import ConnectionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..instances.health_report import HealthFacts, HealthReport
    from ..proxy.health.status_file import Status

# What a Host tells of itself; it was asked just now, its proxies some time ago.
OF_THE_HOST = frozenset({"AddInsLoading", "AddInLoadFailed", "AddInCallsHang", "AddInsLeftOut"})


def told_by(proxies: Sequence[Status], facts: HealthFacts) -> HealthReport | None:
    """The report where no Host runs: as the proxies see it. None: there is none that says how it is."""
    telling = [status for status in proxies if isinstance(status.get("issues"), list)]
    if not telling:
        return None
    served = next((status for status in telling if status.get("state") == ConnectionState.CONNECTED.value), telling[0])
    return judged(_with_upstream(facts, served), (issue for status in telling for issue in _issues(status)))


def also_told(report: HealthReport, proxies: Sequence[Status]) -> HealthReport:
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
        endpoint=_text(upstream.get("endpoint")) or None,
        log_file=_text(upstream.get("logFile")) or None,
        host=Probe(
            mcp=status.get("state") == ConnectionState.CONNECTED.value,
            kind=next((kind for kind in HostKind if kind.value == upstream.get("kind")), None),
            version=_text(upstream.get("version")) or None,
            tool_count=tools if isinstance(tools, int) else 0,
        ),
    )


def _issues(status: Status) -> Iterator[Issue]:
    issues = status.get("issues")
    for issue in issues if isinstance(issues, list) else ():
        if isinstance(issue, dict):
            severity = Severity.FATAL if issue.get("severity") == Severity.FATAL.value else Severity.WARNING
            yield Issue(
                _text(issue.get("code")), severity, _text(issue.get("message")), _text(issue.get("remediation"))
            )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
