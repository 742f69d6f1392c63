"""Launch a Host and wait until it serves; raise a LaunchFailure that says why it does not.

A launch that fails or is given up leaves no process behind. If another program takes the port at the last moment,
another port is tried, unless the user named that one. A Host that dies while it loads its add-ins is launched once
more without them; one that refuses its flags or was stopped by a signal is not.

`StartRequest` and `RunningHost`, the records of `start`, are defined here: a launch reads one and makes the other.
"""

from __future__ import annotations

import re
import signal
import time
from enum import Enum

from ..system import proc
from ..system.files import FileProblem
from ..system.ports import free_port, is_free
from ..system.processes import GRACE_SECONDS, how_it_ended, listener_in_family
from ..system.values import Value
from .child_process import Child, Output, spawn
from .host_kind import HostKind
from .host_program import NO_ADDINS, HostProgram, LaunchPlan, addin_paths, command_line
from .local_http import Loopback
from .registry import prune, write_sidecar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..workspace.resolver import Workspace
    from .probe import Probe

READY_SECONDS = 30.0  # the limit of all launchers; a .NET Host that asks MSBuild comes near it
PORT_ATTEMPTS = 3  # another program rarely takes a port in between; after three times something else is wrong
FREED_SECONDS = 0.3  # the Host of a proxy that has lost its client is gone by then
FREED_STEP = 0.01
MCP_PATH = "/mcp"
NOT_FOUND = 404
READY_ASK_SECONDS = 2.0  # one question; a Host that loads its add-ins may accept a connection long before it answers
# A bundled Host needs 0.1 s, a .NET Host 0.4 s and more: at first every few milliseconds count.
FAST_SECONDS, FAST_STEP, SLOW_STEP = 1.0, 0.003, 0.02

# How the bundled Host ends when its flags are wrong or it cannot listen: before it loads any add-in.
_REFUSAL = re.compile(r"^error: (.*?)\nnext: ([^\n]*)\s*\Z", re.DOTALL | re.MULTILINE)


class StartRequest(Value):
    """The Host that is wanted; passed unchanged from the caller of `start` down to the launch."""

    workspace: Workspace
    port: int = 0  # 0: the one that the workspace's last Host had, or any free one
    parent: int | None = None  # the process with which the Host ends
    ide_channel: str | None = None
    forwarded: tuple[str, ...] = ()  # further arguments of the Host
    restart: bool = False  # replace a Host that runs
    host: str | None = None  # bundled, dotnet, or a path; None: the one that fits the workspace
    addins: str | None = None  # the value of --addins; None: the add-ins of the workspace
    force_msbuild: bool = False  # let MSBuild name the add-ins, whatever `addins` says
    needs_trust: bool = False  # run the workspace's own code only if the user trusts it
    ready_seconds: float = READY_SECONDS
    stop_seconds: float = GRACE_SECONDS  # for a Host that does not become ready to end by itself
    asks_addins: bool = True  # wait a moment to learn whether the add-ins were loaded
    tries_without: bool = True  # launch it without its add-ins where it dies with them
    control_channel: str | None = None  # of a launcher that stays and reloads the Host's code

    @property
    def folder(self) -> str:
        return self.workspace.working_directory

    @property
    def solution(self) -> str | None:
        return self.workspace.solution


class StartOutcome(Enum):
    STARTED = "started"
    REUSED = "reused"
    REBOUND = "rebound"  # reused, and bound to another IDE channel


class RunningHost(Value):
    """The workspace's Host, launched or found."""

    outcome: StartOutcome
    process_id: int  # of the Host, which a script that is the child may have started
    port: int
    solution: str | None
    ide_channel: str | None
    kind: HostKind | None  # None if the user named the program's path
    log_file: str | None = None
    left_out: tuple[str, ...] | None = None  # the add-ins it died with; empty: it would have found them itself
    # None if it was found.
    child: Child | None = None
    program: HostProgram | None = None
    addins: tuple[str, ...] = ()  # that the Host was told to load
    has_mcp: bool | None = None
    report: Probe | None = None  # what a bundled Host said about its add-ins, as far as they were loaded


class StartObserver:
    """Follows a start. A subclass overrides what matters to it."""

    def planning(self) -> None:
        """A Host has to be launched; which one is decided next."""

    def planned(self, plan: LaunchPlan) -> None:
        """It is decided what will be launched. An exception prevents the launch."""

    def spawned(self, child: Child, port: int) -> None:
        """The process exists and starts: work that is done now costs no time."""

    def go_on(self) -> bool:
        """Asked repeatedly during every wait, and at the end; False gives the start up."""
        return True

    def said(self, message: str) -> None:
        """Progress that a user should see."""

    def warned(self, message: str) -> None:
        """A problem that does not prevent the start."""


