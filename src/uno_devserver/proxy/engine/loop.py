"""The engine's loop: its parts, how they know each other, and the order in which they end.

Whatever hangs, it is over within its bound when the inbox says so: the front, and with it the process, waits no longer.
"""

from __future__ import annotations

import _thread
import asyncio
import traceback
from typing import TYPE_CHECKING, Any

from ...issues import UserError
from ...protocol.eras import MODERN_VERSIONS
from ...protocol.running import Tasks
from ...protocol.stdio import Stdio
from ...system.folders import folders
from ...system.log import ERROR, log
from ...system.threads import apart
from ...workspace.addins import workspace_addins
from ..relay.relay import Relay
from .announcements import Announcements
from .chores import Chores
from .faces import Faces
from .keeper import Keeper
from .knowledge import Knowledge
from .offering import Offering
from .reload_subject import unknown_code
from .upkeep import NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.parties import ClientInfo
    from ...protocol.service import Params, Session
    from ..board import Board
    from ..inbox import Inbox
    from ..options import Options
    from ..timeline import Timeline
    from .engine import Begun
    from .reloading import Reloading

CLOSE_SECONDS = 0.23  # the front gives us 0.25 s
READY_SECONDS = 1.0  # some clients never say that they are initialized
TOOLS_SECONDS = 30.0  # --mcp-wait-tools-list: what clients allow for their start
LOOK_SECONDS = 1.0  # a start does not wait longer for a look at the disk, which takes microseconds as a rule
BEHIND_CALLS_SECONDS = 0.02  # the calls that waited for a start go first
LINGER_SECONDS = 1.0  # a start that works is over by then
CATALOGUE_SECONDS = 60.0  # --force-generate-tool-cache: a Host has 30 s to start, and its add-ins as long to load


async def serve(
    options: Options,
    board: Board,
    inbox: Inbox,
    write: Callable[[bytes], None],
    timeline: Timeline,
    begun: Begun,
) -> UserError | None:
    timeline.mark("loop")
    engine = _Engine(options, board, write, timeline, begun)
    loop = asyncio.get_running_loop()
    begun.starts.reports.open(loop, engine.keeper.reported)
    inbox.open(loop, engine.take)
    try:
        over = loop.create_task(engine.over.wait())
        if options.only_catalogue:
            made = loop.create_task(engine.make_catalogue())
            await asyncio.wait([made, over], return_when=asyncio.FIRST_COMPLETED)
            return made.result() if made.done() else None  # nobody waits any more
        await engine.open()
        await over
        return None
    finally:
        await engine.close()


