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
    lacking: dict[tuple[str, str], list[str]] = {}  # whose entries, by what is wrong and what to do about it
    gates: dict[str, None] = {}  # in their order, and each once
    for task in tasks:
        for _, match in registered(task, operations, files):
            told = _about_command(match, here) if match.transport == STDIO else None
            if told is not None:
                lacking.setdefault(told, []).append(f"'{match.entry.name}' of {task.profile.name}")
        gates |= dict.fromkeys(_gates(task, operations, files))
    commands = (f"{problem} (entry {', '.join(its)}): {step}" for (problem, step), its in lacking.items())
    return (*commands, *gates)


def registered(task: Task, operations: Sequence[Operation], files: Files) -> Iterator[tuple[Place, Match]]:
    """The client's entries that these operations have written, or found as they should be."""
    done = [one for one in operations if one.ide == task.profile.id and one.action in (*CHANGED, Action.SKIPPED)]
    for place in task.profile.places:
        its = [one for one in done if (one.path, one.scope) == (place.path, place.scope)]
        if its and place.use is not Use.LEGACY:
            entries = {(one.server, key) for one in its for key in one.keys}
            for match in files.read(place, task.definitions.servers).matches:
                if (match.server.name, match.entry.name) in entries and not match.shadowed:
                    yield place, match


def _about_command(match: Match, here: Here) -> tuple[str, str] | None:
    """What is wrong with what the entry starts, and what to do about it."""
    command = match.says.command
    problem = missing(command, here.environ, here.platform)
    if problem:
        by_path = PATH_RUNNER in match.server.runners
        hint = f", or register this program by its path: --runner {PATH_RUNNER}" if by_path else ""
        return problem, f"install it{hint}."
    if passing(command, here.environ):
        return (
            f"'{command}' is in a folder for what is needed only for a while, and will be gone",
            f"install the program in a folder that stays, and register that one from there: --runner {PATH_RUNNER}.",
        )
    return None


def _gates(task: Task, operations: Sequence[Operation], files: Files) -> Iterator[str]:
    """What the client asks for. An entry is new to it also where this run has written it for another client."""
    written = {(one.path, one.server) for one in operations if one.action in CHANGED}
    new = [one for one in operations if (one.path, one.server) in written]
    scopes = {place.scope for place, _ in registered(task, new, files)}
    yield from (gate.text for gate in task.profile.gates if not scopes.isdisjoint(gate.scopes))
