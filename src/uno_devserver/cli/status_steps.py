"""What to do about what `mcp status` has found: the same sentences for people and for programs, with whole paths."""

from __future__ import annotations

from ..setup.commands import is_absolute
from ..setup.dialects import is_disabled
from ..setup.matching import PATH_RUNNER
from ..setup.profiles import Use
from ..setup.status import IN_FILES, Status, cannot_start, in_words, several
from ..setup.task import repair
from ..system.files import is_write_protected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..setup.places import Here
    from ..setup.status import ClientStatus, Registration
    from .registration import Asked

_OF_VERSIONS = ("--release", "--prerelease", "--version", "--channel", "--runner")


def status_steps(wanted: Asked, clients: Sequence[ClientStatus]) -> tuple[str, ...]:
    """For the client that was named, else for all that are here."""
    meant = [one for one in clients if (one.detected if wanted.client is None else one.profile is wanted.client)]
    unread = {
        reading.place.path: client
        for client in meant
        for reading in client.readings
        if reading.problem and reading.place.use is not Use.LEGACY
    }
    lacking = [one for one in meant if one not in unread.values() and _is_lacking(one)]
    steps = [repair(path) for path in unread]
    steps += [f"Make '{path}' writable: it is read-only." for one in lacking for path in _protected(one)]
    steps += [_install([one.profile.id for one in lacking], wanted.options)] if lacking else []
    options = tuple(one for one in wanted.options if one.partition(" ")[0] not in _OF_VERSIONS)
    for client in meant:
        for found in client.registrations:
            steps += _of_entry(client, found, wanted.here, options)
            steps += _several_entries(client, found, wanted.here)
    return tuple(dict.fromkeys(steps))


def _is_lacking(client: ClientStatus) -> bool:
    return not client.profile.no_client and any(_is_to_do(client, one) for one in client.registrations)


def _is_to_do(client: ClientStatus, found: Registration) -> bool:
    return found.status is not Status.REGISTERED and found.server.transport in client.profile.transports


def _protected(client: ClientStatus) -> Iterator[str]:
    """The files that `mcp install` would change, and cannot."""
    targets = client.profile.targets(client.profile.default_scope)
    there = [one.place for one in client.readings if one.content is not None]
    usual = next((place.path for place in targets if place in there), None)
    for found in client.registrations:
        path = found.effective.path if found.effective is not None else usual
        if path is not None and _is_to_do(client, found) and is_write_protected(path):
            yield path


def _install(clients: Sequence[str], options: tuple[str, ...]) -> str:
    call = " ".join(("uno-devserver mcp install", clients[0] if len(clients) == 1 else "<client>", *options))
    everyone = f" for each of {', '.join(clients)}, or with --all-ides for all at once," if len(clients) > 1 else ""
    return f"Run '{call}'{everyone} to register what is missing or outdated."


def _of_entry(client: ClientStatus, found: Registration, here: Here, options: tuple[str, ...]) -> Iterator[str]:
    effective, profile, name = found.effective, client.profile, found.server.name
    if effective is None:
        return
    problem = cannot_start(effective, here)
    if problem and not is_absolute(effective.match.says.command) and PATH_RUNNER in found.server.runners:
        call = " ".join(("uno-devserver mcp install", profile.id, f"--runner {PATH_RUNNER}", *options))
        yield f"{problem[0].upper()}{problem[1:]}: install it, or '{call}' names this program by its path."
    if is_disabled(effective.match.entry):
        where = in_words(effective.reading.place, here)
        yield f"Switch the entry '{effective.match.entry.name}' on in {profile.name}, or in {where}."
    if IN_FILES in found.warnings:
        shared = any(one.reading.place.use is Use.SHARED for one in found.locations)
        all_files = ("--all-scopes",) if shared else ()
        call = " ".join(("uno-devserver mcp uninstall", profile.id, f"--servers {name}", *all_files, *options))
        yield f"{profile.name} takes the entry in '{effective.path}' for {name}; '{call}' takes all out."


def _several_entries(client: ClientStatus, found: Registration, here: Here) -> Iterator[str]:
    for reading in client.readings:
        names = ", ".join(f"'{name}'" for name in several(reading, found.server))
        if names:
            where = in_words(reading.place, here)
            yield f"Remove one of the entries {names} from {where}: one is enough for {found.server.name}."
