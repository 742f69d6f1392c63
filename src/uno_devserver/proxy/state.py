"""What the proxy knows: one object, written by the engine in its event loop, and read by everything else.

The front answers from it, the health report and the status file are made from it, and the inspector page follows it.
Facts, lists, server and capabilities are replaced as a whole and never changed in place, so that a reader in another
thread sees a consistent value. Cheap to import: the first answer waits for it.
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
    from ..protocol.client.connection import Denial
    from ..workspace.resolver import Workspace
    from .health.status_file import StatusFile
    from .lists.catalogue import Catalogue
    from .options import ProxyOptions
    from .upstream.base import Ending

    class ReloadStatus(Protocol):
        """Reports the status of hot reload."""

        def status(self) -> Mapping[str, object] | None:
            """Return the present status; None if hot reload is off. Safe from any thread."""


NAME = "uno-devserver"

# The methods that read a list: the member of the result with the entries, and the field of Lists that contains them.
LISTS = {
    "tools/list": ("tools", "tools"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resourceTemplates", "templates"),
    "prompts/list": ("prompts", "prompts"),
}


NOT_TRUSTED = "WorkspaceNotTrusted"  # the code of the issue that the user has not agreed to code


class ConnectionState(Enum):
    """The state of the proxy's connection to its upstream."""

    INITIALIZING = "Initializing"
    DISCOVERING = "Discovering"
    LAUNCHING = "Launching"
    CONNECTING = "Connecting"
    CONNECTED = "Connected"
    RECONNECTING = "Reconnecting"
    DEGRADED = "Degraded"
    SHUTDOWN = "Shutdown"


GIVEN_UP = frozenset({ConnectionState.DEGRADED, ConnectionState.SHUTDOWN})  # no start is under way or due
# A first start passes these within milliseconds; the status file is not written for each of them.
PASSING = frozenset({ConnectionState.DISCOVERING, ConnectionState.LAUNCHING, ConnectionState.CONNECTING})


class Lists(Value):
    """The published lists, merged from ours and the upstream's: each is a JSON array, ready to be written."""

    tools: bytes = b"[]"
    resources: bytes = b"[]"
    templates: bytes = b"[]"
    prompts: bytes = b"[]"


class Routes(Value):
    """Which server answers what. What is not listed belongs to the main server, if there is one."""

    # By the name that clients see: the server ("" for the main one), and its own name for it.
    tools: Mapping[str, tuple[str, str]] = {}
    prompts: Mapping[str, tuple[str, str]] = {}
    resources: Mapping[str, str] = {}  # by URI: the server
    templates: Mapping[str, str] = {}  # by URI template
    excluded: frozenset[str] = frozenset()  # the tools that a filter of their server keeps out
    # Whether a tool that is not listed is refused: the main server has a filter of tools, or there is no main server.
    only_listed: bool = False


class UpstreamFacts(Value):
    """The server behind the proxy, from the moment that it is launched or found."""

    kind: HostKind | None = None  # None if it is not known yet
    process_id: int | None = None
    endpoint: str | None = None
    owned: bool = False  # whether the proxy stops it
    log_file: str | None = None  # the file with its output
    name: str | None = None  # the name that it reports in MCP
    version: str | None = None
    protocol_version: str | None = None
    transport: str | None = None
    stray_line: str = ""  # the last line on its output that is not an MCP message
    arrivals: Callable[[], list[tuple[int, float]]] | None = None  # positions in its log file, with times, if known


