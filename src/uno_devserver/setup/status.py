"""What a client knows of the servers: per server whether it is registered, where, and what is odd about that.

The entry that counts is the first in the order in which the client takes its files. Nothing is changed, and nothing
that stands in the files makes this fail.
"""

from __future__ import annotations

from enum import Enum

from ..system.values import Value
from .client_detection import detected
from .config_file import read_place
from .entry_command import command_problem
from .entry_format import is_disabled
from .expected_entry import up_to_date
from .profiles import STDIO, Format, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .config_file import ConfigFile
    from .entry_match import Match
    from .paths import Here
    from .profiles import Place, Profile
    from .servers import ServerDefinition, VariantChoice

IN_FILES = "Registered in multiple config files"


class RegistrationStatus(Enum):
    REGISTERED = "registered"
    MISSING = "missing"
    OUTDATED = "outdated"


class Location(Value):
    """An entry for a server, and the file that it is in."""

    reading: ConfigFile
    match: Match

    @property
    def path(self) -> str:
        return self.reading.place.path

    @property
    def legacy(self) -> bool:
        """The client does not read this file."""
        return self.reading.place.use is Use.LEGACY


class Registration(Value):
    server: ServerDefinition
    status: RegistrationStatus
    locations: tuple[Location, ...]  # the effective one first, those that the client does not read last
    warnings: tuple[str, ...]

    @property
    def effective(self) -> Location | None:
        """The entry that the client takes."""
        return next((one for one in self.locations if not one.legacy), None)


class ClientStatus(Value):
    profile: Profile
    detected: bool
    readings: tuple[ConfigFile, ...]  # one per place
    registrations: tuple[Registration, ...]  # one per server


def status_of(profile: Profile, servers: tuple[ServerDefinition, ...], wish: VariantChoice, here: Here) -> ClientStatus:
    readings = tuple(read_place(place, servers) for place in profile.places)
    registrations = tuple(_registration(profile, readings, server, wish, here) for server in servers)
    return ClientStatus(profile, detected(profile, here), readings, registrations)


def _registration(
    profile: Profile, readings: tuple[ConfigFile, ...], server: ServerDefinition, wish: VariantChoice, here: Here
) -> Registration:
    locations = locations_of(readings, server)
    found = Registration(server, RegistrationStatus.MISSING, locations, ())
    effective = found.effective
    if effective is not None and up_to_date(effective.match, wish, effective.reading.place.dialect):
        found = found.replace(status=RegistrationStatus.REGISTERED)
    elif locations:
        found = found.replace(status=RegistrationStatus.OUTDATED)
    warnings = dict.fromkeys(_warnings(profile, readings, found, here))  # a file can be two places, and wrong once
    return found.replace(warnings=tuple(warnings))


def locations_of(readings: tuple[ConfigFile, ...], server: ServerDefinition) -> tuple[Location, ...]:
    """The server's entries, as far as parsers see them. Uncertain ones count only where there is nothing better."""
    found = [
        Location(reading, match)
        for reading in sorted(readings, key=lambda one: one.place.use is Use.LEGACY)
        for match in reading.matches
        if match.server.name == server.name and not match.shadowed
    ]
    return tuple(one for one in found if one.match.certain) or tuple(found)


def _warnings(profile: Profile, readings: tuple[ConfigFile, ...], found: Registration, here: Here) -> Iterator[str]:
    if profile.no_client:
        yield profile.no_client
    effective = found.effective
    if effective is None and found.locations and not profile.no_client:
        yield _elsewhere(profile, found)
    yield from _registered_twice(found)
    if any(several(reading, found.server) for reading in readings):
        yield f"Multiple entries match server {found.server.name}"
    for location in found.locations:
        if not location.match.certain:
            entry = f"The entry '{location.match.entry.name}' in '{location.path}'"
            yield f"{entry} may be another program's: 'mcp install' leaves it alone"
    for reading in readings:
        if reading.place.use is not Use.LEGACY:
            yield from warnings_of_file(profile, reading)
    if effective is not None:
        yield from _of_entry(effective, here)


def _elsewhere(profile: Profile, found: Registration) -> str:
    files = " and ".join(f"'{path}'" for path in dict.fromkeys(one.path for one in found.locations))
    now = f"; it looks in '{profile.preferred.path}' now" if profile.preferred is not None else ""
    return f"{profile.name} does not read {files}{now}"


def _registered_twice(found: Registration) -> Iterator[str]:
    read = {id(one.reading): one.path for one in found.locations if not one.legacy}
    files = set(read.values())
    if len(files) > 1:
        yield IN_FILES
    for path in files:
        if list(read.values()).count(path) > 1:
            yield f"Registered several times in '{path}'"


def several(reading: ConfigFile, server: ServerDefinition) -> tuple[str, ...]:
    """The names of a server's entries in one place, if there are more than the one that counts."""
    names = tuple(match.entry.name for match in reading.matches if match.server.name == server.name and match.certain)
    return names if len(names) > 1 else ()


def in_words(place: Place, here: Here) -> str:
    """Its path, quoted; Claude Code keeps all projects' servers in one file, beside the user's."""
    return f"'{place.path}'" + (", this project" if here.workspace in place.root else "")


def warnings_of_file(profile: Profile, reading: ConfigFile) -> Iterator[str]:
    """Why the client does not read it."""
    if reading.problem:
        yield reading.problem
    if reading.document is not None and reading.place.format is Format.JSON:
        for remark in reading.document.remarks:
            where = f"Config file '{reading.place.path}' has {remark.what} in line {remark.line}"
            yield f"{where}, which {profile.name} does not take"


def _of_entry(location: Location, here: Here) -> Iterator[str]:
    entry = location.match.entry
    if is_disabled(entry):
        yield f"The entry '{entry.name}' is disabled in {in_words(location.reading.place, here)}"
    problem = cannot_start(location, here)
    if problem:
        yield f"The entry '{entry.name}' cannot start: {problem}"


def cannot_start(location: Location, here: Here) -> str:
    """Why not, as a sentence's end; "" where it can, or where only the client knows."""
    says = location.match.says
    if location.match.transport != STDIO or "$" in says.env.get("PATH", ""):  # which the client fills in
        return ""
    return command_problem(says.command, {**here.environ, **says.env}, here.platform)