class LaunchFailureReason(Enum):
    PORT_TAKEN = "port taken"  # by another program
    NOT_STARTED = "not started"  # the system refused to run it
    DIED = "died"
    NOT_READY = "not ready"
    GIVEN_UP = "given up"  # by the observer


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
        self.text = text  # the end of the Host's output, or the reason of the system
        self.seconds = seconds  # that it was given
        self.log_file = log_file  # with all of its output

    @property
    def refusal(self) -> tuple[str, str] | None:
        """The Host's own message to the user: what is wrong, and the next step."""
        found = _REFUSAL.search(self.text)
        return (found[1], found[2]) if found else None

    @property
    def message(self) -> str:
        match self.reason:
            case LaunchFailureReason.GIVEN_UP:
                return "The start of the Host was given up."
            case LaunchFailureReason.NOT_READY:
                return f"The Host did not answer on port {self.port} within {self.seconds:g} s and was stopped."
            case LaunchFailureReason.PORT_TAKEN:
                return f"The Host cannot be started: port {self.port} is taken by another program."
            case LaunchFailureReason.NOT_STARTED:
                return f"The Host cannot be started: {self.text.rstrip('.')}."
        if self.refusal is not None:
            return f"The Host cannot be started: {self.refusal[0]}"
        return f"{how_it_ended(self.exit_code, 'The Host')} before it was ready."

    @property
    def printed(self) -> str:
        """The end of its output, to be added to a sentence."""
        if not self.text.strip():
            return " It printed nothing."
        return "\nThe end of its output:\n" + "\n".join(f"  | {line}" for line in self.text.splitlines())


def launch(
    request: StartRequest,
    plan: LaunchPlan,
    usual_port: int,
    output: Output,
    registry: str,
    environ: Mapping[str, str],
    observer: StartObserver,
) -> RunningHost:
    """A Host that serves. `usual_port`: to be used if it is free and the request names none; 0 if there is none."""
    launcher = _Launcher(request, plan.program, output, registry, environ, observer)
    try:
        return launcher.launch(plan.addins, usual_port)
    except LaunchFailure as failure:
        if not request.tries_without or not launcher.may_be_due_to_addins(failure, plan.addins):
            raise
        left_out = addin_paths(plan.addins)
        observer.warned(
            f"The Host died while it started: {how_it_ended(failure.exit_code)}. "
            f"Starting it once more without add-ins. Left out: {addin_names(left_out)}. Fix the one at fault, "
            f"then run 'uno-devserver start' again; all of the output is in {failure.log_file}.{failure.printed}"
        )
    return launcher.launch(NO_ADDINS, usual_port, left_out)


def addin_names(paths: tuple[str, ...]) -> str:
    return ", ".join(paths) or "what MSBuild names"


