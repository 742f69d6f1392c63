"""`mcp restore`: a client's files become what they were before they were first changed here."""

from __future__ import annotations

from ..setup.operations import Action
from ..setup.restoring import plan_restore
from ..setup.task import Files, Task
from .change_text import change_text
from .changing import change_all, clients_of, data_of, exit_code, ways_of
from .registration import asked
from .results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..setup.changes import Plan
    from ..setup.profiles import Profile
    from .parse import Invocation

TITLE = "MCP Restore"


def run(invocation: Invocation) -> Result:
    wanted = asked(invocation)
    clients, ways, files = clients_of(invocation, wanted, "restore"), ways_of(invocation), Files()

    def plan(client: Profile) -> Plan:
        task = Task(client, wanted.servers, wanted.definitions)
        return plan_restore(task, files, ways.folder, force=invocation.on("force"))

    operations = change_all(clients, plan, files, ways, ())
    done = tuple(one for one in operations if one.action is not Action.NOT_FOUND) or operations
    return Result(data_of(done, (), ways), change_text(TITLE, done, (), wanted.here, ways), exit_code(done))
