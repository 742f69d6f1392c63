"""The engine: what stands behind the front, in a thread of its own.

Starting the upstream comes first, before anything is imported that only the rest needs: that is read while the upstream
starts. What is imported at the top of this module, and of those that it names, stands before the launch.
"""

from __future__ import annotations

import os
import time

from ...hotreload.channel_name import channel_name
from .lifecycle import Lifecycle, Start
from .starts import Starts
from .supply import named_upstream, uses_config, workspace_upstream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...issues import UserError
    from ..board import Board
    from ..inbox import Inbox
    from ..options import Options
    from ..place.workspaces import Decision, Workspaces
    from ..timeline import Timeline
    from ..upstream.upstream import Upstream

# Of objects that may be in a cycle, until they are looked through. A call makes a hundred, which go by themselves with
# it; at Python's own 700 looking for others took a twentieth of what relaying takes.
LOOK_THROUGH_AFTER = 10_000
# Until there is a process. Whoever imports meanwhile takes the processor from the one who launches.
LAUNCH_SECONDS = 0.2


def run(
    options: Options, board: Board, inbox: Inbox, write: Callable[[bytes], None], timeline: Timeline
) -> UserError | None:
    """Be the engine until the inbox says that it is over; why it failed, where the proxy has only one task."""
    timeline.mark("engine")
    if options.url is None:
        from ...instances.child import end_all

        board.end_by_force = end_all
    begun = Begun(options, timeline)
    if begun.upstream is not None:
        begun.starts.wait_until_launched(LAUNCH_SECONDS)
    import asyncio
    import gc

    from ...system.output import unhurried_output
    from .loop import serve

    gc.freeze()  # what has been imported stays for ever, and need not be looked through again and again
    gc.set_threshold(LOOK_THROUGH_AFTER)
    gc.enable()  # the command line runs without
    with unhurried_output():
        return asyncio.run(serve(options, board, inbox, write, timeline, begun))


class Begun:
    """A first start that is under way, if it is known what to start."""

    def __init__(self, options: Options, timeline: Timeline) -> None:
        self.lifecycle = Lifecycle()
        self.starts = Starts(timeline)
        self.looked_at = time.time()
        self.workspaces: Workspaces | None = None  # None: the upstream does not depend on one
        self.decision: Decision | None = None
        self.channel_name = channel_name()  # of the control channel, should there be one
        self.is_host = False
        self.content: str | None = None  # the digest of the code that was launched, if there is any to be watched
        self.unknown_code: str | None = None  # why it cannot even be known where that is
        self.upstream = self._first(options)
        if self.upstream is not None:
            self._look_at_code(options)
            for action in self.lifecycle.begin(time.monotonic()):
                assert isinstance(action, Start)  # there is nothing to stop
                self.starts.start(action.attempt, self.upstream)

    def _first(self, options: Options) -> Upstream | None:
        if not options.uses_host:
            return named_upstream(options)
        from ...workspace.transitions import Transition
        from ..place.workspaces import Workspaces

        self.workspaces = Workspaces(options)
        self.decision = self.workspaces.initial()
        if self.decision.transition is not Transition.START:
            return None
        workspace = self.decision.workspace
        self.is_host = not uses_config(workspace)
        return workspace_upstream(options, workspace, self.channel_name)

    def _look_at_code(self, options: Options) -> None:
        """Before it is launched, so that no save comes between unseen. A Host is looked at by its start."""
        if self.is_host:
            return
        from .reload_subject import content_at_launch, unknown_code

        if self.decision is None:
            self.unknown_code = unknown_code(options)
        if self.unknown_code is None:
            self.content = content_at_launch(options, self.decision.workspace if self.decision else None, os.environ)
