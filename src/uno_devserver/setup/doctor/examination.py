"""Examines whether a client's registered servers work: tries each effective entry as the client would, and judges it.

An examination says what was started, how long it took compared with the client's limit, and, if it failed, why and what
to do. An entry that may have come with the workspace is started only with the user's consent (`force`).
"""

from __future__ import annotations

import os

from ...issues import ADDINS_DO
from ...system.folders import DATA_HOME, folders_on
from ...system.log import log
from ...system.programs import typed_path
from ...system.text import shown_text, shown_words
from ...system.values import Value
from ..config_file import read_place
from ..entry_command import find_command, is_absolute
from ..entry_format import UNKNOWN, is_disabled
from ..entry_match import PATH_RUNNER
from ..entry_origin import is_current, may_be_foreign, with_reserve
from ..expected_entry import AGREES, agrees_for_the_user, brought_along, index_problem, kept_settings
from ..profiles import Use
from ..status import install_command, locations_of, warnings_of_file
from .launch_spec import launch_spec_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config_file import ConfigFile, Location
    from ..entry_match import Match
    from ..paths import Here
    from ..profiles import Profile
    from ..server_definition import EntrySpec, ServerDefinition, VariantChoice
    from .launch_spec import LaunchSpec
    from .trial import Trial


# Replaces the proxy's own step for this, which is for agents: they have a tool for it.
NO_WORKSPACE = (
    f"Run this in the workspace's folder ('dotnet new unoapp' makes one), or name it with --workspace. {ADDINS_DO}"
)
FOREIGN = (
    "It was not started: it is not what 'mcp install' writes for a server of this folder, so it may have come with the "
    "workspace."
)


class Examination(Value):
    ide: str
    server: str | None  # None: a file that cannot be read, so that its servers are not known
    key: str | None = None
    path: str | None = None  # None: there is no entry
    transport: str | None = None
    command: str | None = None  # as typed in a shell; the address of an HTTP server
    cwd: str | None = None
    milliseconds: Mapping[str, int] = {}
    tools: int | None = None
    limit_seconds: float | None = None
    problem: str = ""
    next_step: str = ""
    refused: bool = False  # it was not started, because it may have come with the workspace
    health: str | None = None  # of a proxy: the status in its health report
    in_part: bool = False  # the problem leaves a part of it usable

    @property
    def ok(self) -> bool:
        return not self.problem or self.in_part


def examine(
    profile: Profile, servers: tuple[ServerDefinition, ...], choice: VariantChoice, here: Here, *, force: bool
) -> tuple[Examination, ...]:
    """Examine all effective entries, one after the other, because in parallel they would slow each other down.

    `force` is the user's consent to start the commands in the workspace's files, and what has the name of this program
    on a package index before its release. Trust in the workspace does not imply it: these commands were not shown then,
    and the next pull may bring others.
    """
    configs = _configs(profile, servers)
    problems = {config.place.path: config for config in configs if config.problem}
    unreadable = tuple(_unreadable(profile, config) for config in problems.values())
    tried = ((one, _examined(one, profile, choice, here, force)) for one in _effective(configs, servers))
    entries = tuple(
        its.replace(next_step=with_reserve(its.next_step, one.match, one.place, here)) for one, its in tried
    )
    return unreadable + entries or tuple(_missing(profile, server) for server in servers)


def has_entries(profile: Profile, servers: tuple[ServerDefinition, ...]) -> bool:
    return bool(_effective(_configs(profile, servers), servers))


def _configs(profile: Profile, servers: tuple[ServerDefinition, ...]) -> tuple[ConfigFile, ...]:
    return tuple(read_place(place, servers) for place in profile.places if place.use is not Use.LEGACY)


def _effective(configs: tuple[ConfigFile, ...], servers: tuple[ServerDefinition, ...]) -> list[Location]:
    """For each server the entry that the client uses, unless it may be another program's."""
    found = (next(iter(locations_of(configs, server)), None) for server in servers)
    return [one for one in found if one is not None and one.match.certain]


