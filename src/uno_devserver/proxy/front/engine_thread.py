"""The engine beside the front: in a thread of its own, whose failure the front survives. Cheap to import."""

from __future__ import annotations

import _thread

from ...issues import UserError
from ...protocol.jsonrpc import INTERNAL_ERROR, RpcError
from ...system.log import ERROR, log
from .messages import error_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..board import Board
    from ..inbox import Inbox
    from ..options import Options
    from ..timeline import Timeline

    Write = Callable[[bytes], None]
    Run = Callable[[Options, Board, Inbox, Write, Timeline], UserError | None]

NEXT_STEP = "Restart this MCP server in your client; with --log-level Debug its log tells more."


class EngineThread:
    def __init__(
        self, run: Run, options: Options, board: Board, inbox: Inbox, write: Write, timeline: Timeline
    ) -> None:
        self._run = run
        self._options = options
        self._board = board
        self._inbox = inbox
        self._write = write
        self._timeline = timeline
        self._running = _thread.allocate_lock()  # held while the thread works
        self.started = False
        self.failure: UserError | None = None  # why the engine could not do what it had to

    def start(self) -> None:
        if not self.started:
            self.started = True
            self._running.acquire()
            _thread.start_new_thread(self._work, ())

    def wait(self, seconds: float = -1) -> bool:
        """Whether it has ended, now or within that time; -1 waits for as long as it takes."""
        return self._running.acquire(timeout=seconds)

    def give_up(self) -> None:
        """It has not ended in time: what it has not even looked at is refused."""
        self._inbox.open(None, lambda message: self._refuse(message, "The proxy has ended before it came to this."))

    def _work(self) -> None:
        try:
            self.failure = self._run(self._options, self._board, self._inbox, self._write, self._timeline)
        except BaseException as error:  # also an exit: somebody still waits for answers
            self._fail(error)
        finally:
            self._running.release()

    def _fail(self, failure: BaseException) -> None:
        """Nothing can be passed on any more: whoever tries is told why, and so is whoever asks how we are.

        What the engine had taken already is its own to answer, on its way out.
        """
        import traceback

        why = f"Something went wrong inside uno-devserver: {type(failure).__name__}: {failure}"
        self.failure = UserError("Unexpected", f"{why}.", NEXT_STEP)
        log.write(ERROR, why)
        log.debug(traceback.format_exc())
        self._board.health = lambda: _health_without_engine(self._options, self._timeline, why)
        self._board.holds_tools = False
        self._inbox.open(None, lambda message: self._refuse(message, f"{why}. {NEXT_STEP}"))

    def _refuse(self, message: tuple[str, Any], why: str) -> None:
        kind, value = message
        if kind == "message" and "method" in value and "id" in value:
            self._write(error_line(value["id"], RpcError(INTERNAL_ERROR, why)))


def _health_without_engine(options: Options, timeline: Timeline, why: str) -> dict[str, object]:
    from ...instances.health_report import ConnectionState
    from ...issues import fatal
    from ..health.health import ProxyFacts, report

    issue = fatal("UpstreamError", f"{why}.", NEXT_STEP)
    return report(ProxyFacts(options, ConnectionState.DEGRADED, issues=(issue,), timeline=timeline.stages()))
