"""Give a workspace exactly one Host: use the one that runs, replace it, or launch one.

A start holds a lock of the workspace, so that of two starts at the same moment one launches a Host and the other finds
it. A Host that runs and answers is used, unless a restart is requested; one that cannot be used is replaced. Of several
proxies that want a restart at the same moment, one does it, and the others use the new Host. A new Host gets the port
of the workspace's last Host, so that addresses stay valid.
"""

from __future__ import annotations

import os
import time

from ..issues import UserError
from ..system.dotnet_formats import from_time
from ..system.files import remove_file
from ..system.locks import FileLock
from ..system.log import log
from ..system.ports import MAX_PORT
from ..system.processes import START_SLACK_SECONDS, is_alive, listens_on, process_started
from ..system.state_files import name_for, read_state, write_state
from ..system.values import Value
from ..workspace.paths import same_place
from .child_process import Output
from .host_program import plan_launch
from .launch import MCP_PATH, RunningHost, StartOutcome, launch, tell_projects
from .launch_failure import LaunchFailure, LaunchFailureReason
from .local_http import Loopback
from .registry import (
    creation_time,
    entry_name,
    full_solution,
    log_of,
    on_port,
    prune,
    running_servers,
    scan_registry,
    serving,
)
from .stop import stop_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..system.folders import Folders
    from .host_program import LaunchPlan
    from .launch import StartObserver, StartRequest
    from .registry import RegisteredServer

LOCK_SECONDS = 120.0  # in addition to the time for two launches, because MSBuild may have to be asked first
ANSWER_SECONDS = 3.0  # a Host answers in milliseconds, a busy one in a second
USABLE_STEP_SECONDS = 0.02
REBIND_SECONDS = 10.0  # opening a pipe takes milliseconds, in a busy Host a second
HTTP_OK = 200
ANOTHER_PORT = "Choose another --httpPort, or leave it out to get a free one."


def start(request: StartRequest, folders: Folders, environ: Mapping[str, str], observer: StartObserver) -> RunningHost:
    """Find or launch the workspace's Host; raises LaunchFailure, or UserError if something else prevents the start."""
    log.debug(f"Starting the DevServer monitor with the folder {request.folder}")
    running = _start(request, folders, environ, observer)
    _forget_failure(folders.state, request.folder, request.solution)
    log.debug(f"DevServer registered: {os.path.join(folders.registry, entry_name(running.process_id))}")
    return running


def _start(request: StartRequest, folders: Folders, environ: Mapping[str, str], observer: StartObserver) -> RunningHost:
    lock = FileLock(os.path.join(folders.state, "locks", name_for(request.folder) + ".lock"))
    known = _known_hosts(folders.registry) if request.restart and not request.by_user else None
    waited = _acquire(lock, request, observer)
    try:
        _wait_for_launched(request, folders.registry, observer)
        if waited and known is not None:
            now = _registered(request, folders.registry)
            if now is not None and now.process_id not in known:  # it was launched while this start waited
                request = request.replace(restart=False)
        scan = prune(folders.registry)
        for problem in scan.problems:
            observer.warned(problem)
        usual_port = remembered_port(folders.state, request.folder, request.solution)
        # The launch is planned before a restart stops a Host: if it is impossible, the old Host must go on.
        plan = _plan(request, environ, observer) if request.restart else None
        if scan.running and request.restart:
            old = _registered(request, folders.registry)
            if old is not None:
                _stop_for_restart(folders.registry, old, observer)
                usual_port = old.port
                request = request.replace(ide_channel=request.ide_channel or old.ide_channel)
        elif scan.running:
            # A start that has waited for another one must not replace the Host that was just launched.
            server = usable_server(request, folders.registry, observer, with_addins=not waited)
            if server is not None:
                _tell_new_projects(server, request, environ, observer, folders.registry)
                return _reuse(server, request)
        plan = plan or _plan(request, environ, observer)
        output = _open_output(log_path(folders.state, request.folder, request.solution))
        try:
            running = launch(request, plan, usual_port, output, folders.registry, environ, observer)
        except LaunchFailure as failure:
            if failure.reason is not LaunchFailureReason.GIVEN_UP:
                _remember_failure(folders.state, request.folder, request.solution, failure)
            raise
        finally:
            output.close()
        earlier = _registered_before(running, request, folders.registry, observer)
        if earlier is not None:
            observer.said(f"Another program has started {_server_name(earlier)} meanwhile. Using that one.")
            assert running.child is not None
            running.child.stop(request.stop_seconds)
            running.child.end_the_rest()
            prune(folders.registry)
            tell_projects(request, earlier.port, observer, folders.registry)  # they have the port of ours
            return _reuse(earlier, request)
        remember_port(folders.state, request.folder, request.solution, running.port)
        return running
    finally:
        lock.release()


