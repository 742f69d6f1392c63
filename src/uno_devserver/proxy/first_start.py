"""Begins the first start of the upstream, before there is an event loop.

The upstream is launched first, and the rest is imported while it starts. Every import at the top of this module, or of
the modules that it imports, delays the launch.
"""

from __future__ import annotations

import os
import time

from ..hotreload.control.channel_name import channel_name
from .upstream.base import named_upstream, uses_config, workspace_upstream
from .upstream.launcher import Launcher
from .upstream.lifecycle import Lifecycle, Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .options import ProxyOptions
    from .state import Timeline
    from .upstream.base import Upstream
    from .workspace.decisions import Decision, WorkspaceDecisions

LAUNCH_SECONDS = 0.2  # how long imports wait for the process, because they would slow down the thread that launches it


class FirstStart:
    """The decisions and objects of the first start, which the engine takes over."""

    def __init__(self, options: ProxyOptions, timeline: Timeline) -> None:
        timeline.mark("engine")
        self.lifecycle = Lifecycle()
        self.launcher = Launcher(timeline)
        self.resolved_at = time.time()
        self.decisions: WorkspaceDecisions | None = None  # None if the upstream does not depend on a workspace
        self.decision: Decision | None = None
        self.channel_name = channel_name()  # for the control channel, if one is opened
        self.is_host = False
        self.content: str | None = None  # the digest of the launched code, if it can be watched
        self.unknown_code: str | None = None  # why it is not known where the code is
        self.upstream = self._first(options)
        if self.upstream is not None:
            self._read_code(options)
            for action in self.lifecycle.begin(time.monotonic()):
                assert isinstance(action, Start)  # there is nothing to stop
                self.launcher.start(action.attempt, self.upstream)
            self.launcher.wait_until_launched(LAUNCH_SECONDS)

    def _first(self, options: ProxyOptions) -> Upstream | None:
        if not options.uses_host:
            return named_upstream(options)
        from .workspace.decisions import Transition, WorkspaceDecisions

        self.decisions = WorkspaceDecisions(options)
        self.decision = self.decisions.initial()
        if self.decision.transition is not Transition.START:
            return None
        workspace = self.decision.workspace
        self.is_host = not uses_config(workspace)
        return workspace_upstream(options, workspace, self.channel_name)

    def _read_code(self, options: ProxyOptions) -> None:
        """Compute the digest of the code before the launch, so that no later save is missed; not for a Host."""
        if self.is_host:
            return
        from .reload.watched_code import content_at_launch, unknown_code

        if self.decision is None:
            self.unknown_code = unknown_code(options)
        if self.unknown_code is None:
            self.content = content_at_launch(options, self.decision.workspace if self.decision else None, os.environ)
