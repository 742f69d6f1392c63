"""The scope `RemoteControlServer`: what an app asks of the Host itself.

Keep-alives are answered, processors that an app names are looked for, and reports of app launches are passed on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ...system.event_loop import QueueFull, WorkQueue
from ...system.log import log
from ..addins.manager import SERVER_SCOPE
from ..app_launches import LaunchKey, LaunchMonitor, register_message
from ..assemblies import NotAnAssembly, read_assembly
from .connection import Handle
from .frames import ContentProblem, Frame, read_members

if TYPE_CHECKING:
    from ..addins.handlers import App, Processor

LAUNCHED, CONNECTED = 0, 1  # the steps of an app's launch
MAX_SEQUENCE = 2**64 - 1
# Folders with assemblies for one version of .NET, the newest first; if none exists, the base folder is searched.
FRAMEWORK_FOLDERS = ("net10.0", "net9.0")
MAX_ASSEMBLIES = 64  # the Uno packages have three
MAX_TEXT = 1024 * 1024  # characters of the paths and names of an app's processors; real ones have a few thousand
NEEDS_DOTNET = (
    "This processor is a .NET assembly, and the bundled Host runs Python add-ins only. "
    "Start the .NET Host ('uno-devserver start --host dotnet') to use it."
)
_PROCESSORS = re.compile(r"Uno\..*\.Processor.*\.dll")


class ServerScope:
    """One per connection, because it remembers the processors that the app asked for."""

    def __init__(
        self, version: str, launches: LaunchMonitor, processors: Callable[[], Sequence[Processor]], reads: WorkQueue
    ) -> None:
        self._version = version
        self._launches = launches
        self._processors = processors
        self._reads = reads
        self._found: dict[tuple[str, str], dict[str, object]] = {}  # the processors found so far, by assembly and type
        self.actions: dict[str, Handle] = {
            "KeepAliveMessage": self._keep_alive,
            "ProcessorsDiscovery": self._discover,
            "AppLaunchMessage": self._note_launch,
        }

    async def _keep_alive(self, frame: Frame, app: App) -> None:
        """Answer with the app's own version: an app takes any other one for a Host of another Uno version."""
        sequence, version = 0, self._version
        try:
            ping = read_members(frame.content)
            sequence = _in_range(ping.number("SequenceId"))
            version = ping.text("AssemblyVersion") or version
        except ContentProblem as problem:
            log.debug(f"/rc: the content of a keep-alive could not be read: {problem}")
        app.send("KeepAliveMessage", {"Scope": SERVER_SCOPE, "AssemblyVersion": version, "SequenceId": sequence})

    async def _discover(self, frame: Frame, app: App) -> None:
        """Answer in every case, because an app waits for this before it does anything else."""
        assemblies: list[str] = []
        try:
            base = read_members(frame.content).text("BasePath")
            # Not in asyncio's pool, because threads that wait for a dead disk would be missing for file edits.
            assemblies, found = await self._reads.run(lambda: find_processors(base))
            every = self._found | found
            self._found = every if _length(every) <= MAX_TEXT else found
        except ContentProblem as problem:
            log.debug(f"/rc: the content of a discovery could not be read: {problem}")
        except TimeoutError:
            log.warn(f"/rc: {base} could not be searched for processors: its disk does not answer")
        except QueueFull:
            log.warn(f"/rc: {base} was not searched for processors: too many assemblies are being read already")
        ours = [_description(found.addin, found.scope, self._version) for found in self._processors()]
        processors = [*ours, *self._found.values()]
        response = {"Assemblies": assemblies, "Processors": processors, "Scope": SERVER_SCOPE}
        app.send("ProcessorsDiscoveryResponse", response)

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


def _description(assembly: str, type_name: str, version: str, error: str | None = None) -> dict[str, object]:
    return {
        "AssemblyPath": assembly,
        "Type": type_name,
        "Version": version,
        "IsLoaded": error is None,
        "LoadError": error,
    }


def find_processors(base: str | None) -> tuple[list[str], dict[tuple[str, str], dict[str, object]]]:
    """The assemblies at a path (one assembly, or a folder of them), and the processors that they declare."""
    assemblies: list[str] = []
    found: dict[tuple[str, str], dict[str, object]] = {}
    left = MAX_TEXT
    for path in _candidates(base):
        try:
            assembly = read_assembly(path)
        except (NotAnAssembly, FileNotFoundError):
            continue
        assemblies.append(path)
        for name in assembly.processors:
            left -= len(path) + len(name)
            if left >= 0:
                found[path, name] = _description(path, name, assembly.version, NEEDS_DOTNET)
    return assemblies, found


def _length(found: Iterable[tuple[str, str]]) -> int:
    return sum(len(path) + len(name) for path, name in found)


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
