"""The interface of upstreams, and the choice of one: a Host, a command or a URL.

Cheap to import: the launch waits for it, and each kind of upstream is imported only when it is chosen.
"""

from __future__ import annotations

import os

from ...system.folders import folders
from ...system.pipes import pipe_path
from ...system.text import shortened_output
from ...system.values import Value
from ...workspace.devtools_folder import ADDINS_FOLDER as ADDINS
from .lifecycle import USUAL_STARTUP_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...instances.host_kind import HostKind
    from ...issues import Issue
    from ...protocol.client.connection import Connection, Peer
    from ...workspace.config import Config
    from ...workspace.resolver import Workspace
    from ..options import ProxyOptions
    from .configured_command import ConfiguredUpstream
    from .host_launch import HostUpstream
    from .launcher import UpstreamObserver


# What servers print when they end because of something that may be over a moment later.
PASSING_ERRORS = ("address already in use", "eaddrinuse", "only one usage of each socket address", "text file busy")

QUOTED_CHARACTERS = 2000  # of the last output


class Ending(Value):
    """How an upstream ended."""

    reason: str  # a sentence without a full stop: "it ended with exit code 3", "it does not answer any more"
    exit_code: int | None = None  # negative: the signal that ended it
    last_lines: tuple[str, ...] = ()  # of its output
    other_era_next: bool = False  # it did not answer `server/discover`; the next start begins with `initialize`
    shut_down: bool = False  # another program has ended it on purpose

    @property
    def printed(self) -> str:
        """What it printed last, as much as an agent is told; `last_lines` has all of it."""
        return shortened_output("\n".join(line.rstrip() for line in self.last_lines).strip(), QUOTED_CHARACTERS)

    @property
    def is_by_code(self) -> bool:
        """Whether it ended itself with an error that another start would not change, as a port in use may."""
        printed = "\n".join(self.last_lines).lower()
        return (self.exit_code or 0) > 0 and not any(words in printed for words in PASSING_ERRORS)


class StartFailure(Exception):
    """The upstream did not start. `issues` say why and what to do; `final`: another attempt would fail, too."""

    def __init__(self, *issues: Issue, final: bool = False, ending: Ending | None = None) -> None:
        super().__init__(issues[0].message if issues else "The upstream did not start.")
        self.issues = issues
        self.final = final
        self.ending = ending


class RunningUpstream:
    """An upstream that was started or found."""

    kind: HostKind
    process_id: int | None = None
    endpoint: str | None = None  # None: it uses pipes, and all clients share one conversation
    owned = False  # whether this proxy stops it; a Host that another program launched is not owned
    log_file: str | None = None
    arrivals: Callable[[], list[tuple[int, float]]] | None = None  # when its output came into that file, if known
    startup_seconds = 0.0  # how long `connect` may wait for its start, besides the handshake

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        """Open a conversation for one client; raises ConnectionLost or UnusableServer."""
        raise NotImplementedError

    async def ended(self) -> Ending:
        """Wait until it has ended, or does not answer any more."""
        raise NotImplementedError

    def check_now(self) -> None:
        """Check at once whether it still answers, because a connection failed; nothing to do if its exit is noticed."""

    async def stop(self, *, patient: bool = False) -> None:
        """Stop it and its processes, if it is owned, within a bounded time. `patient`: give it time to shut down."""


class Upstream:
    startup_seconds = USUAL_STARTUP_SECONDS  # the limit of one start, until the first answer
    remote = False  # whether others start it, so that it is looked for at intervals
    standby = False  # whether a second one is kept ready, which replaces one that crashes
    far = False  # whether it is on another machine, so that these intervals grow

    def start(self, observer: UpstreamObserver) -> RunningUpstream:
        """Start or find the upstream; raises StartFailure. Blocks, so it runs in a thread."""
        raise NotImplementedError

    def has_other_credentials(self) -> bool:
        """Whether it has other credentials than those that a remote upstream has refused."""
        raise NotImplementedError

    def renegotiate(self) -> None:
        """Forget which era earlier starts found, because the server's code may have changed."""


