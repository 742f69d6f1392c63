"""Seeing to it that a workspace has a server, and exactly one.

Everything happens under a lock of the workspace, so of two starts at the same moment one launches a Host and the other
finds it. A server that is there and fit is used, unless a new one is wished for; what is there and unfit is replaced;
else a Host is launched, on the port that the workspace had before, so that addresses stay true.
"""

from __future__ import annotations

import json
import os
import time
from enum import Enum

from ..issues import UserError
from ..system.files import FileProblem, read_bytes, write_atomic
from ..system.jsonc import JsonProblem, parse
from ..system.locks import FileLock
from ..system.log import log
from ..system.processes import GRACE_SECONDS, START_SLACK_SECONDS, is_alive, listens_on, process_started
from ..system.state_files import name_for
from ..system.values import Value
from ..workspace.paths import same_place
from .child import Output
from .host_program import HostArguments, addin_paths
from .launch import MCP_PATH, READY_SECONDS, Launched, LaunchFailure, LaunchFailureReason, Observer, Order, launch
from .local_http import Loopback
from .registry import creation_time, log_of, on_port, prune, serving, write_sidecar
from .stop import stop_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..system.folders import Folders
    from .child import Child
    from .host_program import LaunchPlan
    from .registry import RegisteredServer

REBIND_SECONDS = 10.0  # opening a pipe takes milliseconds, in a busy Host a second
LOCK_SECONDS = 120.0  # in addition to two launches: MSBuild may have to be asked first
HTTP_OK = 200


class StartRequest(Value):
    """The server that is wanted."""

    workspace: str
    solution: str | None = None
    port: int = 0  # any
    parent: int | None = None  # ends the Host with it
    ide_channel: str | None = None
    forwarded: tuple[str, ...] = ()
    ready_seconds: float = READY_SECONDS
    restart: bool = False  # a new one, also where there is one
    asks_addins: bool = True  # wait a moment to hear what became of the add-ins
    tries_without: bool = True  # where it dies with its add-ins, it is wanted all the same
    stop_seconds: float = GRACE_SECONDS  # for one that does not become ready to end by itself
    control_channel: str | None = None  # of the launcher, where it stays and sees to new code: goes into the sidecar


class StartOutcome(Enum):
    STARTED = "started"
    REUSED = "reused"
    REBOUND = "rebound"  # reused, and bound to another IDE channel


class RunningHost(Value):
    """The workspace's server."""

    how: StartOutcome
    process_id: int
    port: int
    solution: str | None
    ide_channel: str | None
    launched: Launched | None = None  # None: it was there
    plan: LaunchPlan | None = None
    log_file: str | None = None
    left_out: tuple[str, ...] | None = None  # the add-ins that it was launched without, because it died with them

    @property
    def addins(self) -> tuple[str, ...]:
        """The add-ins that the Host was told to load, as far as we told it."""
        return addin_paths(self.launched.arguments.addins) if self.launched else ()


class StartObserver(Observer):
    """Who watches a start; `go_on` is also asked while it waits for a start, or a server, of somebody else."""

    def said(self, message: str) -> None:
        """What happens, for people."""

    def warned(self, message: str) -> None:
        """What did not work, and does not prevent the start."""


def start(
    wish: StartRequest,
    plan: Callable[[], LaunchPlan],
    folders: Folders,
    environ: Mapping[str, str],
    observer: StartObserver,
) -> RunningHost:
    """The workspace's server. `plan` is called only if one has to be launched.

    Raises LaunchFailure, or a UserError when something else is in the way.
    """
    lock = FileLock(os.path.join(folders.state, "locks", name_for(wish.workspace) + ".lock"))
    waited = _lock(lock, wish, observer)
    try:
        registered = prune(folders.registry)
        for problem in registered.problems:
            observer.warned(problem)
        usual_port = remembered_port(folders.state, wish.workspace, wish.solution)
        planned = plan() if wish.restart else None  # what cannot be launched should cost nobody a running server
        if registered.running and wish.restart:
            old = _make_room(wish, folders.registry, observer)
            usual_port = old.port if old else usual_port
            wish = wish.replace(ide_channel=wish.ide_channel or (old.ide_channel if old else None))
        elif registered.running:
            # Whoever waited for another start does not undo what that has just done.
            server = _existing(wish, folders.registry, observer, with_addins=not waited)
            if server is not None:
                return _reuse(wish, server, observer).replace(log_file=log_of(server))
        running = _launch(wish, usual_port, planned or plan(), folders, environ, observer)
        remember_port(folders.state, wish.workspace, wish.solution, running.port)
        return running
    finally:
        lock.release()