class _Case(Value):
    """An entry to examine, its client, and how the client would start it."""

    location: Location
    profile: Profile
    choice: VariantChoice
    here: Here
    spec: LaunchSpec

    @property
    def match(self) -> Match:
        return self.location.match

    @property
    def install(self) -> str:
        return install_command(self.profile, self.match.server)

    @property
    def unreleased(self) -> str:
        """The end of a sentence: what the entry takes from a package index that does not have this program yet."""
        match = self.match
        return "" if self.choice.released else index_problem(match.says, match.server, self.choice)


def _examined(location: Location, profile: Profile, choice: VariantChoice, here: Here, force: bool) -> Examination:
    match, place = location.match, location.place
    spec = launch_spec_of(match.entry, place, profile, here)
    case = _Case(location, profile, choice, here, spec)
    blank = Examination(
        profile.id,
        match.server.name,
        key=match.entry.name,
        path=place.path,
        transport=match.transport,
        command=_shown(match.says),
        cwd=spec.folder if spec.command else None,
        limit_seconds=spec.limit_seconds,
    )
    hindrance = _hindrance(case)
    if hindrance is not None:
        return blank.replace(problem=hindrance[0], next_step=hindrance[1])
    tried = _tried(case, blank, force)
    if tried.tools is not None or tried.health is not None:
        return tried
    return tried.replace(next_step=tried.next_step + _replacement(case))


def _hindrance(case: _Case) -> tuple[str, str] | None:
    """Why the client would not try the entry at all, and what to do."""
    match, profile, path = case.match, case.profile, case.location.path
    warning = next(warnings_of_file(profile, case.location.config), None)
    if warning is not None:
        return f"{warning}.", "Remove that from the file."
    if is_disabled(match.entry):
        return (
            f"It is disabled in '{path}'.",
            f"Switch it on in {profile.name}, or remove the setting that disables it from the file.",
        )
    if match.transport == UNKNOWN:
        return f"The entry in '{path}' names neither a command nor an address.", f"Run '{case.install}'."
    if match.transport not in profile.transports:
        return f"{profile.name} cannot use a server of the kind '{match.transport}'.", f"Run '{case.install}'."
    return None


def _tried(case: _Case, blank: Examination, force: bool) -> Examination:
    spec, profile, place = case.spec, case.profile, case.location.place
    if agrees_for_the_user(case.match, place, profile):  # also by force, because install removes it
        step = f"Do not use it before '{case.install} --scope {place.scope.value}' has removed that."
        return blank.replace(problem=f"It was not started: it {AGREES}.", next_step=step, refused=True)
    if not force and case.unreleased:
        step = f"If you know that package, run 'uno-devserver mcp doctor {profile.id} --force'."
        return blank.replace(problem=f"It was not started: it {case.unreleased}.", next_step=step, refused=True)
    if not force and may_be_foreign(case.match, place, case.here):
        brought = brought_along(case.match, place, profile, case.choice)
        brought += kept_settings(case.match, place, profile)
        its = f", and at what else decides what runs ({', '.join(brought)})" if brought else ""
        step = f"Look at the command{its}. If it is yours, run 'uno-devserver mcp doctor {profile.id} --force'."
        return blank.replace(problem=FOREIGN, next_step=step, refused=True)
    log.info(f"Trying {case.match.server.name} as {profile.name} would: {blank.command}")
    if not spec.command:
        from .trial import try_address

        return _judged(case, blank, try_address(spec))
    program = _program(case, spec.environ)
    if program is None:
        problem, step = _not_found(case)
        return blank.replace(problem=problem, next_step=step)
    from .trial import try_command

    return _judged(case, blank, try_command(program, spec))


def _program(case: _Case, environ: Mapping[str, str]) -> str | None:
    return find_command(case.spec.command[0], case.spec.folder, environ, case.here.platform)


def _not_found(case: _Case) -> tuple[str, str]:
    spec, name = case.spec, case.spec.command[0]
    own = _program(case, case.here.environ)
    if own is not None:
        problem = f"'{name}' is at '{own}' on your own PATH, but {case.profile.name} is started without it."
        return problem + _unset(spec), _by_path(case, f"Put '{own}' into the entry")
    if os.path.dirname(name):
        there = typed_path(name, spec.folder, case.here.platform)
        state = "is a file that cannot be executed" if os.path.isfile(there) else "does not exist"
        return f"'{there}' {state}." + _unset(spec), _by_path(case, "Correct the entry")
    return f"'{name}' is not on PATH." + _unset(spec), _by_path(case, f"Install '{name}'")


