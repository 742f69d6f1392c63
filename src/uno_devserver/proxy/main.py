"""The proxy as a process: it answers from the first moment, starts the engine after that, and ends with its client.

Everything runs in the main thread. First it waits for input itself and answers what needs no upstream, while a second
thread begins the first start and imports the engine. Then the main thread runs the engine's event loop. If the engine
fails, the main thread answers by itself again. The process ends within 300 ms after its client, whatever hangs.
Cheap to import.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

from ..issues import UserError, fatal
from ..system.folders import folders
from ..system.log import ERROR, log
from .front.dispatcher import Dispatcher
from .front.input import client_input, tells_closed
from .front.output import ClientOutput, give_back, own_streams
from .health.status_file import StatusFile
from .lists.catalogue import identity_of, load, own_tool_facts
from .lists.merge import Offered, combined, merged
from .own_tools import capabilities, instructions
from .state import ConnectionState, ProxyState

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from asyncio import AbstractEventLoop

    from .engine import Engine
    from .first_start import FirstStart
    from .options import ProxyOptions
else:
    import _signal as signal  # `signal` only adds enums, which take half a millisecond before the first answer

# How long the engine has to stop its upstream, and the client to read the rest: together less than 300 ms.
ENGINE_SECONDS = 0.25
OUTPUT_SECONDS = 0.04
FULL_SECONDS = 0.1  # between checks whether a client that left too much unread may be read again
IDLE_MS = 1000  # between checks for a client that was given up, because it neither reads nor writes
SWITCH_SECONDS = 0.0005  # how long the front waits for its turn while the engine is being imported
# The engine is started after this time without input, when no client waits. If it were started at once, it would delay
# the first answers by 1 to 4 ms, and be ready only 1 ms sooner.
START_MS = 5
LATEST_SECONDS = 0.05  # the engine is started after this time even if the client does not pause
# Objects between two garbage collections. A call leaves no cycles; with Python's default of 700, collecting took a
# twentieth of the time of relaying.
COLLECT_AFTER = 10_000
NEXT_STEP = "Restart this MCP server in your client; with --log-level Debug its log says more."
ENDED = "The proxy ended before it could answer this."
CLOSED = "the client closed our input"


def serve(options: ProxyOptions) -> UserError | None:
    """Run the proxy until the client has gone, and end the process then.

    Return only with --force-generate-tool-cache: the failure, or None.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    log.stamped = True  # a proxy may run for days
    return Proxy(options).serve()


