"""All add-ins of a Host, from loading to the end.

The Host neither waits for an add-in nor dies of one: loading happens in a thread, in order, while the Host begins to
listen; what fails, at whatever stage, is taken out and reported.
"""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from ...system.log import log
from . import loading
from .addin import AddIn, offer_of
from .content import sendable
from .offer import Offer
from .peers import IdeHandler, Processor
from .status import AddInsStatus, AddInStatus
from .tools import sentence
from .workers import invoke

START_SECONDS = 10.0  # for one add-in's on_start; a client waits as long for its first list
STOP_SECONDS = 3.0  # for all of them together: whoever stops the Host waits
READY_SECONDS = 10.0  # a client's first list waits so long for add-ins; what comes later is announced
HEALTH_SECONDS = 1.0  # a health report must not wait for a sick add-in

LIST_CHANGES = tuple(f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts"))

# What the Host itself offers: no add-in can take it.
RESERVED = (
    ("tool", "uno_health"),
    ("resource", "uno://health"),
    ("processor", "RemoteControlServer"),
    ("processor", "HotReload"),
)


class AddIns:
    """Made and told to `load` as early as possible; `start` runs as a task beside the Host's own start."""

    def __init__(
        self, *, workspace: str, solution: str | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self.send_to_ide: Callable[[str, Mapping[str, Any]], bool] = lambda _type, _body: False
        # Tells the clients of a change: the method and parameters of a notification. Called on the event loop.
        self.announce: Callable[[str, Mapping[str, Any] | None], None] = lambda _method, _params: None
        self._workspace = workspace
        self._solution = solution
        self._settings = settings
        self._entries: tuple[Entry, ...] = ()
        self._discovery_error: str | None = None
        self._names = Names()
        self._loaded = threading.Event()
        self._ready = asyncio.Event()
        self._asked_early = False  # a client saw the lists before they were complete
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False

    def load(self, paths: Sequence[str], discovery_error: str | None = None) -> None:
        """Begin to load, in a thread, in this order; returns at once."""
        self._discovery_error = discovery_error
        self._entries = tuple(Entry(path, self._names, self) for path in paths)
        threading.Thread(target=self._load_all, name="load add-ins", daemon=True).start()

    async def start(self) -> None:
        """Wait until all are loaded, then start them; done when every one of them works or is reported."""
        self._loop = asyncio.get_running_loop()
        await invoke(self._loaded.wait)
        await asyncio.gather(*(self._start(entry) for entry in self._entries if entry.error is None))
        self._ready.set()
        if self._asked_early:
            for method in LIST_CHANGES:
                self.announce(method, None)

    async def ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until all are started, but not for ever; clients are told when the rest is there."""
        try:
            await asyncio.wait_for(self._ready.wait(), seconds)
        except TimeoutError:
            self._asked_early = True

    async def stop(self) -> None:
        """End what the add-ins run; bounded, and whatever fails is only logged."""
        self._stopping = True
        live = self.live
        tasks = [task for entry in live for task in entry.tasks]
        for task in tasks:
            task.cancel()
        stopping = asyncio.gather(*tasks, *(_stop(entry) for entry in live), return_exceptions=True)
        try:
            await asyncio.wait_for(stopping, STOP_SECONDS)
        except TimeoutError:
            log.warn(f"Some add-ins did not stop within {STOP_SECONDS:g} s; the Host goes without waiting longer.")

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
        entries = tuple(entry.status for entry in self._entries)
        return AddInsStatus(entries, not self._ready.is_set(), self._discovery_error)

    async def check(self) -> AddInsStatus:
        """The status, after every add-in was asked how it is."""
        await asyncio.gather(*(_check(entry) for entry in self.live))
        return self.status

    def changed(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Something of an add-in changed. From any thread."""
        # Before they are ready nobody has seen what there was, or is told by `start`.
        if self._ready.is_set() and not self._stopping and self._loop is not None:
            self._loop.call_soon_threadsafe(self.announce, method, params)

    def _load_all(self) -> None:
        for number, entry in enumerate(self._entries, 1):
            log.debug(f"Loading add-in {entry.path}.")
            try:
                self._load(entry, number)
            except loading.Refused as refusal:
                if refusal.__cause__ is not None:
                    log.debug("".join(traceback.format_exception(refusal.__cause__)).rstrip())
                entry.quarantine(str(refusal))
        self._loaded.set()

    def _load(self, entry: Entry, number: int) -> None:
        addin = AddIn(entry.name, entry, workspace=self._workspace, solution=self._solution, settings=self._settings)
        entry.offer = offer_of(addin)
        entry.source = loading.locate(entry.path)

        def register(module: ModuleType) -> None:
            module.register(addin)
            for server in offer_of(addin).servers:
                for kind, name in asyncio.run(server.names()):
                    entry.claim(kind, name)

        entry.version = loading.load(entry.source, number, register).version

    async def _start(self, entry: Entry) -> None:
        limit = asyncio.timeout(START_SECONDS)
        try:
            async with limit:
                for server in entry.offer.servers:
                    await server.start()
                for function in entry.offer.on_start:
                    await invoke(function)
        except Exception as error:
            log.debug("".join(traceback.format_exception(error)).rstrip())
            too_slow = f"it did not start within {START_SECONDS:g} s"
            entry.quarantine(
                too_slow if limit.expired() else f"it did not start: {loading.reason(error, entry.source)}"
            )
        else:
            entry.live = True
            entry.tasks = [asyncio.create_task(_run_background(entry, function)) for function in entry.offer.background]


class Names:
    """Who offers what: the first to take a name keeps it. Safe from any thread."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], Entry | None] = dict.fromkeys(RESERVED)
        self._lock = threading.Lock()

    def take(self, kind: str, name: str, entry: Entry) -> str | None:
        """None when it is this add-in's now; else who has it."""
        with self._lock:
            owner = self._owners.setdefault((kind, name), entry)
        if owner is entry:
            return None
        return "the Host" if owner is None else f"add-in '{owner.name}'"

    def release(self, kind: str, name: str) -> None:
        with self._lock:
            self._owners.pop((kind, name), None)

    def release_all(self, entry: Entry) -> None:
        with self._lock:
            self._owners = {key: owner for key, owner in self._owners.items() if owner is not entry}


class Entry:
    """One add-in and what became of it; to the add-in it is its `Home`."""

    def __init__(self, path: str, names: Names, addins: AddIns) -> None:
        self.path = path
        self.name = loading.name_of(path)
        self.source = loading.Source(self.name, path, path, None)
        self.version: str | None = None
        self.offer = Offer()
        self.live = False  # loaded, started, and not taken out
        self.error: str | None = None  # why it was taken out
        self.problems: list[str] = []  # what does not work though the add-in as a whole does
        self.sick: str | None = None  # what its own health check found
        self.detail: str | None = None
        self.failures = 0
        self.tasks: list[asyncio.Task[None]] = []
        self._names = names
        self._addins = addins

    @property
    def status(self) -> AddInStatus:
        wrong = [part for part in (self.error, *self.problems, self.sick) if part]
        error = "; ".join(wrong) or None
        return AddInStatus(self.name, self.path, self.version, self.live, error, self.detail, self.failures)

    def claim(self, kind: str, name: str) -> bool:
        if self.error is not None:  # taken out, but its code still runs somewhere
            return False
        owner = self._names.take(kind, name, self)
        if owner is not None:
            self.problem(f"the {kind} '{name}' is refused: {owner} offers it already")
        return owner is None

    def release(self, kind: str, name: str) -> None:
        self._names.release(kind, name)

    def changed(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self._addins.changed(method, params)

    def failed(self) -> None:
        self.failures += 1

    def send_to_ide(self, type_name: str, body: Mapping[str, Any]) -> bool:
        return self._addins.send_to_ide(type_name, body)

    def problem(self, what: str) -> None:
        if what not in self.problems:
            self.problems.append(what)
            log.warn(f"Add-in {self.name}: {what}.")

    def quarantine(self, why: str) -> None:
        """Take the add-in out: nothing of it is offered any more."""
        self.live = False
        self.error = why
        self.offer = Offer()
        self._names.release_all(self)
        log.warn(f"Add-in {self.path} is left out, the Host goes on: {why}.")


async def _run_background(entry: Entry, function: Callable[[], Any]) -> None:
    try:
        await invoke(function)
    except Exception as error:
        log.debug("".join(traceback.format_exception(error)).rstrip())
        entry.problem(f"its background task ended: {loading.reason(error, entry.source)}")


async def _stop(entry: Entry) -> None:
    for function in entry.offer.on_stop:
        try:
            await invoke(function)
        except Exception as error:
            log.warn(f"Add-in {entry.name}: on_stop failed: {loading.reason(error, entry.source)}")
    for server in entry.offer.servers:
        await server.stop()


async def _check(entry: Entry) -> None:
    if entry.offer.health is None:
        return
    limit = asyncio.timeout(HEALTH_SECONDS)
    try:
        async with limit:
            entry.detail = sendable(str(await invoke(entry.offer.health)))
            entry.sick = None
    except Exception as error:
        too_slow = f"its health check did not answer within {HEALTH_SECONDS:g} s"
        entry.sick = too_slow if limit.expired() else f"its health check failed: {sentence(error)}"
