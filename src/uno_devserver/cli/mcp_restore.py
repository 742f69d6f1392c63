"""`mcp restore`: a client's files become what they were before our changes."""

from __future__ import annotations

import os

from ..setup.operations import Action
from ..setup.restoring import plan_restore
from ..setup.task import Files, Task
from .change_text import change_text
from .changing import after_errors, change_all, clients_of, data_of, exit_code, ways_of
from .registration import asked
from .results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..setup.changes import Plan
    from ..setup.profiles import Place, Profile
    from .parse import Invocation

TITLE = "MCP Restore"


def run(invocation: Invocation) -> Result:
    wanted = asked(invocation)
    clients, ways, files = clients_of(invocation, wanted, "restore"), ways_of(invocation), Files()
    its_files = _divided(clients)

    def plan(client: Profile) -> Plan:
        task = Task(client.replace(places=its_files[client.id]), wanted.servers, wanted.definitions)
        return plan_restore(task, ways.folder, force=invocation.on("force"))

    operations = change_all(clients, plan, files, ways, ())
    done = tuple(one for one in operations if one.action is not Action.NOT_FOUND or one.path) or operations
    steps = after_errors(done)
    return Result(data_of(done, steps, ways), change_text(TITLE, done, steps, wanted.here, ways), exit_code(done))


def _divided(clients: tuple[Profile, ...]) -> dict[str, tuple[Place, ...]]:
    """By client, its files without those of an earlier one: a file that several read is put back once."""
    taken: dict[str, str] = {}
    return {
        client.id: tuple(
            place for place in client.places if taken.setdefault(os.path.realpath(place.path), client.id) == client.id
        )
        for client in clients
    }
