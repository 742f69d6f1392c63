"""`mcp install` and `mcp uninstall`: the servers get into a client's files, and out of them again."""

from __future__ import annotations

from ...setup.entry_command import command_problem, is_temporary
from ...setup.entry_match import PATH_RUNNER
from ...setup.plan.changes import Action
from ...setup.plan.install import plan_install
from ...setup.plan.request import ChangeRequest, PlannedFiles
from ...setup.plan.uninstall import plan_uninstall
from ...setup.profiles import STDIO, Scope, Use
from ..result import Result
from ..trust import RUNS_AFTER_TRUST, STILL_TRUSTED, agree_to, needs_agreement
from .arguments import mcp_arguments
from .changes import (
    CHANGED,
    ONE_REACH,
    after_errors,
    change_all,
    change_text,
    clients_of,
    data_of,
    exit_code,
    refuse_both,
    ways_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...setup.change_writer import WriteOptions
    from ...setup.client_cli import ClientAnswer
    from ...setup.entry_match import Match
    from ...setup.paths import Here
    from ...setup.plan.changes import ChangePlan, Operation
    from ...setup.plan.request import ChangeRequest, PlannedFiles
    from ...setup.profiles import Place, Profile
    from ..parse import Invocation
    from .arguments import McpArguments

INSTALL, UNINSTALL = "MCP Install", "MCP Uninstall"


def install(invocation: Invocation) -> Result:
    refuse_both(invocation, "verify", "dry-run", "A client can only see what was written: take one of them.")
    wanted = mcp_arguments(invocation)
    clients, ways, files = clients_of(invocation, wanted, "install"), ways_of(invocation), PlannedFiles()

    def plan(client: Profile) -> ChangePlan:
        return plan_install(_task(wanted, client), wanted.wish, files)

    operations = change_all(clients, plan, files, ways, _order(wanted))
    tasks = [_task(wanted, client) for client in clients]
    agreed = _agree(wanted, tasks, operations, files, ways) if _are_built_in(invocation) else ()
    steps = (*next_steps(tasks, operations, files, wanted.here), *after_errors(operations))
    if _are_built_in(invocation) and not agreed and _is_waiting(wanted, tasks, operations, files):
        steps += (RUNS_AFTER_TRUST,)
    answers = _answers(wanted, clients, operations) if invocation.on("verify") else None
    data = data_of(operations, steps, ways) | {"agreedTo": list(agreed)}
    if answers is not None:
        from .verification import verified_data

        data["verified"] = verified_data(answers)
    text = change_text(INSTALL, operations, steps, wanted.here, ways, answers, agreed)
    return Result(data, text, exit_code(operations))


def uninstall(invocation: Invocation) -> Result:
    refuse_both(invocation, "scope", "all-scopes", ONE_REACH)
    wanted = mcp_arguments(invocation)
    clients, ways, files = clients_of(invocation, wanted, "uninstall"), ways_of(invocation), PlannedFiles()
    all_scopes = invocation.on("all-scopes")
    reach = (place for client in clients for place in _task(wanted, client).reach(all_scopes=all_scopes))
    cleaned = frozenset(place.path for place in reach)

    def plan(client: Profile) -> ChangePlan:
        return plan_uninstall(_task(wanted, client), files, ways.folder, all_scopes=all_scopes, cleaned=cleaned)

    operations = change_all(clients, plan, files, ways, _order(wanted))
    steps = after_errors(operations)
    if _are_built_in(invocation) and _is_still_trusted(wanted, operations):
        steps += (STILL_TRUSTED,)
    text = change_text(UNINSTALL, operations, steps, wanted.here, ways)
    return Result(data_of(operations, steps, ways), text, exit_code(operations))


def _task(wanted: McpArguments, client: Profile) -> ChangeRequest:
    return ChangeRequest(client, wanted.servers, wanted.definitions, wanted.scope)


def _order(wanted: McpArguments) -> tuple[str, ...]:
    return tuple(server.name for server in wanted.servers)


def _are_built_in(invocation: Invocation) -> bool:
    """Of other servers nobody knows whether they run code of the workspace."""
    return invocation.value("server-definitions") is None


def _agree(
    wanted: McpArguments,
    tasks: list[ChangeRequest],
    operations: tuple[Operation, ...],
    files: PlannedFiles,
    ways: WriteOptions,
) -> tuple[str, ...]:
    """Whoever registers this program for a workspace wants the workspace's code to run. What was registered before
    says nothing: the user may have taken the agreement back."""
    changed = [one for one in operations if one.action in CHANGED]
    directory = _directory(wanted) if Scope.WORKSPACE in _holders(tasks, changed, files) else None
    return agree_to(directory, "mcp install", dry_run=ways.dry_run) if directory is not None else ()


def _is_waiting(
    wanted: McpArguments, tasks: list[ChangeRequest], operations: tuple[Operation, ...], files: PlannedFiles
) -> bool:
    """Whether this program is registered, and code of the workspace does not run all the same."""
    directory = _directory(wanted) if _holders(tasks, operations, files) else None
    return directory is not None and needs_agreement(directory)


def _holders(tasks: list[ChangeRequest], operations: Sequence[Operation], files: PlannedFiles) -> set[Scope]:
    """Whose files have entries of this program, among those that these operations are about."""
    return {
        task.profile.holder(place)
        for task in tasks
        for place, match in registered(task, operations, files)
        if _is_this_program(match)
    }


def _is_this_program(match: Match) -> bool:
    return match.runner is not None and match.runner in (match.server.runner, PATH_RUNNER)


def _is_still_trusted(wanted: McpArguments, operations: tuple[Operation, ...]) -> bool:
    """Although this program is taken out."""
    ours = {server.name for server in wanted.servers if PATH_RUNNER in server.runners}
    if not any(one.action is Action.REMOVED and one.server in ours for one in operations):
        return False
    from ...system.folders import folders
    from ...workspace.trust import is_agreed

    directory = _directory(wanted)
    return directory is not None and is_agreed(folders().state, directory)


def _directory(wanted: McpArguments) -> str | None:
    """That of the workspace, whose code it is; None: there are several."""
    from ...workspace.resolver import ResolutionKind, resolve

    workspace = resolve(wanted.here.workspace, explicit=True)
    return None if workspace.kind is ResolutionKind.Ambiguous else workspace.working_directory


def _answers(
    wanted: McpArguments, clients: tuple[Profile, ...], operations: tuple[Operation, ...]
) -> tuple[ClientAnswer, ...]:
    """What the changed clients themselves see now."""
    from ...setup.client_cli import ask, ask_all
    from ..progress import say

    say(f"Asking {wanted.client.name if wanted.client else 'the clients'}")
    if wanted.client is not None:
        return (ask(wanted.client, wanted.servers, wanted.here.workspace),)
    changed = {one.ide for one in operations if one.action in CHANGED}
    return ask_all([one for one in clients if one.id in changed], wanted.servers, wanted.here.workspace)


def next_steps(
    tasks: Sequence[ChangeRequest], operations: Sequence[Operation], files: PlannedFiles, here: Here
) -> tuple[str, ...]:
    lacking: dict[tuple[str, str], list[str]] = {}  # whose entries, by what is wrong and what to do about it
    gates: dict[str, None] = {}  # in their order, and each once
    for task in tasks:
        for _, match in registered(task, operations, files):
            told = _about_command(match, here) if match.transport == STDIO else None
            if told is not None:
                lacking.setdefault(told, []).append(f"'{match.entry.name}' of {task.profile.name}")
        gates |= dict.fromkeys(_gates(task, operations, files))
    commands = (f"{problem} (entry {', '.join(its)}): {step}" for (problem, step), its in lacking.items())
    return (*commands, *gates)


def registered(
    task: ChangeRequest, operations: Sequence[Operation], files: PlannedFiles
) -> Iterator[tuple[Place, Match]]:
    """The client's entries that these operations have written, or found as they should be."""
    done = [one for one in operations if one.ide == task.profile.id and one.action in (*CHANGED, Action.SKIPPED)]
    for place in task.profile.places:
        its = [one for one in done if (one.path, one.scope) == (place.path, place.scope)]
        if its and place.use is not Use.LEGACY:
            entries = {(one.server, key) for one in its for key in one.keys}
            for match in files.read(place, task.definitions.servers).matches:
                if (match.server.name, match.entry.name) in entries and not match.shadowed:
                    yield place, match


def _about_command(match: Match, here: Here) -> tuple[str, str] | None:
    """What is wrong with what the entry starts, and what to do about it."""
    command = match.says.command
    problem = command_problem(command, here.environ, here.platform)
    if problem:
        by_path = PATH_RUNNER in match.server.runners
        hint = f", or register this program by its path: --runner {PATH_RUNNER}" if by_path else ""
        return problem, f"install it{hint}."
    if is_temporary(command, here.environ):
        return (
            f"'{command}' is in a folder for what is needed only for a while, and will be gone",
            f"install the program in a folder that stays, and register that one from there: --runner {PATH_RUNNER}.",
        )
    return None


def _gates(task: ChangeRequest, operations: Sequence[Operation], files: PlannedFiles) -> Iterator[str]:
    """What the client asks for. An entry is new to it also where this run has written it for another client."""
    written = {(one.path, one.server) for one in operations if one.action in CHANGED}
    new = [one for one in operations if (one.path, one.server) in written]
    scopes = {place.scope for place, _ in registered(task, new, files)}
    yield from (gate.text for gate in task.profile.gates if not scopes.isdisjoint(gate.scopes))
