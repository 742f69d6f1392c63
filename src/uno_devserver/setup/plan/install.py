"""Plans `mcp install`: where each server's entry goes in a client's files, and its content.

An entry that is up to date is not changed. An outdated one is changed in place, unless it is in another client's file
or another scope and the client would read a new entry first: then a new entry replaces it. A missing entry goes into
the client's own file.

What else decides what an entry runs (further arguments, a folder, variables such as PATH) stays in the user's files,
and is removed in those of a workspace: a repository can bring it along, and "Already registered" would be our word for
it. Other variables of a workspace's entry stay, and are shown.
"""

from __future__ import annotations

from ...system.text import shown_words
from ...system.values import Value
from ..config_file import LINK_STEP, Location, decode_text, encode_text
from ..edits.document import EditProblem, open_document
from ..entry_command import is_absolute
from ..entry_format import is_disabled, settings_for, spec_of
from ..entry_match import NO_OBJECT, PATH_RUNNER, STALE_ADDRESS, has_stale_address, matches, served_folder
from ..entry_origin import is_current, other_command, why_other
from ..expected_entry import (
    AGREES,
    agrees_for_the_user,
    brought_along,
    default_runner,
    expected,
    index_problem,
    kept_runner,
    kept_settings,
    meant,
    renewed,
    up_to_date,
    without_further,
)
from ..profiles import STDIO, Format, Scope, Use
from ..server_definition import PINNED
from .changes import Action, by_file
from .request import current_index, left_alone, not_changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..config_file import ConfigFile
    from ..entry_match import Match
    from ..paths import Here
    from ..server_definition import EntrySpec, ServerDefinition, VariantChoice
    from .changes import ChangePlan, FileChange, Operation
    from .request import ChangeRequest, PlannedFiles

    Notes = tuple[str, ...]


def plan_install(request: ChangeRequest, choice: VariantChoice, files: PlannedFiles, here: Here) -> ChangePlan:
    profile = request.profile
    if profile.no_client:
        return request.errors(profile.no_client, "'uno-devserver mcp status' shows the clients that there are.")
    scope = request.scope or profile.default_scope
    if not profile.targets(scope):
        return request.no_such_scope(scope, {place.scope for place in profile.places if place.use is Use.WRITE})
    configs = tuple(files.read(place, request.definitions.servers) for place in profile.places)
    decided = [_decide(_Case(request, choice, scope, configs, server, here)) for server in request.servers]
    edits = [one for one in decided if isinstance(one, _Edit)]
    changes = (_file_change(request, configs, its) for its in by_file(edits))
    return (*changes, *(one for one in decided if not isinstance(one, _Edit)))


class _Case(Value):
    """One server to install, and the facts on which the decision about it depends."""

    request: ChangeRequest
    choice: VariantChoice
    scope: Scope
    configs: tuple[ConfigFile, ...]  # in the order in which the client reads them
    server: ServerDefinition
    here: Here

    def operation(self, action: Action, config: ConfigFile, reason: str) -> Operation:
        place = config.place
        return self.request.operation(self.server, action, place.path, reason).replace(scope=place.scope)

    def effective(self, config: ConfigFile) -> Match | None:
        """The server's first entry in a file that no later duplicate hides; None if there is none."""
        return next((one for one in config.entries_of(self.server) if not one.shadowed), None)

    def keeps(self, config: ConfigFile) -> bool:
        """Whether what else decides what an entry in the file runs is the user's own."""
        return self.request.profile.holder(config.place) is not Scope.WORKSPACE

    def other_command(self, one: Location) -> str:
        """The command of an entry that may have come with the workspace; "" if it is one of ours, or the user's."""
        return other_command(one.match, one.place, self.request.profile, self.choice, self.here)

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
    keeps: bool = True  # whether further settings that decide what runs stay


