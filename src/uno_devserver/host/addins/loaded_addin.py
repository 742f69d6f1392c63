"""One add-in of a Host, from its path to its end, and what became of it.

Whatever fails takes out what failed and is kept for the status: the whole add-in when it cannot be loaded or started,
a name that another one has, a background task that ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...system.log import log
from ..health import AddInStatus
from . import loader
from .addin import AddIn, Registrations, offer_of
from .content import sendable
from .failures import log_failure, sentence
from .invocation import invoke_apart

if TYPE_CHECKING:
    from .manager import AddInManager


class LoadedAddIn:
    """To its add-in it is the `Home`."""

    def __init__(self, path: str, addins: AddInManager) -> None:
        self.path = path
        self.name = loader.name_of(path)
        self.offer = Registrations()
        self.live = False  # loaded, started, and not taken out
        self.error: str | None = None  # why it was taken out
        self.tasks: list[asyncio.Task[None]] = []
        self._addins = addins
        self._source = loader.AddInSource(self.name, path, path, None)
        self._version: str | None = None
        self._problems: list[str] = []  # what does not work though the add-in as a whole does
        self._checking: asyncio.Task[Any] | None = None  # its own health check
        self._sick: str | None = None  # what that found
        self._detail: str | None = None
        self._failures = 0

    @property
    def status(self) -> AddInStatus:
        wrong = "; ".join(part for part in (self.error, *self._problems, self._sick) if part)
        return AddInStatus(self.name, self.path, self._version, self.live, wrong or None, self._detail, self._failures)

    def load(self, workspace: str, solution: str | None, settings: Mapping[str, str]) -> None:
        """Import and register; in a thread."""
        log.debug(f"Loading add-in {self.path}.")
        addin = AddIn(self.name, self, workspace=workspace, solution=solution, settings=settings)
        self.offer = offer_of(addin)

        def register(module: ModuleType) -> None:
            module.register(addin)
            for server in offer_of(addin).servers:
                for kind, name in asyncio.run(server.names()):
                    self.claim(kind, name)

        try:
            self._source = loader.locate(self.path)
            self._version = loader.load(self._source, register, self._addins.limits.load)
        except loader.AddInRefused as refusal:
            if refusal.__cause__ is not None:
                log_failure(self.name, "loading", refusal.__cause__)
            self._quarantine(str(refusal))

    async def start(self) -> None:
        limit = asyncio.timeout(self._addins.limits.start)
        try:
            async with limit:
                for server in self.offer.servers:
                    await server.start()
                for function in self.offer.on_start:
                    await invoke_apart(function)
        except Exception as error:
            log_failure(self.name, "its start", error)
            for server in self.offer.servers:
                server.end()
            why = f"it took more than {self._addins.limits.start:g} s" if limit.expired() else self._reason(error)
            self._quarantine(f"its start failed: {why}")
            return
        self.live = True
        log.info(f"Add-in {' '.join(filter(None, (self.name, self._version)))} is loaded: {self._offered()}.")
        self.tasks = [asyncio.create_task(self._run(function)) for function in self.offer.background]

    async def stop(self) -> None:
        for function in self.offer.on_stop:
            try:
                await invoke_apart(function)
            except Exception as error:
                log_failure(self.name, "on_stop", error)
        for server in self.offer.servers:
            await server.stop()

    async def check(self) -> None:
        """Ask the add-in how it is."""
        if self.offer.health is None:
            return
        if self._checking is None or self._checking.done():  # one that hangs is not asked again
            self._checking = asyncio.create_task(invoke_apart(self.offer.health))
        asked, limit = self._checking, self._addins.limits.health
        try:
            # Shielded: whoever asks at the same time waits for the same answer.
            self._detail = sendable(str(await asyncio.wait_for(asyncio.shield(asked), limit)))
            self._sick = None
        except Exception as error:
            why = sendable(sentence(error)) if asked.done() else f"no answer within {limit:g} s"
            self._sick = f"its health check failed: {why}"

    def claim(self, kind: str, name: str) -> bool:
        if self.error is not None:  # taken out, but its code still runs somewhere
            return False
        owner = self._addins.names.take(kind, name, self._label)
        if owner is not None:
            self._problem(f"the {kind} '{name}' is refused: {owner} offers it already")
        return owner is None

    def release(self, kind: str, name: str) -> None:
        self._addins.names.release(kind, name, self._label)

    def changed(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self._addins.changed(method, params)

    def failed(self) -> None:
        self._failures += 1

    def send_to_ide(self, type_name: str, body: Mapping[str, Any]) -> bool:
        return self._addins.send_to_ide(type_name, body)

    async def _run(self, function: Callable[[], Any]) -> None:
        try:
            await invoke_apart(function)
        except Exception as error:
            log_failure(self.name, "a background task", error)
            self._problem(f"a background task failed: {self._reason(error)}")

    def _offered(self) -> str:
        counts = self._addins.names.counts(self._label)
        parts = [(counts.get(kind, 0), kind) for kind in ("tool", "resource", "prompt", "processor")]
        parts.append((len(self.offer.servers), "SDK server"))
        return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for count, kind in parts if count) or "no tools"

    def _problem(self, what: str) -> None:
        if what not in self._problems:
            self._problems.append(what)
            log.warn(f"Add-in {self.path}: {what}.")

    def _quarantine(self, why: str) -> None:
        self.live = False
        self.error = why
        self.offer = Registrations()
        self._addins.names.release_all(self._label)
        log.warn(f"Add-in {self.path} is left out, the Host goes on: {why}.")

    def _reason(self, error: Exception) -> str:
        return loader.reason(error, self._source)

    @property
    def _label(self) -> str:
        """Who it is, to the authors of other add-ins; paths are unique where names need not be."""
        return f"add-in {self.path}"
