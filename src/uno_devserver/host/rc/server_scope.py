"""The scope `RemoteControlServer`: what an app asks of the Host itself. One per connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...system.log import log
from ..addins.workers import invoke_apart
from ..launches import LaunchMonitor, guid, register_message
from .connection import Handle
from .discovery import Found, find_processors
from .frames import Frame
from .messages import MessageProblem, read_members

if TYPE_CHECKING:  # the add-ins' interface costs time to import, and only its types are needed
    from ..addins.peers import App, Processor

SCOPE = "RemoteControlServer"
LAUNCHED, CONNECTED = 0, 1  # the steps of an app's launch
MAX_SEQUENCE = 2**64 - 1
DISCOVERY_SECONDS = 3.0  # a disk answers in milliseconds; a network share that is gone, never


class ServerScope:
    def __init__(self, version: str, launches: LaunchMonitor, processors: Callable[[], Sequence[Processor]]) -> None:
        self._version = version
        self._launches = launches
        self._processors = processors
        self._found: dict[tuple[str, str], Found] = {}  # by assembly and type, over all that this app asked for
        self.actions: dict[str, Handle] = {
            "KeepAliveMessage": self._keep_alive,
            "ProcessorsDiscovery": self._discover,
            "AppLaunchMessage": self._note_launch,
        }

    async def _keep_alive(self, frame: Frame, app: App) -> None:
        sequence = 0
        try:
            ping = read_members(frame.content)
            sequence = _in_range(ping.number("SequenceId"))
            theirs = ping.text("AssemblyVersion")
            if theirs is not None and theirs != self._version:
                log.debug(f"/rc: the app was built with version {theirs}, this is {self._version}")
        except MessageProblem as problem:
            log.debug(f"/rc: the content of a keep-alive could not be read: {problem}")
        app.send("KeepAliveMessage", {"Scope": SCOPE, "AssemblyVersion": self._version, "SequenceId": sequence})

    async def _discover(self, frame: Frame, app: App) -> None:
        """Always answered: an app waits for this before it does anything else."""
        assemblies: list[str] = []
        try:
            base = read_members(frame.content).text("BasePath")
            async with asyncio.timeout(DISCOVERY_SECONDS):
                # In a thread of its own: one that waits for a dead disk must not be one that file edits need.
                assemblies, found = await invoke_apart(lambda: find_processors(base))
            self._found.update({(processor.assembly, processor.type): processor for processor in found})
        except MessageProblem as problem:
            log.debug(f"/rc: the content of a discovery could not be read: {problem}")
        except TimeoutError:
            log.warn(f"/rc: {base} could not be searched for processors within {DISCOVERY_SECONDS:g} s")
        ours = [Found(processor.addin, processor.scope, self._version, None) for processor in self._processors()]
        listed = [_description(processor) for processor in (*ours, *self._found.values())]
        app.send("ProcessorsDiscoveryResponse", {"Assemblies": assemblies, "Processors": listed, "Scope": SCOPE})

    async def _note_launch(self, frame: Frame, _: App) -> None:
        message = read_members(frame.content)
        mvid, step = guid(message.text("Mvid") or ""), message.number("Step")
        if mvid is not None and step == CONNECTED:
            self._launches.connected(mvid, message.text("Platform"), message.flag("IsDebug"))
        elif step != LAUNCHED or not register_message(message, self._launches):
            log.debug(f"/rc: this is no app launch: {frame.content}")


def _in_range(number: int | None) -> int:
    if number is None or not 0 <= number <= MAX_SEQUENCE:
        return 0
    return number


def _description(processor: Found) -> dict[str, object]:
    return {
        "AssemblyPath": processor.assembly,
        "Type": processor.type,
        "Version": processor.version,
        "IsLoaded": processor.error is None,
        "LoadError": processor.error,
    }
