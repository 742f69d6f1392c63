"""Does what a client has registered work, as the client would start it? Each entry that counts is tried, and judged.

An examination says what was started, how long it took against what the client waits, and, where it fails, why and what
to do about it. What may have come with a workspace is shown, and started only where the user says so of that.
"""

from __future__ import annotations

import os

from ...issues import ADDINS_DO
from ...system.folders import DATA_HOME, folders_on
from ...system.log import log
from ...system.programs import named_program_candidates
from ...system.values import Value
from ..config_file import read_place, repair
from ..entry_command import is_absolute
from ..entry_format import UNKNOWN, is_disabled
from ..entry_match import PATH_RUNNER
from ..expected_entry import up_to_date
from ..profiles import Use
from ..servers import VariantChoice
from ..status import locations_of, warnings_of_file
from .entry_origin import may_be_foreign
from .launch_spec import launch_spec_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config_file import ConfigFile, Location
    from ..entry_match import Match
    from ..paths import Here
    from ..profiles import Place, Profile
    from ..servers import EntrySpec, ServerDefinition
    from .launch_spec import LaunchSpec
    from .trial import Trial


# What a proxy says of this is for agents, which have a tool for it.
NO_WORKSPACE = (
    f"Run this in the workspace's folder ('dotnet new unoapp' makes one), or name it with --workspace. {ADDINS_DO}"
)
FOREIGN = "It may have come with the workspace: it is not what 'mcp install' writes."


class Examination(Value):
    ide: str
    server: str | None  # None: a file that cannot be read, so that nobody knows what it registers
    key: str | None
    path: str | None  # None: there is no entry
    transport: str | None
    command: str | None  # as one would type it; of an entry with an address, that
    cwd: str | None
    milliseconds: Mapping[str, int]
    tools: int | None
    limit_seconds: float | None
    problem: str = ""
    next_step: str = ""
    refused: bool = False  # it was not started, because nobody knows whose it is
    health: str | None = None  # of a proxy: its own word for what stands behind it
    in_part: bool = False  # the problem leaves a part of it usable

    @property
    def ok(self) -> bool:
        return not self.problem or self.in_part


def examine(
    profile: Profile, servers: tuple[ServerDefinition, ...], here: Here, *, force: bool
) -> tuple[Examination, ...]:
    """All entries that count, one after the other: side by side they would slow each other down.

    `force`: the user knows what the workspace's files start. An agreement to the workspace does not say so: these
    commands were not shown then, and the next pull may bring others.
    """
    readings = tuple(read_place(place, servers) for place in profile.places if place.use is not Use.LEGACY)
    problems = {reading.place.path: reading.problem for reading in readings if reading.problem}
    unreadable = tuple(_unreadable(profile, path, problem) for path, problem in problems.items())
    entries = tuple(_examined(one, profile, here, force) for one in _effective(readings, servers))
    return unreadable + entries or tuple(_missing(profile, server) for server in servers)


def has_entries(profile: Profile, servers: tuple[ServerDefinition, ...]) -> bool:
    readings = tuple(read_place(place, servers) for place in profile.places if place.use is not Use.LEGACY)
    return bool(_effective(readings, servers))


def _effective(readings: tuple[ConfigFile, ...], servers: tuple[ServerDefinition, ...]) -> list[Location]:
    """By server the entry that the client takes; one that may be somebody else's server is left in peace."""
    found = (next(iter(locations_of(readings, server)), None) for server in servers)
    return [one for one in found if one is not None and one.match.certain]


def _examined(location: Location, profile: Profile, here: Here, force: bool) -> Examination:
    match, place = location.match, location.place
    start = launch_spec_of(match.entry, place, profile, here)
    blank = Examination(
        profile.id,
        match.server.name,
        match.entry.name,
        place.path,
        match.transport,
        _shown(match.says),
        start.folder if start.command else None,
        {},
        None,
        start.limit_seconds,
    )
    hindrance = _hindrance(location, profile)
    if hindrance is not None:
        return blank.replace(problem=hindrance[0], next_step=hindrance[1])
    tried = _tried(blank, start, location, profile, here, force)
    works_not = tried.tools is None and tried.health is None
    return tried.replace(next_step=tried.next_step + _replaced(match, place, profile)) if works_not else tried


def _hindrance(location: Location, profile: Profile) -> tuple[str, str] | None:
    """Why the client would not even try."""
    match, place = location.match, location.place
    warning = next(warnings_of_file(profile, location.config), None)
    if warning is not None:
        return f"{warning}.", "Take that out of the file."
    if is_disabled(match.entry):
        return f"It is disabled in '{place.path}'.", f"Switch it on in {profile.name}, or take that out of the file."
    if match.transport == UNKNOWN:
        return f"The entry in '{place.path}' names neither a command nor an address.", _install(profile)
    if match.transport not in profile.transports:
        return f"{profile.name} cannot use a server of the kind '{match.transport}'.", _install(profile)
    return None


def _tried(
    blank: Examination, start: LaunchSpec, location: Location, profile: Profile, here: Here, force: bool
) -> Examination:
    match, place = location.match, location.place
    if not force and may_be_foreign(match, place, here):
        step = f"Look at the command. If it is yours, run 'uno-devserver mcp doctor {profile.id} --force'."
        return blank.replace(problem=FOREIGN, next_step=step, refused=True)
    log.info(f"Trying {match.server.name} as {profile.name} would: {blank.command}")
    if not start.command:
        from .trial import try_address

        return _judged(blank, try_address(start), start, match, profile, here)
    program = _program(start, here)
    if program is None:
        problem, step = _not_found(start, match, profile, here)
        return blank.replace(problem=problem, next_step=step)
    from .trial import try_command

    return _judged(blank, try_command(program, start), start, match, profile, here)


