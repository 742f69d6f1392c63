"""The scope `RemoteControlServer`: requests of an app to the Host itself."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...system.event_loop import run_in_thread
from ...system.log import log
from ...system.values import Value
from ..addins.manager import SERVER_SCOPE
from ..app_launches import LaunchKey, LaunchMonitor, register_message
from ..assemblies import NotAnAssembly, read_assembly
from .connection import Handle
from .frames import ContentProblem, Frame, read_members

if TYPE_CHECKING:
    from ..addins.handlers import App, Processor

LAUNCHED, CONNECTED = 0, 1  # the steps of an app's launch
MAX_SEQUENCE = 2**64 - 1
DISCOVERY_SECONDS = 3.0  # a disk answers in milliseconds; a network share that is gone, never
# The folders with assemblies for one version of .NET, the newest first; without them the base folder is searched.
FRAMEWORK_FOLDERS = ("net10.0", "net9.0")
MAX_ASSEMBLIES = 64  # the Uno packages have three
NEEDS_DOTNET = (
    "This processor is a .NET assembly, and the bundled Host runs Python add-ins only. "
    "Start the .NET Host ('uno-devserver start --host dotnet') to use it."
)
_PROCESSORS = re.compile(r"Uno\..*\.Processor.*\.dll")


class ServerScope:
    """One per connection, because it remembers the processors that the app asked for."""

    def __init__(self, version: str, launches: LaunchMonitor, processors: Callable[[], Sequence[Processor]]) -> None:
        self._version = version
        self._launches = launches
        self._processors = processors
        self._found: dict[tuple[str, str], ProcessorInfo] = {}  # by assembly and type
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
        except ContentProblem as problem:
            log.debug(f"/rc: the content of a keep-alive could not be read: {problem}")
        app.send("KeepAliveMessage", {"Scope": SERVER_SCOPE, "AssemblyVersion": self._version, "SequenceId": sequence})

    async def _discover(self, frame: Frame, app: App) -> None:
        """Always answered, because an app waits for this before it does anything else."""
        assemblies: list[str] = []
        try:
            base = read_members(frame.content).text("BasePath")
            async with asyncio.timeout(DISCOVERY_SECONDS):
                # Not in asyncio's pool: threads that wait for a dead disk would be missing for file edits.
                assemblies, found = await run_in_thread(lambda: find_processors(base))
            self._found.update({(processor.assembly, processor.type): processor for processor in found})
        except ContentProblem as problem:
            log.debug(f"/rc: the content of a discovery could not be read: {problem}")
        except TimeoutError:
            log.warn(f"/rc: {base} could not be searched for processors within {DISCOVERY_SECONDS:g} s")
        ours = (ProcessorInfo(found.addin, found.scope, self._version, None) for found in self._processors())
        listed = [_description(processor) for processor in (*ours, *self._found.values())]
        app.send("ProcessorsDiscoveryResponse", {"Assemblies": assemblies, "Processors": listed, "Scope": SERVER_SCOPE})

    async def _note_launch(self, frame: Frame, _: App) -> None:
        message = read_members(frame.content)
        step = message.number("Step")
        if step == CONNECTED and (key := LaunchKey.from_message(message)) is not None:
            self._launches.connected(key)
        elif step != LAUNCHED or not register_message(message, self._launches):
            log.debug(f"/rc: not a valid app launch: {frame.content}")


def _in_range(number: int | None) -> int:
    if number is None or not 0 <= number <= MAX_SEQUENCE:
        return 0
    return number


def _description(processor: ProcessorInfo) -> dict[str, object]:
    return {
        "AssemblyPath": processor.assembly,
        "Type": processor.type,
        "Version": processor.version,
        "IsLoaded": processor.error is None,
        "LoadError": processor.error,
    }


class ProcessorInfo(Value):
    """A processor in the answer to a discovery."""

    assembly: str
    type: str
    version: str
    error: str | None  # None: it is loaded


def find_processors(base: str | None) -> tuple[list[str], list[ProcessorInfo]]:
    """The assemblies at a path (one assembly, or a folder of them), and the processors that they declare."""
    assemblies: list[str] = []
    found: list[ProcessorInfo] = []
    for path in _candidates(base):
        try:
            assembly = read_assembly(path)
        except (NotAnAssembly, FileNotFoundError):
            continue
        assemblies.append(path)
        found += [ProcessorInfo(path, name, assembly.version, NEEDS_DOTNET) for name in assembly.processors]
    return assemblies, found


def _candidates(base: str | None) -> list[str]:
    if not base or not os.path.isabs(base):
        return []
    if os.path.isfile(base):
        return [os.path.abspath(base)]
    folders = [os.path.join(base, name) for name in FRAMEWORK_FOLDERS]
    folder = next(filter(os.path.isdir, folders), base)
    try:
        names = sorted(filter(_PROCESSORS.fullmatch, os.listdir(folder)))
    except (OSError, ValueError):
        return []
    return [os.path.join(folder, name) for name in names[:MAX_ASSEMBLIES]]
