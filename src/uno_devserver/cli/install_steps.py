"""What is left to do after `mcp install`: in the client, on this machine, and what else has come about by it."""

from __future__ import annotations

from ..setup.commands import missing
from ..setup.matching import PATH_RUNNER, definition_of
from ..setup.profiles import STDIO, Use
from ..setup.program import passing
from .changing import CHANGED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..setup.operations import Operation
    from ..setup.places import Here
    from ..setup.profiles import Place
    from ..setup.servers import Definition, Server
    from ..setup.task import Files, Task


def next_steps(tasks: Sequence[Task], operations: Sequence[Operation], files: Files, here: Here) -> tuple[str, ...]:
    steps: dict[str, None] = {}  # in their order, and each once
    for task in tasks:
        changed = [one for one in operations if one.ide == task.profile.id and one.action in CHANGED]
        steps |= dict.fromkeys(_of_client(task, changed, files, here))
    return tuple(steps)


def _of_client(task: Task, changed: Sequence[Operation], files: Files, here: Here) -> Iterator[str]:
    paths = {one.path for one in changed}
    places = [place for place in task.profile.places if place.path in paths and place.use is not Use.LEGACY]
    for server, definition in _written(task, changed, places, files):
        yield from _about_command(server, definition, here)
    scopes = {place.scope for place in places}
    yield from (gate.text for gate in task.profile.gates if not scopes.isdisjoint(gate.scopes))
    for place in places:
        others = task.also_read_by(place)
        if others:
            yield f"{place.path} is read by other clients, too: {', '.join(others)}."


def _written(
    task: Task, changed: Sequence[Operation], places: Sequence[Place], files: Files
) -> Iterator[tuple[Server, Definition]]:
    names = {one.server for one in changed}
    for place in places:
        for match in files.read(place, task.definitions.servers).matches:
            if match.server.name in names and match.certain and match.transport == STDIO:
                yield match.server, definition_of(match.entry, place.dialect)


def _about_command(server: Server, says: Definition, here: Here) -> Iterator[str]:
    problem = missing(says.command, here.environ, here.platform)
    if problem:
        hint = (
            f", or register this program by its path: --runner {PATH_RUNNER}" if PATH_RUNNER in server.runners else ""
        )
        yield f"{problem[0].upper()}{problem[1:]}: install it{hint}."
    elif passing(says.command, here.environ):
        yield f"{says.command} lies where things are cleared away: install uno-devserver to stay, then register again."