def _judged(case: _Case, blank: Examination, trial: Trial) -> Examination:
    tried = blank.replace(milliseconds=trial.milliseconds, tools=trial.tools)
    spec, limit = case.spec, case.spec.limit_seconds
    if trial.problem:
        return tried.replace(problem=trial.problem + _unset(spec), next_step=_after_failure(case))
    behind = trial.behind
    if limit is not None and trial.seconds > limit and not (behind and behind.fatal):
        problem = f"It works, but took {trial.seconds:.1f} s, and {case.profile.name} waits {limit:g} s."
        again = "Try again: a first start may have to download"
        return tried.replace(problem=problem, next_step=_by_path(case, again))
    if behind is None:
        return tried
    # A client that starts its servers elsewhere tells a proxy the workspace later.
    waits = behind.no_workspace and spec.folder != case.here.workspace
    in_part = bool(behind.problem) and (not behind.fatal or waits)
    step = NO_WORKSPACE if behind.no_workspace and not waits else behind.next_step
    step += _other_state(case) if behind.problem else ""
    return tried.replace(health=behind.health, problem=behind.problem, next_step=step, in_part=in_part)


def _other_state(case: _Case) -> str:
    """A hint if the client's server has another state folder than this shell, and so does not see its trust."""
    here, environ = case.here, case.spec.environ
    ours, its = (folders_on(here.platform, one, lambda: here.home) for one in (here.environ, environ))
    if ours.state == its.state or DATA_HOME in environ:
        return ""
    without = f"run that without it ('env -u {DATA_HOME} uno-devserver …')"
    return f" {case.profile.name} does not pass {DATA_HOME} on: {without}, or put it into the entry's 'env'."


def _after_failure(case: _Case) -> str:
    folder = case.spec.folder
    if not case.spec.command:
        return "Check that the address is right and that this machine can reach it."
    if not os.path.isdir(folder):
        return f"Make the folder '{folder}', or correct the entry."
    return _by_path(case, f"Run it yourself in '{folder}' to see more")


def _by_path(case: _Case, first: str) -> str:
    """`first`, or register this program by its path, if the server can be started so and is not already."""
    match = case.match
    by_path = match.runner == PATH_RUNNER and is_absolute(match.says.command)
    if by_path or PATH_RUNNER not in match.server.runners:
        return f"{first}."
    return f"{first}, or name this program by its path: '{case.install} --runner {PATH_RUNNER}'."


def _replacement(case: _Case) -> str:
    """For an outdated entry, of any version: the command that replaces it."""
    match, place = case.match, case.location.place
    # Without the scope, an entry of the other scope would stay, and get another one beside it.
    scope = "" if place.scope is case.profile.default_scope else f" --scope {place.scope.value}"
    if case.unreleased:
        return f" '{case.install}{scope} --runner {PATH_RUNNER}' names this program by its path."
    choice = case.choice.replace(variant=match.variant)
    if is_current(match, place, case.profile, choice, case.here):
        return ""
    return f" '{case.install}{scope}' replaces the entry with the usual one."


def _unset(spec: LaunchSpec) -> str:
    return f" It refers to {', '.join(spec.unset)}, which is not set here." if spec.unset else ""


def _unreadable(profile: Profile, config: ConfigFile) -> Examination:
    step = config.next_step
    return Examination(profile.id, None, path=config.place.path, problem=f"{config.problem}.", next_step=step)


def _missing(profile: Profile, server: ServerDefinition) -> Examination:
    if profile.no_client:
        return Examination(profile.id, server.name, problem=profile.no_client)
    problem = f"{server.name} is not registered with {profile.name}."
    return Examination(profile.id, server.name, problem=problem, next_step=f"Run '{install_command(profile, server)}'.")


def _shown(says: EntrySpec) -> str | None:
    """The command as written in the file; values of variables, and user and query of an address, may be secret."""
    if not says.command:
        return shown_text(says.url) or None
    from ...system.command_lines import quoted_line

    return quoted_line(shown_words((says.command, *says.args)))
