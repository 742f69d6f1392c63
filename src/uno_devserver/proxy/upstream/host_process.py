"""A Host that runs. One that we launched is ours: its end is noticed at once, and it is gone when `stop` returns.

One that we found is never ended by us, but watched as closely; and it is asked now and then, because a process that
lives need not answer. A Host that is busy is not a dead one.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from ...instances.child import TAIL_BYTES, last_lines
from ...instances.entries import Server
from ...instances.host_command import ProgramKind
from ...instances.loopback import Loopback
from ...instances.host_kind import HostKind
from ...instances.probe import Probe, probe, told_by
from ...instances.readiness import MCP_PATH
from ...instances.registry import unregister
from ...instances.survey import survey
from ...protocol.client.streamable import connect_http
from ...system.files import FileProblem
from ...system.log import log
from ...system.process_end import process_end
from ...system.threads import apart, wait_or
from ...system.values import Value
from .base import Ending
from .host import how_it_ended

if TYPE_CHECKING:
    from ...instances.launch import Launched
    from ...instances.start import Running as Found
    from ...protocol.client.connection import Connection, Peer


KIND_SECONDS = 1.0  # to learn which kind of Host we found; ours answers in milliseconds


class HostLimits(Value):
    stop_seconds: float = 0.15  # a Host that closes everything takes 30 ms; ours must be gone before we are
    patient_seconds: float = 6.0  # where nobody is in a hurry: its add-ins have 5 s to close what they have open
    poll_seconds: float = 1.0  # for the end of a process, where the system cannot tell us
    check_seconds: float = 10.0  # a Host that we found is asked that often; its end is noticed without asking
    check_answer_seconds: float = 5.0  # a Host that compiles, or whose machine is busy, may take seconds
    check_failures: int = 3  # in a row; one slow answer means nothing


DEFAULT_LIMITS = HostLimits()


class HostProcess:
    def __init__(self, found: Found, registry: str, limits: HostLimits = DEFAULT_LIMITS, *, detached: bool = False) -> None:
        """`detached`: we have launched it, but for everybody, so it is not ours to end."""
        self._launched: Launched | None = found.launched
        self._detached = detached
        self._registry = registry
        self._limits = limits
        self._doubted = asyncio.Event()
        self._port = found.port
        self._solution = found.solution
        self._control_channel: str | None = None  # as it was last seen
        self.process_id = found.process_id
        self.log_file = found.log_file
        self.left_out = found.left_out
        bundled = found.plan.program.kind is ProgramKind.BUNDLED if found.plan else self._tells_as_ours()
        self.kind = HostKind.BUNDLED if bundled else HostKind.DOTNET

    @property
    def endpoint(self) -> str:
        return f"http://localhost:{self._port}{MCP_PATH}"

    @property
    def owned(self) -> bool:
        return self._launched is not None and not self._detached

    @property
    def control_channel(self) -> str | None:
        """Where the proxy that launched it answers, as the registry has it; None where that is nobody.

        Also while it is about to end, and its owner has taken it out of the registry.
        """
        for server in survey(self._registry, removing=False).running:
            if server.process_id == self.process_id:
                self._control_channel = server.control_channel
        return self._control_channel

    def probe(self) -> Probe:
        """What it tells of itself; blocks, for some seconds at most."""
        return probe(Server(self.process_id, 0, self._solution, "", self._port, "", "", None))

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        return await connect_http(self.endpoint, peer, modern_first=modern_first)

    async def ended(self) -> Ending:
        gone = asyncio.ensure_future(process_end(self.process_id, self._limits.poll_seconds))
        watches = [gone] if self.owned else [gone, asyncio.ensure_future(self._silent())]
        try:
            await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
            return await apart(self._ending) if gone.done() else Ending("it does not answer any more")
        finally:
            for watch in watches:
                watch.cancel()

    def doubt(self) -> None:
        self._doubted.set()

    async def stop(self, *, patient: bool = False) -> None:
        if self.owned:
            seconds = self._limits.patient_seconds if patient else self._limits.stop_seconds
            await apart(lambda: self._stop(seconds))

    def _stop(self, seconds: float) -> None:
        """Out of the registry first, so that nobody who starts just now finds a Host that is about to go.

        Also for one that has ended: it may have been killed, and left files and processes behind.
        """
        assert self._launched
        try:
            unregister(self._registry, self.process_id)
        except FileProblem as problem:
            log.debug(f"the Host stays registered until it is gone: {problem}")
        self._launched.child.stop(seconds)
        self._launched.child.end_the_rest()

    def _ending(self) -> Ending:
        if self._launched is None:
            return Ending(how_it_ended(None), None, last_lines_of(self.log_file))
        code = self._launched.child.exit_code() if self._launched.child.pid == self.process_id else None
        return Ending(how_it_ended(code), code, last_lines_of(self.log_file))

    async def _silent(self) -> None:
        """Returns when it has not answered several times in a row."""
        limits, loopback, failures = self._limits, Loopback(), 0

        def ask() -> int | None:
            return loopback.ask("GET", self._port, MCP_PATH, limits.check_answer_seconds)

        while failures < limits.check_failures:
            await wait_or(self._doubted, limits.check_seconds)
            failures = failures + 1 if await apart(ask) is None else 0

    def _tells_as_ours(self) -> bool:
        return told_by(self.process_id, self._port, time.monotonic() + KIND_SECONDS) is not None


def last_lines_of(log_file: str | None) -> tuple[str, ...]:
    """The end of what a Host printed."""
    if log_file is None:
        return ()
    try:
        with open(log_file, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - TAIL_BYTES))
            return last_lines(stream.read(TAIL_BYTES))
    except OSError:
        return ()
