"""Where each server's entry goes in a client's files, and what it will say; nothing is written here.

An entry that is what it should be is left alone. One that is not is changed where it is, or where that would be
somebody else's file, shadowed by one that the client takes first. A missing one goes into the client's own file.
"""

from __future__ import annotations

import os

from ...system.values import Value
from ..config_file import decode_text, encode_text
from ..edits.document import EditProblem, open_document
from ..entry_command import is_absolute
from ..entry_format import is_disabled, settings_for
from ..entry_match import divided
from ..expected_entry import expected, kept_runner, meant, renewed, up_to_date
from ..profiles import Format, Scope, Use
from ..servers import PINNED
from .changes import Action, FileChange
from .request import OMIT_SCOPE, left_alone, no_such_scope, not_changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..config_file import ConfigFile
    from ..edits.document import Document
    from ..entry_match import Match
    from ..profiles import Place, Scope
    from ..servers import EntrySpec, ServerDefinition, VariantChoice
    from .changes import ChangePlan, Operation
    from .request import ChangeRequest, PlannedFiles


def plan_install(task: ChangeRequest, wish: VariantChoice, files: PlannedFiles) -> ChangePlan:
    profile = task.profile
    if profile.no_client:
        return task.errors(profile.no_client, "'uno-devserver mcp status' shows the clients that there are.")
    scope = task.scope or profile.default_scope
    if not profile.targets(scope):
        known = {place.scope for place in profile.places if place.use is Use.WRITE}
        return task.errors(no_such_scope(profile, scope, known), OMIT_SCOPE)
    readings = tuple(files.read(place, task.definitions.servers) for place in profile.places)
    return _gathered([_decide(task, server, wish, scope, readings) for server in task.servers])


class _Edit(Value):
    """What is put into a file: into the entry that `was` there, or into a new one."""

    reading: ConfigFile
    name: str
    was: Match | None
    definition: EntrySpec
    server: ServerDefinition
    operation: Operation


def _decide(
    task: ChangeRequest, server: ServerDefinition, wish: VariantChoice, scope: Scope, readings: tuple[ConfigFile, ...]
) -> _Edit | Operation:
    if server.transport not in task.profile.transports:
        reason = f"{task.profile.name} takes no {server.transport} servers from its configuration"
        return task.operation(server, Action.SKIPPED, None, reason)
    read = [one for one in readings if one.place.use is not Use.LEGACY]
    found = [(one, match) for one in read if (match := _effective(one, server))]
    counting = [one for one in found if task.scope is None or one[0].place.scope is task.scope]
    notes = left_alone(server, readings) + notes_of_variant(server, wish)
    if counting:
        reading, match = counting[0]
        notes += notes_of_others_in_file(reading, match)
        if up_to_date(match, wish, reading.place.dialect):
            reason = _already(match, wish)
            notes += notes_of_switch(task, match) + notes_of_users_part(match, reading.place)
            skipped = _operation(task, server, Action.SKIPPED, reading, reason)
            return skipped.replace(notes=notes, keys=(match.entry.name,))
    target = _target(task, scope, readings)
    if counting and not _is_shadowed_by(target, counting[0][0], scope, readings):
        return _change(task, server, wish, *counting[0], notes)
    outdated = counting[0][1] if counting else None
    notes += notes_of_shadowed(outdated, counting[0][0]) if outdated is not None else ()
    unread = _not_read(server, readings) if not counting else None
    return _add(
        task, server, wish, target, outdated, unread, notes + notes_of_precedence(task, target, found, readings)
    )


def _operation(
    task: ChangeRequest, server: ServerDefinition, action: Action, reading: ConfigFile, reason: str
) -> Operation:
    place = reading.place
    return task.operation(server, action, place.path, reason).replace(scope=place.scope)


def _effective(reading: ConfigFile, server: ServerDefinition) -> Match | None:
    """The entry that counts in a file. Of twins clients take the last; of other matches the first is as good as any."""
    ours = (one for one in reading.matches if one.server.name == server.name and one.certain)
    return next((one for one in ours if not one.shadowed), None)


