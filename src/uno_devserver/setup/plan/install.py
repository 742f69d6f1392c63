"""Plans `mcp install`: where each server's entry goes in a client's files, and its content.

An entry that is up to date is not changed. An outdated one is changed in place, unless it is in another client's file
or another scope and the client would read a new entry first: then a new entry replaces it. A missing entry goes into
the client's own file.
"""

from __future__ import annotations

from ...system.values import Value
from ..config_file import Location, decode_text, encode_text
from ..edits.document import EditProblem, open_document
from ..entry_command import is_absolute
from ..entry_format import is_disabled, settings_for
from ..entry_match import divided
from ..expected_entry import expected, kept_runner, meant, renewed, up_to_date
from ..profiles import Format, Scope, Use
from ..servers import PINNED
from .changes import Action, FileChange, by_file
from .request import left_alone, not_changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..config_file import ConfigFile
    from ..edits.document import Document
    from ..entry_match import Match
    from ..servers import EntrySpec, ServerDefinition, VariantChoice
    from .changes import ChangePlan, Operation
    from .request import ChangeRequest, PlannedFiles

    Notes = tuple[str, ...]


def plan_install(request: ChangeRequest, choice: VariantChoice, files: PlannedFiles) -> ChangePlan:
    profile = request.profile
    if profile.no_client:
        return request.errors(profile.no_client, "'uno-devserver mcp status' shows the clients that there are.")
    scope = request.scope or profile.default_scope
    if not profile.targets(scope):
        return request.no_such_scope(scope, {place.scope for place in profile.places if place.use is Use.WRITE})
    configs = tuple(files.read(place, request.definitions.servers) for place in profile.places)
    decided = [_decide(_Case(request, choice, scope, configs, server)) for server in request.servers]
    changes = (_file_change(edits) for edits in by_file(one for one in decided if isinstance(one, _Edit)))
    return (*changes, *(one for one in decided if not isinstance(one, _Edit)))


class _Case(Value):
    """One server to install, and the facts on which the decision about it depends."""

    request: ChangeRequest
    choice: VariantChoice
    scope: Scope
    configs: tuple[ConfigFile, ...]  # in the order in which the client reads them
    server: ServerDefinition

    def operation(self, action: Action, config: ConfigFile, reason: str) -> Operation:
        place = config.place
        return self.request.operation(self.server, action, place.path, reason).replace(scope=place.scope)

    def effective(self, config: ConfigFile) -> Match | None:
        """The server's first entry in a file that no later duplicate hides; None if there is none."""
        return next((one for one in config.entries_of(self.server) if not one.shadowed), None)

    def is_before(self, one: ConfigFile, other: ConfigFile) -> bool:
        return self.configs.index(one) < self.configs.index(other)


class _Edit(Value):
    """A change of the entry that `was` there, or a new entry if that is None."""

    config: ConfigFile
    name: str
    was: Match | None
    definition: EntrySpec
    server: ServerDefinition
    operation: Operation


def _decide(case: _Case) -> _Edit | Operation:
    request, server, choice = case.request, case.server, case.choice
    if server.transport not in request.profile.transports:
        reason = f"{request.profile.name} takes no {server.transport} servers from its configuration"
        return request.operation(server, Action.SKIPPED, None, reason)
    read = [one for one in case.configs if one.place.use is not Use.LEGACY]
    found = [Location(one, match) for one in read if (match := case.effective(one))]
    current = next((one for one in found if request.scope in (None, one.place.scope)), None)
    notes = left_alone(server, case.configs) + _about_variant(server, choice)
    if current is not None:
        notes += _about_other_entries(current)
        if up_to_date(current.match, choice, current.place.dialect):
            notes += _about_disabled(case, current.match) + _about_users_part(current)
            skipped = case.operation(Action.SKIPPED, current.config, _already(current.match, choice))
            return skipped.replace(notes=notes, keys=(current.match.entry.name,))
    target = _target(case)
    if current is not None and not _is_shadowed_by(case, target, current.config):
        return _change(case, current, notes)
    if current is not None:
        notes += _about_shadowed(current)
    return _add(case, target, current.match if current is not None else None, notes + _about_order(case, target, found))