def _lock(lock: FileLock, wish: StartRequest, observer: StartObserver) -> bool:
    """Whether another start was under way."""
    waited = False

    def tell(holder: int | None) -> None:
        nonlocal waited
        waited = True
        who = f" (process {holder})" if holder else ""
        observer.said(f"Waiting for another start of this workspace{who} ...")

    try:
        taken = lock.acquire(2 * wish.ready_seconds + LOCK_SECONDS, tell, lambda: observer.go_on(0.0))
    except OSError as error:
        observer.warned(f"The workspace cannot be locked, so two starts at once may collide: {error}.")
        return False
    if not taken and not observer.go_on(0.0):
        raise LaunchFailure(LaunchFailureReason.GIVEN_UP, wish.port)
    if not taken:
        holder = lock.holder()
        message = f"Another start of {wish.workspace} (process {holder or 'unknown'}) does not come to an end."
        raise UserError("WorkspaceBusy", message, "Look at what it does, end it, then run start again.")
    return waited


def _existing(
    wish: StartRequest, registry: str, observer: StartObserver, *, with_addins: bool
) -> RegisteredServer | None:
    """The fit server of the wish, by its solution or workspace, then by its port."""

    return wait_until_usable(
        registry,
        lambda: _registered(wish, registry),
        starting_seconds=wish.ready_seconds,
        go_on=observer.go_on,
        say=observer.said,
        with_addins=with_addins,
    )


def _make_room(wish: StartRequest, registry: str, observer: StartObserver) -> RegisteredServer | None:
    """The server that had to go."""

    server = _registered(wish, registry)
    if server is not None:
        stop_for_restart(registry, server, observer.said)
    return server


def _registered(wish: StartRequest, registry: str) -> RegisteredServer | None:
    return serving(registry, solution=wish.solution, workspace=wish.workspace) or _on_wanted_port(wish, registry)


def _on_wanted_port(wish: StartRequest, registry: str) -> RegisteredServer | None:
    """The server that has the port. Where it serves something else, only an orphan makes room."""
    from ..workspace.paths import same_place
    from .registry import full_solution

    server = on_port(registry, wish.port) if wish.port else None
    if server is None or is_orphan(server):
        return server
    theirs = full_solution(server) or server.workspace
    if not same_place(theirs, wish.solution or wish.workspace):
        whose = theirs or "an unknown workspace"
        message = f"Port {server.port} is taken by the DevServer of {whose} (process {server.process_id})."
        raise UserError("PortTaken", message, "Choose another --httpPort, or leave it out to get a free one.")
    return server


# There is one.


def _reuse(wish: StartRequest, server: RegisteredServer, observer: StartObserver) -> RunningHost:
    running = RunningHost(
        StartOutcome.REUSED,
        server.process_id,
        server.port,
        server.solution,
        server.ide_channel,
        left_out=server.left_out,
    )
    if wish.ide_channel is not None:
        _rebind(server, wish.ide_channel)
        running = running.replace(how=StartOutcome.REBOUND, ide_channel=wish.ide_channel)
    _tell_projects(wish.solution, server.port, observer)  # there may be a new one
    return running


def _rebind(server: RegisteredServer, channel: str) -> None:
    from urllib.parse import quote

    from .local_http import Loopback

    status = Loopback().ask("POST", server.port, f"/devserver/idechannel/{quote(channel, safe='')}", REBIND_SECONDS)
    if status != HTTP_OK:
        what = "it did not answer" if status is None else f"it answered with HTTP status {status}"
        message = (
            f"The running DevServer (PID {server.process_id}, Port {server.port}) could not be bound to "
            f"IDE channel '{channel}': {what}."
        )
        next_step = "Use another channel id, or run 'uno-devserver stop' and start again."
        raise UserError("IdeChannelRefused", message, next_step)


# There is none.


