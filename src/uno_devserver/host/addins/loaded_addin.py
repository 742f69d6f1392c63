"""One add-in of a Host: loading, start, status and stop.

A failure removes what failed and is shown in the status: the whole add-in if it cannot be loaded or started, a name
that another add-in offers, a background task that raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...system.event_loop import shielded
from ...system.log import log
from ..health import AddInStatus
from . import loader
from .addin import AddIn, Registrations
from .content import sendable
from .failures import log_failure, sentence
from .invocation import invoke_apart

if TYPE_CHECKING:
    from .manager import AddInLimits, NameClaims


class LoadedAddIn:
    def __init__(
        self,
        path: str,
        *,
        limits: AddInLimits,
        names: NameClaims,
        changed: Callable[..., None],
        send_to_ide: Callable[[str, Mapping[str, Any]], bool],
    ) -> None:
        """`changed(method, params=None)` announces a change to all clients; it is safe from any thread."""
        self.path = path
        self.name = loader.name_of(path)
        self.registrations = Registrations()
        self.live = False  # loaded, started, and not removed
        self.error: str | None = None  # why it was removed
        self.tasks: list[asyncio.Task[None]] = []
        self.changed = changed
        self.send_to_ide = send_to_ide
        self._limits = limits
        self._names = names
        self._owner = f"add-in {path}"  # in messages about other add-ins; names are not unique, paths are
        self._version: str | None = None
        self._problems: list[str] = []  # problems with parts of the add-in, while the rest works
        self._checking: asyncio.Task[Any] | None = None  # the running health function
        self._sick: str | None = None  # why the health function failed; None if it did not
        self._detail: str | None = None
        self._failures = 0

    @property
    def status(self) -> AddInStatus:
        error = "; ".join(part for part in (self.error, *self._problems, self._sick) if part)
        return AddInStatus(self.name, self.path, self._version, self.live, error or None, self._detail, self._failures)

    def load(self, workspace: str, solution: str | None, settings: Mapping[str, str]) -> None:
        """Import and register the add-in; called in a thread."""
        log.debug(f"Loading add-in {self.path}.")
        registrations = self.registrations
        addin = AddIn(self, registrations, workspace=workspace, solution=solution, settings=settings)

        def register(module: ModuleType) -> None:
            module.register(addin)
            for server in registrations.servers:
                for kind, name in asyncio.run(server.names()):
                    self.claim(kind, name)

        try:
            self._version = loader.load(self.name, loader.locate(self.path), register, self._limits.load)
        except loader.AddInRefused as refusal:
            if refusal.__cause__ is not None:
                log_failure(self.name, "loading", refusal.__cause__)
            self._remove(str(refusal))

    async def start(self) -> None:
        limit = asyncio.timeout(self._limits.start)
        try:
            async with limit:
                for server in self.registrations.servers:
                    await server.start()
                for function in self.registrations.on_start:
                    await invoke_apart(function)
        except Exception as error:
            log_failure(self.name, "its start", error)
            for server in self.registrations.servers:
                server.end()
            why = f"it took more than {self._limits.start:g} s" if limit.expired() else loader.reason(error)
            self._remove(f"its start failed: {why}")
            return
        self.live = True
        log.info(f"Add-in {' '.join(filter(None, (self.name, self._version)))} is loaded: {self._offered()}.")
        self.tasks = [asyncio.create_task(self._run(function)) for function in self.registrations.background]

    async def stop(self) -> None:
        for function in self.registrations.on_stop:
            try:
                await invoke_apart(function)
            except Exception as error:
                log_failure(self.name, "on_stop", error)
        for server in self.registrations.servers:
            await server.stop()

    async def check(self) -> None:
        """Run the add-in's health function."""
        if self.registrations.health is None:
            return
        if self._checking is None or self._checking.done():  # a function that hangs is not called again
            self._checking = asyncio.create_task(invoke_apart(self.registrations.health))
        checking, limit = self._checking, self._limits.health
        try:
            # Shielded, because concurrent requests wait for the same call.
            self._detail = sendable(str(await asyncio.wait_for(shielded(checking), limit)))
            self._sick = None
        except Exception as error:
            why = sendable(sentence(error)) if checking.done() else f"no answer within {limit:g} s"
            self._sick = f"its health check failed: {why}"

    def claim(self, kind: str, name: str) -> bool:
        """Reserve a name; if another add-in has it, report that and return False."""
        if self.error is not None:  # removed, but a thread still runs its code
            return False
        owner = self._names.take(kind, name, self._owner)
        if owner is not None:
            self._problem(f"the {kind} '{name}' is refused: {owner} offers it already")
        return owner is None

    def release(self, kind: str, name: str) -> None:
        self._names.release(kind, name, self._owner)

    def count_failure(self) -> None:
        """Count a handler that failed."""
        self._failures += 1

    async def _run(self, function: Callable[[], Any]) -> None:
        try:
            await invoke_apart(function)
        except Exception as error:
            log_failure(self.name, "a background task", error)
            self._problem(f"a background task failed: {loader.reason(error)}")

    def _offered(self) -> str:
        counts = self._names.counts(self._owner)
        parts = [(counts.get(kind, 0), kind) for kind in ("tool", "resource", "prompt", "processor")]
        parts.append((len(self.registrations.servers), "SDK server"))
        return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for count, kind in parts if count) or "no tools"

    def _problem(self, what: str) -> None:
        if what not in self._problems:
            self._problems.append(what)
            log.warn(f"Add-in {self.path}: {what}.")

    def _remove(self, why: str) -> None:
        self.live = False
        self.error = why
        self.registrations = Registrations()
        self._names.release_all(self._owner)
        log.warn(f"Add-in {self.path} is left out, the Host goes on: {why}.")
