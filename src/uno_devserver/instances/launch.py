"""Launch a Host and wait until it serves; raise a LaunchFailure that says why it does not.

A launch that fails or is cancelled leaves no process running. If another program takes the port at the last moment,
another port is tried, unless the user named the port. A Host that dies while it loads its add-ins is launched once
more without them, unless it refused its flags, was asked to stop (SIGTERM, SIGINT), or ended silently with code 0.

`StartRequest` and `RunningHost`, the records of `start`, are defined here: a launch reads one and creates the other.
"""

from __future__ import annotations

import signal
import time
from enum import Enum

from ..system import proc
from ..system.files import FileProblem
from ..system.log import log
from ..system.ports import free_port, is_free
from ..system.processes import GRACE_SECONDS, how_it_ended, listener_in_family
from ..system.values import Value
from .child_process import Child, Output, spawn
from .host_kind import HostKind
from .host_program import NO_ADDINS, HostProgram, LaunchPlan, addin_paths, command_line
from .launch_failure import LaunchFailure, LaunchFailureReason
from .local_http import Loopback
from .registry import prune, running_servers, unregister, write_sidecar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..workspace.resolver import Workspace
    from .probe import Probe
    from .registry import RegisteredServer

READY_SECONDS = 30.0  # as in all launchers; a .NET Host that runs MSBuild comes close to it
PORT_ATTEMPTS = 3  # another program rarely takes a port before the Host does; after three times something else is wrong
FREED_SECONDS = 0.3  # enough for the last Host on this port to exit after its proxy lost its client
FREED_STEP = 0.01
MCP_PATH = "/mcp"
NOT_FOUND = 404
READY_ASK_SECONDS = 2.0  # per request: a Host that loads its add-ins may accept a connection long before it answers
# A bundled Host is ready after 0.1 s, a .NET Host after 0.4 s or more, so the Host is asked more often at first.
FAST_SECONDS, FAST_STEP, SLOW_STEP = 1.0, 0.003, 0.02


class StartRequest(Value):
    """The requested Host; passed unchanged from the caller of `start` to the launch, except the IDE channel."""

    workspace: Workspace
    port: int = 0  # 0 for the port of the workspace's last Host, or any free one
    parent: int | None = None  # the process with which the Host ends
    ide_channel: str | None = None
    forwarded: tuple[str, ...] = ()  # further arguments of the Host
    restart: bool = False  # whether to replace a running Host
    host: str | None = None  # bundled, dotnet, or a path; None for the one that fits the workspace
    addins: str | None = None  # the value of --addins; None for the add-ins of the workspace
    force_msbuild: bool = False  # whether MSBuild names the add-ins, regardless of `addins`
    trusted: bool = False  # whether the workspace's own code may run without a stored agreement
    by_user: bool = True  # whether the user asked for this start; False for that of a proxy
    ready_seconds: float = READY_SECONDS
    stop_seconds: float = GRACE_SECONDS  # how long a Host whose launch failed has to end
    asks_addins: bool = True  # whether to wait a moment to learn if the add-ins were loaded
    tries_without: bool = True  # whether to launch the Host without its add-ins if it dies with them
    control_channel: str | None = None  # the channel of a launcher that stays and reloads the Host's code

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
    process_id: int  # the Host's own; it differs from the child's if the child is a script that starts the Host
    port: int
    solution: str | None
    ide_channel: str | None
    kind: HostKind | None  # None if the user named the program's path
    log_file: str | None = None
    left_out: tuple[str, ...] | None = None  # the add-ins with which it died; empty if it had to discover them itself
    found: RegisteredServer | None = None  # the entry of a Host that was not launched
    # The fields below have values only if the Host was launched.
    child: Child | None = None
    program: HostProgram | None = None
    addins: tuple[str, ...] = ()  # the add-ins in its command line
    has_mcp: bool | None = None
    report: Probe | None = None  # a bundled Host's report on its add-ins, which may still be loading