def _already(match: Match, wish: VariantChoice) -> str:
    if match.own_way:
        return f"Already registered (started in a way of its own; --runner {match.server.runner} replaces it)"
    other = wish.runner is None and match.runner is not None and match.runner != match.server.runner
    if not other:
        return "Already registered"
    return f"Already registered ({match.runner}; --runner {match.server.runner} writes this tool's command)"


def _target(task: ChangeRequest, scope: Scope, readings: tuple[ConfigFile, ...]) -> ConfigFile:
    """The first file that is there, so that a client with two names for it never gets both; else the preferred."""
    by_place = {(one.place.path, one.place.root): one for one in readings}
    targets = [by_place[place.path, place.root] for place in task.profile.targets(scope)]
    return next((one for one in targets if one.content is not None or one.problem), targets[0])


def _is_shadowed_by(target: ConfigFile, found: ConfigFile, scope: Scope, readings: tuple[ConfigFile, ...]) -> bool:
    """Whether an entry at the target counts instead of that one, which is not in the client's own files there."""
    own = found.place.scope is scope and found.place.use is not Use.SHARED
    return not own and readings.index(target) < readings.index(found)


def _not_read(server: ServerDefinition, readings: tuple[ConfigFile, ...]) -> str | None:
    """The file with an entry that the client does not read (any more)."""
    legacy = (one for one in readings if one.place.use is Use.LEGACY)
    return next((one.place.path for one in legacy if _effective(one, server)), None)


def _change(
    task: ChangeRequest,
    server: ServerDefinition,
    wish: VariantChoice,
    reading: ConfigFile,
    match: Match,
    notes: tuple[str, ...],
) -> _Edit:
    """An entry keeps its name, its runner, and the user's arguments."""
    definition = renewed(match, wish)
    reason = f"Updated {server.name} {server.transport} server{_was(match, wish)}"
    operation = _operation(task, server, Action.UPDATED, reading, reason)
    notes += notes_of_switch(task, match) + notes_of_file(task, reading, definition)
    notes += notes_of_own_way(match) + notes_of_users_part(match, reading.place)
    return _Edit(reading, match.entry.name, match, definition, server, operation.replace(notes=notes))


def _was(match: Match, wish: VariantChoice) -> str:
    """What the entry says until now, where that is another thing, and how to keep a version that was chosen once."""
    kind, _, version = match.variant.partition(":")
    runner = [match.runner] if match.runner is not None and kept_runner(match, wish) != match.runner else []
    was = " ".join([*runner, *([match.variant] if match.variant != meant(wish, match).variant else [])])
    keeps = f"; --version {version} keeps that" if kind == PINNED and not wish.asked and not runner else ""
    return f" (was {was}{keeps})" if was else ""


def _add(
    task: ChangeRequest,
    server: ServerDefinition,
    wish: VariantChoice,
    target: ConfigFile,
    outdated: Match | None,
    unread: str | None,
    notes: tuple[str, ...],
) -> _Edit | Operation:
    path = target.place.path
    if target.problem:
        return task.broken(server, path, target.problem)
    name = outdated.entry.name if outdated is not None else server.name  # only the same name shadows an entry
    action = Action.CREATED if outdated is None and unread is None else Action.UPDATED
    reason = f"Added {server.name} {server.transport} server"
    if unread is not None:
        reason += f"; {task.profile.name} does not read '{unread}'"
        notes += (f"'uno-devserver mcp uninstall {task.profile.id}' takes the entry out of '{unread}', too.",)
    operation = _operation(task, server, action, target, reason)
    definition = renewed(outdated, wish) if outdated is not None else expected(server, wish)
    notes += notes_of_file(task, target, definition)
    return _Edit(target, name, None, definition, server, operation.replace(notes=notes))


