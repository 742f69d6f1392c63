"""Launching a Host: from an order to a process that is known to serve, or a failure that says why there is none.

No process is left behind by a launch that fails or is given up. A port that another program takes at the last moment
is replaced by another one, unless the user named it. A Host that dies while it loads add-ins is tried once without;
one that refuses its flags, or that somebody stops, is not.
"""

from __future__ import annotations

import re
import signal
import time
from enum import Enum

from ..system import proc
from ..system.ports import free_port, is_free
from ..system.processes import GRACE_SECONDS, listener_in_family
from ..system.values import Value
from .child import Child, Output, spawn
from .host_program import NO_ADDINS, HostArguments, HostProgram, ProgramKind, addin_paths, command_line
from .local_http import Loopback
from .registry import prune

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .child import Child
    from .probe import Probe

READY_SECONDS = 30.0  # the limit of all launchers; a .NET Host that asks MSBuild comes near it
PORT_ATTEMPTS = 3  # a port is lost to another program once in a blue moon; three times means something else is wrong
FREED_SECONDS = 0.3  # the Host of a proxy that has lost its client is gone by then
FREED_STEP = 0.01

# How the bundled Host ends when it is called wrongly, or cannot listen: before it looks at any add-in.
_REFUSAL = re.compile(r"^error: (.*?)\nnext: ([^\n]*)\s*\Z", re.DOTALL | re.MULTILINE)


class Order(Value):
    """What is to be launched, and where."""

    program: HostProgram
    arguments: HostArguments  # port 0: any that is free
    environ: Mapping[str, str]
    registry: str
    output: Output
    ready_seconds: float = READY_SECONDS
    usual_port: int = 0  # the one to take where any will do, if it is free
    asks_addins: bool = True  # wait a moment to hear what became of the add-ins
    tries_without: bool = True  # where it dies with its add-ins, it is wanted all the same
    stop_seconds: float = GRACE_SECONDS  # for one that does not become ready to end by itself


class Launched(Value):
    child: Child
    process_id: int  # of the Host: the child, or what a script that is the child has started
    port: int
    has_mcp: bool
    arguments: HostArguments  # as it was launched: without add-ins after a crash
    told: Probe | None = None  # what a bundled Host said of its add-ins, as far as they were loaded
    left_out: tuple[str, ...] | None = None  # the add-ins it died with; empty: it would have found them itself


class LaunchFailureReason(Enum):
    PORT_TAKEN = "port taken"  # by a program that was there before
    NOT_STARTED = "not started"  # the system refused to run it
    DIED = "died"
    NOT_READY = "not ready"
    GIVEN_UP = "given up"  # the observer said so


class LaunchFailure(Exception):
    def __init__(
        self,
        reason: LaunchFailureReason,
        port: int,
        *,
        exit_code: int | None = None,
        text: str = "",
        seconds: float = 0.0,
        log_file: str = "",
    ) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.port = port
        self.exit_code = exit_code
        self.text = text  # the end of the Host's output, or the system's words
        self.seconds = seconds  # that it was given
        self.log_file = log_file  # with all of its output

    @property
    def refusal(self) -> tuple[str, str] | None:
        """What the Host itself said to the user: what is wrong, and the next step."""
        found = _REFUSAL.search(self.text)
        return (found[1], found[2]) if found else None


class Observer:
    """Who watches a launch; overrides what matters to it."""

    def spawned(self, child: Child, port: int) -> None:
        """There is a process. This is called while it starts: work that can be done meanwhile costs no time."""

    def go_on(self, seconds: float) -> bool:  # noqa: ARG002  # for those who show it
        """Asked again and again while the Host starts; False gives up, for good."""
        return True

    def crashed(self, failure: LaunchFailure, addins: str | None) -> None:
        """It died while it started; now comes the attempt without these add-ins (None: it discovered them itself)."""


def launch(order: Order, observer: Observer) -> Launched:
    """A Host that serves; raises LaunchFailure."""
    try:
        return _launch_on_some_port(order, observer)
    except LaunchFailure as failure:
        due_to_addins = _uses_addins(order.arguments) and _may_be_due_to_addins(failure, order.program.kind)
        if not due_to_addins or not order.tries_without:
            raise
        observer.crashed(failure, order.arguments.addins)
    without = order.replace(arguments=order.arguments.replace(addins=NO_ADDINS))
    return _launch_on_some_port(without, observer).replace(left_out=addin_paths(order.arguments.addins))


def _uses_addins(arguments: HostArguments) -> bool:
    if arguments.addins is None:
        return arguments.solution is not None  # the Host discovers them itself
    return bool(addin_paths(arguments.addins))


def _may_be_due_to_addins(failure: LaunchFailure, kind: ProgramKind) -> bool:
    """Not where it ended before it came to them: it refused a flag, or it is something else than a Host.

    And not where somebody told it to end. A .NET Host ends with 0 in other cases too, ours does not.
    """
    silent = failure.exit_code == 0 and not failure.text.strip()
    stopped = failure.exit_code in (-signal.SIGTERM, -signal.SIGINT)
    stopped = stopped or (failure.exit_code == 0 and kind is ProgramKind.BUNDLED)
    return failure.reason is LaunchFailureReason.DIED and failure.refusal is None and not silent and not stopped