def _acquire(lock: FileLock, request: StartRequest, observer: StartObserver) -> bool:
    """Acquire the lock, if it can be used at all; returns whether another start held it."""
    waited = False

    def on_wait(holder: int | None) -> None:
        nonlocal waited
        waited = True
        who = f" (process {holder})" if holder else ""
        observer.said(f"Waiting for another start of this workspace{who} ...")

    try:
        acquired = lock.acquire(2 * request.ready_seconds + LOCK_SECONDS, on_wait, observer.go_on)
    except OSError as error:
        observer.warned(f"The workspace cannot be locked, so two starts at once may collide: {error}.")
        return False
    if not acquired and not observer.go_on():
        raise LaunchFailure(LaunchFailureReason.GIVEN_UP, request.port)
    if not acquired:
        holder = lock.holder()
        message = f"Another start of {request.folder} (process {holder or 'unknown'}) does not finish."
        raise UserError("WorkspaceBusy", message, "Look at what that process does, or end it; then run start again.")
    return waited


def _wait_for_launched(request: StartRequest, registry: str, observer: StartObserver) -> None:
    """Wait for a Host of the workspace that was launched and has not registered yet.

    Its launcher was killed, because this start has the lock now. A second Host would be launched beside it.
    """
    said = False
    while observer.go_on():
        launched = [
            host.process_id
            for host in scan_registry(registry, removing=False).launched
            if same_place(host.workspace, request.folder) and time.time() - host.created < request.ready_seconds
        ]
        if not launched:
            return
        if not said:
            said = True
            observer.said(f"Waiting for a Host that was just launched (process {launched[0]}) ...")
        time.sleep(USABLE_STEP_SECONDS)


def _known_hosts(registry: str) -> frozenset[int]:
    """The process ids of all Hosts that run or were launched; one that is launched later reads the code of then."""
    scan = scan_registry(registry, removing=False)
    return frozenset([server.process_id for server in scan.running] + [host.process_id for host in scan.launched])


def _plan(request: StartRequest, environ: Mapping[str, str], observer: StartObserver) -> LaunchPlan:
    observer.planning()
    plan = plan_launch(request, environ)
    observer.planned(plan)
    return plan


def _open_output(path: str) -> Output:
    try:
        return Output(path)
    except OSError as error:
        message = f"The output of the Host cannot be written to {path}: {error.strerror}."
        next_step = "Make sure that the disk has room, and that you own the folder and the file; then run start again."
        raise UserError("StateNotWritable", message, next_step) from error


# Registered Hosts.


def usable_server(
    request: StartRequest, registry: str, observer: StartObserver, *, with_addins: bool
) -> RegisteredServer | None:
    """The registered server of the workspace if it can be used; otherwise it is stopped, and the result is None.

    A server that does not answer may still be starting, so it has `ready_seconds` after its creation. `with_addins`
    also stops a server that was launched without its add-ins, because they may have been fixed since.
    """
    loopback = Loopback()
    begun = time.monotonic()
    while (server := _registered(request, registry)) is not None:
        if is_orphan(server):
            observer.said(
                f"{_server_name(server)} is orphaned: its parent, process {server.parent_process_id}, is gone. "
                "Replacing it."
            )
            _stop(registry, server)
        elif with_addins and server.left_out is not None and not _is_used(server):
            observer.said(f"{_server_name(server)} runs without its add-ins. Replacing it, to try with them again.")
            _stop(registry, server)
        elif _answers(server, loopback, min(ANSWER_SECONDS, request.ready_seconds)):
            return server
        elif max(_age(server), time.monotonic() - begun) < request.ready_seconds:
            if not observer.go_on():
                raise LaunchFailure(LaunchFailureReason.GIVEN_UP, server.port)
            time.sleep(USABLE_STEP_SECONDS)
        elif server.parent_process_id > 0:
            raise _unresponsive(server)
        else:
            observer.said(f"{_server_name(server)} does not answer. Replacing it.")
            _stop(registry, server)
    return None