def named_upstream(options: ProxyOptions) -> Upstream:
    """The server that the user named on the command line of the proxy."""
    if options.url is not None:
        from .url_upstream import UrlUpstream, credentials_of

        return UrlUpstream(options.url, credentials_of(options.url, options.headers or {}))
    from .command_launch import CommandUpstream

    command, state = options.command, folders().state
    where = "after '--'" if options.server is None else f"in --server {options.server}=…"
    if not options.watch:
        return CommandUpstream(command, options.directory, os.environ, state, named_where=where)
    from ...workspace.server_command import without_own_reload
    from ..reload.watched_code import unbuilt_command

    return CommandUpstream(
        without_own_reload(command),
        options.directory,
        os.environ,
        state,
        named_where=where,
        obstacle=lambda: unbuilt_command(options, os.environ),
    )


def workspace_upstream(
    options: ProxyOptions, workspace: Workspace, channel_name: str
) -> HostUpstream | ConfiguredUpstream:
    """The server that the workspace's config names, else a Host, which registers our control channel."""
    if options.server is not None or uses_config(workspace):
        from .configured_command import ConfiguredUpstream

        return ConfiguredUpstream(workspace, os.environ, options.server)
    from .host_launch import HostUpstream

    channel = pipe_path(channel_name)
    return HostUpstream(workspace, os.environ, port=options.port, forwarded=options.forwarded, control_channel=channel)


def uses_config(workspace: Workspace) -> bool:
    """Whether the config names the server, or cannot be read and a Host would have no tools."""
    if workspace.config is None:
        return False
    from ...workspace.config import read_config

    config = read_config(workspace.config)
    return config.names_server or (config.unclear is not None and not has_work_for_host(workspace))


def has_main_server(options: ProxyOptions, workspace: Workspace) -> bool:
    """Whether the workspace has a server besides those in `servers` of its config, and the user wants it."""
    if not options.has_main:
        return False
    if workspace.config is None or has_work_for_host(workspace):
        return True
    from ...workspace.config import read_config

    config = read_config(workspace.config)
    return config.names_server or config.unclear is not None or not config.servers


def has_work_for_host(workspace: Workspace) -> bool:
    return workspace.global_json is not None or os.path.isdir(os.path.join(workspace.working_directory, ADDINS))


def further_servers(options: ProxyOptions, workspace: Workspace | None) -> tuple[list[ProxyOptions], Config, str]:
    """The options of each further server, the config of the workspace, and why its `servers` may not run, or "".

    `workspace`: None if what is served does not depend on one. Reads the disk.
    """
    from ...workspace.config import Config, read_config
    from ...workspace.trust import is_trusted, refusal

    of_one = options.replace(command=(), url=None, headers=None, servers=(), entries=None, force_fallback=False)
    typed = [
        of_one.replace(server=name, url=words[0], headers=None if options.url else options.headers)
        if is_url(words)
        else of_one.replace(server=name, command=tuple(words))
        for name, *words in options.servers
    ]
    if workspace is None or not workspace.resolved:
        return typed, Config(), ""
    folder = workspace.working_directory
    trusted, config = is_trusted(os.environ, folder), read_config(workspace.config)
    wanted = [
        entry
        for entry in config.servers
        if entry.enabled and entry.name not in [each.server for each in typed] and _is_wanted(options, str(entry.name))
    ]
    if wanted and not (trusted and is_trusted(os.environ, folder)):  # the config may have been saved while it was read
        return typed, config, refusal(folders().state, folder)
    return [*(of_one.replace(server=entry.name, watch=False) for entry in wanted), *typed], config, ""


def _is_wanted(options: ProxyOptions, name: str) -> bool:
    return options.entries is None or name in options.entries


def is_url(words: Sequence[str]) -> bool:
    """Whether these words of --server name a server at a URL, not a command."""
    return len(words) == 1 and words[0].lower().startswith(("http://", "https://"))