def _launch_on_some_port(order: Order, observer: Observer) -> Launched:
    if order.arguments.port:
        return _launch(order, observer)
    usual = order.usual_port
    for _ in range(PORT_ATTEMPTS):
        chosen = order.replace(arguments=order.arguments.replace(port=usual or free_port()))
        try:
            return _launch(chosen, observer)
        except LaunchFailure as failure:
            if failure.reason is not LaunchFailureReason.PORT_TAKEN:
                raise
            last, usual = failure, 0
    raise last


def _launch(order: Order, observer: Observer) -> Launched:
    port = order.arguments.port
    if not observer.go_on(0.0):  # finding out what to launch, and waiting for others, takes its time
        raise LaunchFailure(LaunchFailureReason.GIVEN_UP, port)
    if not _becomes_free(port, observer):
        raise LaunchFailure(LaunchFailureReason.PORT_TAKEN, port)
    line = command_line(order.program, order.arguments)
    environ = {**order.environ, **dict(order.program.environment)}
    try:
        child = spawn(line, folder=order.arguments.workspace, environ=environ, output=order.output)
    except OSError as error:
        text = f"{error.filename or line[0]}: {error.strerror or error}"  # the program, or its folder
        raise LaunchFailure(LaunchFailureReason.NOT_STARTED, port, text=text) from error
    try:
        observer.spawned(child, port)
        asks = _asks_of_addins(order)
        if asks:
            from .probe import wait_until_loaded  # takes some ms, and has them now, while the Host starts
        wait = wait_until_ready(child, port, seconds=order.ready_seconds, go_on=observer.go_on)
        asks = asks and wait.outcome is Readiness.READY
        told = wait_until_loaded(child, wait.process_id, port) if asks else None
    except BaseException:
        _end(child, order)
        raise
    if wait.outcome is Readiness.READY and child.exit_code() is None:
        return Launched(child, wait.process_id, port, wait.has_mcp, order.arguments, told)
    _end(child, order)
    raise _failure(Readiness.DIED if wait.outcome is Readiness.READY else wait.outcome, child, order)


def _becomes_free(port: int, observer: Observer) -> bool:
    """Whether the port is free, now or in a moment: a Host that just ends is out of the registry before it is gone."""
    deadline = time.monotonic() + FREED_SECONDS
    while not is_free(port):
        if time.monotonic() >= deadline or not observer.go_on(0.0):
            return False
        time.sleep(FREED_STEP)
    return True


def _asks_of_addins(order: Order) -> bool:
    return order.asks_addins and order.program.kind is ProgramKind.BUNDLED and _uses_addins(order.arguments)


def _end(child: Child, order: Order) -> None:
    child.stop(order.stop_seconds)
    child.end_the_rest()
    prune(order.registry)  # one that was killed could not sign itself out


def _failure(outcome: Readiness, child: Child, order: Order) -> LaunchFailure:
    reasons = {
        Readiness.GIVEN_UP: LaunchFailureReason.GIVEN_UP,
        Readiness.TOO_LATE: LaunchFailureReason.NOT_READY,
        Readiness.DIED: LaunchFailureReason.DIED,
    }
    reason, port = reasons[outcome], order.arguments.port
    if reason is LaunchFailureReason.DIED and not is_free(port):
        reason = LaunchFailureReason.PORT_TAKEN
    return LaunchFailure(
        reason,
        port,
        exit_code=child.exit_code(),
        text=child.printed(),
        seconds=order.ready_seconds,
        log_file=order.output.path,
    )


MCP_PATH = "/mcp"
NOT_FOUND = 404
READY_ASK_SECONDS = 2.0  # one question; a Host that loads its add-ins may accept a connection long before it answers
# A bundled Host needs 0.1 s, a .NET Host 0.4 s and more: at first every few milliseconds count.
FAST_SECONDS, FAST_STEP, SLOW_STEP = 1.0, 0.003, 0.02


class Readiness(Enum):
    READY = "ready"
    DIED = "died"
    TOO_LATE = "too late"
    GIVEN_UP = "given up"


class Wait(Value):
    outcome: Readiness
    process_id: int = 0  # of the Host: the child, or what a script that is the child has started
    has_mcp: bool = False


def wait_until_ready(child: Child, port: int, *, seconds: float, go_on: Callable[[float], bool]) -> Wait:
    """`go_on` is told the seconds that passed, again and again, and can end the waiting for good."""
    begun = time.monotonic()
    loopback = Loopback()
    if not proc.AVAILABLE:
        import psutil  # noqa: F401  # takes 20 ms, and has them now, while the Host starts

    def pointless() -> bool:
        return child.exit_code() is not None or not go_on(time.monotonic() - begun)

    while True:
        left = seconds - (time.monotonic() - begun)
        status = loopback.ask("GET", port, MCP_PATH, min(READY_ASK_SECONDS, max(left, 0)), abandon=pointless)
        process_id = None if status is None else listener_in_family(child.pid, port)
        if child.exit_code() is not None:
            return Wait(Readiness.DIED)
        if process_id is not None:
            return Wait(Readiness.READY, process_id, status != NOT_FOUND)
        if left <= 0:
            return Wait(Readiness.TOO_LATE)
        if pointless():
            return Wait(Readiness.GIVEN_UP)
        time.sleep(FAST_STEP if seconds - left < FAST_SECONDS else SLOW_STEP)