def _registered(request: StartRequest, registry: str) -> RegisteredServer | None:
    """The server of the solution or workspace, else the one on the port of the request, if any.

    Raises UserError if the server on that port serves another workspace and is not an orphan.
    """
    server = serving(registry, solution=request.solution, workspace=request.folder)
    if server is not None:
        return server
    server = on_port(registry, request.port)
    if server is None or is_orphan(server):
        return server
    served = full_solution(server) or server.workspace
    if not same_place(served, request.solution or request.folder):
        message = (
            f"Port {server.port} is taken by the DevServer of {served or 'an unknown workspace'} "
            f"(process {server.process_id})."
        )
        raise UserError("PortTaken", message, ANOTHER_PORT)
    return server


def _registered_before(
    running: RunningHost, request: StartRequest, registry: str, observer: StartObserver
) -> RegisteredServer | None:
    """The Host of the same solution that another program registered while ours was launched, and before ours.

    The lock of a start holds back our own programs only; a .NET proxy starts a Host of its own after a crash.
    """
    servers = running_servers(registry)
    own = next((server for server in servers if server.process_id == running.process_id), None)
    for server in servers:
        is_other = server.process_id != running.process_id and not is_orphan(server)
        if not is_other or request.solution is None or not same_place(full_solution(server), request.solution):
            continue
        first = own is None or _registration(server) < _registration(own)
        if first and _gets_ready(server, request, observer):
            return server
    return None


def _gets_ready(server: RegisteredServer, request: StartRequest, observer: StartObserver) -> bool:
    """Whether the server answers within the time of a start: a .NET Host registers before it listens."""
    deadline = time.monotonic() + request.ready_seconds
    loopback = Loopback()
    while is_alive(server.process_id) and observer.go_on():
        if _answers(server, loopback, min(ANSWER_SECONDS, request.ready_seconds)):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(USABLE_STEP_SECONDS)
    return False


def _registration(server: RegisteredServer) -> tuple[float, int]:
    return from_time(server.started) or 0.0, server.process_id


def is_orphan(server: RegisteredServer) -> bool:
    """Whether the server's parent has ended. A server without a parent (0) is not an orphan."""
    parent = server.parent_process_id
    if parent <= 0:
        return False
    if not is_alive(parent):
        return True
    # A process that is younger than the server cannot be its parent, and only has the same id.
    born, created = process_started(parent), creation_time(server)
    return born is not None and created is not None and born > created + START_SLACK_SECONDS


def _is_used(server: RegisteredServer) -> bool:
    """Whether a program relies on the server: its parent, or an IDE."""
    return server.parent_process_id > 0 or server.ide_channel is not None


def _answers(server: RegisteredServer, loopback: Loopback, seconds: float) -> bool:
    """Whether the server's own process answers HTTP requests on its port."""
    if loopback.ask("GET", server.port, MCP_PATH, seconds) is None:
        return False
    return listens_on(server.process_id, server.port)


def _age(server: RegisteredServer) -> float:
    created = creation_time(server)
    return 0.0 if created is None else time.time() - created


def _server_name(server: RegisteredServer) -> str:
    return f"The DevServer that is registered (PID {server.process_id}, Port {server.port})"


def _unresponsive(server: RegisteredServer) -> UserError:
    message = (
        f"{_server_name(server)} does not answer on its port. It belongs to process {server.parent_process_id}, "
        "which is running, so it was left alone."
    )
    next_step = f"Wait or restart that program, or end the Host: uno-devserver stop --pid {server.process_id}."
    return UserError("HostUnreachable", message, next_step)


def _stop(registry: str, server: RegisteredServer) -> None:
    outcome = stop_server(registry, server)
    if not outcome.gone:
        message = f"{_server_name(server)} must be replaced, but cannot be stopped: {outcome.problem}."
        raise UserError("HostUnreachable", message, f"End process {server.process_id}, then run start again.")


class ServerOwned(UserError):
    def __init__(self, server: RegisteredServer) -> None:
        message = (
            f"{_server_name(server)} was started by process {server.parent_process_id}, which is running and relies on "
            "it, so it was not restarted."
        )
        next_step = f"Restart it from that program, or end it: uno-devserver stop --pid {server.process_id}."
        super().__init__("ServerOwned", message, next_step)
        self.server = server


