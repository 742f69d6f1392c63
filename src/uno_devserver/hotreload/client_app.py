"""The process that uses the extension, as the config's `client` says: started, seen to be ready, started again.

Every wait is bounded. A client that does not start, or never says that it is ready, has a `problem` and holds nobody
up. One that a person has closed stays closed, until somebody asks for it. It ends with us, whatever ends us.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from ..instances.child import Output, spawn
from ..system.files import decode
from ..system.log import log
from ..system.process_exit import process_exit
from ..system.programs import named_program_candidates
from ..system.state_files import name_for
from ..system.threads import run_in_thread, run_in_thread_to_end
from ..system.values import Value
from .die_with_parent import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..instances.child import Child
    from ..workspace.config import ClientCommand

LONGEST_LINE = 10_000  # characters that a pattern is held against
READ_BYTES = 1024 * 1024  # of the output, at a time


class ClientLimits(Value):
    ready_seconds: float = 30.0  # an editor window with its extensions takes 5 to 20 s; a call waits for it
    alive_seconds: float = 0.5  # without a pattern: what cannot start has ended by then
    look_seconds: float = 0.05  # between two looks at what it has printed
    end_seconds: float = 1.0  # its end is noticed as soon as that, where the system does not tell


class ClientApp:
    def __init__(
        self,
        command: ClientCommand,
        folder: str,
        environ: Mapping[str, str],
        state: str,
        policy: ClientLimits | None = None,
    ) -> None:
        """`folder` is where it runs; `state` is the folder of our own files."""
        self._command = command
        self._folder = folder
        self._environ = environ
        self._policy = policy or ClientLimits()
        self._pattern = _compiled(command.ready_pattern)
        self.log_file = os.path.join(state, "logs", f"client-{name_for(folder)}.log")
        self._output: Output | None = None  # one for all starts, until it is stopped
        self._child: Child | None = None
        self._life: int | None = None  # a pipe's end; when it is closed, the client's guard ends the client
        self._watching: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._wish = 0  # counts what was asked for: who waits for readiness gives up when something newer is
        self.ready = False
        self.problem = ""  # why it is not there, or not ready
        self.moved: Callable[[], None] = lambda: None  # `status` has something new to tell

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.exit_code() is None

    @property
    def closed(self) -> bool:
        """Whether a person has ended it, as far as one can see: it was there, and went in peace."""
        return self.ready and self._child is not None and self._child.exit_code() == 0

    @property
    def broke_down(self) -> bool:
        """Whether it ended with an error before it was ready."""
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
        """Start it, if it does not run. Whether it is ready."""
        async with self._turn:
            if not self.running:
                await self._launch()
            return self.ready

    async def restart(self) -> bool:
        """End it, if it runs, and start it. Whether it is ready; False as well where a person has closed it."""
        self._wish += 1
        async with self._turn:
            if self.closed:
                return False
            await self._end()
            await self._launch()
            return self.ready

    async def stop(self) -> None:
        self._wish += 1
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
        self._let_go()

    async def _launch(self) -> None:
        wish = self._wish
        cancelled = False

        def give_up() -> None:
            nonlocal cancelled
            cancelled = True

        self.ready = False
        self._unwatch()
        self._let_go()
        try:
            await run_in_thread_to_end(lambda: self._start(lambda: not cancelled and wish == self._wish), give_up)
        finally:
            if self._child is not None and self.running:
                self._watching = asyncio.ensure_future(self._watch(self._child))
            self.moved()

    async def _watch(self, child: Child) -> None:
        await process_exit(child.pid, self._policy.end_seconds)
        code = await run_in_thread(child.wait)
        if code:
            self._say(f"The client '{self._shown}' ended by itself, with exit code {code}.")
        self._let_go()
        self.moved()

    def _unwatch(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    def _let_go(self) -> None:
        life, self._life = self._life, None
        if life is not None:
            os.close(life)

    def _start(self, go_on: Callable[[], bool]) -> None:
        """On a thread of its own, until it is ready or will not be."""
        shown = self._shown
        try:
            output = self._output = self._output or self._open_output()
            begin = output.size()
            child = self._spawn((self._program(), *self._command.args), output)
        except (OSError, ValueError) as error:
            self._say(f"The client '{shown}' cannot be started: {error}.")
            return
        log.info(f"The client '{shown}' was started (process {child.pid}).")
        self.ready = self._gets_ready(child, output, begin, go_on)
        if self.ready:
            self.problem = ""
            log.info("The client is ready.")
        elif child.exit_code() is not None:
            printed = child.printed()
            last_words = f"it printed:\n{printed}" if printed.strip() else "it printed nothing."
            self._say(f"The client '{shown}' ended with exit code {child.exit_code()}; {last_words}")
        elif go_on():
            wait = f"{self._policy.ready_seconds:g} s"
            self._say(f"The client '{shown}' has not printed a line that matches client.readyPattern within {wait}.")

    @property
    def _shown(self) -> str:
        return " ".join((self._command.command, *self._command.args))

    def _spawn(self, line: tuple[str, ...], output: Output) -> Child:
        reads, self._life = os.pipe()
        try:
            self._child = spawn(guarded(line), folder=self._folder, environ=self._environ, output=output, reads=reads)
        finally:
            os.close(reads)
        return self._child

    def _open_output(self) -> Output:
        try:
            return Output(self.log_file)
        except OSError as error:
            # A home that is read-only is no reason to do without the client.
            self.log_file = os.path.join(tempfile.mkdtemp(prefix="uno-devserver-"), os.path.basename(self.log_file))
            log.warn(f"What the client prints goes to {self.log_file}, because of its usual place: {error.strerror}.")
            return Output(self.log_file)

    def _program(self) -> str:
        for path in named_program_candidates(self._command.command, self._folder, self._environ, sys.platform):
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        raise OSError(f"{self._command.command} is no program in the folders of PATH; correct client.command")

    def _gets_ready(self, child: Child, output: Output, begin: int, go_on: Callable[[], bool]) -> bool:
        seconds = self._policy.ready_seconds if self._pattern else self._policy.alive_seconds
        deadline = time.monotonic() + seconds
        lines = _Lines(output, begin)
        while go_on():
            ended = child.exit_code() is not None
            if self._pattern and any(self._pattern.search(line) for line in lines.new()):
                return True
            if ended:
                return False
            if time.monotonic() >= deadline:
                return self._pattern is None
            time.sleep(self._policy.look_seconds)
        return False

    def _say(self, problem: str) -> None:
        self.problem = problem
        log.warn(problem)


class _Lines:
    """What is printed into a file behind a place in it, line by line; a line that is not complete counts as well.

    Through its handle: another proxy of the workspace has a client, too, and its file takes the name of ours.
    """

    def __init__(self, output: Output, begin: int) -> None:
        self._handle = output.handle
        self._place = begin
        self._rest = b""

    def new(self) -> list[str]:
        os.lseek(self._handle, self._place, os.SEEK_SET)  # writing goes to the end all the same
        chunk = os.read(self._handle, READ_BYTES)
        self._place += len(chunk)
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
        log.warn(f"client.readyPattern is not a regular expression ({error}); the client counts as ready when it runs.")
        return None
