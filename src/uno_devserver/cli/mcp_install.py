"""`mcp install` and `mcp uninstall`: the servers get into a client's files, and out of them again."""

from __future__ import annotations

from ..setup.install_plan import plan_install
from ..setup.matching import PATH_RUNNER
from ..setup.operations import Action
from ..setup.profiles import Scope
from ..setup.task import Files, Task
from ..setup.uninstall_plan import plan_uninstall
from .agreeing import NOT_YET, STILL_TRUSTED, agree_to, is_waiting
from .change_text import change_text
from .changing import (
    CHANGED,
    ONE_REACH,
    after_errors,
    change_all,
    clients_of,
    data_of,
    exit_code,
    refuse_both,
    ways_of,
)
from .install_steps import next_steps, registered
from .registration import asked
from .results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..setup.applying import Ways
    from ..setup.asking import Answer
    from ..setup.changes import Plan
    from ..setup.matching import Match
    from ..setup.operations import Operation
    from ..setup.profiles import Profile
    from .parse import Invocation
    from .registration import Asked

INSTALL, UNINSTALL = "MCP Install", "MCP Uninstall"


def install(invocation: Invocation) -> Result:
    refuse_both(invocation, "verify", "dry-run", "A client can only see what was written: take one of them.")
    wanted = asked(invocation)
    clients, ways, files = clients_of(invocation, wanted, "install"), ways_of(invocation), Files()

    def plan(client: Profile) -> Plan:
        return plan_install(_task(wanted, client), wanted.wish, files)

    operations = change_all(clients, plan, files, ways, _order(wanted))
    tasks = [_task(wanted, client) for client in clients]
    agreed = _agree(wanted, tasks, operations, files, ways) if _are_built_in(invocation) else ()
    steps = (*next_steps(tasks, operations, files, wanted.here), *after_errors(operations))
    if _are_built_in(invocation) and not agreed and _is_waiting(wanted, tasks, operations, files):
        steps += (NOT_YET,)
    answers = _answers(wanted, clients, operations) if invocation.on("verify") else None
    data = data_of(operations, steps, ways) | {"agreedTo": list(agreed)}
    if answers is not None:
        from .verified import verified_data

        data["verified"] = verified_data(answers)
    text = change_text(INSTALL, operations, steps, wanted.here, ways, answers, agreed)
    return Result(data, text, exit_code(operations))


def uninstall(invocation: Invocation) -> Result:
    refuse_both(invocation, "scope", "all-scopes", ONE_REACH)
    wanted = asked(invocation)
    clients, ways, files = clients_of(invocation, wanted, "uninstall"), ways_of(invocation), Files()
    all_scopes = invocation.on("all-scopes")
    reach = (place for client in clients for place in _task(wanted, client).reach(all_scopes=all_scopes))
    cleaned = frozenset(place.path for place in reach)

    def plan(client: Profile) -> Plan:
        return plan_uninstall(_task(wanted, client), files, ways.folder, all_scopes=all_scopes, cleaned=cleaned)

    operations = change_all(clients, plan, files, ways, _order(wanted))
    steps = after_errors(operations)
    if _are_built_in(invocation) and _is_still_trusted(wanted, operations):
        steps += (STILL_TRUSTED,)
    text = change_text(UNINSTALL, operations, steps, wanted.here, ways)
    return Result(data_of(operations, steps, ways), text, exit_code(operations))


def _task(wanted: Asked, client: Profile) -> Task:
    return Task(client, wanted.servers, wanted.definitions, wanted.scope)


def _order(wanted: Asked) -> tuple[str, ...]:
    return tuple(server.name for server in wanted.servers)


def _are_built_in(invocation: Invocation) -> bool:
    """Of other servers nobody knows whether they run code of the workspace."""
    return invocation.value("server-definitions") is None


def _agree(
    wanted: Asked, tasks: list[Task], operations: tuple[Operation, ...], files: Files, ways: Ways
) -> tuple[str, ...]:
    """Whoever registers this program for a workspace wants the workspace's code to run. What was registered before
    says nothing: the user may have taken the agreement back."""
    changed = [one for one in operations if one.action in CHANGED]
    directory = _directory(wanted) if Scope.WORKSPACE in _holders(tasks, changed, files) else None
    return agree_to(directory, "mcp install", dry_run=ways.dry_run) if directory is not None else ()


def _is_waiting(wanted: Asked, tasks: list[Task], operations: tuple[Operation, ...], files: Files) -> bool:
    """Whether this program is registered, and code of the workspace does not run all the same."""
    directory = _directory(wanted) if _holders(tasks, operations, files) else None
    return directory is not None and is_waiting(directory)


def _holders(tasks: list[Task], operations: Sequence[Operation], files: Files) -> set[Scope]:
    """Whose files have entries of this program, among those that these operations are about."""
    return {
        task.profile.holder(place)
        for task in tasks
        for place, match in registered(task, operations, files)
        if _is_this_program(match)
    }


def _is_this_program(match: Match) -> bool:
    return match.runner is not None and match.runner in (match.server.runner, PATH_RUNNER)


def _is_still_trusted(wanted: Asked, operations: tuple[Operation, ...]) -> bool:
    """Although this program is taken out."""
    ours = {server.name for server in wanted.servers if PATH_RUNNER in server.runners}
    if not any(one.action is Action.REMOVED and one.server in ours for one in operations):
        return False
    from ..system.folders import folders
    from ..workspace.trust import is_agreed

    directory = _directory(wanted)
    return directory is not None and is_agreed(folders().state, directory)


def _directory(wanted: Asked) -> str | None:
    """That of the workspace, whose code it is; None: there are several."""
    from ..workspace.resolver import ResolutionKind, resolve

    workspace = resolve(wanted.here.workspace, explicit=True)
    return None if workspace.kind is ResolutionKind.Ambiguous else workspace.working_directory


def _answers(wanted: Asked, clients: tuple[Profile, ...], operations: tuple[Operation, ...]) -> tuple[Answer, ...]:
    """What the changed clients themselves see now."""
    from ..setup.asking import ask, ask_all
    from .progress import say

    say(f"Asking {wanted.client.name if wanted.client else 'the clients'}")
    if wanted.client is not None:
        return (ask(wanted.client, wanted.servers, wanted.here.workspace),)
    changed = {one.ide for one in operations if one.action in CHANGED}
    return ask_all([one for one in clients if one.id in changed], wanted.servers, wanted.here.workspace)
