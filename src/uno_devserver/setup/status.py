"""The status of a client: for each server, whether it is registered, where, and what is wrong with that.

The effective entry is the first in the order in which the client reads its files. Nothing is changed, and no content of
a file raises an error.
"""

from __future__ import annotations

from enum import Enum

from ..system.command_lines import quoted_word
from ..system.values import Value
from ..workspace.paths import path_key
from .client_detection import detected
from .config_file import Location, read_place
from .entry_command import command_problem
from .entry_format import is_disabled, spec_of
from .entry_match import NO_OBJECT, STALE_ADDRESS, has_stale_address, served_folder
from .entry_origin import foreign_url, is_current, other_command, why_other
from .expected_entry import AGREES, agrees_for_the_user, brought_along, index_problem, kept_settings
from .profiles import STDIO, Format, Scope, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .config_file import ConfigFile
    from .paths import Here
    from .profiles import Place, Profile
    from .server_definition import ServerDefinition, VariantChoice

OWN_PATH = "is not on the PATH that the entry sets"
IN_FILES = "Registered in multiple config files"


class RegistrationStatus(Enum):
    REGISTERED = "registered"
    MISSING = "missing"
    OUTDATED = "outdated"


class Registration(Value):
    server: ServerDefinition
    status: RegistrationStatus
    locations: tuple[Location, ...]  # the effective one first, those that the client does not read last
    warnings: tuple[str, ...]

    @property
    def effective(self) -> Location | None:
        """The entry that the client uses; None if there is none."""
        return _effective(self.locations)


class ClientStatus(Value):
    profile: Profile
    detected: bool
    configs: tuple[ConfigFile, ...]  # one per place
    registrations: tuple[Registration, ...]  # one per server


def status_of(
    profile: Profile, servers: tuple[ServerDefinition, ...], choice: VariantChoice, here: Here
) -> ClientStatus:
    configs = tuple(read_place(place, servers) for place in profile.places)
    registrations = tuple(_registration(profile, configs, server, choice, here) for server in servers)
    return ClientStatus(profile, detected(profile, here), configs, registrations)


def _registration(
    profile: Profile, configs: tuple[ConfigFile, ...], server: ServerDefinition, choice: VariantChoice, here: Here
) -> Registration:
    locations = locations_of(configs, server)
    effective = _effective(locations)
    if not locations:
        status = RegistrationStatus.MISSING
    elif effective is not None and is_current(effective.match, effective.place, profile, choice, here):
        status = RegistrationStatus.REGISTERED
    else:
        status = RegistrationStatus.OUTDATED
    warnings = [*_warnings(profile, configs, server, locations, here), *_brought(profile, locations, choice, here)]
    if effective is not None and (status is RegistrationStatus.OUTDATED or not choice.released):
        problem = index_problem(effective.match.says, server, choice)
        warnings += [f"The entry '{effective.match.entry.name}' {problem}"] if problem else []
    # One file can be two places, so a warning can occur twice.
    return Registration(server, status, locations, tuple(dict.fromkeys(warnings)))


def _brought(profile: Profile, locations: tuple[Location, ...], choice: VariantChoice, here: Here) -> Iterator[str]:
    """Warnings of what may have come with the workspace, and decides what its entries run."""
    for one in locations:
        entry, has = f"The entry '{one.match.entry.name}' in '{one.path}'", "has settings that decide what runs"
        foreign = "" if one.legacy else foreign_url(one.match, one.place, here)
        if foreign:
            yield f"{entry} {foreign}"
        command = "" if one.legacy else other_command(one.match, one.place, profile, choice, here)
        if command:
            yield f"{entry} {why_other(one.match, here)}: {command}"
        brought = () if one.legacy else brought_along(one.match, one.place, profile, choice)
        if brought and agrees_for_the_user(one.match, one.place, profile):
            yield f"{entry} {AGREES}: do not use it before 'mcp install' has removed that"
        if brought:
            yield f"{entry} {has}, and may have come with the workspace: {', '.join(brought)}"
        kept = () if one.legacy else kept_settings(one.match, one.place, profile)
        if kept:
            yield f"{entry} has settings that may have come with the workspace: {', '.join(kept)}"


def locations_of(configs: tuple[ConfigFile, ...], server: ServerDefinition) -> tuple[Location, ...]:
    """The server's entries, without those hidden by a later duplicate; uncertain ones only if there are no others."""
    found = [
        Location(config, match)
        for config in sorted(configs, key=lambda one: one.place.use is Use.LEGACY)
        for match in config.matches
        if match.server.is_same(server) and not match.shadowed
    ]
    return tuple(one for one in found if one.match.certain) or tuple(found)


