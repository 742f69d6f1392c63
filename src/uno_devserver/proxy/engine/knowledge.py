"""What the engine knows, in one place: for the health report, at any moment and from any thread, and for the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...instances.health_report import ConnectionState
from ...system.urls import shown_url
from ..health.health import ProxyFacts, UpstreamFacts, report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...issues import Issue
    from ...protocol.client.connection import Server
    from ...workspace.resolver import Workspace
    from ..health.status_file import StatusFile
    from ..options import Options
    from ..timeline import Timeline
    from ..upstream.upstream import Running

# What a first start passes through within milliseconds; nobody looks at the disk that soon, and it is in a hurry.
PASSING = frozenset({ConnectionState.DISCOVERING, ConnectionState.LAUNCHING, ConnectionState.CONNECTING})


class Knowledge:
    def __init__(self, options: Options, timeline: Timeline, state: str) -> None:
        self.facts = ProxyFacts(options)
        self._timeline = timeline
        self._state = state
        self._file: StatusFile | None = None
        self._hurries = True  # a first start that is under way
        self._issues: dict[str, tuple[Issue, ...]] = {}
        self.workspace: Callable[[], Workspace] | None = (
            None  # the present one; None: the upstream does not depend on it
        )
        self.hot_reload: Callable[[], Mapping[str, object] | None] = lambda: None  # how it stands; None: it is off
        self._last_told: Mapping[str, object] | None = None  # of these
        self.learned: Callable[[], None] | None = None  # whoever looks on hears that there is something new

    def blame(self, source: str, issues: tuple[Issue, ...]) -> None:
        """What is wrong by what one part of us knows; it replaces what that part said before."""
        self._issues[source] = issues
        self.learn(issues=tuple(dict.fromkeys(issue for known in self._issues.values() for issue in known)))

    def learn(self, **changes: Any) -> None:
        """Fields of ProxyFacts."""
        self.facts = self.facts.replace(**changes)
        if self.learned is not None:
            self.learned()
        if self._file is None:
            if self._hurries and self.facts.state in PASSING:
                return
            from ..health.status_file import StatusFile

            self._file = StatusFile(self._state)
        self._file.update(self._told())

    def linger(self) -> None:
        """The first start takes so long that others may want to know how it goes."""
        self._hurries = False
        self.learn()

    def strayed(self, line: str) -> None:
        """The upstream has written this where only messages belong."""
        self.learn(upstream=(self.facts.upstream or UpstreamFacts()).replace(strayed=line))

    def forget_process(self) -> None:
        """It is gone, so neither its number nor its port mean anything any more; a URL stays what it is."""
        upstream = self.facts.upstream
        if upstream is not None and upstream.process_id is not None:
            self.learn(upstream=upstream.replace(process_id=None, endpoint=None))

    def forget_upstream(self) -> None:
        """There will be another, or none: what was wrong with this one, or with its workspace, says nothing of it."""
        self.blame("start", ())
        self.blame("launch", ())
        nothing = {"upstream": None, "last_end": None, "host": None, "left_out": None, "trusted": None}
        if self.workspace is not None:  # else it is the same command
            nothing["named"] = None
        self.learn(**nothing, connect_error="", without_mcp=False)

    def report(self) -> dict[str, object]:
        """From any thread."""
        return report(self._told())

    def close(self) -> None:
        if self._file is not None:
            self._file.remove()

    def _told(self) -> ProxyFacts:
        facts = self.facts.replace(timeline=self._timeline.stages(), hot_reload=self._reload_status())
        if self.workspace is None or (facts.workspace == self.workspace() and facts.discovery is not None):
            return facts
        from ...discovery.discover import unexplored  # takes some ms, which the first start has not

        return facts.replace(discovery=unexplored(self.workspace()))

    def _reload_status(self) -> Mapping[str, object] | None:
        try:
            self._last_told = self.hot_reload()
        except RuntimeError:  # something was added to it while this thread read it: what was told before is almost new
            pass
        return self._last_told


def upstream_facts(running: Running, server: Server | None) -> UpstreamFacts:
    info = server.info if server else {}
    return UpstreamFacts(
        kind=running.kind,
        process_id=running.process_id,
        endpoint=running.endpoint and shown_url(running.endpoint),
        owned=running.owned,
        log_file=running.log_file,
        name=info.get("name"),
        version=info.get("version"),
        protocol_version=server.version if server else None,
    )
