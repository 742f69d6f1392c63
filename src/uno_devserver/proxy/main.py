"""The proxy as a process: the front answers from the first moment, the engine comes behind it, and both go together.

The input is read by the main thread until the engine's event loop runs, and then there: handing each message from one
thread to another takes as long as relaying it. It comes back here when the engine fails or hangs, the client reads too
slowly, or the input has ended. Whatever hangs, the front answers, and the process is gone 300 ms after its client.
Cheap to import.
"""

from __future__ import annotations

import _thread
import os
import select
import sys
import time

from .. import __version__
from ..protocol.parties import ServerInfo
from ..system.folders import folders
from ..system.log import log
from .board import Board
from .catalogue import circumstances, identity_of, load
from .front.engine_thread import EngineThread
from .front.front import Front
from .front.lines import Lines
from .front.outlet import Outlet
from .front.streams import give_back, own_streams
from .inbox import Inbox
from .lists import Offered, merged
from .timeline import Timeline
from .tools import capabilities, instructions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any

    from ..issues import UserError
    from .front.engine_thread import Run, Write
    from .options import Options

NAME = "uno-devserver"
POLLS = hasattr(select, "poll")  # Windows does not
READ_BYTES = 64 * 1024  # what a pipe holds
# For the engine to stop its upstream, and for the client to take what is left: together the 300 ms that we have.
ENGINE_SECONDS = 0.25
OUTPUT_SECONDS = 0.04
# While a client leaves too much unread, we read nothing of it, but look whether it is still there.
FULL_SECONDS = 0.1
# Within which it is noticed that the engine's loop hangs, or that a client was given up, who reads and writes nothing.
IDLE_MS = 1000
HANG_SECONDS = 0.02  # for the loop to take what it has just read, when the input has ended
SIGNAL_SECONDS = 0.1  # within which a signal is heeded, where only the engine is waited for
# How long the front waits for its turn while the engine is busy, importing or relaying.
SWITCH_SECONDS = 0.0005
# A client that waits for us has written already, and one that pauses longer than this does not notice what it costs
# that the engine begins. Begun at once, it would delay the first answers by 1 to 4 ms, and be ready 1 ms sooner.
START_MS = 5
LATEST_SECONDS = 0.05  # for a client that never pauses, and asks for nothing but what the front knows


