"""`mcp restore`: restores a client's files to what they were before this program changed them."""

from __future__ import annotations

import os

from ...setup.plan.changes import Action
from ...setup.plan.request import ChangeRequest, PlannedFiles
from ...setup.plan.restore import plan_restore
from ..result import Result
from .arguments import mcp_arguments
from .changes import (
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
    from collections.abc import Mapping

    from ...setup.plan.changes import ChangePlan
    from ...setup.profiles import Place, Profile
    from ..parse import Invocation

TITLE = "MCP Restore"


def run(invocation: Invocation) -> Result:
    refuse_both(invocation, "scope", "all-scopes", ONE_SCOPE)
    wanted = mcp_arguments(invocation)
    clients, options, files = clients_of(invocation, wanted, "restore"), write_options(invocation), PlannedFiles()
    tasks = {client.id: ChangeRequest(client, wanted.servers, wanted.definitions, wanted.scope) for client in clients}
    places = _places(tasks, all_scopes=invocation.on("all-scopes"))
    put_back = frozenset(os.path.realpath(place.path) for its in places.values() for place in its)

    def plan(client: Profile) -> ChangePlan:
        force = invocation.on("force")
        return plan_restore(tasks[client.id], places[client.id], options.folder, force=force, put_back=put_back)

    operations = change_all(clients, plan, files, options, ())
    done = tuple(one for one in operations if one.action is not Action.NOT_FOUND or one.path) or operations
    steps = after_errors(done)
    return Result(data_of(done, steps, options), change_text(TITLE, done, steps, wanted.here, options), exit_code(done))


def _places(tasks: Mapping[str, ChangeRequest], *, all_scopes: bool) -> dict[str, tuple[Place, ...]]:
    """The files of each client, without those of the clients before it: a shared file is restored only once."""
    taken: dict[str, str] = {}
    return {
        client: tuple(
            place
            for place in task.reach(all_scopes=all_scopes)
            if task.scope in (None, task.profile.holder(place))
            and taken.setdefault(os.path.realpath(place.path), client) == client
        )
        for client, task in tasks.items()
    }
