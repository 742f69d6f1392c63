"""A server that was started as a command. Its end is noticed at once, whichever way it comes; after `stop` nothing is
left of it nor of what it started; and there is one conversation with it, which all clients share.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING

from ...instances.host_kind import HostKind
from ...protocol.client.connection import Connection, Lost
from ...protocol.client.pipes import PipeLines
from ...protocol.client.stdio import StdioConnection
from ...system.files import decode
from ...system.log import DEBUG, log
from ...system.process_end import process_end
from ...system.threads import apart
from ...system.values import Value
from .base import Ending
from .host import how_it_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...instances.child import Child, Output
    from ...protocol.client.connection import Peer


LAST_LINES = 20
# Of what a server prints among its messages; more than that within a second is noise.
STRAY_LINES = 100
STRAY_BYTES = 1000
STRAY_MARK = b"[stdout] "


class CommandLimits(Value):
    ready_seconds: float = 30.0  # to answer the first request; npx and uvx may have to download the server before
    # Together well under the 300 ms in which a proxy is gone whose client has left.
    input_seconds: float = 0.08  # a server sees the end of its input, and ends: that is how MCP means it
    stop_seconds: float = 0.12  # then it is asked by signal, with all that it started; then ended by force
    patient_seconds: float = 2.0  # the same, where nobody is in a hurry: it may have something to write down
    exit_seconds: float = 0.2  # between the end of a server's output and its own, if that is how it ends
    drain_seconds: float = 0.1  # to read its last words, if something else holds its output open
    poll_seconds: float = 0.2  # for the end of a process, where the system cannot tell us
    tend_seconds: float = 1.0  # how often we look at what it prints
    output_bytes: int = 16 * 1024 * 1024  # of what it printed; some servers print a line for each request, for months


class CommandProcess:
    kind = HostKind.COMMAND
    endpoint = None
    owned = True

    def __init__(
        self,
        child: Child,
        output: Output,
        limits: CommandLimits,
        *,
        may_probe: bool,
        probe_failed: Callable[[], None],
        strayed: Callable[[str], None],
    ) -> None:
        self.process_id = child.pid
        self.log_file = output.path
        self._child = child
        self._output = output
        self._may_probe = may_probe
        self._probe_failed = probe_failed
        self._tell_strayed = strayed
        self._strays: deque[bytes] = deque(maxlen=STRAY_LINES)  # not written to the file yet
        self._limits = limits
        self._lines: PipeLines | None = None
        self._conversation: asyncio.Future[Connection] | None = None
        self._ending: asyncio.Future[Ending] | None = None
        self._broken = asyncio.Event()  # it does not speak or listen any more, although it may live
        self._too_slow = False
        self._stopping: asyncio.Future[None] | None = None
        self._cleared = False  # nothing is left of it, and its process id may be another's by now

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        """The first peer is whom the server sees, and who hears what belongs to no request."""
        if self._conversation is None and not self._cleared:
            self._conversation = asyncio.ensure_future(self._converse(peer, modern_first and self._may_probe))
            self._conversation.add_done_callback(lambda done: done.cancelled() or done.exception())
        connection = await asyncio.shield(self._conversation) if self._conversation else None
        if connection is None or self._broken.is_set():
            raise Lost("The server has ended.", sent=False)
        return connection

    async def ended(self) -> Ending:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._watch())
        return await asyncio.shield(self._ending)

    def doubt(self) -> None:
        """Its end is noticed at once in any case."""

    async def stop(self, *, patient: bool = False) -> None:
        """Show it the end of its input, ask it by signal, then end it by force, with all that it started."""
        if self._stopping is None and not self._cleared:
            self._stopping = asyncio.ensure_future(self._stop(patient))
        if self._stopping is not None:
            await asyncio.shield(self._stopping)

    async def _stop(self, patient: bool) -> None:
        if self._lines is not None:
            self._lines.close_output()
        gone = asyncio.ensure_future(process_end(self.process_id, self._limits.poll_seconds))
        await asyncio.wait((gone,), timeout=self._limits.input_seconds)
        gone.cancel()
        seconds = self._limits.patient_seconds if patient else self._limits.stop_seconds
        await apart(lambda: self._child.stop(seconds))
        self._clear()
        self._close()

    def _clear(self) -> None:
        self._child.end_the_rest()
        self._cleared = True

    def _close(self) -> None:
        if self._lines is not None:
            self._lines.close()
        else:
            for pipe in self._child.pipes or ():
                pipe.close()

    # the conversation

    async def _converse(self, peer: Peer, modern_first: bool) -> Connection:
        connection = StdioConnection(peer, lambda line: self._strays.append(line[:STRAY_BYTES]))
        lines = PipeLines(connection, self._broken.set)
        assert self._child.pipes is not None
        try:
            await lines.open(*self._child.pipes)
        except (OSError, ValueError):  # it ends at this very moment, and they were closed
            raise Lost("The server has ended.", sent=False) from None
        self._lines = lines
        watching = asyncio.ensure_future(self.ended())
        try:
            async with asyncio.timeout(self._limits.ready_seconds):
                await connection.begin(lines, modern_first=modern_first)
            return connection
        except (Lost, TimeoutError) as failed:
            if connection.probing:
                self._probe_failed()
            if isinstance(failed, TimeoutError):
                self._too_slow = True
                lines.close()
            ending = await watching
            raise Lost(f"The server cannot be spoken to: {ending.reason}.", sent=False) from None

    # its end

    async def _watch(self) -> Ending:
        gone = asyncio.ensure_future(process_end(self.process_id, self._limits.poll_seconds))
        broken = asyncio.ensure_future(self._broken.wait())
        tending = asyncio.ensure_future(self._tend_output())
        try:
            await asyncio.wait((gone, broken), return_when=asyncio.FIRST_COMPLETED)
            if not self._too_slow:
                await asyncio.wait((gone,), timeout=self._limits.exit_seconds)
            return await (self._after_exit() if gone.done() else self._useless())
        finally:
            for task in (gone, broken, tending):
                task.cancel()

    async def _after_exit(self) -> Ending:
        if self._stopping is not None:
            await self.stop()  # which leaves to what it has started the time to end, too
        else:
            self._clear()  # what holds its output open, for one thing
        if self._lines is not None and not self._lines.over.is_set():
            over = asyncio.ensure_future(self._lines.over.wait())
            await asyncio.wait((over,), timeout=self._limits.drain_seconds)
            over.cancel()
        self._close()
        code = self._child.exit_code()
        return Ending(how_it_ended(code), code, self._last_lines())

    async def _useless(self) -> Ending:
        assert self._lines is not None
        reason = "it closed its output" if self._lines.over.is_set() else "it closed its input"
        if self._too_slow:
            reason = f"it did not answer within {self._limits.ready_seconds:g} s"
        await self.stop()
        return Ending(reason, self._child.exit_code(), self._last_lines())

    async def _tend_output(self) -> None:
        """Repeat in our log what it prints, if somebody looks that closely, and keep the file small."""
        seen = self._output.size()
        while True:
            await asyncio.sleep(self._limits.tend_seconds)
            self._keep_strays()
            if log.level <= DEBUG and self._output.size() != seen:
                log.debug(f"the server prints:\n{self._output.tail(seen)}")
            if self._output.size() > self._limits.output_bytes:
                os.ftruncate(self._output.handle, 0)
            seen = self._output.size()

    def _keep_strays(self) -> None:
        """Put what came where only messages belong beside the rest that it printed, and tell of it."""
        if not self._strays:
            return
        lines = list(self._strays)
        self._strays.clear()
        try:
            os.write(self._output.handle, b"".join(STRAY_MARK + line + b"\n" for line in lines))
        except OSError as error:
            log.debug(f"what the server prints cannot be kept: {error}")
        if self._conversation is not None and not self._conversation.done():
            self._tell_strayed(decode(lines[-1]).strip())

    def _last_lines(self) -> tuple[str, ...]:
        self._keep_strays()
        return tuple(self._child.printed().splitlines()[-LAST_LINES:])