def _gathered(decided: list[_Edit | Operation]) -> ChangePlan:
    """One change per file: two servers are one write, one backup and one difference."""
    by_file: dict[str, list[_Edit]] = {}
    for one in decided:
        if isinstance(one, _Edit):
            by_file.setdefault(os.path.realpath(one.reading.place.path), []).append(one)
    changes = tuple(_file_change(edits) for edits in by_file.values())
    return (*changes, *(one for one in decided if not isinstance(one, _Edit)))


def _file_change(edits: list[_Edit]) -> FileChange:
    place, before = edits[0].reading.place, edits[0].reading.content
    text, bom, encoding = decode_text(place.new_text.encode() if before is None else before)
    after, operations = before, []
    for edit in edits:
        try:
            changed, name = _put(edit, text)
            after, text = encode_text(changed, bom, encoding), changed
            operations.append(edit.operation.replace(keys=(name,)))
        except EditProblem as problem:
            operations.append(not_changed(edit.operation, place.path, problem))
    return FileChange(place.path, place.scope, before, after, tuple(operations))


def _put(edit: _Edit, text: str) -> tuple[str, str]:
    """The new text, and the entry's name in it."""
    place = edit.reading.place
    document = open_document(text, place.format, place.root, place.dialect.name_key)
    settings, drop = settings_for(edit.definition, edit.server, place.dialect, edit.was)
    if edit.was is not None:
        return document.put(_index_now(edit.was, document), edit.name, settings, drop), edit.name
    name = _free_name(edit, document)
    return document.put(None, name, settings, drop), name


def _index_now(was: Match, document: Document) -> int:
    """A change before this one may have moved entries of TOML, where a name stands for one entry only."""
    names = [entry.name for entry in document.entries]
    return was.index if names[was.index] == was.entry.name else names.index(was.entry.name)


def _free_name(edit: _Edit, document: Document) -> str:
    """Clients take the last of two entries with one name: nobody else's is hidden by ours."""
    taken = {entry.name for entry in document.entries}
    free = next((name for name in (edit.name, edit.server.name) if name not in taken), None)
    if free is None:
        raise EditProblem(f"'{edit.server.name}' is the name of another server there; give that one another name")
    return free


Notes = tuple[str, ...]


def notes_of_variant(server: ServerDefinition, wish: VariantChoice) -> Notes:
    kind = wish.variant.partition(":")[0]
    if kind in server.variants or not wish.asked:
        return ()
    return (f"{server.name} has no {kind} variant: it is registered as it always is.",)


def notes_of_others_in_file(reading: ConfigFile, match: Match) -> Notes:
    """Nobody knows which of them the user wants to keep."""
    return tuple(
        f"The entry '{one.entry.name}' in '{reading.place.path}' is for {match.server.name}, too, and stays as it is: "
        "remove one of them."
        for one in reading.matches
        if one.server.name == match.server.name and one.certain and one.index != match.index
    )


def notes_of_switch(task: ChangeRequest, match: Match) -> Notes:
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
    task: ChangeRequest, target: ConfigFile, found: list[tuple[ConfigFile, Match]], readings: tuple[ConfigFile, ...]
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


def notes_of_file(task: ChangeRequest, reading: ConfigFile, definition: EntrySpec) -> Notes:
    """Who reads it, who does not, and what becomes of it elsewhere."""
    others = task.note_on_others(reading.place)
    return _not_accepted(task, reading) + _of_this_machine(task, reading, definition) + others


def _of_this_machine(task: ChangeRequest, reading: ConfigFile, definition: EntrySpec) -> Notes:
    if task.profile.holder(reading.place) is not Scope.WORKSPACE or not is_absolute(definition.command):
        return ()
    return (f"The entry names a program by its path on this machine: do not commit '{reading.place.path}'.",)


def _not_accepted(task: ChangeRequest, reading: ConfigFile) -> Notes:
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


def notes_of_shadowed(match: Match, reading: ConfigFile) -> Notes:
    place = reading.place
    other = f"; --scope {place.scope.value} changes that one" if place.use is not Use.SHARED else ""
    return (f"The entry '{match.entry.name}' in '{place.path}' stays as it is{other}.",)
