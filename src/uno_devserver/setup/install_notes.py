"""What the user should know about an entry that is put, changed or left: sentences, beside what was done; pure."""

from __future__ import annotations

from .commands import is_absolute
from .dialects import is_disabled
from .matching import divided
from .profiles import Format, Scope, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .matching import Match
    from .profiles import Place
    from .reading import Reading
    from .servers import Definition, Server, Wish
    from .task import Task

Notes = tuple[str, ...]


def notes_of_variant(server: Server, wish: Wish) -> Notes:
    kind = wish.variant.partition(":")[0]
    if kind in server.variants or not wish.asked:
        return ()
    return (f"{server.name} has no {kind} variant: it is registered as it always is.",)


def notes_of_others_in_file(reading: Reading, match: Match) -> Notes:
    """Nobody knows which of them the user wants to keep."""
    return tuple(
        f"The entry '{one.entry.name}' in '{reading.place.path}' is for {match.server.name}, too, and stays as it is: "
        "remove one of them."
        for one in reading.matches
        if one.server.name == match.server.name and one.certain and one.index != match.index
    )


def notes_of_switch(task: Task, match: Match) -> Notes:
    if not is_disabled(match.entry):
        return ()
    return (f"The entry '{match.entry.name}' is disabled, and stays that: switch it on in {task.profile.name}.",)


def notes_of_own_way(match: Match) -> Notes:
    if not match.own_way:
        return ()
    from shlex import join

    says = match.says
    return (f"The entry '{match.entry.name}' was started in a way of its own: {join((says.command, *says.args))}",)


def notes_of_precedence(
    task: Task, target: Reading, found: list[tuple[Reading, Match]], readings: tuple[Reading, ...]
) -> Notes:
    first = next((one.place for one, _ in found if readings.index(one) < readings.index(target)), None)
    if first is None:
        return ()
    same_file = first.path == target.place.path
    where = f"under '{' > '.join(first.root)}' in '{first.path}'" if same_file else f"in '{first.path}'"
    step = f"take it out by 'uno-devserver mcp uninstall {task.profile.id} --scope {first.scope.value}'"
    if first.use is Use.SHARED:
        step = "take it out there"
    return (f"{task.profile.name} takes the entry {where} first: for the new one to count, {step}.",)


def notes_of_file(task: Task, reading: Reading, definition: Definition) -> Notes:
    """Who reads it, who does not, and what becomes of it elsewhere."""
    others = task.note_on_others(reading.place)
    return _not_accepted(task, reading) + _of_this_machine(task, reading, definition) + others


def _of_this_machine(task: Task, reading: Reading, definition: Definition) -> Notes:
    if task.profile.holder(reading.place) is not Scope.WORKSPACE or not is_absolute(definition.command):
        return ()
    return (f"The entry names a program by its path on this machine: do not commit '{reading.place.path}'.",)


def _not_accepted(task: Task, reading: Reading) -> Notes:
    if reading.place.format is not Format.JSON or reading.document is None:
        return ()
    return tuple(
        f"{task.profile.name} does not accept {remark.what} (line {remark.line}), and may not read this file at all."
        for remark in reading.document.remarks
    )


def notes_of_users_part(match: Match, place: Place) -> Notes:
    """What an entry keeps that nobody else reads: it may have come with the workspace."""
    from shlex import join

    _, arguments = divided(match.says.args, match.server)
    kept = [join(arguments)] if arguments else []
    kept += [f"environment variables ({', '.join(match.says.env)})"] if match.says.env else []
    if not kept or place.scope is not Scope.WORKSPACE:
        return ()
    return (f"The entry '{match.entry.name}' has something of its own, and keeps it: {' and '.join(kept)}",)


def notes_of_shadowed(match: Match, reading: Reading) -> Notes:
    place = reading.place
    other = f"; --scope {place.scope.value} changes that one" if place.use is not Use.SHARED else ""
    return (f"The entry '{match.entry.name}' in '{place.path}' stays as it is{other}.",)
