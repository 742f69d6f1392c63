"""The interface of upstreams, and the choice of one: a Host, a command or a URL.

Cheap to import: the launch waits for it, and each kind of upstream is imported only when it is chosen.
"""

from __future__ import annotations

import os

from ...system.folders import folders
from ...system.pipes import pipe_path
from ...system.values import Value
from ...workspace.addins import ADDINS_FOLDER as ADDINS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...instances.host_kind import HostKind
    from ...issues import Issue
    from ...protocol.client.connection import Connection, Peer
    from ...workspace.resolver import Workspace
    from ..options import ProxyOptions
    from .configured_command import ConfiguredUpstream
    from .host_launch import HostUpstream
    from .launcher import UpstreamObserver


USUAL_STARTUP_SECONDS = 30.0  # npx and uvx may have to download the server before its first answer


class Ending(Value):
    """How an upstream ended."""

    reason: str  # a sentence without a full stop: "it ended with exit code 3", "it does not answer any more"
    exit_code: int | None = None  # negative: the signal that ended it
    last_lines: tuple[str, ...] = ()  # of its output
    other_era_next: bool = False  # it did not answer `server/discover`; the next start begins with `initialize`


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

    def start(self, observer: UpstreamObserver) -> RunningUpstream:
        """Start or find the upstream; raises StartFailure. Blocks, so it runs in a thread."""
        raise NotImplementedError

    def renegotiate(self) -> None:
        """Forget which era earlier starts found, because the server's code may have changed."""


def named_upstream(options: ProxyOptions) -> Upstream:
    """The server that the user named on the command line of the proxy."""
    if options.url is not None:
        from .url import UrlUpstream

        return UrlUpstream(options.url)
    from .command_launch import CommandUpstream

    command = options.command
    if options.watch:
        from ...workspace.server_command import without_own_reload

        command = without_own_reload(command)
    return CommandUpstream(command, options.directory, os.environ, folders().state)


def workspace_upstream(
    options: ProxyOptions, workspace: Workspace, channel_name: str
) -> HostUpstream | ConfiguredUpstream:
    """The server that the workspace's config names, else a Host, which registers our control channel."""
    if uses_config(workspace):
        from .configured_command import ConfiguredUpstream

        return ConfiguredUpstream(workspace, os.environ)
    from .host_launch import HostUpstream

    channel = pipe_path(channel_name)
    return HostUpstream(workspace, os.environ, port=options.port, forwarded=options.forwarded, control_channel=channel)


def uses_config(workspace: Workspace) -> bool:
    """Whether the config names the server, or cannot be read and a Host would have no tools."""
    if workspace.config is None:
        return False
    from ...workspace.config import read_config

    config, addins = read_config(workspace.config), os.path.join(workspace.working_directory, ADDINS)
    has_work_for_host = workspace.global_json is not None or os.path.isdir(addins)
    return config.names_server or (config.unclear is not None and not has_work_for_host)