def _effective(locations: tuple[Location, ...]) -> Location | None:
    return next((one for one in locations if not one.legacy), None)


def _warnings(
    profile: Profile,
    configs: tuple[ConfigFile, ...],
    server: ServerDefinition,
    locations: tuple[Location, ...],
    here: Here,
) -> Iterator[str]:
    if profile.no_client:
        yield profile.no_client
    effective = _effective(locations)
    if effective is None and locations and not profile.no_client:
        files = " and ".join(f"'{path}'" for path in dict.fromkeys(one.path for one in locations))
        now = f"; it looks in '{profile.preferred.path}' now" if profile.preferred is not None else ""
        yield f"{profile.name} does not read {files}{now}"
    yield from _registered_twice(locations)
    if any(several(config, server) for config in configs):
        yield f"Multiple entries match server {server.name}"
    is_here = server.served is not None and server.served.found_from
    for config in configs if is_here else ():
        for one in config.document.entries if config.document is not None else ():
            folder = served_folder(spec_of(one, config.place.dialect)) if one.name == server.name else ""
            if folder and all(one is not match.entry for match in config.entries_of(server)):
                yield f"The entry '{one.name}' in '{config.place.path}' is for '{folder}': use --name for another one"
    for location in locations:
        if not location.match.certain:
            entry = f"The entry '{location.match.entry.name}' in '{location.path}'"
            yield f"{entry} may be another program's: 'mcp install' leaves it alone"
    for config in configs:
        if config.place.use is not Use.LEGACY:
            yield from warnings_of_file(profile, config)
    if effective is not None:
        yield from _warnings_of_entry(effective, here)
        if has_stale_address(effective.match) and profile.holder(effective.place) is Scope.USER:
            yield f"The entry '{effective.match.entry.name}' in '{effective.path}' {STALE_ADDRESS}"


def _registered_twice(locations: tuple[Location, ...]) -> Iterator[str]:
    paths = list({id(one.config): one.path for one in locations if not one.legacy}.values())
    files = set(paths)
    if len(files) > 1:
        yield IN_FILES
    for path in files:
        if paths.count(path) > 1:
            yield f"Registered several times in '{path}'"


def several(config: ConfigFile, server: ServerDefinition) -> tuple[str, ...]:
    """The names of a server's entries in one place; empty unless there is more than one."""
    names = tuple(match.entry.name for match in config.entries_of(server))
    return names if len(names) > 1 else ()


def install_command(profile: Profile, server: ServerDefinition) -> str:
    """The command that registers a server, of this or another folder."""
    served = server.served
    named = served is not None and (served.named or served.entry)
    name = f"{served.options} --name {quoted_word(server.name)}" if served is not None and named else ""
    return f"uno-devserver mcp install {profile.id}{name}"


def in_words(place: Place, here: Here) -> str:
    """The quoted path of a place, with a remark if that part of the file is for this project only."""
    return f"'{place.path}'" + (", this project" if _is_of_workspace(place, here) else "")


def _is_of_workspace(place: Place, here: Here) -> bool:
    """Whether the part of a file is named by the workspace, as the client writes its path."""
    return any(path_key(key, here.platform) == path_key(here.workspace, here.platform) for key in place.root)


def warnings_of_file(profile: Profile, config: ConfigFile) -> Iterator[str]:
    """Reasons why the client does not read a file."""
    if config.problem:
        yield config.problem
    if config.document is not None and config.place.format is not Format.JSONC:
        for remark in config.document.remarks:
            where = f"Config file '{config.place.path}' has {remark.what} in line {remark.line}"
            yield f"{where}, which {profile.name} does not accept"


def _warnings_of_entry(location: Location, here: Here) -> Iterator[str]:
    entry = location.match.entry
    if entry.settings is None:
        yield f"The entry '{entry.name}' in {in_words(location.place, here)} {NO_OBJECT}"
    if is_disabled(entry):
        yield f"The entry '{entry.name}' is disabled in {in_words(location.place, here)}"
    problem = cannot_start(location, here)
    if problem:
        yield f"The entry '{entry.name}' cannot start: {problem}"


def cannot_start(location: Location, here: Here) -> str:
    """The end of a sentence: why the entry cannot start; "" if it can, or if only the client knows."""
    says = location.match.says
    if location.match.transport != STDIO or "$" in says.env.get("PATH", ""):  # the client expands that
        return ""
    problem = command_problem(says.command, {**here.environ, **says.env}, here.platform)
    own_path = problem and not command_problem(says.command, here.environ, here.platform)
    return f"'{says.command}' {OWN_PATH}" if own_path else problem