class _Launcher:
    def __init__(
        self,
        request: StartRequest,
        program: HostProgram,
        output: Output,
        registry: str,
        environ: Mapping[str, str],
        observer: StartObserver,
    ) -> None:
        self._request = request
        self._program = program
        self._output = output
        self._registry = registry
        self._environ = environ
        self._observer = observer

    def launch(self, addins: str | None, usual_port: int, left_out: tuple[str, ...] | None = None) -> RunningHost:
        """Launch it on the port of the request, or else on one that is free."""
        if self._request.port:
            return self._launch_on(self._request.port, addins, left_out)
        for _ in range(PORT_ATTEMPTS):
            try:
                return self._launch_on(usual_port or free_port(), addins, left_out)
            except LaunchFailure as failure:
                if failure.reason is not LaunchFailureReason.PORT_TAKEN:
                    raise
                last, usual_port = failure, 0
        raise last

    def may_be_due_to_addins(self, failure: LaunchFailure, addins: str | None) -> bool:
        """Whether it died after it had come to its add-ins, and by itself.

        A .NET Host ends with 0 in other cases than a stop, too; the bundled one does not.
        """
        silent = failure.exit_code == 0 and not failure.text.strip()  # it may not be a Host at all
        stopped = failure.exit_code in (-signal.SIGTERM, -signal.SIGINT)
        stopped = stopped or (failure.exit_code == 0 and self._program.kind is HostKind.BUNDLED)
        died = failure.reason is LaunchFailureReason.DIED and failure.refusal is None and not silent and not stopped
        return died and self._uses(addins)

    def _uses(self, addins: str | None) -> bool:
        if addins is None:
            return self._request.solution is not None  # the Host discovers them itself
        return bool(addin_paths(addins))

    def _launch_on(self, port: int, addins: str | None, left_out: tuple[str, ...] | None) -> RunningHost:
        request, observer = self._request, self._observer
        if not observer.go_on():  # planning, and waiting for another start, may have taken long
            raise LaunchFailure(LaunchFailureReason.GIVEN_UP, port)
        if not self._becomes_free(port):
            raise LaunchFailure(LaunchFailureReason.PORT_TAKEN, port)
        child = self._spawn(port, addins)
        try:
            observer.spawned(child, port)
            self._record(child.pid, left_out)
            tell_projects(request.solution, port, observer)
            asks = request.asks_addins and self._program.kind is HostKind.BUNDLED and self._uses(addins)
            if asks:
                from .probe import wait_until_loaded  # takes a few ms, which are free while the Host starts
            ready = wait_until_ready(child, port, seconds=request.ready_seconds, go_on=observer.go_on)
            if isinstance(ready, LaunchFailureReason):
                raise LaunchFailure(ready, port)
            process_id, has_mcp = ready
            report = wait_until_loaded(child, process_id, port) if asks else None
            if child.exit_code() is not None:
                raise LaunchFailure(LaunchFailureReason.DIED, port)
            if not observer.go_on():
                raise LaunchFailure(LaunchFailureReason.GIVEN_UP, port)
        except LaunchFailure as failure:
            self._end(child)
            raise self._explained(failure, child) from None
        except BaseException:
            self._end(child)
            raise
        if process_id != child.pid:
            self._record(process_id, left_out)
        return RunningHost(
            StartOutcome.STARTED,
            process_id,
            port,
            request.solution,
            request.ide_channel,
            self._program.kind,
            log_file=self._output.path,
            left_out=left_out,
            child=child,
            program=self._program,
            addins=addin_paths(addins),
            has_mcp=has_mcp,
            report=report,
        )

    def _becomes_free(self, port: int) -> bool:
        """Whether the port is free, now or soon: a Host that ends is out of the registry before it is gone."""
        deadline = time.monotonic() + FREED_SECONDS
        while not is_free(port):
            if time.monotonic() >= deadline or not self._observer.go_on():
                return False
            time.sleep(FREED_STEP)
        return True

    def _spawn(self, port: int, addins: str | None) -> Child:
        line = command_line(self._program, self._request, port, addins)
        environ = {**self._environ, **dict(self._program.environment)}
        try:
            return spawn(line, folder=self._request.folder, environ=environ, output=self._output)
        except OSError as error:
            text = f"{error.filename or line[0]}: {error.strerror or error}"  # the program, or its folder
            raise LaunchFailure(LaunchFailureReason.NOT_STARTED, port, text=text) from error

    def _record(self, pid: int, left_out: tuple[str, ...] | None) -> None:
        """Record in the registry what a Host does not know, or does not write into its entry."""
        try:
            write_sidecar(
                self._registry,
                pid,
                ide_channel=self._request.ide_channel,
                workspace=self._request.folder,
                left_out=left_out,
                log_file=self._output.path,
                control_channel=self._request.control_channel,
            )
        except FileProblem as problem:
            self._observer.warned(
                f"The registry cannot be written: {problem}. Other commands may not find this server; if "
                f"'uno-devserver list' does not show it, end process {pid} yourself when you no longer need it."
            )

    def _end(self, child: Child) -> None:
        child.stop(self._request.stop_seconds)
        child.end_the_rest()
        prune(self._registry)  # a Host that was killed could not remove its entry

    def _explained(self, failure: LaunchFailure, child: Child) -> LaunchFailure:
        died = failure.reason is LaunchFailureReason.DIED
        return LaunchFailure(
            LaunchFailureReason.PORT_TAKEN if died and not is_free(failure.port) else failure.reason,
            failure.port,
            exit_code=child.exit_code(),
            text=child.printed(),
            seconds=self._request.ready_seconds,
            log_file=self._output.path,
        )


def tell_projects(solution: str | None, port: int, observer: StartObserver) -> None:
    """Write the port to where apps read it: beside the projects of the solution."""
    if solution is not None:
        from .csproj_user import write_port

        for sentence in write_port(solution, port).warnings:
            observer.warned(sentence)


def wait_until_ready(
    child: Child, port: int, *, seconds: float, go_on: Callable[[], bool]
) -> tuple[int, bool] | LaunchFailureReason:
    """The process that serves (the child or a descendant) and whether it has /mcp; or why there is none.

    Returns when the child itself or a descendant of it answers: another program may have taken the port.
    """
    begun = time.monotonic()
    loopback = Loopback()
    if not proc.AVAILABLE:
        import psutil  # noqa: F401  # takes 20 ms, which are free while the Host starts

    def is_pointless() -> bool:
        return child.exit_code() is not None or not go_on()

    while True:
        left = seconds - (time.monotonic() - begun)
        status = loopback.ask("GET", port, MCP_PATH, min(READY_ASK_SECONDS, max(left, 0)), abandon=is_pointless)
        process_id = None if status is None else listener_in_family(child.pid, port)
        if child.exit_code() is not None:
            return LaunchFailureReason.DIED
        if process_id is not None:
            return process_id, status != NOT_FOUND
        if left <= 0:
            return LaunchFailureReason.NOT_READY
        if is_pointless():
            return LaunchFailureReason.GIVEN_UP
        time.sleep(FAST_STEP if seconds - left < FAST_SECONDS else SLOW_STEP)