class _Engine:
    def __init__(
        self, options: Options, board: Board, write: Callable[[bytes], None], timeline: Timeline, begun: Begun
    ) -> None:
        self._options = options
        self._board = board
        self._loop = asyncio.get_running_loop()
        self._unready: asyncio.TimerHandle | None = None  # a client has introduced itself, and is not ready yet
        self.over = asyncio.Event()
        state = folders().state
        self._offering = Offering(options, board, state, self._broadcast)
        self._knowledge = Knowledge(options, timeline, state)
        self._knowledge.learn(
            state=begun.lifecycle.state,
            wait_calls=options.wait_calls,
            catalogue_written=board.catalogue.saved_at if board.catalogue else None,
            catalogue_sdk=board.catalogue.sdk_version if board.catalogue else None,
            tool_count=self._offering.tool_count,
        )
        board.health = self._knowledge.report
        self._announcements = Announcements(self._say)
        self.keeper = Keeper(
            begun.lifecycle,
            begun.starts,
            self._knowledge,
            self._offering,
            self._announcements,
            timeline,
            begun.upstream,
            named=options.upstream_name,
            comes_back=options.url is not None,
        )
        self._relay = Relay(
            self.keeper, board, resource_updated=self._resource_updated, roots_changed=self._roots_changed
        )
        self._relay.wait_calls = options.wait_calls
        self._stdio = Stdio(self._relay, write)
        self._faces = Faces(options, self._relay, self._knowledge)
        self.keeper.shared_peer = self._relay.everybody
        self.keeper.changed = self._relay.upstream_changed
        self.keeper.replaced = self._relay.upstream_replaced
        self.keeper.unused = self._relay.until_unused
        self._chores = Chores(self.keeper, self._knowledge, self._offering)
        self.keeper.settled = self._settled
        self.keeper.listed_anew = self._chores.listed_anew
        self._offering.adapted = self._chores.listed_anew
        self._begun = begun
        self._reloading: Reloading | None = None  # None: it is too early for it
        self._tasks = Tasks()
        self.keeper.launching = self._launching
        if begun.unknown_code is not None:
            self._knowledge.learn(hot_reload_off=begun.unknown_code)
            self._offering.adapt(hot_reload=False, lists_follow=True)
        if begun.workspaces is not None:
            self._place(begun)

    def _place(self, begun: Begun) -> None:
        from .placement import Placement

        assert begun.workspaces is not None
        assert begun.decision is not None
        self.keeper.placement = Placement(
            self._options,
            begun.workspaces,
            begun.decision,
            begun.looked_at,
            begun.channel_name,
            keeper=self.keeper,
            knowledge=self._knowledge,
            offering=self._offering,
            relay=self._relay,
            announcements=self._announcements,
        )

    async def open(self) -> None:
        self._loop.call_later(LINGER_SECONDS, self._knowledge.linger)
        if self.keeper.placement is not None:
            self.keeper.placement.begin()
        # A Host reads its code within milliseconds, and is in a hurry; a start that failed early has begun it already.
        if not self._begun.is_host and self._begun.unknown_code is None and self._reloading is None:
            self._relay.await_pipeline(self._reload())
        elif self.keeper.placement is not None and self.keeper.running is None:
            _thread.start_new_thread(_read_ahead, (self.keeper.placement.workspace.working_directory,))
        if self._board.holds_tools:
            self._loop.call_later(TOOLS_SECONDS, self._release_tools)
        await self._faces.open()

    async def make_catalogue(self) -> UserError | None:
        """--force-generate-tool-cache: why it failed."""
        keeper = self.keeper
        keeper.met(NOBODY)
        if keeper.upstream is not None and await keeper.until_connected(CATALOGUE_SECONDS):
            await self._chores.keep()
            return None
        issues = (*self._knowledge.facts.issues, *(keeper.placement.workspace.issues if keeper.placement else ()))
        why, step = f"{keeper.named} did not start.", "See what it prints."
        if issues:
            # What the proxy would do by itself is said behind a semicolon; here it ends.
            why, step = issues[0].message, issues[0].remediation.partition("; the ")[0].rstrip(".") + "."
        return UserError("NoCatalogue", f"No tool catalogue was made. {why}", f"{step} Then run this again.")

    async def close(self) -> None:
        """Everything at the same time, and no longer than we have."""
        self._tasks.cancel()
        placement = self.keeper.placement
        if placement is not None:
            placement.close()
        parts = (self._chores, self.keeper, self._stdio, self._relay, self._faces, self._reloading)
        closing = [apart(self._knowledge.close), *(part.close() for part in parts if part is not None)]
        await asyncio.wait([asyncio.ensure_future(one) for one in closing], timeout=CLOSE_SECONDS)

    # What the front passes on.

    def take(self, message: tuple[str, Any]) -> None:
        try:
            self._take(*message)
        except Exception:  # a defect of ours; what comes behind it is taken all the same
            log.write(ERROR, f"a message could not be taken:\n{traceback.format_exc()}")

    def _take(self, kind: str, value: Any) -> None:
        if kind == "message":
            self._stdio.take(value)
            if value.get("method") == "notifications/initialized":
                self._ready()
        elif kind == "greeting":
            self._met(value)
        elif kind == "read":
            self.keeper.listed()
            self._relay.listed()
        elif kind == "end":
            self.over.set()

    def _met(self, client: ClientInfo) -> None:
        self._stdio.introduce(client)
        self._relay.everybody.met(client)
        self.keeper.met(client)
        clients = dict.fromkeys((*self._knowledge.facts.clients, client.name or "unknown"))
        self._knowledge.learn(clients=tuple(clients))
        if client.protocol_version in MODERN_VERSIONS:
            self._roots_changed(None)
        elif self._unready is None:
            self._unready = self._loop.call_later(READY_SECONDS, self._ready)

    def _ready(self) -> None:
        """The client may be asked something."""
        if self._unready is not None:
            self._unready.cancel()
            self._unready = None
            self._roots_changed(self._stdio.session)

    def _roots_changed(self, session: Session | None) -> None:
        if self.keeper.placement is not None:
            self.keeper.placement.met(session)

    # What goes to all clients.

    def _broadcast(self, method: str, params: Params | None = None) -> None:
        self._stdio.broadcast(method, params)
        self._faces.broadcast(method, params)

    def _resource_updated(self, uri: str) -> None:
        self._stdio.resource_updated(uri)
        self._faces.resource_updated(uri)

    def _say(self, method: str, params: Params) -> None:
        self._relay.everybody.notify(method, params)

    def _settled(self) -> None:
        self._release_tools()
        self._chores.settled()
        self._faces.settled()
        if self._reloading is not None:
            self._reloading.settled()
            return
        if self._begun.unknown_code is not None:
            self._loop.call_later(BEHIND_CALLS_SECONDS, lambda: self._tasks.start(self._look_for_code()))
            return
        arranging = self._reload()
        if self._knowledge.facts.trusted:  # else nothing of the workspace runs that could be edited
            self._relay.await_pipeline(arranging)

    # New code.

    def _reload(self) -> asyncio.Task[None]:
        """See to it from now on that the newest code answers; is done when it is known who does."""
        from .reloading import Reloading

        self._reloading = Reloading(
            self._options,
            self._begun.channel_name,
            self._begun.content,
            keeper=self.keeper,
            relay=self._relay,
            offering=self._offering,
            knowledge=self._knowledge,
            announcements=self._announcements,
            open_inspector=self._faces.open_inspector,
        )
        self.keeper.reload = self._reloading.reload
        if self.keeper.placement is not None:
            self.keeper.placement.looked = self._looked
        return self._reloading.look()

    def _looked(self) -> None:
        """At the workspace, by its placement: its config or its trust may be another."""
        assert self._reloading is not None
        self._reloading.look()
        self._faces.look()

    async def _launching(self) -> None:
        """Of all starts but the first."""
        if self._reloading is None:
            await self._look_for_code()
        if self._reloading is not None:
            await self._reloading.launching()

    async def _look_for_code(self) -> None:
        """Begin to reload code, unless it is unknown where that is: then not even what does so is imported."""
        if self._begun.unknown_code is not None:
            looking = self._tasks.start(apart(lambda: unknown_code(self._options)))
            await asyncio.wait([looking], timeout=LOOK_SECONDS)
            if not looking.done() or looking.result() is not None:
                return
        if self._reloading is None:
            self._reload()

    def _release_tools(self) -> None:
        self._board.holds_tools = False


def _read_ahead(folder: str) -> None:
    """Import, while a Host starts, what comes when it is connected: before the calls that wait for it."""
    from ...discovery import discover  # noqa: F401
    from ..health import status_file  # noqa: F401
    from . import reloading  # noqa: F401

    if workspace_addins(folder):
        from ...hotreload import channel, own_authority  # noqa: F401
        from ...system import inotify  # noqa: F401
        from ..relay import pipeline  # noqa: F401