class ProxyFacts(Value):
    """The facts of the health report. Each proxy begins with `ProxyFacts(options)`."""

    options: ProxyOptions
    state: ConnectionState = ConnectionState.INITIALIZING
    discovery: Discovery | None = None  # for the present workspace; None if not done, or not needed
    discovered: bool = True  # whether `discovery` is the result of a search, or none is needed
    issues: tuple[Issue, ...] = ()  # why the last start failed, until one succeeds; and other problems
    named: str | None = None  # the upstream at the beginning of a sentence; None for `options.upstream_name`
    upstream: UpstreamFacts | None = None  # the present one or, if it ended, the last; None if none was started
    standby: int | None = None  # the process id of the server that takes over if the present one crashes
    host: Probe | None = None  # the Host's own report, where it was asked
    left_out: tuple[str, ...] | None = None  # add-ins that the Host had to be launched without
    without_mcp: bool = False  # whether the upstream answers over HTTP, but has no /mcp
    connect_error: str = ""  # a sentence: why no MCP conversation with the upstream could be opened, or goes on
    access_denied: Denial | None = None  # if it does not accept our credentials
    last_end: Ending | None = None  # how the last upstream ended that was not stopped on purpose
    generation: int = 0  # the number of upstreams that were connected
    restarts: int = 0  # the number of restarts because the upstream had ended
    reloads: int = 0  # the number of restarts and swaps because there was newer code
    tool_count: int = 0  # the number of the upstream's tools
    renamed: Mapping[str, str] = {}  # never changed: its tools' own names, by those that clients see
    lists_fresh: bool = False  # whether the lists come from the connected upstream, not from the catalogue
    catalogue_written: float | None = None  # when the published lists were saved, in seconds since 1970
    catalogue_sdk: str | None = None  # the Uno SDK that the workspace had then
    timeline: tuple[tuple[str, int], ...] = ()  # the stages with their milliseconds since the process began
    fallback: bool = False  # whether the proxy waits for uno_app_initialize
    trusted: bool | None = None  # whether code of the workspace may run; None if there is none, or that is not known
    refusal: str = ""  # why that code may not run, as the end of a sentence
    wait_calls: bool = False
    http_endpoint: str | None = None  # the URL, if MCP is also served over HTTP
    inspector: str | None = None  # the address of its page
    inspector_token: str | None = None  # for the status file alone: whoever has it can call tools
    inspector_undecided: bool = True  # until the first start is over, when it is decided whether the page opens
    clients: tuple[str, ...] = ()  # the names that they report
    servers: tuple[ActiveServer, ...] = ()  # all Hosts of this machine, as last seen
    control_channel: str | None = None  # the path on which other proxies ask for new code; None if it owns no upstream
    hot_reload: Mapping[str, object] | None = None  # as in `getStatus`; None if it is off
    hot_reload_off: str | None = None  # why it is off, the end of a sentence
    serves: bool = True  # whether there is a main server; False if only the config's `servers` are served
    members: tuple[ProxyFacts, ...] = ()  # of the further servers

    @property
    def upstream_name(self) -> str:
        return self.named or self.options.upstream_name

    @property
    def awaits_agreement(self) -> bool:
        """Whether code is not run, or not reloaded, until the user agrees."""
        return self.trusted is False or any(issue.code == NOT_TRUSTED for issue in self.issues)

    @property
    def is_remote(self) -> bool:
        """Whether the user or the config names only its URL, so that the proxy cannot start it."""
        known = self.upstream
        is_command = known is not None and known.kind is not None and known.kind.value == "command"
        found = known is not None and is_command and known.endpoint is not None and not known.owned
        return found or self.options.url is not None

    def with_setting(self, step: str) -> str:
        """The next step, with the setting of this server where it names that of the main one."""
        return step.replace("mcpServer.", f"servers.{self.options.server}.") if self.options.server else step

    @property
    def connected(self) -> bool:
        return self.state is ConnectionState.CONNECTED

    @property
    def workspace(self) -> Workspace | None:
        return self.discovery.workspace if self.discovery else None


def unusable(name: str, refusal: str) -> str:
    """Why the server with this name cannot be used over MCP, as a sentence; many a refusal begins with the name."""
    why = refusal.rstrip(".")
    return f"{why}." if why.startswith(name) else f"{name} cannot be used over MCP: {why}."


class Timeline:
    """The time from the start of the process until the proxy reached each stage."""

    def __init__(self) -> None:
        # Until now only the start of Python took time, which the processor time shows.
        self._began = time.monotonic() - time.process_time()
        self._stages: dict[str, int] = {}

    def mark(self, stage: str) -> int:
        """Record that a stage is reached; return the milliseconds until it first was. Safe from any thread."""
        return self._stages.setdefault(stage, round((time.monotonic() - self._began) * 1000))

    def stages(self) -> tuple[tuple[str, int], ...]:
        """Return the stages in the order in which they were reached."""
        return tuple(self._stages.items())