def _replaced(match: Match, place: Place, profile: Profile) -> str:
    """Of an entry in an old form, in whatever version: what `mcp install` does about it."""
    current = up_to_date(match, VariantChoice(match.variant, asked=False), place.dialect)
    # Of the other scope it would be left as it is, and one put into the default scope's file beside it.
    scope = "" if place.scope is profile.default_scope else f" --scope {place.scope.value}"
    return "" if current else f" '{_command(profile)}{scope}' replaces the entry by the usual one."


def _program(start: LaunchSpec, here: Here) -> str | None:
    found = named_program_candidates(start.command[0], start.folder, start.environ, here.platform)
    return next((path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def _not_found(start: LaunchSpec, match: Match, profile: Profile, here: Here) -> tuple[str, str]:
    name = start.command[0]
    own = _program(start.replace(environ=here.environ), here)
    if own is not None:
        problem = f"'{name}' is at '{own}' on your own PATH, but {profile.name} is started without it."
        return problem + _unset(start), _by_path(match, profile, f"Put '{own}' into the entry")
    if os.path.dirname(name):
        there = named_program_candidates(name, start.folder, start.environ, here.platform)[0]
        state = "is a file that cannot be executed" if os.path.isfile(there) else "does not exist"
        return f"'{there}' {state}." + _unset(start), _by_path(match, profile, "Correct the entry")
    return f"'{name}' is not on PATH." + _unset(start), _by_path(match, profile, f"Install '{name}'")


def _judged(
    blank: Examination, trial: Trial, start: LaunchSpec, match: Match, profile: Profile, here: Here
) -> Examination:
    tried = blank.replace(milliseconds=trial.milliseconds, tools=trial.tools)
    limit = start.limit_seconds
    if trial.problem:
        return tried.replace(problem=trial.problem + _unset(start), next_step=_after_failure(start, match, profile))
    behind = trial.behind
    if limit is not None and trial.seconds > limit and not (behind and behind.fatal):
        problem = f"It works, but took {trial.seconds:.1f} s, and {profile.name} waits {limit:g} s."
        again = "Try again: a first start may have to download"
        return tried.replace(problem=problem, next_step=_by_path(match, profile, again))
    if behind is None:
        return tried
    # In a client that starts everything elsewhere, a proxy has to be told the workspace.
    waits = behind.untold and start.folder != here.workspace
    in_part = bool(behind.problem) and (not behind.fatal or waits)
    step = NO_WORKSPACE if behind.untold and not waits else behind.next_step
    step += _state_apart(start, profile, here) if behind.problem else ""
    return tried.replace(health=behind.health, problem=behind.problem, next_step=step, in_part=in_part)


def _state_apart(start: LaunchSpec, profile: Profile, here: Here) -> str:
    """What was done in this shell, such as agreeing to the workspace, is not seen where the client's server looks."""
    ours, its = (folders_on(here.platform, environ, lambda: here.home) for environ in (here.environ, start.environ))
    if ours.state == its.state or DATA_HOME in start.environ:
        return ""
    without = f"run that without it ('env -u {DATA_HOME} uno-devserver …')"
    return f" {profile.name} does not pass {DATA_HOME} on: {without}, or put it into the entry's 'env'."


def _after_failure(start: LaunchSpec, match: Match, profile: Profile) -> str:
    if not start.command:
        return "See that the address is right, and that this machine reaches it."
    if not os.path.isdir(start.folder):
        return f"Make the folder '{start.folder}', or correct the entry."
    return _by_path(match, profile, f"Run it yourself in '{start.folder}' to see more")


def _by_path(match: Match, profile: Profile, first: str) -> str:
    """`first`, or this program by its path, where the server can be started so and is not already."""
    by_path = match.runner == PATH_RUNNER and is_absolute(match.says.command)
    if by_path or PATH_RUNNER not in match.server.runners:
        return f"{first}."
    return f"{first}, or name this program by its path: '{_command(profile)} --runner {PATH_RUNNER}'."


def _unset(start: LaunchSpec) -> str:
    return f" It refers to {', '.join(start.unset)}, which is not set here." if start.unset else ""


def _unreadable(profile: Profile, path: str, problem: str) -> Examination:
    return Examination(profile.id, None, None, path, None, None, None, {}, None, None, f"{problem}.", repair(path))


def _missing(profile: Profile, server: ServerDefinition) -> Examination:
    problem = profile.no_client or f"{server.name} is not registered with {profile.name}."
    step = "" if profile.no_client else _install(profile)
    return Examination(profile.id, server.name, None, None, None, None, None, {}, None, None, problem, step)


def _install(profile: Profile) -> str:
    return f"Run '{_command(profile)}'."


def _command(profile: Profile) -> str:
    return f"uno-devserver mcp install {profile.id}"


def _shown(says: EntrySpec) -> str | None:
    """As it stands in the file: what its variables hold may be secret, and so may a name or a query in an address."""
    if not says.command:
        scheme, slashes, rest = says.url.partition("?")[0].partition("//")
        owner, slash, path = rest.partition("/")
        return f"{scheme}{slashes}{owner.rpartition('@')[2]}{slash}{path}" or None
    import shlex

    return shlex.join((says.command, *says.args))
