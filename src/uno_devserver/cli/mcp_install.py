"""`mcp install` and `mcp uninstall`: the servers get into a client's files, and out of them again."""

from __future__ import annotations

from ..issues import UserError
from ..setup.install_plan import plan_install
from ..setup.operations import Action
from ..setup.task import Files, Task
from ..setup.uninstall_plan import plan_uninstall
from .agreeing import agree_to, agreement
from .change_text import change_text
from .changing import CHANGED, change_all, clients_of, data_of, exit_code, ways_of
from .install_steps import next_steps
from .registration import asked
from .results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..setup.applying import Ways
    from ..setup.asking import Answer
    from ..setup.changes import Plan
    from ..setup.operations import Operation
    from ..setup.profiles import Profile
    from .parse import Invocation
    from .registration import Asked

INSTALL, UNINSTALL = "MCP Install", "MCP Uninstall"


def install(invocation: Invocation) -> Result:
    _refuse_both(invocation, "verify", "dry-run", "A client can only see what was written: take one of them.")
    wanted = asked(invocation)
    clients, ways, files = clients_of(invocation, wanted, "install"), ways_of(invocation), Files()

    def plan(client: Profile) -> Plan:
        return plan_install(_task(wanted, client), wanted.wish, files)

    operations = change_all(clients, plan, files, ways, _order(wanted))
    agreed = _agree(wanted, operations, ways)
    steps = next_steps([_task(wanted, client) for client in clients], operations, files, wanted.here)
    answers = _answers(wanted, clients, operations) if invocation.on("verify") else None
    data = data_of(operations, steps, ways) | {"agreedTo": list(agreed)}
    if answers is not None:
        from .verified import verified_data

        data["verified"] = verified_data(answers)
    told = (*steps, *((sentence,) if (sentence := agreement(agreed)) else ()))
    text = change_text(INSTALL, operations, told, wanted.here, ways, answers)
    return Result(data, text, exit_code(operations))


def uninstall(invocation: Invocation) -> Result:
    _refuse_both(invocation, "scope", "all-scopes", "Take one of them, or none for all files of the client.")
    wanted = asked(invocation)
    clients, ways, files = clients_of(invocation, wanted, "uninstall"), ways_of(invocation), Files()

    def plan(client: Profile) -> Plan:
        return plan_uninstall(_task(wanted, client), files, ways.folder, all_scopes=invocation.on("all-scopes"))

    operations = change_all(clients, plan, files, ways, _order(wanted))
    text = change_text(UNINSTALL, operations, (), wanted.here, ways)
    return Result(data_of(operations, (), ways), text, exit_code(operations))


def _refuse_both(invocation: Invocation, one: str, other: str, next_step: str) -> None:
    if one in invocation.options and invocation.on(other):
        raise UserError("BadValue", f"--{one} and --{other} are mutually exclusive", next_step, exit_code=2)


def _task(wanted: Asked, client: Profile) -> Task:
    return Task(client, wanted.servers, wanted.definitions, wanted.scope)


def _order(wanted: Asked) -> tuple[str, ...]:
    return tuple(server.name for server in wanted.servers)


def _agree(wanted: Asked, operations: tuple[Operation, ...], ways: Ways) -> tuple[str, ...]:
    """Whoever registers the server for a workspace wants it to run there."""
    if ways.dry_run or not any(one.action in (*CHANGED, Action.SKIPPED) for one in operations):
        return ()
    from ..workspace.resolver import ResolutionKind, resolve

    workspace = resolve(wanted.here.workspace, explicit=True)
    if workspace.kind is ResolutionKind.Ambiguous:
        return ()
    return agree_to(workspace.working_directory, "mcp install")


def _answers(wanted: Asked, clients: tuple[Profile, ...], operations: tuple[Operation, ...]) -> tuple[Answer, ...]:
    """What the changed clients themselves see now."""
    from ..setup.asking import ask, ask_all

    if wanted.client is not None:
        return (ask(wanted.client, wanted.servers, wanted.here.workspace),)
    changed = {one.ide for one in operations if one.action in CHANGED}
    return ask_all([one for one in clients if one.id in changed], wanted.servers, wanted.here.workspace)
