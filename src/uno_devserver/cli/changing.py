"""What the commands that change clients' files have in common: for which clients, how, and what is told about it."""

from __future__ import annotations

from ..issues import UserError
from ..setup.applying import Ways, carry_out
from ..setup.changes import FileChange
from ..setup.detecting import detected
from ..setup.exclusion import exclusively
from ..setup.operations import Action, failed
from ..system.folders import folders
from .registration import PROTOCOL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..setup.changes import Plan
    from ..setup.operations import Operation
    from ..setup.profiles import Profile
    from ..setup.task import Files
    from .parse import Invocation
    from .registration import Asked

CHANGED = (Action.CREATED, Action.UPDATED)
ONE_REACH = "Take one of them, or none for all files of the client's own."  # of --scope and --all-scopes


def refuse_both(invocation: Invocation, one: str, other: str, next_step: str) -> None:
    if one in invocation.options and invocation.on(other):
        raise UserError("BadValue", f"--{one} and --{other} are mutually exclusive", next_step, exit_code=2)


def clients_of(invocation: Invocation, wanted: Asked, verb: str) -> tuple[Profile, ...]:
    """The named client, or all that are here; raises UserError."""
    everyone = invocation.on("all-ides")
    if wanted.client is not None:
        if everyone:
            message = f"'{wanted.client.id}' and --all-ides are mutually exclusive"
            raise UserError("BadValue", message, "Name the client, or take all that are found.", exit_code=2)
        return (wanted.client,)
    usage = f"Usage: mcp {verb} <client>, or use --all-ides to target all detected clients"
    if not everyone:
        known = ", ".join(profile.id for profile in wanted.definitions.profiles)
        raise UserError("MissingClient", f"Missing client argument. {usage}", f"Name one of: {known}.", exit_code=2)
    # Nothing can be registered with some; what was registered all the same goes with the rest.
    possible = [one for one in wanted.definitions.profiles if verb != "install" or not one.no_client]
    found = tuple(one for one in possible if detected(one, wanted.here))
    if not found:
        message = f"No clients detected. Specify a client explicitly: mcp {verb} <client>"
        raise UserError("NoClient", message, "Run 'uno-devserver mcp status' to see which are known.")
    return found


def ways_of(invocation: Invocation) -> Ways:
    return Ways(folders().state, backup=not invocation.on("no-backup"), dry_run=invocation.on("dry-run"))


def change_all(
    clients: tuple[Profile, ...], plan: Callable[[Profile], Plan], files: Files, ways: Ways, order: tuple[str, ...]
) -> tuple[Operation, ...]:
    """Client by client, since what was written for one may be what the next one reads, too."""

    def work() -> tuple[Operation, ...]:
        done: list[Operation] = []
        for client in clients:
            done += sorted(_change(client, plan, files, ways), key=lambda one: _rank(one, order))
        return tuple(done)

    return work() if ways.dry_run else exclusively(ways.folder, work, required=ways.backup)


def _change(client: Profile, plan: Callable[[Profile], Plan], files: Files, ways: Ways) -> tuple[Operation, ...]:
    if not ways.dry_run:
        return carry_out(lambda: plan(client), ways)
    planned = plan(client)
    done = carry_out(lambda: planned, ways)
    possible = {one.path for one in done if one.action is not Action.ERROR}
    for item in planned:
        if isinstance(item, FileChange) and item.path in possible:
            files.planned(item)
    return done


def _rank(operation: Operation, order: tuple[str, ...]) -> int:
    return order.index(operation.server) if operation.server in order else 0


def data_of(operations: tuple[Operation, ...], next_steps: tuple[str, ...], ways: Ways) -> dict[str, object]:
    data: dict[str, object] = {
        "version": PROTOCOL,
        "operations": [_operation(one) for one in operations],
        "nextSteps": list(next_steps),
    }
    return {**data, "dryRun": True} if ways.dry_run else data


def after_errors(operations: tuple[Operation, ...]) -> tuple[str, ...]:
    """What to do about files that could not be changed."""
    return tuple(dict.fromkeys(one.next_step for one in operations if one.next_step))


def exit_code(operations: tuple[Operation, ...]) -> int:
    return 1 if failed(operations) else 0


def _operation(one: Operation) -> dict[str, object]:
    told: dict[str, object] = {
        "server": one.server,
        "ide": one.ide,
        "action": one.action.value,
        "path": one.path,
        "reason": one.reason,
    }
    optional = {"keys": list(one.keys), "note": " ".join(one.notes), "backup": one.backup, "diff": one.diff}
    return told | {key: value for key, value in optional.items() if value}
