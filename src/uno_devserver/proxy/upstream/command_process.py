"""The process of an MCP server that was started as a command.

An exit or a lost pipe is noticed within 0.2 s. After `stop` neither the process nor its children are left.
All clients share one conversation with it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from ...instances.host_kind import HostKind
from ...protocol.client.connection import Connection, ConnectionLost
from ...protocol.client.pipe_lines import PipeLines
from ...protocol.client.stdio import StdioConnection
from ...system import proc
from ...system.event_loop import process_exit, run_in_thread, shielded
from ...system.log import DEBUG, log
from ...system.processes import how_it_ended
from ...system.text import decode_output
from ...system.values import Value
from .base import Ending, RunningUpstream
from .lifecycle import USUAL_STARTUP_SECONDS

if TYPE_CHECKING:
    from ...instances.bounded_output import BoundedOutput
    from ...instances.child_process import Child
    from ...protocol.client.connection import Peer
    from .command_launch import CommandUpstream
    from .launcher import UpstreamObserver

STRAY_MARK = b"[stdout] "


class CommandLimits(Value):
    ready_seconds: float = USUAL_STARTUP_SECONDS  # for the first answer
    # `input_seconds` and `stop_seconds` together are well under the 300 ms in which the proxy ends after its client.
    input_seconds: float = 0.08  # for a server to exit when its input ends, as MCP asks it to
    cleanup_seconds: float = (
        0.02  # part of input_seconds: for the interpreter to exit after the program's code has ended
    )
    signals_poll_seconds: float = 0.004  # between two checks whether its code has ended
    stop_seconds: float = 0.12  # then for its whole process group to exit on a signal, before it is killed
    patient_seconds: float = 2.0  # replaces stop_seconds in a restart: the server may have to save something
    exit_seconds: float = 0.2  # how long we wait for its exit after it closed its input or output
    drain_seconds: float = 0.1  # to read its last output, if another process keeps that open
    poll_seconds: float = 0.2  # between two checks for its exit, where the system cannot report that
    output_check_seconds: float = 1.0  # between two checks of its output file
    stray_seconds: float = 0.05  # how long lines that are not messages are collected before they are written
    stray_lines: int = 100  # how many of these lines are kept, the last ones
    stray_bytes: int = 1000  # how much of each of these lines is kept


class CommandProcess(RunningUpstream):
    kind = HostKind.COMMAND
    owned = True
    process_id: int
    log_file: str

    def __init__(
        self,
        upstream: CommandUpstream,
        child: Child,
        output: BoundedOutput,
        observer: UpstreamObserver,
        *,
        may_probe: bool,
    ) -> None:
        """`may_probe`: whether the conversation may begin with `server/discover`."""
        self.process_id = child.pid
        self.log_file, self.arrivals = output.path, output.arrivals
        self._upstream = upstream
        self._child = child
        self._output = output
        self._observer = observer
        self._may_probe = may_probe
        self._limits = limits = upstream.process_limits()
        self.startup_seconds = limits.ready_seconds
        self._stray_lines: deque[bytes] = deque(maxlen=limits.stray_lines)  # to be written to the output file
        self._lines: PipeLines | None = None
        self._connection: StdioConnection | None = None
        self._conversation: asyncio.Future[Connection] | None = None
        self._ending: asyncio.Future[Ending] | None = None
        self._broken = asyncio.Event()  # set when its input or output is closed, by it or by us; it may still run
        self._too_slow = False
        self._stopping: asyncio.Future[None] | None = None
        self._cleared = False  # whether all its processes are gone; then its process id may be reused

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        """Return the shared conversation; the first peer opens it and receives messages without a request."""
        if self._conversation is None and not self._cleared:
            self._conversation = asyncio.ensure_future(self._converse(peer, modern_first and self._may_probe))
            self._conversation.add_done_callback(lambda done: done.cancelled() or done.exception())
        connection = await shielded(self._conversation) if self._conversation else None
        if connection is None or self._broken.is_set():
            raise ConnectionLost("The server has ended.", sent=False)
        return connection

    async def ended(self) -> Ending:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._watch())
        return await shielded(self._ending)

    async def stop(self, *, patient: bool = False) -> None:
        """End its input, then send a signal to its process group, then kill that.

        A call without `patient` also shortens a patient one that has begun.
        """
        if self._stopping is None and not self._cleared:
            self._stopping = asyncio.ensure_future(self._stop(patient))
        elif self._stopping is not None and not patient:
            await asyncio.wait((self._stopping,), timeout=self._limits.input_seconds + self._limits.stop_seconds)
            if not self._cleared:
                self._child.end_the_rest()
        if self._stopping is not None:
            await shielded(self._stopping)

    # The conversation.

    async def _converse(self, peer: Peer, modern_first: bool) -> Connection:
        limits = self._limits
        lines = PipeLines(self._broken.set)
        connection = StdioConnection(peer, lines, self._strayed)
        assert self._child.pipes is not None
        try:
            await lines.open(*self._child.pipes, connection)
        except (OSError, ValueError):  # the pipes were closed because it is ending
            raise ConnectionLost("The server has ended.", sent=False) from None
        self._lines, self._connection = lines, connection
        watching = asyncio.ensure_future(self.ended())
        try:
            async with asyncio.timeout(limits.ready_seconds):
                await connection.begin(modern_first=modern_first)
        except (ConnectionLost, TimeoutError) as failed:
            if isinstance(failed, TimeoutError):
                self._too_slow = True
                lines.close()
            ending = await watching
            raise ConnectionLost(f"The server does not answer: {ending.reason}.", sent=False) from None
        self._upstream.initialize_first = not self._may_probe
        return connection

    # The end.

    async def _watch(self) -> Ending:
        gone = asyncio.ensure_future(process_exit(self.process_id, self._limits.poll_seconds))
        broken = asyncio.ensure_future(self._broken.wait())
        following = asyncio.ensure_future(follow_output(self._output, self._limits))
        try:
            await asyncio.wait((gone, broken), return_when=asyncio.FIRST_COMPLETED)
            if not self._too_slow:
                await asyncio.wait((gone,), timeout=self._limits.exit_seconds)
            return await self._clean_up(exited=gone.done())
        finally:
            for task in (gone, broken, following):
                task.cancel()

    async def _clean_up(self, *, exited: bool) -> Ending:
        """End all its processes, after its exit or when its pipes cannot be used any more."""
        by_itself = self._stopping is None
        useless = "" if exited or not by_itself else self._why_useless()
        if exited and by_itself:
            self._clear()  # end its children, which may keep its output open
        else:
            await self.stop(patient=not by_itself)  # gives it and its children time to end
        if exited:
            await self._read_rest()
            self._close_pipes()
        reason = useless or how_it_ended(self._child.exit_code())
        unanswered = by_itself and self._connection is not None and self._connection.probing
        if unanswered:  # set before the end is reported, because the next start reads it
            self._upstream.initialize_first = True
        self._write_stray_lines()
        self._output.flush(ended=True)
        last_lines = tuple(self._child.printed().splitlines())
        return Ending(reason, self._child.exit_code(), last_lines, unanswered)

    def _why_useless(self) -> str:
        if self._too_slow:
            return f"it did not answer within {self._limits.ready_seconds:g} s"
        assert self._lines is not None
        return f"it closed its {'output' if self._lines.over.is_set() else 'input'}"

    async def _stop(self, patient: bool) -> None:
        await self._end_input()
        seconds = self._limits.patient_seconds if patient else self._limits.stop_seconds
        await run_in_thread(lambda: self._child.stop(seconds))
        self._clear()
        await run_in_thread(lambda: self._output.wait(self._limits.drain_seconds))
        self._close_pipes()

    async def _end_input(self) -> None:
        """End its input, and wait until it has exited, or until its code has ended and only its interpreter is left.

        CPython restores default signal handling after the exit handlers, and then frees all modules, which takes 0.1 s
        and more in a server with many. A restart does not wait for that.
        """
        limits, had_code = self._limits, proc.handles_signals(self.process_id)
        if self._lines is not None:
            self._lines.close_output()
        gone = asyncio.ensure_future(process_exit(self.process_id, limits.poll_seconds))
        deadline = time.monotonic() + limits.input_seconds
        while not gone.done() and (left := deadline - time.monotonic()) > 0:
            if had_code and not proc.handles_signals(self.process_id):
                await asyncio.wait((gone,), timeout=min(left, limits.cleanup_seconds))
                break
            await asyncio.wait((gone,), timeout=min(left, limits.signals_poll_seconds))
        gone.cancel()

    def _clear(self) -> None:
        self._child.end_the_rest()
        self._cleared = True

    async def _read_rest(self) -> None:
        seconds = self._limits.drain_seconds
        reading: list[asyncio.Future[Any]] = [asyncio.ensure_future(run_in_thread(lambda: self._output.wait(seconds)))]
        if self._lines is not None:
            reading.append(asyncio.ensure_future(self._lines.over.wait()))
        await asyncio.wait(reading, timeout=seconds)
        for task in reading:
            task.cancel()

    def _close_pipes(self) -> None:
        if self._lines is not None:
            self._lines.close()
        else:
            for pipe in self._child.pipes or ():
                pipe.close()

    # The output.

    def _strayed(self, line: bytes) -> None:
        if not self._stray_lines:
            asyncio.get_running_loop().call_later(self._limits.stray_seconds, self._write_stray_lines)
        self._stray_lines.append(line[: self._limits.stray_bytes])

    def _write_stray_lines(self) -> None:
        """Append the lines of its standard output that are not messages to its output file; report the last one."""
        if not self._stray_lines:
            return
        lines = list(self._stray_lines)
        self._stray_lines.clear()
        self._output.add(b"".join(STRAY_MARK + line + b"\n" for line in lines))
        self._observer.strayed(decode_output(lines[-1]).strip())


async def follow_output(output: BoundedOutput, limits: CommandLimits) -> None:
    """Flush held-back output to the file, and copy new output to the Debug log."""
    seen = output.size()
    while True:
        await asyncio.sleep(limits.output_check_seconds)
        output.flush()
        size = output.size()  # read before the output, so that none is left out
        if log.level <= DEBUG and size != seen:
            log.debug(f"the server prints:\n{output.tail(seen)}")
        seen = size