def _already(match: Match, choice: VariantChoice) -> str:
    if match.own_way:
        return f"Already registered (started in a way of its own; --runner {match.server.runner} replaces it)"
    if choice.runner is not None or match.runner in (None, match.server.runner):
        return "Already registered"
    return f"Already registered ({match.runner}; --runner {match.server.runner} writes this tool's command)"


def _target(case: _Case) -> ConfigFile:
    """The first existing file, so that a client with two possible files never has both; else the preferred one."""
    by_place = {(one.place.path, one.place.root): one for one in case.configs}
    targets = [by_place[place.path, place.root] for place in case.request.profile.targets(case.scope)]
    return next((one for one in targets if one.content is not None or one.problem), targets[0])


def _is_shadowed_by(case: _Case, target: ConfigFile, found: ConfigFile) -> bool:
    """Whether a new entry in `target` hides the one in `found`, and `found` is shared or has another scope."""
    own = found.place.scope is case.scope and found.place.use is not Use.SHARED
    return not own and case.is_before(target, found)


def _change(case: _Case, current: Location, notes: Notes) -> _Edit:
    """Change an entry in place; it keeps its name, its runner, and the user's arguments."""
    match = current.match
    definition = renewed(match, case.choice)
    reason = f"Updated {case.server.name} {case.server.transport} server{_was(match, case.choice)}"
    notes += _about_disabled(case, match) + _about_file(case, current.config, definition)
    notes += _about_own_way(match) + _about_users_part(current)
    operation = case.operation(Action.UPDATED, current.config, reason).replace(notes=notes)
    return _Edit(current.config, match.entry.name, match, definition, case.server, operation)


def _was(match: Match, choice: VariantChoice) -> str:
    """A remark on the old runner and variant of an entry, if they change, and on how to keep a pinned version."""
    kind, _, version = match.variant.partition(":")
    runner = [match.runner] if match.runner is not None and kept_runner(match, choice) != match.runner else []
    was = " ".join([*runner, *([match.variant] if match.variant != meant(choice, match).variant else [])])
    keeps = f"; --version {version} keeps that" if kind == PINNED and not choice.asked and not runner else ""
    return f" (was {was}{keeps})" if was else ""


def _add(case: _Case, target: ConfigFile, outdated: Match | None, notes: Notes) -> _Edit | Operation:
    """Add an entry; `outdated` is the one that it shadows, if any."""
    server, profile, path = case.server, case.request.profile, target.place.path
    if target.problem:
        return case.request.broken(server, path, target.problem)
    name = outdated.entry.name if outdated is not None else server.name  # only the same name shadows an entry
    definition = renewed(outdated, case.choice) if outdated is not None else expected(server, case.choice)
    reason = f"Added {server.name} {server.transport} server"
    legacy = (one for one in case.configs if one.place.use is Use.LEGACY and case.effective(one))
    unread = next((one.place.path for one in legacy), None) if outdated is None else None
    if unread is not None:
        reason += f"; {profile.name} does not read '{unread}'"
        notes += (f"'uno-devserver mcp uninstall {profile.id}' removes the entry from '{unread}', too.",)
    action = Action.CREATED if outdated is None and unread is None else Action.UPDATED
    operation = case.operation(action, target, reason).replace(notes=notes + _about_file(case, target, definition))
    return _Edit(target, name, None, definition, server, operation)


def _file_change(edits: list[_Edit]) -> FileChange:
    place, before = edits[0].config.place, edits[0].config.content
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
    """Return the new text, and the entry's name in it."""
    place = edit.config.place
    document = open_document(text, place.format, place.root, place.dialect.name_key)
    settings, drop = settings_for(edit.definition, edit.server, place.dialect, edit.was)
    if edit.was is not None:
        return document.put(_index_now(edit.was, document), edit.name, settings, drop), edit.name
    name = _free_name(edit, document)
    return document.put(None, name, settings, drop), name