def _launch(
    wish: StartRequest,
    usual_port: int,
    plan: LaunchPlan,
    folders: Folders,
    environ: Mapping[str, str],
    observer: StartObserver,
) -> RunningHost:
    output = _output(wish, folders)
    arguments = HostArguments(
        wish.port, wish.workspace, wish.parent, wish.solution, wish.ide_channel, plan.addins, wish.forwarded
    )
    order = Order(
        plan.program,
        arguments,
        environ,
        folders.registry,
        output,
        wish.ready_seconds,
        usual_port,
        wish.asks_addins,
        wish.tries_without,
        wish.stop_seconds,
    )
    meanwhile = _Meanwhile(wish, folders.registry, output.path, observer)
    try:
        launched = launch(order, meanwhile)
    finally:
        output.close()
    if launched.process_id != launched.child.pid:
        meanwhile.note(launched.process_id)
    return RunningHost(
        StartOutcome.STARTED,
        launched.process_id,
        launched.port,
        wish.solution,
        wish.ide_channel,
        launched,
        plan,
        output.path,
        launched.left_out,
    )


def _output(wish: StartRequest, folders: Folders) -> Output:
    path = log_path(folders.state, wish.workspace, wish.solution)
    try:
        return Output(path)
    except OSError as error:
        message = f"What the Host prints cannot be written to {path}: {error.strerror}."
        next_step = "See that the disk has room, and that folder and file are yours; then run start again."
        raise UserError("StateNotWritable", message, next_step) from error


class _Meanwhile(Observer):
    """What is done while the Host starts: it costs no time then."""

    def __init__(self, wish: StartRequest, registry: str, log_file: str, observer: StartObserver) -> None:
        self._wish = wish
        self._registry = registry
        self._log_file = log_file
        self._observer = observer
        self._left_out: tuple[str, ...] | None = None

    def spawned(self, child: Child, port: int) -> None:
        self._observer.spawned(child, port)
        self.note(child.pid)
        _tell_projects(self._wish.solution, port, self._observer)

    def go_on(self, seconds: float) -> bool:
        return self._observer.go_on(seconds)

    def crashed(self, failure: LaunchFailure, addins: str | None) -> None:
        self._left_out = addin_paths(addins)
        self._observer.crashed(failure, addins)

    def note(self, pid: int) -> None:
        """Record what the Host does not know, or does not say."""
        wish = self._wish
        try:
            write_sidecar(
                self._registry,
                pid,
                ide_channel=wish.ide_channel,
                workspace=wish.workspace,
                left_out=self._left_out,
                log_file=self._log_file,
                control_channel=wish.control_channel,
            )
        except FileProblem as problem:
            self._observer.warned(
                f"The registry cannot be written: {problem}. Other commands may not find this server; if "
                f"'uno-devserver list' does not show it, end process {pid} yourself when it has served its purpose."
            )


def _tell_projects(solution: str | None, port: int, observer: StartObserver) -> None:
    if solution is not None:
        from .csproj_user import write_port

        for sentence in write_port(solution, port).warnings:
            observer.warned(sentence)


ANSWER_SECONDS = 3.0  # a Host answers in milliseconds, a busy one in a second
USABLE_STEP_SECONDS = 0.02


class ServerOwned(UserError):
    def __init__(self, server: RegisteredServer) -> None:
        message = (
            f"{_server_name(server)} was started by process {server.parent_process_id}, which is running and relies on "
            "it, "
            "so it was not restarted."
        )
        next_step = f"Restart it from that program, or end it: uno-devserver stop --pid {server.process_id}."
        super().__init__("ServerOwned", message, next_step)
        self.server = server


def wait_until_usable(
    registry: str,
    find: Callable[[], RegisteredServer | None],
    *,
    starting_seconds: float,
    go_on: Callable[[float], bool],
    say: Callable[[str], None],
    with_addins: bool,
) -> RegisteredServer | None:
    """The server that `find` finds in the registry, if it can be used; what has to go is gone when this returns.

    One that does not answer may still be starting, for `starting_seconds` after its creation. `with_addins`: one that
    had to do without is not good enough, because they may have been repaired meanwhile.
    """
    loopback = Loopback()
    patience = min(ANSWER_SECONDS, starting_seconds)
    begun = time.monotonic()
    while (server := find()) is not None:
        if is_orphan(server):
            say(
                f"{_server_name(server)} is orphaned: its parent, process {server.parent_process_id}, is gone. "
                "Replacing it."
            )
            _stop(registry, server)
        elif with_addins and server.left_out is not None and not is_used(server):
            say(f"{_server_name(server)} runs without its add-ins. Replacing it, to try with them again.")
            _stop(registry, server)
        elif answers(server, loopback, patience):
            return server
        elif _age(server) < starting_seconds and time.monotonic() - begun < starting_seconds:
            if not go_on(time.monotonic() - begun):
                raise LaunchFailure(LaunchFailureReason.GIVEN_UP, server.port)
            time.sleep(USABLE_STEP_SECONDS)
        elif server.parent_process_id > 0:
            raise _unresponsive(server)
        else:
            say(f"{_server_name(server)} does not answer. Replacing it.")
            _stop(registry, server)
    return None