def _decide(case: _Case) -> _Edit | Operation:
    request, server, choice = case.request, case.server, case.choice
    if server.transport not in request.profile.transports:
        reason = f"{request.profile.name} takes no {server.transport} servers from its configuration"
        return request.operation(server, Action.SKIPPED, None, reason)
    read = [one for one in case.configs if one.place.use is not Use.LEGACY]
    found = [Location(one, match) for one in read if (match := case.effective(one))]
    current = next((one for one in found if request.scope in (None, one.place.scope)), None)
    notes = left_alone(server, case.configs) + _about_variant(server, choice) + _about_consent(case, current)
    if current is not None:
        notes += _about_other_entries(case, current)
        if is_current(current.match, current.place, request.profile, choice, case.here):
            notes += _about_disabled(case, current.match) + _about_variables(case, current)
            notes += _about_name(case, current.match.says)
            already = _already(current.match, choice)
            if current.place.use is Use.SHARED:
                already += f", in a file of other clients that {request.profile.name} reads, too"
            skipped = case.operation(Action.SKIPPED, current.config, already)
            return skipped.replace(notes=notes, keys=(current.match.entry.name,))
    if current is not None and _changes_in_place(case, current):
        return _change(case, current, notes)
    target = _target(case)
    if current is not None:
        notes += _about_shadowed(current)
    return _add(case, target, current, notes + _about_order(case, target, found))


def _already(match: Match, choice: VariantChoice) -> str:
    usual = default_runner(match.server, choice)
    if match.own_way:
        return f"Already registered (started in a way of its own; --runner {usual} replaces it)"
    if choice.runner is not None or match.runner in (None, match.server.runner, usual):
        return "Already registered"
    return f"Already registered ({match.runner}; --runner {usual} writes this tool's command)"


def _target(case: _Case) -> ConfigFile:
    """The first existing file, so that a client with two possible files never has both; else the preferred one."""
    by_place = {(one.place.path, one.place.root): one for one in case.configs}
    targets = [by_place[place.path, place.root] for place in case.request.profile.targets(case.scope)]
    return next((one for one in targets if one.content is not None or one.problem), targets[0])


def _changes_in_place(case: _Case, current: Location) -> bool:
    return not _is_shadowed_by(case, _target(case), current.config)


def _is_shadowed_by(case: _Case, target: ConfigFile, found: ConfigFile) -> bool:
    """Whether a new entry in `target` hides the one in `found`, and `found` is shared or has another scope."""
    own = found.place.scope is case.scope and found.place.use is not Use.SHARED
    return not own and case.is_before(target, found)


def _change(case: _Case, current: Location, notes: Notes) -> _Edit:
    """Change an entry in place; it keeps its name, its runner, and in the user's files the user's arguments."""
    match, keeps = current.match, case.keeps(current.config)
    as_it_is = up_to_date(match, case.choice, current.place.dialect) and not case.other_command(current)
    kept = match.says if keeps else without_further(match, case.choice)
    definition = kept if as_it_is else renewed(match, case.choice, keeps=keeps)
    reason = f"Updated {case.server.name} {case.server.transport} server{_was(match, case.choice)}"
    notes += _about_disabled(case, match) + _about_folder(case, current.config)
    notes += _about_file(case, current.config, definition)
    notes += _about_form(match, keeps)
    notes += _about_command(case, current, "It was replaced") or (() if as_it_is else _about_own_way(match))
    notes += _about_removed(case, current)
    notes += _about_variables(case, current)
    notes += _about_name(case, definition)
    operation = case.operation(Action.UPDATED, current.config, reason).replace(notes=notes)
    return _Edit(current.config, match.entry.name, match, definition, case.server, operation, keeps)


def _was(match: Match, choice: VariantChoice) -> str:
    """A remark on the old runner and variant of an entry, if they change, and on how to keep a pinned version."""
    if match.entry.settings is None:
        return ""
    kind, _, version = match.variant.partition(":")
    runner = [match.runner] if match.runner is not None and kept_runner(match, choice) != match.runner else []
    has_variant = match.runner is not None or not match.server.runner or match.transport != STDIO
    variant = [match.variant] if has_variant and match.variant != meant(choice, match).variant else []
    was = " ".join([*runner, *variant])
    keeps = f"; --version {version} keeps that" if kind == PINNED and not choice.asked and not runner else ""
    return f" (was {was}{keeps})" if was else ""