def _index_now(was: Match, document: Document) -> int:
    """The entry's present index: earlier edits may have moved entries of TOML, where names are unique."""
    names = [entry.name for entry in document.entries]
    return was.index if names[was.index] == was.entry.name else names.index(was.entry.name)


def _free_name(edit: _Edit, document: Document) -> str:
    """A name that no entry has, because a second entry with a name would hide the first; raises EditProblem."""
    taken = {entry.name for entry in document.entries}
    free = next((name for name in (edit.name, edit.server.name) if name not in taken), None)
    if free is None:
        raise EditProblem(f"'{edit.server.name}' is the name of another server there; give that one another name")
    return free


# Notes


def _about_variant(server: ServerDefinition, choice: VariantChoice) -> Notes:
    kind = choice.variant.partition(":")[0]
    if kind in server.variants or not choice.asked:
        return ()
    return (f"{server.name} has no {kind} variant: it is registered as it always is.",)


def _about_other_entries(current: Location) -> Notes:
    """Notes on further entries of the server in the same file; only the user can decide which one to keep."""
    match = current.match
    return tuple(
        f"The entry '{one.entry.name}' in '{current.path}' is for {match.server.name}, too, and stays as it is: "
        "remove one of them."
        for one in current.config.entries_of(match.server)
        if one.index != match.index
    )


def _about_disabled(case: _Case, match: Match) -> Notes:
    if not is_disabled(match.entry):
        return ()
    name = case.request.profile.name
    return (f"The entry '{match.entry.name}' is disabled, and stays that: switch it on in {name}.",)


def _about_own_way(match: Match) -> Notes:
    if not match.own_way:
        return ()
    from shlex import join

    says = match.says
    return (f"The entry '{match.entry.name}' was started in a way of its own: {join((says.command, *says.args))}",)


def _about_users_part(current: Location) -> Notes:
    """A note on arguments and variables that a workspace's entry keeps: they may have come with the workspace."""
    from shlex import join

    says = current.match.says
    _, arguments = divided(says.args, current.match.server)
    kept = [join(arguments)] if arguments else []
    kept += [f"environment variables ({', '.join(says.env)})"] if says.env else []
    if not kept or current.place.scope is not Scope.WORKSPACE:
        return ()
    return (f"The entry '{current.match.entry.name}' has something of its own, and keeps it: {' and '.join(kept)}",)


def _about_shadowed(current: Location) -> Notes:
    place = current.place
    other = f"; --scope {place.scope.value} changes that one" if place.use is not Use.SHARED else ""
    return (f"The entry '{current.match.entry.name}' in '{place.path}' stays as it is{other}.",)


def _about_order(case: _Case, target: ConfigFile, found: list[Location]) -> Notes:
    """A note on an entry that the client uses instead of the new one."""
    first = next((one.place for one in found if case.is_before(one.config, target)), None)
    if first is None:
        return ()
    same_file = first.path == target.place.path
    where = f"under '{' > '.join(first.root)}' in '{first.path}'" if same_file else f"in '{first.path}'"
    profile = case.request.profile
    step = f"remove that one by 'uno-devserver mcp uninstall {profile.id} --scope {first.scope.value}'"
    if first.use is Use.SHARED:
        step = "remove that one from the file"
    return (f"{profile.name} uses the entry {where} first: for the new one to take effect, {step}.",)


def _about_file(case: _Case, config: ConfigFile, definition: EntrySpec) -> Notes:
    """Notes on why the client may not read the file, whether it can be shared, and which other clients read it."""
    request, place = case.request, config.place
    notes: list[str] = []
    if place.format is Format.JSON and config.document is not None:
        notes += (
            f"{request.profile.name} does not accept {remark.what} (line {remark.line}), and may not read this file at "
            "all."
            for remark in config.document.remarks
        )
    if request.profile.holder(place) is Scope.WORKSPACE and is_absolute(definition.command):
        notes.append(f"The entry names a program by its path on this machine: do not commit '{place.path}'.")
    return (*notes, *request.note_on_others(place))
