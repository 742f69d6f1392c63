"""What is left to do after `mcp install`: in the client, on this machine, and in files that could not be changed."""

from __future__ import annotations

from ..setup.commands import missing
from ..setup.matching import PATH_RUNNER
from ..setup.operations import Action
from ..setup.profiles import STDIO, Use
from ..setup.program import passing
from .changing import CHANGED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..setup.matching import Match
    from ..setup.operations import Operation
    from ..setup.places import Here
    from ..setup.profiles import Place
    from ..setup.task import Files, Task


def next_steps(tasks: Sequence[Task], operations: Sequence[Operation], files: Files, here: Here) -> tuple[str, ...]:
    steps: dict[str, None] = {}  # in their order, and each once
    for task in tasks:
        steps |= dict.fromkeys(_of_client(task, operations, files, here))
    return tuple(steps)


def registered(task: Task, operations: Sequence[Operation], files: Files) -> Iterator[tuple[Place, Match]]:
    """The client's entries that these operations have written, or found as they should be."""
    done = [one for one in operations if one.ide == task.profile.id and one.action in (*CHANGED, Action.SKIPPED)]
    for place in task.profile.places:
        names = {one.server for one in done if (one.path, one.scope) == (place.path, place.scope)}
        if names and place.use is not Use.LEGACY:
            for match in files.read(place, task.definitions.servers).matches:
                if match.server.name in names and match.certain:
                    yield place, match


def _of_client(task: Task, operations: Sequence[Operation], files: Files, here: Here) -> Iterator[str]:
    for _, match in registered(task, operations, files):
        if match.transport == STDIO:
            yield from _about_command(match, here)
    changed = [one for one in operations if one.action in CHANGED]
    scopes = {place.scope for place, _ in registered(task, changed, files)}
    yield from (gate.text for gate in task.profile.gates if not scopes.isdisjoint(gate.scopes))


def _about_command(match: Match, here: Here) -> Iterator[str]:
    command = match.says.command
    problem = missing(command, here.environ, here.platform)
    if problem:
        by_path = PATH_RUNNER in match.server.runners
        hint = f", or register this program by its path: --runner {PATH_RUNNER}" if by_path else ""
        yield f"{problem[0].upper()}{problem[1:]}: install it{hint}."
    elif passing(command, here.environ):
        yield (
            f"'{command}' is in a folder for what is needed only for a while, and will be gone: "
            "install the program for good ('uv tool install uno-devserver'), and register that one."
        )
