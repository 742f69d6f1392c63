"""`mcp restore`: a client's files become what they were before our changes."""

from __future__ import annotations

import os

from ...setup.plan.changes import Action
from ...setup.plan.request import ChangeRequest, PlannedFiles
from ...setup.plan.restore import plan_restore
from ..result import Result
from .arguments import mcp_arguments
from .changes import (
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
    from collections.abc import Mapping

    from ...setup.plan.changes import ChangePlan
    from ...setup.profiles import Place, Profile
    from ..parse import Invocation

TITLE = "MCP Restore"


def run(invocation: Invocation) -> Result:
    refuse_both(invocation, "scope", "all-scopes", ONE_REACH)
    wanted = mcp_arguments(invocation)
    clients, ways, files = clients_of(invocation, wanted, "restore"), ways_of(invocation), PlannedFiles()
    tasks = {client.id: ChangeRequest(client, wanted.servers, wanted.definitions, wanted.scope) for client in clients}
    places = _divided(tasks, all_scopes=invocation.on("all-scopes"))
    put_back = frozenset(place.path for its in places.values() for place in its)

    def plan(client: Profile) -> ChangePlan:
        force = invocation.on("force")
        return plan_restore(tasks[client.id], places[client.id], ways.folder, force=force, put_back=put_back)

    operations = change_all(clients, plan, files, ways, ())
    done = tuple(one for one in operations if one.action is not Action.NOT_FOUND or one.path) or operations
    steps = after_errors(done)
    return Result(data_of(done, steps, ways), change_text(TITLE, done, steps, wanted.here, ways), exit_code(done))


def _divided(tasks: Mapping[str, ChangeRequest], *, all_scopes: bool) -> dict[str, tuple[Place, ...]]:
    """By client, its files without those of an earlier one: a file that several read is put back once, and whole."""
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
