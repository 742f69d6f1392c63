"""`mcp install` and `mcp uninstall`: register the servers in a client's files, and remove them again."""

from __future__ import annotations

import os

from ...setup.entry_command import command_problem, is_temporary
from ...setup.entry_match import PATH_RUNNER
from ...setup.plan.changes import Action, FileChange
from ...setup.plan.install import plan_install
from ...setup.plan.request import ChangeRequest, PlannedFiles
from ...setup.plan.uninstall import plan_uninstall
from ...setup.profiles import STDIO, Scope, Use
from ...system.log import log
from ...workspace.paths import same_place
from ..result import Result
from ..trust import NO_QUESTION, STILL_TRUSTED, can_ask, confirmed, consent_to
from .arguments import are_built_in, mcp_arguments, shown_path
from .changes import (
    CHANGED,
    ONE_SCOPE,
    after_errors,
    change_all,
    change_text,
    clients_of,
    data_of,
    exit_code,
    refuse_both,
    write_options,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...setup.change_writer import WriteOptions
    from ...setup.entry_match import Match
    from ...setup.paths import Here
    from ...setup.plan.changes import ChangePlan, Operation
    from ...setup.profiles import Place, Profile
    from ...setup.server_definition import VariantChoice
    from ..parse import Invocation
    from .arguments import McpArguments

INSTALL, UNINSTALL = "MCP Install", "MCP Uninstall"
USERS_TOO = "This also removes entries from your own configuration, which other workspaces use:"
REMOVE_THEM = "Remove them there, too? [y/N] "
UNDO = "'uno-devserver mcp uninstall' removes them."


def install(invocation: Invocation) -> Result:
    refuse_both(invocation, "verify", "dry-run", "Use one of them: a client sees only what was written.")
    wanted = mcp_arguments(invocation)
    if wanted.undeclared is not None:
        raise wanted.undeclared
    clients, options, files = clients_of(invocation, wanted, "install"), write_options(invocation), PlannedFiles()

    def plan(client: Profile) -> ChangePlan:
        return plan_install(_task(wanted, client), wanted.variant, files, wanted.here_of(client))

    edited, commanded = _by_way(clients, wanted)
    operations = change_all(edited, plan, files, options, _order(wanted))
    operations += _by_command(commanded, wanted, wanted.variant, options)
    tasks = [_task(wanted, client) for client in clients]
    directory = _served_directory(invocation, wanted, tasks, operations, files)
    if directory is not None and not same_place(directory, os.path.abspath(wanted.here.workspace)):
        log.info(f"The workspace is {directory}, to which this folder belongs.")
    try:
        consent = consent_to(directory, invocation, asks=not options.dry_run) if directory is not None else NO_QUESTION
    except KeyboardInterrupt:
        log.warn(f"Nothing was agreed to, but the entries were written: {UNDO}")
        raise
    if not options.dry_run:
        consent.keep("mcp install")
    steps = (*_next_steps(tasks, operations, files, wanted.here), *after_errors(operations))
    if directory is not None:
        from ..config import start_problems

        problems = start_problems(directory)
        steps += tuple(f"Correct the config: {one}" for one in problems)
    if consent.refused:
        steps += (consent.refused,)
    data = data_of(operations, steps, options) | {"agreedTo": list(consent.agreed)}
    answers = None
    if invocation.on("verify"):
        from .verification import ask_clients, verified_data

        changed = {one.ide for one in operations if one.action in CHANGED}
        answers = ask_clients(wanted, [client for client in clients if client.id in changed])
        data["verified"] = verified_data(answers)
    text = change_text(INSTALL, operations, steps, wanted.here, options, answers, consent.untold)
    return Result(data, text, exit_code(operations))


def uninstall(invocation: Invocation) -> Result:
    refuse_both(invocation, "scope", "all-scopes", ONE_SCOPE)
    wanted = mcp_arguments(invocation, others=True)
    usual = _order(wanted)
    if invocation.value("name") is None and invocation.value("servers") is None:
        here = tuple(one for one in wanted.servers if one.served is None or not one.served.named)
        wanted = wanted.replace(servers=here)
    clients, options, files = clients_of(invocation, wanted, "uninstall"), write_options(invocation), PlannedFiles()
    all_scopes = invocation.on("all-scopes")
    tasks = {client.id: _task(wanted, client) for client in clients}
    reach = (place for task in tasks.values() for place in task.reach(all_scopes=all_scopes))
    cleaned = frozenset(os.path.realpath(place.path) for place in reach)

    def plan(client: Profile) -> ChangePlan:
        task = tasks[client.id]
        return plan_uninstall(task, files, options.folder, all_scopes=all_scopes, cleaned=cleaned)

    if not all_scopes and not options.dry_run and can_ask(invocation):
        both = {client.id: users for client in clients if client.places and (users := _users_too(plan(client)))}
        if both and not _users_may_go(both, wanted.here):
            tasks |= {client: tasks[client].replace(scope=Scope.WORKSPACE) for client in both}
    edited, commanded = _by_way(clients, wanted)
    operations = change_all(edited, plan, files, options, _order(wanted))
    operations += _by_command(commanded, wanted, None, options)
    operations = tuple(one for one in operations if one.action is not Action.NOT_FOUND or one.server in usual)
    steps = after_errors(operations)
    if are_built_in(invocation) and _is_still_trusted(wanted, operations):
        steps += (STILL_TRUSTED,)
    text = change_text(UNINSTALL, operations, steps, wanted.here, options)
    absent = all(one.action is Action.NOT_FOUND for one in operations) and not invocation.on("strict")
    return Result(data_of(operations, steps, options), text, 0 if absent else exit_code(operations))


def _users_too(plan: ChangePlan) -> tuple[str, ...]:
    """The user's files from which a plan removes entries, if it also removes some from those of the workspace."""
    changes = [one for one in plan if isinstance(one, FileChange)]
    users = tuple(one.path for one in changes if one.scope is Scope.USER)
    return users if len(users) < len(changes) else ()


def _users_may_go(files: Mapping[str, tuple[str, ...]], here: Here) -> bool:
    paths = dict.fromkeys(path for its in files.values() for path in its)
    return confirmed("\n".join((USERS_TOO, *(f"- {shown_path(path, here)}" for path in paths), REMOVE_THEM)))


def _by_way(clients: tuple[Profile, ...], wanted: McpArguments) -> tuple[tuple[Profile, ...], tuple[Profile, ...]]:
    """The clients whose files are edited, and those whose own commands register servers."""
    if all(client.places for client in clients):
        return clients, ()
    from ...setup.client_cli import registers

    commanded = tuple(client for client in clients if registers(client, wanted.here))
    return tuple(client for client in clients if client not in commanded), commanded


def _by_command(
    clients: tuple[Profile, ...], wanted: McpArguments, choice: VariantChoice | None, options: WriteOptions
) -> tuple[Operation, ...]:
    if not clients:
        return ()
    from ...setup.client_cli import register

    done = (register(one, wanted.servers, choice, dry_run=options.dry_run) for one in clients)
    return tuple(operation for operations in done for operation in operations)


def _task(wanted: McpArguments, client: Profile) -> ChangeRequest:
    return ChangeRequest(client, wanted.servers, wanted.definitions, wanted.scope)


def _order(wanted: McpArguments) -> tuple[str, ...]:
    return tuple(server.name for server in wanted.servers)


def _served_directory(
    invocation: Invocation,
    wanted: McpArguments,
    tasks: list[ChangeRequest],
    operations: tuple[Operation, ...],
    files: PlannedFiles,
) -> str | None:
    """The folder of the workspace whose code clients would run by this registration; None if there is none."""
    if not are_built_in(invocation) or exit_code(operations) or not _is_registered(tasks, operations, files):
        return None
    return wanted.directory


def _is_registered(tasks: list[ChangeRequest], operations: Sequence[Operation], files: PlannedFiles) -> bool:
    """Whether a client has an entry of this program after these operations."""
    return any(
        match.runner is not None and match.runner in (match.server.runner, PATH_RUNNER)
        for task in tasks
        for _, match in _registered(task, operations, files)
    )


def _is_still_trusted(wanted: McpArguments, operations: tuple[Operation, ...]) -> bool:
    """Whether the workspace's code may still run although this program was removed."""
    ours = {server.name for server in wanted.servers if PATH_RUNNER in server.runners}
    if not any(one.action is Action.REMOVED and one.server in ours for one in operations):
        return False
    from ...system.folders import folders
    from ...workspace.trust import is_agreed

    return wanted.directory is not None and is_agreed(folders().state, wanted.directory)


def _next_steps(
    tasks: Sequence[ChangeRequest], operations: Sequence[Operation], files: PlannedFiles, here: Here
) -> tuple[str, ...]:
    lacking: dict[tuple[str, str], list[str]] = {}  # entries by problem and next step
    gates: dict[str, None] = {}  # used as an ordered set
    for task in tasks:
        for _, match in _registered(task, operations, files):
            problem = _command_problem(match, here) if match.transport == STDIO else None
            if problem is not None:
                lacking.setdefault(problem, []).append(f"'{match.entry.name}' of {task.profile.name}")
        gates |= dict.fromkeys(_gates(task, operations, files))
    commands = (f"{problem} (entry {', '.join(its)}): {step}" for (problem, step), its in lacking.items())
    return (*commands, *gates)


def _registered(
    task: ChangeRequest, operations: Sequence[Operation], files: PlannedFiles
) -> Iterator[tuple[Place, Match]]:
    """The client's entries that these operations wrote or found to be current."""
    done = [one for one in operations if one.ide == task.profile.id and one.action in (*CHANGED, Action.SKIPPED)]
    for place in task.profile.places:
        its = [one for one in done if (one.path, one.scope) == (place.path, place.scope)]
        if its and place.use is not Use.LEGACY:
            entries = {(one.server, key) for one in its for key in one.keys}
            for match in files.read(place, task.definitions.servers).matches:
                if (match.server.name, match.entry.name) in entries and not match.shadowed:
                    yield place, match


def _command_problem(match: Match, here: Here) -> tuple[str, str] | None:
    """Why the command of the entry cannot be started, and the next step."""
    command = match.says.command
    problem = command_problem(command, here.environ, here.platform)
    if problem:
        by_path = PATH_RUNNER in match.server.runners
        hint = f", or register this program by its path: --runner {PATH_RUNNER}" if by_path else ""
        return problem, f"install it{hint}."
    if is_temporary(command, here.environ):
        step = "install the program in a folder that stays, and register it from there."
        return f"'{command}' is in a temporary folder, and will be gone", step
    return None


def _gates(task: ChangeRequest, operations: Sequence[Operation], files: PlannedFiles) -> Iterator[str]:
    """What the user must still do in the client, also for an entry that was just written for another client."""
    written = {(one.path, one.server) for one in operations if one.action in CHANGED}
    new = [one for one in operations if (one.path, one.server) in written]
    scopes = {place.scope for place, _ in _registered(task, new, files)}
    yield from (gate.text for gate in task.profile.gates if not scopes.isdisjoint(gate.scopes))
