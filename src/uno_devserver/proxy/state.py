"""What the proxy knows: one object, written by the engine in its event loop, and read by everything else.

The front answers from it, the health report and the status file are made of it, the inspector page follows it. Facts,
lists, server and capabilities are replaced as a whole and never changed in place, so a reader in another thread sees
one consistent value. Cheap to import: it is on the way to the first answer.
"""

from __future__ import annotations

import time
from enum import Enum

from .. import __version__
from ..protocol.peer_info import ServerInfo
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from ..discovery.discover import Discovery
    from ..instances.host_kind import HostKind
    from ..instances.probe import Probe
    from ..instances.workspace_servers import ActiveServer
    from ..issues import Issue
    from ..workspace.resolver import Workspace
    from .health.status_file import StatusFile
    from .lists.catalogue import Catalogue
    from .options import ProxyOptions
    from .upstream.base import Ending

    class ReloadStatus(Protocol):
        """Tells how hot reload stands."""

        def status(self) -> Mapping[str, object] | None:
            """At this moment; None: it is off. Safe from any thread."""


NAME = "uno-devserver"

# The methods that read a list: what the entries are called in the result, and which field of Lists holds them.
LISTS = {
    "tools/list": ("tools", "tools"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resourceTemplates", "templates"),
    "prompts/list": ("prompts", "prompts"),
}


class ConnectionState(Enum):
    """How far the proxy is with its upstream."""

    INITIALIZING = "Initializing"
    DISCOVERING = "Discovering"
    LAUNCHING = "Launching"
    CONNECTING = "Connecting"
    CONNECTED = "Connected"
    RECONNECTING = "Reconnecting"
    DEGRADED = "Degraded"
    SHUTDOWN = "Shutdown"


# A first start passes these within milliseconds; the status file is not written for each of them.
PASSING = frozenset({ConnectionState.DISCOVERING, ConnectionState.LAUNCHING, ConnectionState.CONNECTING})


class Lists(Value):
    """The published lists, ours and the upstream's merged: each a JSON array that is ready to be written."""

    tools: bytes = b"[]"
    resources: bytes = b"[]"
    templates: bytes = b"[]"
    prompts: bytes = b"[]"


class UpstreamFacts(Value):
    """The server behind the proxy, from the moment that it is launched or found."""

    kind: HostKind | None = None  # None: not known yet
    process_id: int | None = None
    endpoint: str | None = None
    owned: bool = False  # ours to end
    log_file: str | None = None  # what it prints
    name: str | None = None  # what it calls itself in MCP
    version: str | None = None
    protocol_version: str | None = None
    stray_line: str = ""  # the last line on its output that is not an MCP message


class ProxyFacts(Value):
    """The facts that the health report is made of. `ProxyFacts(options)` is how each proxy begins."""

    options: ProxyOptions
    state: ConnectionState = ConnectionState.INITIALIZING
    discovery: Discovery | None = None  # of the present workspace; None: not looked, or not needed
    issues: tuple[Issue, ...] = ()  # why the last start failed, until one succeeds; and what else is wrong
    named: str | None = None  # what the upstream is called, at the beginning of a sentence; None: by the options
    upstream: UpstreamFacts | None = None  # the present one or, where it died, the last; None: nothing was started
    host: Probe | None = None  # what the Host tells of itself, where it was asked
    left_out: tuple[str, ...] | None = None  # add-ins that the Host had to be launched without
    without_mcp: bool = False  # it answers over HTTP, but has no /mcp
    connect_error: str = ""  # a sentence: how the upstream refused to speak MCP
    last_end: Ending | None = None  # of the last upstream that ended without being told to
    generation: int = 0  # upstreams that were connected
    restarts: int = 0  # begun because the upstream had ended
    reloads: int = 0  # restarts and swaps begun because there was newer code
    tool_count: int = 0  # of the upstream
    lists_fresh: bool = False  # they come from the upstream that is connected, not from the catalogue
    catalogue_written: float | None = None  # when the lists that are offered were saved, in seconds since 1970
    catalogue_sdk: str | None = None  # the Uno SDK that the workspace had then
    timeline: tuple[tuple[str, int], ...] = ()  # what was reached, in milliseconds after the process began
    fallback: bool = False  # waits for uno_app_initialize
    trusted: bool | None = None  # whether code of the workspace may run; None: there is none, or it was not looked for
    refusal: str = ""  # why not, where it may not: the end of a sentence
    wait_calls: bool = False
    http_endpoint: str | None = None  # where MCP is served over HTTP, too
    inspector: str | None = None  # the URL of its page, with the token
    inspector_undecided: bool = True  # whether the page opens by itself is looked at when the first start is over
    clients: tuple[str, ...] = ()  # as they call themselves
    servers: tuple[ActiveServer, ...] = ()  # all Hosts of this machine, as last seen
    control_channel: str | None = None  # the path on which this proxy is asked for new code; None: it owns no upstream
    hot_reload: Mapping[str, object] | None = None  # as `getStatus` tells it; None: it is off
    hot_reload_off: str | None = None  # why, the end of a sentence

    @property
    def upstream_name(self) -> str:
        return self.named or self.options.upstream_name

    @property
    def connected(self) -> bool:
        return self.state is ConnectionState.CONNECTED

    @property
    def workspace(self) -> Workspace | None:
        return self.discovery.workspace if self.discovery else None


class Timeline:
    """How long after its process began the proxy reached each stage."""

    def __init__(self) -> None:
        # What the interpreter did before this line was its own start, which took processor time and no other.
        self._began = time.monotonic() - time.process_time()
        self._stages: dict[str, int] = {}

    def mark(self, stage: str) -> int:
        """The milliseconds until now, or until the stage was reached for the first time. Safe from any thread."""
        return self._stages.setdefault(stage, round((time.monotonic() - self._began) * 1000))

    def stages(self) -> tuple[tuple[str, int], ...]:
        """The stages in the order in which they were reached."""
        return tuple(self._stages.items())


class ProxyState:
    def __init__(
        self,
        options: ProxyOptions,
        *,
        lists: Lists = Lists(),  # noqa: B008  # it is frozen
        own_tools: frozenset[str] = frozenset(),
        capabilities: dict[str, Any] | None = None,
        instructions: str | None = None,
        catalogue: Catalogue | None = None,
        status_file: StatusFile | None = None,
    ) -> None:
        """`catalogue` is where the lists come from before the upstream is connected."""
        # What clients are told of this server.
        self.server = ServerInfo(NAME, __version__, instructions=instructions)
        self.capabilities = capabilities or {}
        self.lists = lists
        self.own_tools = own_tools  # the names that are ours to answer; `uno_health` always is
        self.holds_tools = options.wait_tools  # tools/list waits for the upstream
        self.catalogue = catalogue
        # What is known of the upstream.
        self.connection = ConnectionState.INITIALIZING
        self.generation = 0  # counts the upstreams that were connected
        self.workspace: Workspace | None = None  # the present one; None: the upstream does not depend on one
        self.facts = ProxyFacts(
            options,
            fallback=options.force_fallback,
            wait_calls=options.wait_calls,
            catalogue_written=catalogue.saved_at if catalogue else None,
            catalogue_sdk=catalogue.sdk_version if catalogue else None,
        )
        self.timeline = Timeline()
        self._issues: dict[str, tuple[Issue, ...]] = {}
        self._reloader: ReloadStatus | None = None
        self._reload_status: Mapping[str, object] | None = None  # as it was told last
        self._status_file = status_file
        self._first_start = True  # which is not to be delayed by writing each state that it passes
        self._listeners: list[Callable[[], None]] = []

    # What the engine writes.

    def learn(self, **changes: Any) -> None:
        """Replace fields of ProxyFacts, and tell those who follow them."""
        self.facts = facts = self.facts.replace(**changes)
        self.connection, self.generation = facts.state, facts.generation
        for listener in tuple(self._listeners):
            listener()
        if self._status_file is not None and not (self._first_start and facts.state in PASSING):
            self._status_file.update(self.snapshot())

    def write_first_status(self) -> None:
        """Write the status file, before the first answer, so that whoever has that finds the proxy."""
        if self._status_file is not None:
            self._status_file.write_first(self.facts.options)

    def first_start_takes_long(self) -> None:
        """From now on every state is written to the status file."""
        self._first_start = False
        self.learn()

    def blame(self, source: str, issues: tuple[Issue, ...]) -> None:
        """What is wrong, by what one part of the proxy knows; it replaces what that part said before."""
        self._issues[source] = issues
        self.learn(issues=tuple(dict.fromkeys(issue for known in self._issues.values() for issue in known)))

    def report_stray_line(self, line: str) -> None:
        """The upstream has written this where only messages belong."""
        self.learn(upstream=(self.facts.upstream or UpstreamFacts()).replace(stray_line=line))

    def forget_process(self) -> None:
        """The process is gone, so neither its number nor its port mean anything any more; a URL stays what it is."""
        upstream = self.facts.upstream
        if upstream is not None and upstream.process_id is not None:
            self.learn(upstream=upstream.replace(process_id=None, endpoint=None))

    def forget_upstream(self) -> None:
        """There will be another upstream, or none: what was wrong with this one, or with its workspace, is over."""
        self.blame("start", ())
        self.blame("launch", ())
        nothing = {"upstream": None, "last_end": None, "host": None, "left_out": None, "trusted": None}
        if self.workspace is not None:  # else it is the same command
            nothing["named"] = None
        self.learn(**nothing, connect_error="", without_mcp=False)

    def follow_reloader(self, reloader: ReloadStatus) -> None:
        """Ask it for the status of hot reload whenever that is reported."""
        self._reloader = reloader

    def close(self) -> None:
        if self._status_file is not None:
            self._status_file.remove()

    # What others read.

    def report(self) -> dict[str, object]:
        """The HealthReport of this moment. Safe from any thread; it waits for nothing."""
        from .health.report import report  # takes some ms, which the first answers have not

        return report(self.snapshot())

    def snapshot(self) -> ProxyFacts:
        """The facts with what is only known at the moment of asking."""
        facts = self.facts.replace(timeline=self.timeline.stages(), hot_reload=self._asked_reload_status())
        workspace = self.workspace
        if workspace is None or (facts.workspace == workspace and facts.discovery is not None):
            return facts
        from ..discovery.discover import empty_discovery  # takes some ms, which the first start has not

        return facts.replace(discovery=empty_discovery(workspace))

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` in the engine's loop whenever something was learned, until `unsubscribe`."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[], None]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _asked_reload_status(self) -> Mapping[str, object] | None:
        if self._reloader is not None:
            try:
                self._reload_status = self._reloader.status()
            except RuntimeError:  # a table changed while this thread read it: what was told before is almost new
                pass
        return self._reload_status