class StartObserver:
    """Is notified of the steps of a start, and can cancel it. Subclasses override the methods that they need."""

    def planning(self) -> None:
        """A Host must be launched; which one is decided next."""

    def planned(self, plan: LaunchPlan) -> None:
        """The plan of the launch is ready. An exception prevents the launch."""

    def spawned(self, child: Child, port: int) -> None:
        """The process was started. Short work here costs no time, because the Host is still starting."""

    def go_on(self) -> bool:
        """Called repeatedly during waits for a lock, a port or the Host, and at the end; False cancels the start."""
        return True

    def said(self, message: str) -> None:
        """Show the user a message about the progress."""

    def warned(self, message: str) -> None:
        """Show the user a problem that does not prevent the start."""


def launch(
    request: StartRequest,
    plan: LaunchPlan,
    usual_port: int,
    output: Output,
    registry: str,
    environ: Mapping[str, str],
    observer: StartObserver,
) -> RunningHost:
    """Launch a Host and return it when it serves. If no port is requested, `usual_port` is tried first, unless 0."""
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
        """Launch the Host on the port of the request, or else on the usual one or another free one."""
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
        """Whether the Host has add-ins and died, but was not stopped and did not refuse its flags.

        The exit code 0 means that a bundled Host was stopped; a .NET Host has it in other cases, too.
        """
        silent = failure.exit_code == 0 and not failure.text.strip()  # the program may not be a Host at all
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
        if not observer.go_on():  # planning, or waiting for another start, may have taken long
            raise LaunchFailure(LaunchFailureReason.GIVEN_UP, port)
        if not self._becomes_free(port):
            cancelled = not observer.go_on()
            raise LaunchFailure(LaunchFailureReason.GIVEN_UP if cancelled else LaunchFailureReason.PORT_TAKEN, port)
        child = self._spawn(port, addins)
        try:
            self._record(child.pid, left_out)  # first: if this process is killed, the next start waits for the Host
            observer.spawned(child, port)
            tell_projects(request, port, observer, self._registry)
            asks = request.asks_addins and self._program.kind is HostKind.BUNDLED and self._uses(addins)
            if asks:
                from .probe import wait_until_loaded  # this import takes a few ms, in which the Host starts
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
            self._forget(child.pid)
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
        """Whether the port is free within FREED_SECONDS: a Host leaves the registry shortly before it ends."""
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
            return spawn(line, folder=self._request.folder, environ=environ, output=self._output, outlives=True)
        except OSError as error:
            text = f"{error.filename or line[0]}: {error.strerror or error}"  # names the program or the folder
            raise LaunchFailure(LaunchFailureReason.NOT_STARTED, port, text=text) from error

    def _record(self, pid: int, left_out: tuple[str, ...] | None) -> None:
        """Record the facts about a Host that it does not write into its own entry; warns if that fails."""
        try:
            write_sidecar(
                self._registry,
                pid,
                ide_channel=self._request.ide_channel,
                workspace=self._request.folder,
                left_out=left_out,
                log_file=self._output.path,
                names_addins=self._request.addins is not None,
                control_channel=self._request.control_channel,
                ports_below=self._request.workspace.own_directory if self._request.solution else None,
            )
        except FileProblem as problem:
            self._observer.warned(
                f"The registry cannot be written: {problem}. Other commands may not find this server; if "
                f"'uno-devserver list' does not show it, end process {pid} yourself when you no longer need it."
            )

    def _forget(self, pid: int) -> None:
        """Remove the record of a child that has started the Host as its own child, and is none itself."""
        try:
            unregister(self._registry, pid)
        except FileProblem as problem:
            log.debug(f"a record without a Host stays: {problem}")

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


def tell_projects(request: StartRequest, port: int, observer: StartObserver, registry: str) -> None:
    """Write the port next to the projects of the solution, where apps read it: each knows one Host."""
    if request.solution is not None:
        from .csproj_user import taken_over, write_port

        taken = taken_over(request.solution, port, running_servers(registry))
        written = write_port(request.solution, port, request.workspace.own_directory)
        for sentence in (*taken, *written.warnings):
            observer.warned(sentence)


def wait_until_ready(
    child: Child, port: int, *, seconds: float, go_on: Callable[[], bool]
) -> tuple[int, bool] | LaunchFailureReason:
    """The process that serves and whether it has /mcp, or the reason why there is none.

    Only the child itself or a descendant of it can be that process: another program may have taken the port.
    """
    begun = time.monotonic()
    loopback = Loopback()
    if not proc.AVAILABLE:
        import psutil  # noqa: F401  # this import takes 20 ms, in which the Host starts

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