def _add(case: _Case, target: ConfigFile, shadowed: Location | None, notes: Notes) -> _Edit | Operation:
    """Add an entry; `shadowed` is the outdated one that it hides, if any."""
    server, profile = case.server, case.request.profile
    if target.problem:
        broken = case.request.broken(server, target)
        elsewhere = " Or use --scope user." if target.next_step == LINK_STEP else ""
        return broken.replace(next_step=broken.next_step + elsewhere)
    entries = target.document.entries if target.document is not None else ()
    wanted = (shadowed.match.entry.name,) if shadowed is not None else ()  # only the same name shadows an entry
    name = next((one for one in (*wanted, server.name) if all(one != entry.name for entry in entries)), None)
    if name is None:
        return _name_is_taken(case, target)
    definition = expected(server.at(target.place), case.choice)
    if shadowed is not None:
        definition = renewed(shadowed.match, case.choice, keeps=case.keeps(shadowed.config))
        notes += _about_command(case, shadowed, "It stays as it is") + _about_removed(
            case, shadowed, "are not taken over"
        )
    reason = f"Added {server.name} {server.transport} server"
    legacy = (one for one in case.configs if one.place.use is Use.LEGACY and case.effective(one))
    unread = next((one.place.path for one in legacy), None) if shadowed is None else None
    if unread is not None:
        reason += f"; {profile.name} does not read '{unread}'"
        notes += (f"'uno-devserver mcp uninstall {profile.id}' removes the entry from '{unread}', too.",)
    action = Action.CREATED if shadowed is None and unread is None else Action.UPDATED
    notes += _about_folder(case, target) + _about_file(case, target, definition) + _about_name(case, definition)
    notes += _about_other_names(case, target)
    operation = case.operation(action, target, reason).replace(notes=notes)
    return _Edit(target, name, None, definition, server, operation)


def _name_is_taken(case: _Case, target: ConfigFile) -> Operation:
    """The error for a name that another server has: a second entry with it would hide the first."""
    assert target.document is not None
    name, path = case.server.name, target.place.path
    entry = next(one for one in target.document.entries if one.name == name)
    folder = served_folder(spec_of(entry, target.place.dialect))
    whose = f"the server of '{folder}'" if folder else "another server"
    other = "Choose another name with --name, or give" if case.server.served is not None else "Give"
    failed = case.operation(Action.ERROR, target, f"'{name}' is the name of {whose} there")
    return failed.replace(next_step=f"{other} that entry in '{path}' another name.")


def _file_change(request: ChangeRequest, configs: tuple[ConfigFile, ...], edits: list[_Edit]) -> FileChange:
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
    return request.file_change(configs, edits[0].config, after, operations)


def _put(edit: _Edit, text: str) -> tuple[str, str]:
    """Return the new text, and the entry's name in it."""
    place = edit.config.place
    document = open_document(text, place.format, place.root, place.dialect.name_key)
    settings, drop = settings_for(edit.definition, edit.server, place.dialect, edit.was, keeps=edit.keeps)
    if edit.was is not None:
        return document.put(current_index(edit.was, document), edit.name, settings, drop), edit.name
    return document.put(None, edit.name, settings, drop), edit.name


# Notes


def _about_variant(server: ServerDefinition, choice: VariantChoice) -> Notes:
    kind = choice.variant.partition(":")[0]
    if kind in server.variants or not choice.asked:
        return ()
    return (f"{server.name} has no {kind} variant: it is registered as it always is.",)


def _about_other_entries(case: _Case, current: Location) -> Notes:
    """Notes on further entries of the server in the same file; only the user can decide which one to keep."""
    match, notes = current.match, []
    for one in current.config.entries_of(match.server):
        if one.index == match.index:
            continue
        entry = f"The entry '{one.entry.name}' in '{current.path}'"
        notes.append(f"{entry} is for {match.server.name}, too, and stays as it is: remove one of them.")
        notes += _about_command(case, Location(current.config, one), "It stays as it is")
    return tuple(notes)


def _about_other_names(case: _Case, target: ConfigFile) -> Notes:
    """A note on entries for the same folder beside a new one whose name the user chose."""
    served = case.server.served
    if served is None or not served.named or target.document is None:
        return ()
    any_name = case.server.at(target.place).replace(served=served.replace(named=False))
    found = matches(target.document.entries, (any_name,), target.place.dialect)
    names = ", ".join(f"'{one.entry.name}'" for one in found)
    return (f"The same server is registered there as {names}, too, which stays: remove one of them.",) if names else ()


