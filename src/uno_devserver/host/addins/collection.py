"""All add-ins of a Host.

The Host neither waits for an add-in nor dies of one: loading happens in a thread, in order, while the Host begins to
listen; what fails, at whatever stage, is taken out and reported.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...protocol.running import in_loop
from ...system.log import log
from .limits import Limits
from .names import Names
from .status import AddInsStatus

if TYPE_CHECKING:
    from .entry import Entry
    from .peers import IdeHandler, Processor

LIST_CHANGES = tuple(f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts"))


class AddIns:
    """`load` begins to load; `start` runs as a task beside the Host's own start; `stop` ends what they run."""

    def __init__(
        self,
        *,
        workspace: str,
        solution: str | None = None,
        settings: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        # The two ways out, for the Host to connect. `announce` tells all clients the method and parameters of a
        # notification and is called on the event loop; `send_to_ide` says whether an IDE was there, from any thread.
        self.announce: Callable[[str, Mapping[str, Any] | None], None] = lambda _method, _params: None
        self.send_to_ide: Callable[[str, Mapping[str, Any]], bool] = lambda _type_name, _body: False
        self.names = Names()
        self.tool_count = 0  # of all add-ins, as `check` found it
        self.limits = limits or Limits()
        self._workspace = workspace
        self._solution = solution
        self._settings = settings or {}
        self._entries: tuple[Entry, ...] = ()
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
        from .entry import Entry

        self._entries = tuple(Entry(path, self) for path in paths)
        threading.Thread(target=self._load_all, name="load add-ins", daemon=True).start()

    async def start(self) -> None:
        """Wait until all are loaded, then start them; done when every one of them works or is reported."""
        self._loop = asyncio.get_running_loop()
        if self._entries:
            from .blocking import watch
            from .workers import invoke_apart

            watch(self._loop, self._stopping)
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
    def live(self) -> list[Entry]:
        """The ones that work, in the order of loading."""
        return [entry for entry in self._entries if entry.live]

    @property
    def processors(self) -> tuple[Processor, ...]:
        return tuple(processor for entry in self.live for processor in entry.offer.processors)

    @property
    def ide_handlers(self) -> tuple[IdeHandler, ...]:
        return tuple(handler for entry in self.live for handler in entry.offer.ide_handlers)

    @property
    def status(self) -> AddInsStatus:
        loading = not self._ready.is_set()
        if not self._entries:
            return AddInsStatus((), loading, self._discovery_error)
        from .running import shown
        from .workers import problems

        entries = tuple(entry.status for entry in self._entries)
        return AddInsStatus(entries, loading, self._discovery_error, tuple(shown()), tuple(problems()))

    async def check(self) -> AddInsStatus:
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
        from .catalogue import TOOLS, listed
        from .own_call import OwnCall

        if self._listing is None or self._listing.done():  # one that hangs is not asked again
            self._listing = asyncio.create_task(listed(self, TOOLS, OwnCall(TOOLS.method)))
        done, _ = await asyncio.wait([self._listing], timeout=self.limits.health)
        if done and self._listing.exception() is None:
            self.tool_count = len(self._listing.result())

    def _load_all(self) -> None:
        for entry in self._entries:
            entry.load(self._workspace, self._solution, self._settings)
        self._loaded.set()
