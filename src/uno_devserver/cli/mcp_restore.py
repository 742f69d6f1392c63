"""`mcp restore`: a client's files become what they were before our changes."""

from __future__ import annotations

import os

from ..setup.operations import Action
from ..setup.restoring import plan_restore
from ..setup.task import Files, Task
from .change_text import change_text
from .changing import ONE_REACH, after_errors, change_all, clients_of, data_of, exit_code, refuse_both, ways_of
from .registration import asked
from .results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..setup.changes import Plan
    from ..setup.profiles import Place, Profile
    from .parse import Invocation

TITLE = "MCP Restore"


def run(invocation: Invocation) -> Result:
    refuse_both(invocation, "scope", "all-scopes", ONE_REACH)
    wanted = asked(invocation)
    clients, ways, files = clients_of(invocation, wanted, "restore"), ways_of(invocation), Files()
    tasks = {client.id: Task(client, wanted.servers, wanted.definitions, wanted.scope) for client in clients}
    places = _divided(tasks, all_scopes=invocation.on("all-scopes"))
    put_back = frozenset(place.path for its in places.values() for place in its)

    def plan(client: Profile) -> Plan:
        force = invocation.on("force")
        return plan_restore(tasks[client.id], places[client.id], ways.folder, force=force, put_back=put_back)

    operations = change_all(clients, plan, files, ways, ())
    done = tuple(one for one in operations if one.action is not Action.NOT_FOUND or one.path) or operations
    steps = after_errors(done)
    return Result(data_of(done, steps, ways), change_text(TITLE, done, steps, wanted.here, ways), exit_code(done))


def _divided(tasks: Mapping[str, Task], *, all_scopes: bool) -> dict[str, tuple[Place, ...]]:
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