def serve(options: Options, run: Run | None = None) -> UserError | None:
    """Be the proxy until the client has gone; the process ends with it.

    Only --force-generate-tool-cache returns: why it failed, or nothing.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    log.stamped = True  # we may run for days
    return _Proxy(options, run or _run_engine).serve()


class _Proxy:
    def __init__(self, options: Options, run: Run) -> None:
        self._options = options
        self._parent = os.getppid()
        timeline, board = Timeline(), _first_board(options)
        self._board = board
        board.health = lambda: _first_health(options, timeline)
        self._source, self._sink = own_streams()
        self._inbox, self._outlet = Inbox(), Outlet(self._sink)
        self._front = Front(board, self._put, self._outlet.write, timeline)
        self._engine = EngineThread(run, options, board, self._inbox, self._front.write, timeline)
        self._ending = _thread.allocate_lock()  # taken once, and never given back
        self._woken, self._waking = os.pipe()
        self._lines = Lines()
        self._loop: AbstractEventLoop | None = None  # the engine's, which can read in our place
        self._reads_here = True
        self._given_back = False  # and nothing was read since
        self._reading = _thread.allocate_lock()  # held while the loop reads
        self._reads = 0  # of the loop
        self._unread_after: int | None = None  # so many of them there was something to read, when last looked at
        self._inbox.opened = self._engine_opened

    def serve(self) -> UserError | None:
        try:
            if self._options.only_catalogue:
                self._begin()
                while not self._engine.wait(SIGNAL_SECONDS):
                    pass
                self._board.end_by_force()
                give_back(self._sink)
                return self._engine.failure
            self._end(self._listen() if POLLS else self._listen_without_polling())
        except KeyboardInterrupt:  # before signals are heeded
            self._end("it was interrupted")
        return None

    def _put(self, message: tuple[str, Any]) -> None:
        self._inbox.put(message)
        kind, value = message
        if kind == "read" or (kind == "message" and "id" in value):
            self._begin()

    def _begin(self) -> None:
        """What comes behind the first answers."""
        if self._engine.started:
            return
        self._heed_signals()
        self._engine.start()
        from .front.client_watch import watch_client

        _thread.start_new_thread(watch_client, (self._parent, self._end))

    def _listen(self) -> str:
        """Take what the client writes, until it has gone; returns how one could see that."""
        waiting = select.poll()
        waiting.register(self._source, select.POLLIN)
        waiting.register(self._sink, 0)  # errors are reported in any case
        waiting.register(self._woken, select.POLLIN)
        latest = time.monotonic() + LATEST_SECONDS
        while True:
            events = dict(waiting.poll(IDLE_MS if self._engine.started else START_MS))
            if not events or time.monotonic() > latest:
                self._begin()
            if self._source in events and self._reads_here:
                data, self._given_back = self._read(), False
                for line in self._lines.finish() if data == b"" else self._lines.feed(data or b""):
                    self._front.take(line)
                if data == b"":
                    return "the client closed our input"
            elif self._woken in events:
                os.read(self._woken, READ_BYTES)  # and the signal has been heeded
            elif self._source in events or (not events and self._loop_hangs()):
                self._take_over()
            if self._reads_here:
                waiting.register(self._source, select.POLLIN)  # once more, or still
            if (self._sink in events and self._source not in events) or not self._client_reads():
                return "the client does not read any more"
            loop = self._loop
            if self._reads_here and loop is not None and not self._given_back:
                self._reads_here = False
                waiting.register(self._source, 0)  # its end is reported in any case
                self._hand_over(loop)

    # Reading in the engine's loop.

    def _engine_opened(self, loop: AbstractEventLoop | None) -> None:
        """From its thread; None: it has failed, and there is no loop any more."""
        self._outlet.gather(loop)
        if POLLS:
            self._loop = loop if _can_be_watched(self._source) else None
            if loop is None:
                self._take_back()
            else:
                self._wake()

    def _hand_over(self, loop: AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(loop.add_reader, self._source, self._read_in_loop, loop)
        except RuntimeError:  # it has just ended
            self._take_back()

    def _read_in_loop(self, loop: AbstractEventLoop) -> None:
        self._inbox.expect()
        try:
            self._take_in_loop(loop)
            self._outlet.flush()  # what the front says does not depend on what the engine does
        finally:
            self._inbox.hand_over()

    def _take_in_loop(self, loop: AbstractEventLoop) -> None:
        with self._reading:
            if self._reads_here:
                loop.remove_reader(self._source)
                return
            self._reads += 1
            data = self._read()
            for line in self._lines.feed(data or b""):
                self._front.take(line)
            if data == b"" or self._outlet.full:  # the end is read there, too; and only there it can be waited
                loop.remove_reader(self._source)
                self._take_back()

    def _loop_hangs(self) -> bool:
        """Whether it has left something unread since we last looked."""
        self._outlet.flush()
        before, self._unread_after = self._unread_after, None
        unread = select.poll()
        unread.register(self._source, select.POLLIN)
        if not self._reads_here and unread.poll(0):
            self._unread_after = self._reads
        return before is not None and before == self._unread_after

    def _take_over(self) -> None:
        """Read here again, whatever the loop does."""
        taken = self._reading.acquire(timeout=HANG_SECONDS)
        self._given_back = self._reads_here = True
        if taken:
            self._reading.release()

    def _take_back(self) -> None:
        self._given_back = self._reads_here = True
        self._wake()

    def _wake(self) -> None:
        try:
            os.write(self._waking, b"\0")
        except BlockingIOError:
            pass  # it will wake

    def _read(self) -> bytes | None:
        """Nothing at the end of the input; None where there is nothing yet."""
        try:
            return os.read(self._source, READ_BYTES)
        except BlockingIOError:  # somebody has made it non-blocking, and somebody else was faster
            return None
        except OSError:  # a socket whose other end was closed with something unread, or a terminal that is gone
            return b""

    def _client_reads(self) -> bool:
        """Wait while it leaves too much unread; False when it has gone meanwhile."""
        if self._outlet.full:
            leaving = select.poll()
            leaving.register(self._source, 0)
            while self._outlet.full and not self._outlet.wait(FULL_SECONDS):
                if leaving.poll(0):
                    return False
        return not self._outlet.gone

    def _listen_without_polling(self) -> str:
        """On Windows nothing tells whether somebody has written; what else is to be done is done in threads."""
        self._begin()
        while data := self._read():
            for line in self._lines.feed(data):
                self._front.take(line)
        for line in self._lines.finish():
            self._front.take(line)
        return "the client closed our input"

    def _heed_signals(self) -> None:
        import signal

        if POLLS:
            # A signal that comes between looking for one and waiting would be heeded only when something else happens.
            os.set_blocking(self._waking, False)
            signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup relies on that
                signal.signal(number, lambda *_: _thread.start_new_thread(self._end, ("a signal asked for it",)))

    def _end(self, reason: str) -> None:
        """From any thread; whoever comes second waits here for the end of the process."""
        self._ending.acquire()
        log.debug(f"Ending: {reason}.")
        self._inbox.put(("end", reason))
        if self._engine.started:
            if not self._engine.wait(ENGINE_SECONDS):
                self._engine.give_up()
            self._board.end_by_force()  # what just starts, or does not let itself be ended in time
        self._outlet.wait(OUTPUT_SECONDS)
        # Threads may hang, and nothing is left that would have to be closed. A catalogue was not made then.
        os._exit(1 if self._options.only_catalogue else 0)


def _can_be_watched(handle: int) -> bool:
    """Whether an event loop takes it: pipes, and the sockets that Node gives its children; not files."""
    import stat

    mode = os.fstat(handle).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _first_board(options: Options) -> Board:
    """What is known before anything has been looked at: our own tools, and what the upstream had the last time."""
    catalogue = None
    if not options.force_fallback:  # then nobody knows yet which workspace it will be
        catalogue, problem = load(folders().state, identity_of(options))
        if problem:
            log.warn(problem)
    offered = catalogue.offered if catalogue else Offered()
    lists, own = merged(offered, circumstances(options, catalogue).replace(fallback=options.force_fallback))
    server = ServerInfo(NAME, __version__, instructions=instructions(catalogue.instructions if catalogue else None))
    board = Board(
        server,
        capabilities(catalogue.capabilities if catalogue else {}),
        lists,
        dict,
        catalogue=catalogue,
        holds_tools=options.wait_tools,
    )
    board.own_tools = own
    return board


def _first_health(options: Options, timeline: Timeline) -> dict[str, object]:
    from .health.health import ProxyFacts, report

    return report(ProxyFacts(options, timeline=timeline.stages(), fallback=options.force_fallback))


def _run_engine(options: Options, board: Board, inbox: Inbox, write: Write, timeline: Timeline) -> UserError | None:
    from .engine import engine

    return engine.run(options, board, inbox, write, timeline)