class Proxy:
    def __init__(self, options: ProxyOptions) -> None:
        self._options = options
        self._parent = os.getppid()
        self._source, self._sink = own_streams()
        self._state = first_state(options)
        self._output = ClientOutput(self._sink, lost=self._client_lost)
        self._dispatcher = Dispatcher(self._state, self._output, self._begin)
        self._input = client_input(self._source)
        self._begun = False  # whether the second thread was started
        self._first: FirstStart | None = None  # what the second thread has begun,
        self._first_failure: BaseException | None = None  # or why it could not
        self._loop: AbstractEventLoop | None = None
        self._engine: Engine | None = None
        self._engine_lock = _thread.allocate_lock()  # held while the engine runs
        self._end_lock = _thread.allocate_lock()  # acquired once, and never released

    def serve(self) -> UserError | None:
        try:
            self._heed_signals()
            if self._options.only_catalogue:
                return self._make_catalogue()
            self._state.write_first_status()
            self._answer(until_ready=True)
            self._run_engine()
            self._answer()
            self._end(CLOSED)
        except KeyboardInterrupt:  # before the signal handlers are set
            self._end("it was interrupted")
        return None

    # Without the engine.

    def _answer(self, *, until_ready: bool = False) -> None:
        """Answer what needs no upstream, until the client has gone or the engine can run."""
        latest = time.monotonic() + LATEST_SECONDS
        while not self._input.ended and not self._output.gone:
            if until_ready and (self._first is not None or self._first_failure is not None):
                return
            if self._output.full and not self._input.is_closed():
                self._output.wait(FULL_SECONDS)
                continue
            happened = self._input.wait(IDLE_MS if self._begun else START_MS)
            if not happened or time.monotonic() > latest:
                self._begin()
            self._dispatcher.take(self._input.read())

    def _begin(self) -> None:
        """Start what follows the first answers: the second thread, and watching the client."""
        if self._begun:
            return
        self._begun = True
        _thread.start_new_thread(self._prepare, ())
        from .front.client_watch import watch_client, watch_ends, watch_input

        _thread.start_new_thread(watch_client, (self._parent, self._end))
        if tells_closed():
            _thread.start_new_thread(watch_ends, (self._source, self._sink, lambda: self._input.reads, self._end))
        else:
            _thread.start_new_thread(watch_input, (self._input, self._end))

    def _prepare(self) -> None:
        """Begin the first start and import the engine; runs in the second thread."""
        # Importing asyncio is a seventh faster without `ssl`. For an upstream with an https URL it is imported later,
        # by `protocol/http/network_settings.py`.
        without_tls = "ssl" not in sys.modules
        if without_tls:
            sys.modules["ssl"] = None  # type: ignore[assignment]
        try:
            from .first_start import FirstStart

            first = FirstStart(self._options, self._state.timeline)
            from . import engine  # noqa: F401

            self._first = first
        except BaseException as error:  # SystemExit as well: the client still waits for answers
            self._first_failure = error
        finally:
            if without_tls:
                del sys.modules["ssl"]
        self._input.wake()

    # With the engine.

    def _run_engine(self) -> None:
        if self._input.ended or self._output.gone:
            return
        try:
            if self._first_failure is not None:
                raise self._first_failure
            if self._first is not None:
                self._run(self._first)
        except BaseException as error:
            self._fail(error)

    def _run(self, first: FirstStart) -> UserError | None:
        import asyncio
        import gc

        from ..system.nonblocking_output import nonblocking_output

        gc.freeze()  # imported modules stay, and need not be searched at each collection
        gc.set_threshold(COLLECT_AFTER)
        gc.enable()  # the command line disables it
        with self._engine_lock, nonblocking_output():
            return asyncio.run(self._engine_loop(first))

    async def _engine_loop(self, first: FirstStart) -> UserError | None:
        import asyncio

        from .engine import Engine

        loop = asyncio.get_running_loop()
        engine = Engine(self._options, self._state, self._dispatcher.write, self._output, first)
        try:
            if self._options.only_catalogue:
                return await engine.make_catalogue()
            self._loop, self._engine = loop, engine
            self._input.attach(loop, self._readable)
            self._dispatcher.open(engine)
            await engine.run()
        finally:
            self._input.detach(loop)
            await engine.close()
            self._dispatcher.close(ENDED)
        return None

    def _readable(self) -> None:
        self._dispatcher.take(self._input.read())
        if self._input.ended:
            assert self._loop is not None
            self._input.detach(self._loop)
            _thread.start_new_thread(self._end, (CLOSED,))
        elif self._output.full:
            assert self._loop is not None
            self._input.detach(self._loop)
            self._loop.call_later(FULL_SECONDS, self._read_on)

    def _read_on(self) -> None:
        """Read again, unless the client still leaves too much unread."""
        assert self._loop is not None
        if not self._output.full:
            self._input.attach(self._loop, self._readable)
        elif self._input.is_closed():
            _thread.start_new_thread(self._end, (CLOSED,))
        else:
            self._loop.call_later(FULL_SECONDS, self._read_on)

    def _client_lost(self) -> None:
        """End the process. Called from any thread."""
        _thread.start_new_thread(self._end, ("the client does not read any more",))

    def _fail(self, failure: BaseException) -> None:
        """Answer without the engine from now on; requests that need it are refused with the reason."""
        import traceback

        why = f"Something went wrong inside uno-devserver: {type(failure).__name__}: {failure}"
        log.write(ERROR, why)
        log.debug("".join(traceback.format_exception(failure)))
        self._loop = self._engine = None
        self._state.learn(state=ConnectionState.DEGRADED)
        self._state.blame("engine", (fatal("UpstreamError", f"{why}.", NEXT_STEP),))
        self._state.holds_tools = False
        self._dispatcher.close(f"{why}. {NEXT_STEP}")

    def _make_catalogue(self) -> UserError | None:
        """Do what --force-generate-tool-cache asks for."""
        self._prepare()
        try:
            if self._first is not None:
                return self._run(self._first)
            failure = self._first_failure
            why = f"Something went wrong inside uno-devserver: {type(failure).__name__}: {failure}."
            return UserError("Unexpected", why, NEXT_STEP)
        finally:
            _end_children()
            give_back(self._sink)

    # Ending.

    def _heed_signals(self) -> None:
        self._input.heed_signals()
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup sets SIG_IGN
                signal.signal(number, lambda *_: _thread.start_new_thread(self._end, ("a signal asked for it",)))

    def _end(self, reason: str) -> None:
        """Stop the engine and end the process. Safe from any thread; a second caller waits for the end."""
        self._end_lock.acquire()
        try:
            self._stop(reason)
        finally:
            # Threads may hang, and nothing is left to be closed. If a catalogue was asked for, it was not made.
            os._exit(1 if self._options.only_catalogue else 0)

    def _stop(self, reason: str) -> None:
        log.debug(f"Ending: {reason}.")
        loop, engine = self._loop, self._engine
        if loop is not None and engine is not None:
            try:
                loop.call_soon_threadsafe(engine.stop)
            except RuntimeError:
                pass  # the loop has just ended
            self._engine_lock.acquire(timeout=ENGINE_SECONDS)
        else:
            self._dispatcher.close(ENDED)
        _end_children()  # those that did not stop in time
        self._state.close()
        self._output.wait(OUTPUT_SECONDS)
        _end_children()  # those that the first start has launched meanwhile


def first_state(options: ProxyOptions) -> ProxyState:
    """Make the state before the first start: our own tools, and the lists that the upstream had the last time."""
    catalogue, state_folder = None, folders().state
    if not options.force_fallback:  # with it, the workspace is not known yet
        catalogue, problem = load(state_folder, identity_of(options))
        if problem:
            log.warn(problem)
    servers = catalogue.servers if catalogue else ()
    offered, _, _ = combined(catalogue.offered if catalogue else Offered(), servers)
    own = own_tool_facts(options, catalogue).replace(several=bool(servers))
    lists, own_tools = merged(offered, own)
    return ProxyState(
        options,
        lists=lists,
        own_tools=own_tools,
        uno_workspace=own.uno,
        capabilities=capabilities(catalogue.capabilities if catalogue else {}),
        instructions=instructions(
            catalogue.instructions if catalogue else None,
            *(f"{each.name}: {each.instructions}" for each in servers if each.instructions),
        ),
        catalogue=catalogue,
        status_file=None if options.only_catalogue else StatusFile(state_folder),
    )


def _end_children() -> None:
    """Kill all child processes. If the module is not imported completely, there are none."""
    stop_all = getattr(sys.modules.get("uno_devserver.system.run"), "stop_all", None)
    if stop_all is not None:
        stop_all()
