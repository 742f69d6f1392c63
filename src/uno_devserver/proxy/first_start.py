"""Begins the first start of the upstream, before there is an event loop.

The upstream is launched first, and the rest is imported while it starts. Every import at the top of this module, or of
the modules that it imports, delays the launch.
"""

from __future__ import annotations

import os
import time

from ..hotreload.control.channel_name import channel_name
from .state import Timeline
from .upstream.base import further_servers, has_main_server, named_upstream, uses_config, workspace_upstream
from .upstream.launcher import Launcher
from .upstream.lifecycle import Lifecycle, Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..workspace.config import Config
    from ..workspace.resolver import Workspace
    from .options import ProxyOptions
    from .upstream.base import Upstream
    from .workspace.decisions import Decision, WorkspaceDecisions

LAUNCH_SECONDS = 0.2  # how long imports wait for the process, because they would slow down the thread that launches it


class FirstStart:
    """The decisions and objects of the first start of one server, which the engine takes over.

    That of the main server also begins those of the further ones.
    """

    def __init__(self, options: ProxyOptions, timeline: Timeline, workspace: Workspace | None = None) -> None:
        """`workspace`: of a further server that its config names."""
        timeline.mark("engine")
        self.options = options
        self.workspace = workspace
        self.lifecycle = Lifecycle()
        self.launcher = Launcher(timeline)
        self.resolved_at = time.time()
        self.decisions: WorkspaceDecisions | None = None  # None if the upstream does not depend on a workspace
        self.decision: Decision | None = None
        self.channel_name = channel_name()  # for the control channel, if one is opened
        self.is_host = False
        self.serves = options.has_main  # whether there is a main server
        self.content: str | None = None  # the digest of the launched code, if it can be watched
        self.unknown_code: str | None = None  # why it is not known where the code is
        self.config: Config | None = None  # of the workspace; None if there is none, or it has not been read
        self.refusal = ""  # why the further servers of the config may not run, as the end of a sentence
        self.upstream = self._first(options)
        if self.upstream is not None:
            self._read_code(options)
            for action in self.lifecycle.begin(time.monotonic()):
                assert isinstance(action, Start)  # there is nothing to stop
                self.launcher.start(action.attempt, self.upstream)
            self.launcher.wait_until_launched(LAUNCH_SECONDS)
        self.members: tuple[FirstStart, ...] = ()
        if options.server is None:
            self._begin_further(options)

    def _first(self, options: ProxyOptions) -> Upstream | None:
        if self.workspace is not None:
            return workspace_upstream(options, self.workspace, self.channel_name)
        if not options.uses_host:
            return named_upstream(options) if options.has_main else None
        from .workspace.decisions import Transition, WorkspaceDecisions

        self.decisions = WorkspaceDecisions(options)
        self.decision = self.decisions.initial()
        if self.decision.transition is not Transition.START:
            return None
        self.workspace = workspace = self.decision.workspace
        self.serves = has_main_server(options, workspace)
        if not self.serves:
            return None
        self.is_host = not uses_config(workspace)
        return workspace_upstream(options, workspace, self.channel_name)

    def _read_code(self, options: ProxyOptions) -> None:
        """Compute the digest of the code before the launch, so that no later save is missed; not for a Host."""
        if self.is_host:
            return
        from .reload.watched_code import content_at_launch, unknown_code

        if self.workspace is None:
            self.unknown_code = unknown_code(options)
        if self.unknown_code is None:
            self.content = content_at_launch(options, self.workspace, os.environ)

    def _begin_further(self, options: ProxyOptions) -> None:
        if options.servers or (self.workspace is not None and self.workspace.config is not None):
            each, self.config, self.refusal = further_servers(options, self.workspace)
            self.members = tuple(start_further(one, self.workspace) for one in each)


def start_further(options: ProxyOptions, workspace: Workspace | None) -> FirstStart:
    """Begin the start of a further server: one that was typed, or an entry of the workspace's config."""
    typed = bool(options.command) or options.url is not None
    return FirstStart(options, Timeline(), None if typed else workspace)
