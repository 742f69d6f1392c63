"""A running Host.

The exit of a Host is noticed at once. An owned Host is gone after `stop`. A Host that was found is never stopped; it is
asked at intervals whether it still answers, and is taken as ended only after several failures in a row.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

from ...instances.child_process import TAIL_BYTES, last_lines, previous_path
from ...instances.host_kind import HostKind
from ...instances.host_program import written_since
from ...instances.launch import MCP_PATH
from ...instances.local_http import Loopback
from ...instances.probe import Probe, probe
from ...instances.registry import RegisteredServer, entry_name, scan_registry, unregister
from ...protocol.client.http_connect import connect_http
from ...system.event_loop import process_exit, run_in_thread, wait_for_event
from ...system.files import FileProblem
from ...system.log import log
from ...system.processes import how_it_ended
from ...system.values import Value
from .base import Ending, RunningUpstream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...instances.launch import RunningHost
    from ...protocol.client.connection import Connection, Peer


class HostLimits(Value):
    stop_seconds: float = 0.15  # a Host that closes everything takes 30 ms, and must be gone before the proxy
    patient_seconds: float = 6.0  # replaces stop_seconds in a restart: add-ins have 5 s to close their resources
    poll_seconds: float = 1.0  # between two checks for its exit, where the system cannot report that
    check_seconds: float = 10.0  # between two checks of a Host that was found; its exit is noticed without them
    check_answer_seconds: float = 5.0  # a Host that compiles, or whose machine is busy, may take seconds
    check_failures: int = 3  # failed checks in a row after which it is taken as ended


class HostProcess(RunningUpstream):
    process_id: int
    endpoint: str

    def __init__(
        self, found: RunningHost, registry: str, limits: HostLimits | None = None, *, detached: bool = False
    ) -> None:
        """`detached`: whether this proxy has launched it without becoming its owner, and so does not stop it."""
        self._found = found
        self._registry = registry
        self._limits = limits or HostLimits()
        self._check = asyncio.Event()  # set when a check is due now
        self._control_channel: str | None = None  # as last read from the registry
        self._log_identity = _identity(found.log_file)
        self.process_id = found.process_id
        self.port = found.port
        self.endpoint = f"http://localhost:{found.port}{MCP_PATH}"
        self.owned = found.child is not None and not detached
        self.log_file = found.log_file
        self.left_out = found.left_out
        self.kind = found.kind or HostKind.DOTNET

    @property
    def control_channel(self) -> str | None:
        """The control channel of the proxy that owns it, from the registry; None if it has no owner.

        The last known value is kept when the Host is not registered any more, because it is stopping.
        """
        for server in scan_registry(self._registry, removing=False).running:
            if server.process_id == self.process_id:
                self._control_channel = server.control_channel
        return self._control_channel

    def probe(self) -> Probe:
        """The Host's report about itself. Blocks, for a few seconds at most."""
        return probe(RegisteredServer(self.process_id, 0, self._found.solution, "", self._found.port, "", "", None))

    def lacking(self, folder: str, environ: Mapping[str, str]) -> list[str]:
        """The workspace's Python add-ins that came after the start of a bundled Host without an owner. Blocks."""
        if self.owned or self.kind is not HostKind.BUNDLED:
            return []
        running = scan_registry(self._registry, removing=False).running
        server = next((server for server in running if server.process_id == self.process_id), None)
        return written_since(server, self.probe(), folder, environ) if server is not None else []

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        # Another user may have taken the port of a Host that has ended.
        return await connect_http(self.endpoint, peer, modern_first=modern_first, this_users=True)

    async def ended(self) -> Ending:
        gone = asyncio.ensure_future(process_exit(self.process_id, self._limits.poll_seconds))
        watches = [gone] if self.owned else [gone, asyncio.ensure_future(self._until_silent())]
        try:
            await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
            return await run_in_thread(self._ending) if gone.done() else Ending("it does not answer any more")
        finally:
            for watch in watches:
                watch.cancel()

    def check_now(self) -> None:
        self._check.set()

    async def stop(self, *, patient: bool = False) -> None:
        if self.owned:
            seconds = self._limits.patient_seconds if patient else self._limits.stop_seconds
            await run_in_thread(lambda: self._stop(seconds))

    async def _until_silent(self) -> None:
        """Wait until it has not answered several times in a row."""
        limits, failures = self._limits, 0
        ask = partial(Loopback().ask, "GET", self._found.port, MCP_PATH, limits.check_answer_seconds)
        while failures < limits.check_failures:
            await wait_for_event(self._check, limits.check_seconds)
            failures = failures + 1 if await run_in_thread(ask) is None else 0

    def _ending(self) -> Ending:
        child = self._found.child
        code = child.exit_code() if child is not None and child.pid == self.process_id else None
        last_lines = last_lines_of(self.log_file, self._log_identity)
        # A Host that ends in order leaves the registry first; one that crashes does not.
        left = not code and not os.path.exists(os.path.join(self._registry, entry_name(self.process_id)))
        return Ending(how_it_ended(code), code, last_lines, shut_down=left and not self.owned)

    def _stop(self, seconds: float) -> None:
        """Unregister it first, so that a program that starts now does not find a Host that is about to stop.

        A Host that has ended is stopped as well: if it was killed, it may have left files and processes.
        """
        child = self._found.child
        assert child
        try:
            unregister(self._registry, self.process_id)
        except FileProblem as problem:
            log.debug(f"the Host stays registered until it is gone: {problem}")
        child.stop(seconds)
        child.end_the_rest()


def last_lines_of(log_file: str | None, identity: tuple[int, int] | None = None) -> tuple[str, ...]:
    """The last lines of a Host's output.

    `identity`: device and inode of the file, which is renamed when another program launches the next Host.
    """
    if log_file is None:
        return ()
    for path in (log_file, previous_path(log_file)):
        try:
            with open(path, "rb") as stream:
                status = os.fstat(stream.fileno())
                if identity in (None, (status.st_dev, status.st_ino)):
                    stream.seek(max(0, status.st_size - TAIL_BYTES))
                    return last_lines(stream.read(TAIL_BYTES))
        except OSError:
            pass  # it is gone
    return ()


def _identity(path: str | None) -> tuple[int, int] | None:
    """Device and inode of a file; None if it does not exist."""
    try:
        status = os.stat(path or "")
    except OSError:
        return None
    return status.st_dev, status.st_ino
