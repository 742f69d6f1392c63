"""All add-ins of a Host.

The Host neither waits for an add-in nor ends because of one: add-ins are loaded in a thread, in order, while the Host
already listens. One that fails is removed and reported.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...system.event_loop import in_loop, run_in_thread
from ...system.log import log
from ...system.values import Value
from ..health import AddInSummary

if TYPE_CHECKING:
    from .handlers import IdeHandler, Processor
    from .loaded_addin import LoadedAddIn

LIST_CHANGES = tuple(f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts"))

# Names that the Host itself offers, so that no add-in can use them.
HEALTH_TOOL_NAME = "uno_health"
HEALTH_RESOURCE_URI = "uno://health"
SERVER_SCOPE = "RemoteControlServer"
HOT_RELOAD_SCOPE = "HotReload"
RESERVED = (
    ("tool", HEALTH_TOOL_NAME),
    ("resource", HEALTH_RESOURCE_URI),
    ("processor", SERVER_SCOPE),
    ("processor", HOT_RELOAD_SCOPE),
)


class AddInLimits(Value):
    """Time limits in seconds."""

    load: float = 15.0  # for one add-in; on a busy machine, importing the official SDK takes seconds
    start: float = 10.0  # for on_start and the start of an SDK server
    ready: float = 10.0  # for a request that waits for add-ins; clients are notified of later ones
    stop: float = 3.0  # for all add-ins together, because the program that stops the Host waits
    health: float = 1.0  # for an add-in's part of the health report


class AddInManager:
    """`load` begins to load; `start` runs in a task during the Host's own start; `stop` ends what the add-ins run.

    `announce` sends a notification to all clients, and is called on the event loop. `send_to_ide` returns whether an
    IDE was connected, and may be called from any thread.
    """

    def __init__(
        self,
        *,
        workspace: str,
        solution: str | None = None,
        settings: Mapping[str, str] | None = None,
        limits: AddInLimits | None = None,
        announce: Callable[[str, Mapping[str, Any] | None], None] = lambda _method, _params: None,
        send_to_ide: Callable[[str, Mapping[str, Any]], bool] = lambda _type_name, _body: False,
    ) -> None:
        self.tool_count = 0  # the number of tools of all add-ins at the last `check`
        self._workspace = workspace
        self._solution = solution
        self._settings = settings or {}
        self._limits = limits or AddInLimits()
        self._announce = announce
        self._send_to_ide = send_to_ide
        self._addins: tuple[LoadedAddIn, ...] = ()
        self._discovery_error: str | None = None
        self._loaded = threading.Event()
        self._ready = asyncio.Event()
        self._counting: asyncio.Task[int] | None = None
        self._asked_early = False  # whether a client was shown incomplete lists
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()

    def load(self, paths: Sequence[str], discovery_error: str | None = None) -> None:
        """Begin to load these add-ins, in this order, and return at once."""
        self._discovery_error = discovery_error
        if not paths:
            self._loaded.set()
            return
        from .loaded_addin import LoadedAddIn

        names = NameClaims()
        self._addins = tuple(
            LoadedAddIn(path, limits=self._limits, names=names, changed=self._changed, send_to_ide=self._send_to_ide)
            for path in paths
        )
        threading.Thread(target=self._load_all, name="load add-ins", daemon=True).start()

    async def start(self) -> None:
        """Start all add-ins once they are loaded; return when each one works or its failure is reported."""
        self._loop = asyncio.get_running_loop()
        if self._addins:
            from .invocation import watch_event_loop

            watch_event_loop(self._loop, self._stopping)
            await run_in_thread(self._loaded.wait)
            if self._stopping.is_set():
                return
            await asyncio.gather(*(addin.start() for addin in self._addins if addin.error is None))
        self._ready.set()
        if self._asked_early:
            for method in LIST_CHANGES:
                self._announce(method, None)

    async def ready(self) -> None:
        """Wait for a limited time until all are started; clients that were answered before that are notified later."""
        if self._ready.is_set():
            return
        try:
            await asyncio.wait_for(self._ready.wait(), self._limits.ready)
        except TimeoutError:
            self._asked_early = True

    async def stop(self) -> None:
        """End what the add-ins run, within a time limit; failures are only logged."""
        self._stopping.set()
        live = self.live
        tasks = [task for addin in live for task in addin.tasks]
        for task in tasks:
            task.cancel()
        tasks += [asyncio.create_task(addin.stop()) for addin in live]
        if not tasks:
            return
        # Not `wait_for`, which would wait for a task that ignores its cancellation.
        _, unfinished = await asyncio.wait(tasks, timeout=self._limits.stop)
        if unfinished:
            log.warn(f"Some add-ins did not stop within {self._limits.stop:g} s; the Host does not wait longer.")

    @property
    def live(self) -> list[LoadedAddIn]:
        """The add-ins that work, in the order of loading."""
        return [addin for addin in self._addins if addin.live]

    @property
    def processors(self) -> tuple[Processor, ...]:
        return tuple(processor for addin in self.live for processor in addin.registrations.processors)

    @property
    def ide_handlers(self) -> tuple[IdeHandler, ...]:
        return tuple(handler for addin in self.live for handler in addin.registrations.ide_handlers)

    @property
    def status(self) -> AddInSummary:
        loading = not self._ready.is_set()
        if not self._addins:
            return AddInSummary((), loading, self._discovery_error)
        from .invocation import busy_problems, running_report

        statuses = tuple(addin.status for addin in self._addins)
        return AddInSummary(statuses, loading, self._discovery_error, tuple(running_report()), tuple(busy_problems()))

    async def check(self) -> None:
        """Bring `status` and `tool_count` up to date: run the add-ins' health functions and count their tools."""
        live = self.live
        if live:
            await asyncio.gather(self._count_tools(), *(addin.check() for addin in live))

    async def _count_tools(self) -> None:
        """Update `tool_count`; if listing the tools takes too long or fails, the last known number stays."""
        from ..mcp_requests import count_tools

        if self._counting is None or self._counting.done():  # a list that hangs is not requested again
            self._counting = asyncio.create_task(count_tools(self))
        done, _ = await asyncio.wait([self._counting], timeout=self._limits.health)
        if done and self._counting.exception() is None:
            self.tool_count = self._counting.result()

    def _changed(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Announce a change of an add-in. Safe from any thread."""
        # Before that, no client has seen the lists, or `start` will announce them.
        if self._ready.is_set() and self._loop is not None:
            in_loop(self._loop, self._announce, method, params)

    def _load_all(self) -> None:
        for addin in self._addins:
            addin.load(self._workspace, self._solution, self._settings)
        self._loaded.set()


class NameClaims:
    """Which add-in offers a name. Safe from any thread."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], str] = dict.fromkeys(RESERVED, "the Host")
        self._lock = threading.Lock()

    def take(self, kind: str, name: str, owner: str) -> str | None:
        """Claim a name for an owner; return None on success, otherwise the owner that has it."""
        with self._lock:
            first = self._owners.setdefault((kind, name), owner)
        return None if first == owner else first

    def release(self, kind: str, name: str, owner: str) -> None:
        """Release a name, unless another owner has it."""
        with self._lock:
            if self._owners.get((kind, name)) == owner:
                del self._owners[kind, name]

    def release_all(self, owner: str) -> None:
        with self._lock:
            self._owners = {key: other for key, other in self._owners.items() if other != owner}

    def counts(self, owner: str) -> Mapping[str, int]:
        """The number of names of each kind that an owner has."""
        with self._lock:
            return Counter(kind for (kind, _), other in self._owners.items() if other == owner)
