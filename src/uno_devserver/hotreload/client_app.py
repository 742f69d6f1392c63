"""Starts and restarts the process that uses the extension (`client` in the config), and waits until it is ready.

Every wait is limited. If the client does not start or does not become ready, `problem` says why, and calls go on.
A client that a person has closed stays closed until `start`. It ends with this process, even if that is killed.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from ..instances.bounded_output import BoundedOutput
from ..instances.child_process import spawn
from ..system.event_loop import process_exit, run_in_thread, run_in_thread_to_end
from ..system.files import decode
from ..system.log import log
from ..system.programs import first_executable, named_program_candidates
from ..system.state_files import name_for
from ..system.text import shown_command
from ..system.values import Value
from .die_with_parent import NEEDED, guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..instances.child_process import Child
    from ..workspace.config import ClientCommand

LONGEST_LINE = 10_000  # characters that are matched against the pattern
READ_BYTES = 1024 * 1024  # the most output that is read at a time


class ClientLimits(Value):
    ready_seconds: float = 30.0  # an editor window with its extensions takes 5 to 20 s; a call waits for it
    alive_seconds: float = 0.5  # if there is no pattern: a client that cannot start has ended by then
    look_seconds: float = 0.05  # between two reads of its output
    drain_seconds: float = 0.1  # to read its last output, if another process keeps that open
    end_seconds: float = 1.0  # between two checks whether it has ended, if the system does not report that


class ClientApp:
    def __init__(
        self,
        command: ClientCommand,
        folder: str,
        environ: Mapping[str, str],
        state: str,
        status_changed: Callable[[], None],
        limits: ClientLimits | None = None,
    ) -> None:
        """`folder` is the client's working directory; `state` is the folder of our own files."""
        self._command = command
        self._shown = shown_command((command.command, *command.args))
        self._folder = folder
        self._environ = environ
        self._status_changed = status_changed
        self._limits = limits or ClientLimits()
        self._pattern = _compiled(command.ready_pattern)
        self.log_file = os.path.join(state, "logs", f"client-{name_for(folder)}.log")
        self._output: BoundedOutput | None = None  # one for all starts until `stop`
        self._child: Child | None = None
        self._lifeline: int | None = None  # the write end of a pipe; closing it ends the client
        self._watching: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._generation = 0  # grows with each restart and stop; a start that waits for readiness then gives up
        self.ready = False
        self.problem = ""  # why the client does not run or is not ready; empty if there is no problem

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.exit_code() is None

    @property
    def closed(self) -> bool:
        """Whether a person has probably closed the client: it was ready, and ended without an error."""
        return self.ready and self._child is not None and self._child.exit_code() == 0

    @property
    def broke_down(self) -> bool:
        """Whether the client ended with an error before it was ready."""
        return not self.ready and self._child is not None and bool(self._child.exit_code())

    def status(self) -> dict[str, Any]:
        return {
            "running": self.running,
            "ready": self.running and self.ready,
            "processId": self._child.pid if self._child is not None and self.running else None,
            "logFile": self.log_file,
            "problem": self.problem or None,
        }

    async def start(self) -> bool:
        """Start the client unless it runs; return whether it is ready."""
        async with self._turn:
            if not self.running:
                await self._launch()
            return self.ready

    async def restart(self) -> bool:
        """End the client and start it again, unless a person has closed it; return whether it is ready."""
        self._generation += 1
        async with self._turn:
            if self.closed:
                return False
            await self._end()
            await self._launch()
            return self.ready

    async def stop(self) -> None:
        self._generation += 1
        async with self._turn:
            await self._end()
            output, self._output = self._output, None
            if output is not None:
                output.close()

    async def _end(self) -> None:
        self.ready = False
        if self._child is not None and self.running:
            self._unwatch()
            await run_in_thread(self._child.stop)
        self._close_lifeline()

    async def _launch(self) -> None:
        generation = self._generation
        self.ready = False
        self._unwatch()
        self._close_lifeline()
        try:
            await run_in_thread_to_end(lambda wanted: self._start(lambda: wanted() and generation == self._generation))
        finally:
            if self._child is not None and self.running:
                self._watching = asyncio.ensure_future(self._watch(self._child))
            self._status_changed()

    async def _watch(self, child: Child) -> None:
        await process_exit(child.pid, self._limits.end_seconds)
        code = await run_in_thread(child.wait)
        if code:
            self._set_problem(f"The client '{self._shown}' ended by itself, with exit code {code}.")
        self._close_lifeline()
        self._status_changed()

    def _unwatch(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    def _close_lifeline(self) -> None:
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)

    # On a thread of its own.

    def _start(self, wanted: Callable[[], bool]) -> None:
        """Start the client and wait until it is ready or has failed."""
        shown = self._shown
        try:
            output = self._output = self._output or self._open_output()
            begin = output.size()
            child = self._spawn((self._program(), *self._command.args), output)
        except (OSError, ValueError) as error:
            self._set_problem(f"The client '{shown}' cannot be started: {error}.")
            return
        log.info(f"The client '{shown}' was started (process {child.pid}).")
        self.ready = self._wait_until_ready(child, output, begin, wanted)
        if self.ready:
            self.problem = ""
            log.info("The client is ready.")
        elif child.exit_code() is not None:
            printed = child.printed()
            last_words = f"it printed:\n{printed}" if printed.strip() else "it printed nothing."
            self._set_problem(f"The client '{shown}' ended with exit code {child.exit_code()}; {last_words}")
        elif wanted():
            missing = f"has not printed a line that matches client.readyPattern within {self._limits.ready_seconds:g} s"
            self._set_problem(f"The client '{shown}' {missing}.")

    def _open_output(self) -> BoundedOutput:
        try:
            return BoundedOutput(self.log_file)
        except OSError as error:  # the client works with a read-only home folder too
            self.log_file = os.path.join(tempfile.mkdtemp(prefix="uno-devserver-"), os.path.basename(self.log_file))
            log.warn(f"The output of the client goes to {self.log_file}, because of its usual place: {error.strerror}.")
            return BoundedOutput(self.log_file)

    def _program(self) -> str:
        name = self._command.command
        program = first_executable(named_program_candidates(name, self._folder, self._environ, sys.platform))
        if program is None:
            raise OSError(f"{name} is not a program in the folders of PATH; correct client.command")
        return program

    def _spawn(self, line: tuple[str, ...], output: BoundedOutput) -> Child:
        if not NEEDED:
            self._child = spawn(line, folder=self._folder, environ=self._environ, output=output)
            return self._child
        reads, self._lifeline = os.pipe()
        try:
            self._child = spawn(guarded(line), folder=self._folder, environ=self._environ, output=output, reads=reads)
        finally:
            os.close(reads)
        return self._child

    def _wait_until_ready(self, child: Child, output: BoundedOutput, begin: int, wanted: Callable[[], bool]) -> bool:
        seconds = self._limits.ready_seconds if self._pattern else self._limits.alive_seconds
        deadline = time.monotonic() + seconds
        lines = _OutputLines(output, begin)
        while wanted():
            ended = child.exit_code() is not None
            if ended:
                output.wait(self._limits.drain_seconds)
            output.flush()
            if self._pattern and any(self._pattern.search(line) for line in lines.new()):
                return True
            if ended:
                return False
            if time.monotonic() >= deadline:
                return self._pattern is None
            time.sleep(self._limits.look_seconds)
        return False

    def _set_problem(self, problem: str) -> None:
        self.problem = problem
        log.warn(problem)


class _OutputLines:
    """Reads the lines after a position in an output; the last one may be incomplete.

    It reads from the open handle, because another proxy's client may have replaced the file of this name.
    """

    def __init__(self, output: BoundedOutput, begin: int) -> None:
        self._output = output
        self._position = begin
        self._rest = b""

    def new(self) -> list[str]:
        self._position = min(self._position, self._output.size())  # a file that is too large is shortened
        chunk = self._output.read(self._position, READ_BYTES)
        self._position += len(chunk)
        if not chunk:
            return []
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines[-1][-LONGEST_LINE:]
        return [decode(line)[:LONGEST_LINE].rstrip("\r") for line in lines]


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        return re.compile(pattern)
    except re.error as error:
        log.warn(f"client.readyPattern is not a regular expression ({error}); the client is ready once it runs.")
        return None