def _about_disabled(case: _Case, match: Match) -> Notes:
    if not is_disabled(match.entry):
        return ()
    name = case.request.profile.name
    return (f"The entry '{match.entry.name}' is disabled, and stays that: switch it on in {name}.",)


def _about_command(case: _Case, one: Location, done: str) -> Notes:
    """A note on a command that may have come with the workspace, and what was done about it."""
    command = case.other_command(one)
    why = why_other(one.match, case.here) if command else ""
    return (f"The entry '{one.match.entry.name}' {why}. {done}: {command}",) if command else ()


def _about_form(match: Match, keeps: bool) -> Notes:
    """Notes on an entry that clients do not understand, or not in the same way."""
    entry = f"The entry '{match.entry.name}'"
    if match.entry.settings is None:
        return (f"{entry} {NO_OBJECT}. It was replaced.",)
    stale = keeps and has_stale_address(match)  # in a workspace's file it is one of the settings that are removed
    return (f"{entry} {STALE_ADDRESS}. The address was removed.",) if stale else ()


def _about_own_way(match: Match) -> Notes:
    if not match.own_way:
        return ()
    from ...system.command_lines import quoted_line

    says = match.says
    line = quoted_line(shown_words((says.command, *says.args)))
    return (f"The entry '{match.entry.name}' was started in a way of its own: {line}",)


def _about_removed(case: _Case, current: Location, what: str = "were removed") -> Notes:
    brought = brought_along(current.match, current.place, case.request.profile, case.choice)
    if not brought:
        return ()
    entry = f"The entry '{current.match.entry.name}' had settings that decide what runs, and may have come with the"
    own = "If you need them, put them into your own configuration (--scope user): there they stay."
    return (f"{entry} workspace. They {what}: {', '.join(brought)}. {own}",)


def _about_variables(case: _Case, current: Location) -> Notes:
    kept = kept_settings(current.match, current.place, case.request.profile)
    if not kept:
        return ()
    entry = f"The entry '{current.match.entry.name}'"
    return (f"{entry} has settings that may have come with the workspace, and keeps them: {', '.join(kept)}.",)


def _about_consent(case: _Case, current: Location | None) -> Notes:
    """Notes on entries that stay, and by which a workspace's file agrees in the user's name that its code runs."""
    read = (one for one in case.configs if one.place.use is not Use.LEGACY)
    found = (Location(config, match) for config in read for match in config.entries_of(case.server))
    return tuple(
        f"The entry '{one.match.entry.name}' in '{one.path}' {AGREES}: remove that from the file."
        for one in found
        if agrees_for_the_user(one.match, one.place, case.request.profile)
        and (current is None or one.match is not current.match or not _changes_in_place(case, current))
    )


def _about_name(case: _Case, definition: EntrySpec) -> Notes:
    """A note, until this program is released, on whose program an entry starts by its name."""
    server, choice = case.server, case.choice
    if choice.released:
        return ()
    problem = index_problem(definition, server, choice)
    return (
        (f"The entry {problem}. '--runner {PATH_RUNNER}' names this program by its path instead.",) if problem else ()
    )


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


def _about_folder(case: _Case, config: ConfigFile) -> Notes:
    """A note on why an entry names the folder that it serves."""
    folder = case.server.at(config.place).folder_words
    if not folder:
        return ()
    name = case.request.profile.name
    why = f"{name} opens no folder" if config.place.opens is None else "the client may be started in another folder"
    return (f"The entry names the folder that it serves, because {why}: {' '.join(folder)}",)


def _about_file(case: _Case, config: ConfigFile, definition: EntrySpec) -> Notes:
    """Notes on why the client may not read the file, whether it can be shared, and which other clients read it."""
    request, place = case.request, config.place
    notes: list[str] = []
    if place.format is not Format.JSONC and config.document is not None:
        notes += (
            f"{request.profile.name} does not accept {remark.what} (line {remark.line}), and may not read this file at "
            "all."
            for remark in config.document.remarks
        )
    if request.profile.holder(place) is Scope.WORKSPACE and is_absolute(definition.command):
        notes.append(f"'{place.path}' has a path of this machine in it: do not commit it.")
    if place.within and case.here.repository not in ("", place.within):
        notes.append(f"{request.profile.name} reads '{place.path}' only where '{place.within}' is the opened folder.")
    return (*notes, *request.note_on_others(place))
