"""All add-ins of a Host.

The Host neither waits for an add-in nor dies of one: loading happens in a thread, in order, while the Host begins to
listen; what fails, at whatever stage, is taken out and reported.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...system.event_loop import in_loop
from ...system.log import log
from ...system.values import Value
from ..health import AddInSummary

if TYPE_CHECKING:
    from .handlers import IdeHandler, Processor
    from .loaded_addin import LoadedAddIn

LIST_CHANGES = tuple(f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts"))


class AddInManager:
    """`load` begins to load; `start` runs as a task beside the Host's own start; `stop` ends what they run."""

    def __init__(
        self,
        *,
        workspace: str,
        solution: str | None = None,
        settings: Mapping[str, str] | None = None,
        limits: AddInLimits | None = None,
    ) -> None:
        # The two ways out, for the Host to connect. `announce` tells all clients the method and parameters of a
        # notification and is called on the event loop; `send_to_ide` says whether an IDE was there, from any thread.
        self.announce: Callable[[str, Mapping[str, Any] | None], None] = lambda _method, _params: None
        self.send_to_ide: Callable[[str, Mapping[str, Any]], bool] = lambda _type_name, _body: False
        self.names = NameClaims()
        self.tool_count = 0  # of all add-ins, as `check` found it
        self.limits = limits or AddInLimits()
        self._workspace = workspace
        self._solution = solution
        self._settings = settings or {}
        self._entries: tuple[LoadedAddIn, ...] = ()
        self._discovery_error: str | None = None
        self._loaded = threading.Event()
        self._ready = asyncio.Event()
        self._listing: asyncio.Task[list[dict[str, Any]]] | None = None
        self._asked_early = False  # a client saw the lists before they were complete
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()

    def load(self, paths: Sequence[str], discovery_error: str | None = None) -> None:
        """Begin to load these, in this order; returns at once."""
        self._discovery_error = discovery_error
        if not paths:
            self._loaded.set()
            return
        from .loaded_addin import LoadedAddIn

        self._entries = tuple(LoadedAddIn(path, self) for path in paths)
        threading.Thread(target=self._load_all, name="load add-ins", daemon=True).start()

    async def start(self) -> None:
        """Wait until all are loaded, then start them; done when every one of them works or is reported."""
        self._loop = asyncio.get_running_loop()
        if self._entries:
            from .invocation import invoke_apart, watch_event_loop

            watch_event_loop(self._loop, self._stopping)
            await invoke_apart(self._loaded.wait)
            if self._stopping.is_set():
                return
            await asyncio.gather(*(entry.start() for entry in self._entries if entry.error is None))
        self._ready.set()
        if self._asked_early:
            for method in LIST_CHANGES:
                self.announce(method, None)

    async def ready(self) -> None:
        """Wait until all are started, but not for ever; clients are told when the rest is there."""
        if self._ready.is_set():
            return
        try:
            await asyncio.wait_for(self._ready.wait(), self.limits.ready)
        except TimeoutError:
            self._asked_early = True

    async def stop(self) -> None:
        """End what the add-ins run; bounded, and whatever fails is only logged."""
        self._stopping.set()
        live = self.live
        tasks = [task for entry in live for task in entry.tasks]
        for task in tasks:
            task.cancel()
        tasks += [asyncio.create_task(entry.stop()) for entry in live]
        if not tasks:
            return
        # Not `wait_for`: it would wait for a task that ignores its cancellation.
        _, unfinished = await asyncio.wait(tasks, timeout=self.limits.stop)
        if unfinished:
            log.warn(f"Some add-ins did not stop within {self.limits.stop:g} s; the Host does not wait longer.")

    @property
    def live(self) -> list[LoadedAddIn]:
        """The ones that work, in the order of loading."""
        return [entry for entry in self._entries if entry.live]

    @property
    def processors(self) -> tuple[Processor, ...]:
        return tuple(processor for entry in self.live for processor in entry.offer.processors)

    @property
    def ide_handlers(self) -> tuple[IdeHandler, ...]:
        return tuple(handler for entry in self.live for handler in entry.offer.ide_handlers)

    @property
    def status(self) -> AddInSummary:
        loading = not self._ready.is_set()
        if not self._entries:
            return AddInSummary((), loading, self._discovery_error)
        from .invocation import busy_problems, running_report

        entries = tuple(entry.status for entry in self._entries)
        return AddInSummary(entries, loading, self._discovery_error, tuple(running_report()), tuple(busy_problems()))

    async def check(self) -> AddInSummary:
        """The status, after every add-in was asked how it is and what it offers."""
        live = self.live
        if live:
            await asyncio.gather(self._count_tools(), *(entry.check() for entry in live))
        return self.status

    def changed(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Something of an add-in changed. From any thread."""
        # Before they are ready nobody has seen what there was, or is told by `start`.
        if self._ready.is_set() and self._loop is not None:
            in_loop(self._loop, self.announce, method, params)

    async def _count_tools(self) -> None:
        """As many as a client would be shown; the last known number stays while a server takes its time to list."""
        from ..mcp_requests import TOOLS, HostCall, listed

        if self._listing is None or self._listing.done():  # one that hangs is not asked again
            self._listing = asyncio.create_task(listed(self, TOOLS, HostCall(TOOLS.method)))
        done, _ = await asyncio.wait([self._listing], timeout=self.limits.health)
        if done and self._listing.exception() is None:
            self.tool_count = len(self._listing.result())

    def _load_all(self) -> None:
        for entry in self._entries:
            entry.load(self._workspace, self._solution, self._settings)
        self._loaded.set()


class AddInLimits(Value):
    """In seconds."""

    load: float = 15.0  # one add-in: the official SDK alone takes seconds to import on a busy machine
    start: float = 10.0  # on_start and an SDK server's lifespan
    ready: float = 10.0  # a client's request for add-ins that are not there yet; what comes later is announced
    stop: float = 3.0  # all of them together: whoever stops the Host waits
    health: float = 1.0  # a health report must not wait for a sick add-in


# What the Host itself offers: no add-in can take it.
RESERVED = (
    ("tool", "uno_health"),
    ("resource", "uno://health"),
    ("processor", "RemoteControlServer"),
    ("processor", "HotReload"),
)


class NameClaims:
    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], str] = dict.fromkeys(RESERVED, "the Host")
        self._lock = threading.Lock()

    def take(self, kind: str, name: str, owner: str) -> str | None:
        """None when it is this owner's now; else who has it."""
        with self._lock:
            first = self._owners.setdefault((kind, name), owner)
        return None if first == owner else first

    def release(self, kind: str, name: str, owner: str) -> None:
        """Give up a name; nothing happens when it is another owner's."""
        with self._lock:
            if self._owners.get((kind, name)) == owner:
                del self._owners[kind, name]

    def counts(self, owner: str) -> Mapping[str, int]:
        """How many names of each kind an owner has."""
        with self._lock:
            return Counter(kind for (kind, _), other in self._owners.items() if other == owner)

    def release_all(self, owner: str) -> None:
        with self._lock:
            self._owners = {key: other for key, other in self._owners.items() if other != owner}