def _stop_for_restart(registry: str, server: RegisteredServer, observer: StartObserver) -> None:
    if server.parent_process_id > 0 and not is_orphan(server):
        raise ServerOwned(server)
    observer.said(f"Stopping the DevServer that runs (PID {server.process_id}, Port {server.port}).")
    _stop(registry, server)


def _tell_new_projects(
    server: RegisteredServer,
    request: StartRequest,
    environ: Mapping[str, str],
    observer: StartObserver,
    registry: str,
) -> None:
    """Write the port for projects that the solution has got since the launch, unless a proxy must not write there."""
    from ..workspace.trust import is_trusted

    if request.by_user or is_trusted(environ, request.folder):
        tell_projects(request, server.port, observer, registry)


def _reuse(server: RegisteredServer, request: StartRequest) -> RunningHost:
    from .probe import kind_of

    if request.ide_channel is not None:
        _rebind(server, request.ide_channel)
    return RunningHost(
        StartOutcome.REUSED if request.ide_channel is None else StartOutcome.REBOUND,
        server.process_id,
        server.port,
        server.solution,
        request.ide_channel or server.ide_channel,
        kind_of(server.process_id, server.port),
        log_of(server),
        server.left_out,
        server,
    )


def _rebind(server: RegisteredServer, channel: str) -> None:
    from urllib.parse import quote

    status = Loopback().ask("POST", server.port, f"/devserver/idechannel/{quote(channel, safe='')}", REBIND_SECONDS)
    if status != HTTP_OK:
        what = "it did not answer" if status is None else f"it answered with HTTP status {status}"
        message = (
            f"The running DevServer (PID {server.process_id}, Port {server.port}) could not be bound to "
            f"IDE channel '{channel}': {what}."
        )
        next_step = "Use another channel id, or run 'uno-devserver stop' and start again."
        raise UserError("IdeChannelRefused", message, next_step)


# State that is kept for each workspace.


class FailedStart(Value):
    """Why the last start of a workspace's Host failed."""

    message: str
    log_file: str


def log_path(state: str, folder: str, solution: str | None) -> str:
    """The file for the output of the workspace's Host."""
    return os.path.join(state, "logs", f"host-{_state_name(folder, solution)}.log")


def remembered_port(state: str, folder: str, solution: str | None) -> int:
    """The port of the workspace's last Host; 0 if it is not known."""
    port = _kept(state, "ports", folder, solution).get("port")
    return port if type(port) is int and 0 < port <= MAX_PORT else 0


def remember_port(state: str, folder: str, solution: str | None, port: int) -> None:
    if remembered_port(state, folder, solution) != port:
        _keep(state, "ports", folder, solution, {"port": port})


def failed_start(state: str, folder: str, solution: str | None) -> FailedStart | None:
    kept = _kept(state, "failed-starts", folder, solution)
    message, log_file = kept.get("message"), kept.get("logFile")
    return FailedStart(message, log_file) if isinstance(message, str) and isinstance(log_file, str) else None


def _remember_failure(state: str, folder: str, solution: str | None, failure: LaunchFailure) -> None:
    members = {"message": failure.message, "logFile": failure.log_file}
    _keep(state, "failed-starts", folder, solution, members)


def _forget_failure(state: str, folder: str, solution: str | None) -> None:
    try:
        remove_file(_path(state, "failed-starts", folder, solution))
    except OSError:  # there was none
        pass


def _kept(state: str, kind: str, folder: str, solution: str | None) -> Mapping[str, object]:
    """What is kept; empty if it is that of another workspace, whose file has the same name."""
    kept = read_state(_path(state, kind, folder, solution))
    return kept if kept and same_place(str(kept.get("path")), solution or folder) else {}


def _keep(state: str, kind: str, folder: str, solution: str | None, members: Mapping[str, object]) -> None:
    path = _path(state, kind, folder, solution)
    try:
        write_state(path, {"path": solution or folder, **members})
    except OSError as error:
        log.debug(f"{path} is not written: {error}")


def _path(state: str, kind: str, folder: str, solution: str | None) -> str:
    return os.path.join(state, kind, f"{_state_name(folder, solution)}.json")


def _state_name(folder: str, solution: str | None) -> str:
    return name_for(solution or folder, shown=os.path.basename(os.path.realpath(folder)))