def is_orphan(server: RegisteredServer) -> bool:
    """Whether it has lost its parent. One that was started without a parent (0) is nobody's, and meant to stay."""
    parent = server.parent_process_id
    if parent <= 0:
        return False
    if not is_alive(parent):
        return True
    # A process that is younger than its child has only got the number of the one that was the parent.
    born, created = process_started(parent), creation_time(server)
    return born is not None and created is not None and born > created + START_SLACK_SECONDS


def is_used(server: RegisteredServer) -> bool:
    """Whether some program relies on it: the one that is its parent, or an IDE."""
    return server.parent_process_id > 0 or server.ide_channel is not None


def answers(server: RegisteredServer, loopback: Loopback, seconds: float) -> bool:
    """Whether HTTP is answered on its port, and by itself."""
    if loopback.ask("GET", server.port, MCP_PATH, seconds) is None:
        return False
    return listens_on(server.process_id, server.port)


def stop_for_restart(registry: str, server: RegisteredServer, say: Callable[[str], None]) -> None:
    """Stop a server, well or not, so that it can be started anew; UserError where it is another program's."""
    if server.parent_process_id > 0 and not is_orphan(server):
        raise ServerOwned(server)
    say(f"Stopping the DevServer that runs (PID {server.process_id}, Port {server.port}).")
    _stop(registry, server)


def _age(server: RegisteredServer) -> float:
    created = creation_time(server)
    return 0.0 if created is None else time.time() - created


def _server_name(server: RegisteredServer) -> str:
    return f"The DevServer that is registered (PID {server.process_id}, Port {server.port})"


def _stop(registry: str, server: RegisteredServer) -> None:
    outcome = stop_server(registry, server)
    if not outcome.gone:
        message = f"{_server_name(server)} has to be replaced and cannot be stopped: {outcome.problem}."
        raise UserError("HostUnreachable", message, f"End process {server.process_id}, then run start again.")


def _unresponsive(server: RegisteredServer) -> UserError:
    message = (
        f"{_server_name(server)} does not answer on its port. It belongs to process {server.parent_process_id}, "
        "which is running, so it was left alone."
    )
    next_step = f"Wait or restart that program, or end the Host: uno-devserver stop --pid {server.process_id}."
    return UserError("HostUnreachable", message, next_step)


MAX_PORT = 65_535
MAX_PORT_FILE_BYTES = 64 * 1024  # the file holds a path and a number


def log_path(state: str, workspace: str, solution: str | None) -> str:
    """Where a Host of this workspace that we launch prints to."""
    return os.path.join(state, "logs", f"host-{_state_name(workspace, solution)}.log")


def remembered_port(state: str, workspace: str, solution: str | None) -> int:
    """The port that the workspace's last Host had; 0 when it is not known."""
    try:
        kept = parse(read_bytes(_port_path(state, workspace, solution), MAX_PORT_FILE_BYTES))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return 0
    if not isinstance(kept, dict) or not same_place(str(kept.get("path")), solution or workspace):
        return 0
    port = kept.get("port")
    return port if type(port) is int and 0 < port <= MAX_PORT else 0


def remember_port(state: str, workspace: str, solution: str | None, port: int) -> None:
    if remembered_port(state, workspace, solution) == port:
        return
    content = json.dumps({"path": solution or workspace, "port": port})
    try:
        write_atomic(_port_path(state, workspace, solution), content.encode("ascii"))
    except OSError as error:
        log.debug(f"the port is not remembered: {error}")


def _port_path(state: str, workspace: str, solution: str | None) -> str:
    return os.path.join(state, "ports", f"{_state_name(workspace, solution)}.json")


def _state_name(workspace: str, solution: str | None) -> str:
    return name_for(solution or workspace, shown=os.path.basename(workspace))