class ProxyState:
    def __init__(
        self,
        options: ProxyOptions,
        *,
        lists: Lists = Lists(),  # noqa: B008  # it is frozen
        own_tools: frozenset[str] = frozenset(),
        uno_workspace: bool = True,
        capabilities: dict[str, Any] | None = None,
        instructions: str | None = None,
        catalogue: Catalogue | None = None,
        status_file: StatusFile | None = None,
    ) -> None:
        """`catalogue`: the source of the lists before the upstream is connected."""
        # What clients see of this server.
        self.server = ServerInfo(NAME, __version__, instructions=instructions)
        self.capabilities = capabilities or {}
        self.lists = lists
        self.own_tools = own_tools  # the names of the tools that the proxy answers, always including `uno_health`
        self.routes = Routes()
        # A further server's own names of tools and prompts that were renamed, by request and the name that clients use.
        self.own_names: Mapping[str, Mapping[str, str]] = {}
        self.members: tuple[ProxyState, ...] = ()  # the states of the further servers
        self.uno_workspace = uno_workspace  # False where there surely is none: then `uno_health` is brief
        self.holds_tools = options.wait_tools  # whether tools/list waits for the upstream
        self.catalogue = catalogue
        # What is known of the upstream.
        self.connection = ConnectionState.INITIALIZING
        self.generation = 0  # counts the upstreams that were connected
        self.workspace: Workspace | None = None  # None if the upstream does not depend on one
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
        self._reload_status: Mapping[str, object] | None = None  # the last known status
        self._status_file = status_file
        self._first_start = True  # during it, not every state is written to the status file, which would delay it
        self._listeners: list[Callable[[], None]] = []

    # For the engine, which writes.

    def learn(self, **changes: Any) -> None:
        """Replace fields of ProxyFacts, call the listeners, and write the status file."""
        self.facts = facts = self.facts.replace(**changes)
        self.connection, self.generation = facts.state, facts.generation
        for listener in tuple(self._listeners):
            listener()
        if self._status_file is not None and not (self._first_start and facts.state in PASSING):
            self._status_file.update(self.snapshot())

    def write_first_status(self) -> None:
        """Write the status file before the first answer, so that the proxy can be found from then on."""
        if self._status_file is not None:
            self._status_file.write_first(self.facts.options)

    def first_start_takes_long(self) -> None:
        """Write every state to the status file from now on."""
        self._first_start = False
        self.learn()

    def blame(self, source: str, issues: tuple[Issue, ...]) -> None:
        """Replace the issues that one part of the proxy, `source`, has reported.

        A problem that one part reports as fatal and another as a warning is told once, as fatal, whoever came first.
        """
        self._issues[source] = issues
        known = dict.fromkeys(issue for reported in self._issues.values() for issue in reported)
        fatal = {(issue.code, issue.message) for issue in known if issue.fatal}
        self.learn(issues=tuple(issue for issue in known if issue.fatal or (issue.code, issue.message) not in fatal))

    def report_stray_line(self, line: str) -> None:
        """Record a line that the upstream wrote to its output and that is not a message."""
        self.learn(upstream=(self.facts.upstream or UpstreamFacts()).replace(stray_line=line))

    def forget_process(self) -> None:
        """Forget id and endpoint of a process that has ended; a URL that was given stays valid."""
        upstream = self.facts.upstream
        if upstream is not None and upstream.process_id is not None:
            self.learn(upstream=upstream.replace(process_id=None, endpoint=None))

    def forget_upstream(self) -> None:
        """Forget the upstream with its issues: there will be another one, or none."""
        self.blame("start", ())
        self.blame("launch", ())
        nothing = {"upstream": None, "last_end": None, "host": None, "left_out": None, "trusted": None}
        if self.workspace is not None:  # otherwise the next upstream is the same command
            nothing["named"] = None
        self.learn(**nothing, connect_error="", access_denied=None, without_mcp=False)

    def follow_reloader(self, reloader: ReloadStatus) -> None:
        """Ask `reloader` for the status of hot reload from now on."""
        self._reloader = reloader

    def close(self) -> None:
        if self._status_file is not None:
            self._status_file.remove()

    # For everything else, which reads.

    def report(self) -> dict[str, object]:
        """Make the present HealthReport. Safe from any thread; waits for nothing."""
        from .health.report import report  # imported late: it takes a few ms, which would delay the first answers

        return report(self.snapshot())

    def told_health(self, *, details: bool = False) -> dict[str, object]:
        """Make the report for an agent: the whole one in an Uno workspace or with `details`, otherwise a brief one."""
        told = self.report()
        if details or self.uno_workspace:
            return told
        from .health.report import brief

        return brief(told)

    def snapshot(self) -> ProxyFacts:
        """Return the facts, with the values that are computed when asked for."""
        facts = self._current().replace(members=tuple(member._current() for member in self.members))
        workspace = self.workspace
        if workspace is None or (facts.workspace == workspace and facts.discovery is not None):
            return facts
        from ..discovery.discover import empty_discovery  # imported late: it would delay the first start

        return facts.replace(discovery=empty_discovery(workspace), discovered=workspace.global_json is None)

    def _current(self) -> ProxyFacts:
        return self.facts.replace(timeline=self.timeline.stages(), hot_reload=self._asked_reload_status())

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` in the engine's loop after every `learn`, until `unsubscribe`."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[], None]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _asked_reload_status(self) -> Mapping[str, object] | None:
        if self._reloader is not None:
            try:
                self._reload_status = self._reloader.status()
            except RuntimeError:  # a table changed while this thread read it; the last status is recent enough
                pass
        return self._reload_status
