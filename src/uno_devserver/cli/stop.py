"""`stop`: ends the servers of the workspace or of a solution, the one with a process id, or all; no other process."""

from __future__ import annotations

import os

from ..instances.registry import full_solution, prune
from ..instances.stop import stop_servers
from ..instances.workspace_servers import of_workspace
from ..issues import UserError
from ..system.folders import folders
from ..system.log import ERROR, log
from ..system.text import visible
from ..workspace.paths import same_place
from ..workspace.resolver import resolve
from .parse import absolute
from .proxies import proxies_of_host, who_starts_it
from .result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..instances.registry import RegisteredServer, RegistryScan
    from ..proxy.health.status_file import Status
    from ..system.processes import StopOutcome
    from .parse import Invocation

_LIST = "Run 'uno-devserver list' to see the servers."


def run(invocation: Invocation) -> Result:
    _refuse_contradictions(invocation)
    pid = _process_id(invocation)
    registry = folders().registry
    pruned = prune(registry)
    for problem in pruned.problems:
        log.warn(problem)
    chosen = _chosen(invocation, pid, pruned)
    proxies = [proxies_of_host(server) for server in chosen]
    if chosen:
        from .progress import say

        ids = ", ".join(str(server.process_id) for server in chosen)
        say(f"Waiting for the end of {f'process {ids}' if len(chosen) == 1 else f'the processes {ids}'}")
    outcomes = stop_servers(registry, chosen)
    others = [server for server in pruned.running if server not in chosen]
    failed = [outcome for outcome in outcomes if not outcome.gone]
    data = {
        "results": [_data(*each) for each in zip(chosen, outcomes, proxies, strict=True)],
        "otherProcessIds": [server.process_id for server in others],
    }
    text = "\n".join((*_lines(chosen, outcomes, others), *_started_again(outcomes, proxies)))
    return Result(data, visible(text, keep_odd_bytes=True), 1 if failed or not pruned.complete else 0)


def _refuse_contradictions(invocation: Invocation) -> None:
    given = [f"--{name}" for name in ("all", "pid", "solution") if invocation.options.get(name)]
    if len(given) > 1:
        message = f"{' and '.join(given)} contradict each other."
        next_step = "Use --pid or --solution for one server, or --all for all servers."
        raise UserError("BadValue", message, next_step, exit_code=2)


def _process_id(invocation: Invocation) -> int | None:
    text = invocation.value("pid")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        message = f"'{text}' is not a process id."
        raise UserError("BadValue", message, _LIST, exit_code=2)
    return int(text)


def _chosen(invocation: Invocation, pid: int | None, pruned: RegistryScan) -> tuple[RegisteredServer, ...]:
    if pid is not None:
        return (_registered(pid, pruned),)
    if invocation.on("all"):
        return pruned.running
    named, solution = invocation.value("solution-dir"), invocation.value("solution")
    if solution is not None:
        path = os.path.join(absolute(named or "."), solution)
        chosen = tuple(server for server in pruned.running if same_place(full_solution(server), path))
        if not chosen and not os.path.isfile(path):
            log.warn(f"There is no solution {os.path.normpath(path)}.")
        return chosen
    if not pruned.running:
        return ()
    workspace = resolve(named or ".", explicit=named is not None)
    chosen = of_workspace(pruned.running, workspace)
    if len(chosen) > 1 and not workspace.resolved:
        message = f"Several servers run below {workspace.requested_directory}: {_listed(chosen)}."
        raise UserError("WorkspaceAmbiguous", message, "Name one with --pid, or stop all with --all.")
    return chosen


def _registered(pid: int, pruned: RegistryScan) -> RegisteredServer:
    for server in pruned.running:
        if server.process_id == pid:
            return server
    for server in pruned.foreign:
        if server.process_id == pid:
            message = f"The server with PID {pid} belongs to user '{server.user}' on machine '{server.machine}'."
            raise UserError("NotOurServer", message, "Stop it there.")
    raise UserError("NotAServer", f"No server with PID {pid} is registered; nothing was stopped.", _LIST)


def _data(server: RegisteredServer, outcome: StopOutcome, proxies: list[Status]) -> dict[str, object]:
    return {
        "processId": server.process_id,
        "port": server.port,
        "solutionPath": server.solution,
        "workspaceDirectory": server.workspace,
        "stopped": outcome.gone,
        "killed": outcome.killed,
        "error": outcome.problem,
        "startedAgainBy": [{name: status.get(name) for name in ("processId", "clients")} for status in proxies],
    }


def _lines(
    chosen: tuple[RegisteredServer, ...], outcomes: tuple[StopOutcome, ...], others: list[RegisteredServer]
) -> Iterator[str]:
    """The lines of the .NET tool, which scripts search for, and our own lines."""
    if not chosen:
        yield "No active DevServers found to stop."
        if others:
            yield f"These run elsewhere: {_listed(others)}. Stop one with --pid, or all with --all."
        return
    for server, outcome in zip(chosen, outcomes, strict=True):
        yield f"Stopping DevServer with PID {server.process_id} on port {server.port}..."
        if outcome.killed:
            yield f"DevServer with PID {server.process_id} did not end when it was asked to, and was killed."
        if outcome.problem:
            log.write(ERROR, f"Error stopping DevServer with PID {server.process_id}: {outcome.problem}")
    stopped = sum(outcome.gone for outcome in outcomes)
    if stopped:
        yield f"Successfully stopped {stopped} DevServer(s)"
    if stopped < len(chosen):
        log.write(ERROR, f"Failed to stop {len(chosen) - stopped} DevServer(s)")


def _started_again(outcomes: tuple[StopOutcome, ...], proxies: list[list[Status]]) -> list[str]:
    return [
        f"{who_starts_it(its)}. End the client to stop it for good."
        for outcome, its in zip(outcomes, proxies, strict=True)
        if outcome.gone and its
    ]


def _listed(servers: tuple[RegisteredServer, ...] | list[RegisteredServer]) -> str:
    return ", ".join(
        f"PID {server.process_id} on port {server.port} ({server.solution or server.workspace or 'no solution'})"
        for server in servers
    )
