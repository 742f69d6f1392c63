"""`mcp status`: shows in which AI clients the servers are registered, where, and whether the entries are current."""

from __future__ import annotations

from ... import __version__
from ...setup.entry_command import is_absolute
from ...setup.entry_format import is_disabled
from ...setup.entry_match import PATH_RUNNER
from ...setup.entry_origin import with_reserve
from ...setup.expected_entry import default_runner, expected, index_problem
from ...setup.profiles import HTTP, Use
from ...setup.status import (
    IN_FILES,
    OWN_PATH,
    RegistrationStatus,
    cannot_start,
    in_words,
    install_command,
    several,
    status_of,
)
from ...system.command_lines import quoted_word
from ...system.files import is_write_protected
from ...system.text import one_line, shown_text, shown_words
from ..result import Result
from ..terminal import Style, bullets, columns, folded, styled, table_width, with_short_paths
from .arguments import PROTOCOL, mcp_arguments, shown_path
from .verification import ask_clients, verified_data, verified_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...setup.client_cli import ClientAnswer
    from ...setup.config_file import Location
    from ...setup.entry_match import Match
    from ...setup.paths import Here
    from ...setup.server_definition import EntrySpec, ServerDefinition, VariantChoice
    from ...setup.status import ClientStatus, Registration
    from ..parse import Invocation
    from .arguments import McpArguments


TITLE = "MCP Server Status"
_HEAD = 15  # the width of the titles above the servers
_STATUS = max(len(status.value) for status in RegistrationStatus) + 1
_VARIANT = 15  # the minimum width of the column of variants
_INDENT = 6  # the indentation of a path on a line of its own
_STYLES = {
    RegistrationStatus.REGISTERED: Style.GOOD,
    RegistrationStatus.MISSING: Style.DIM,
    RegistrationStatus.OUTDATED: Style.WARN,
}
_VARIANT_OPTIONS = ("--release", "--prerelease", "--version", "--channel", "--runner")


def run(invocation: Invocation) -> Result:
    wanted = mcp_arguments(invocation, others=True)
    profiles = wanted.definitions.profiles
    clients = [status_of(profile, wanted.servers, wanted.variant, wanted.here_of(profile)) for profile in profiles]
    detected = [client.profile for client in clients if client.detected]
    answers = ask_clients(wanted, detected) if invocation.on("verify") else None
    steps = _steps(wanted, clients)
    text = "\n".join(_lines(wanted, clients, steps, answers))
    return Result(_data(wanted, clients, steps, answers), text)


def _data(
    wanted: McpArguments, clients: list[ClientStatus], steps: tuple[str, ...], answers: tuple[ClientAnswer, ...] | None
) -> dict[str, object]:
    told: dict[str, object] = {
        "version": PROTOCOL,
        "callerIde": wanted.client.id if wanted.client is not None else None,
        "toolVersion": __version__,
        "expectedVariant": wanted.variant.variant,
        "detectedIdes": [one.profile.id for one in clients if one.detected],
        "supportedIdes": [_supported(one) for one in clients],
        "ides": [_client_data(one) for one in clients],
        "servers": [_server_data(server, wanted, clients) for server in wanted.servers],
        "nextSteps": list(steps),
    }
    if answers is not None:
        told["verified"] = verified_data(answers)
    return told


def _supported(client: ClientStatus) -> dict[str, object]:
    """A client that this program supports, with the field names of the .NET tool."""
    return {"ide": client.profile.id, "strategy": client.profile.strategy, "detected": client.detected}


def _client_data(client: ClientStatus) -> dict[str, object]:
    target = client.profile.preferred
    return {
        "id": client.profile.id,
        "detected": client.detected,
        "configPaths": list(dict.fromkeys(place.path for place in client.profile.places)),
        "writeTarget": target.path if target is not None else None,
    }


def _server_data(server: ServerDefinition, wanted: McpArguments, clients: list[ClientStatus]) -> dict[str, object]:
    listed = [one for one in clients if one.detected or one.profile is wanted.client]
    return {
        "name": server.name,
        "transport": server.transport,
        "definition": _definition(expected(server.replace(opens=wanted.here.workspace), wanted.variant), server),
        "ides": [
            _registration(client.profile.id, registration)
            for client in listed
            for registration in client.registrations
            if registration.server is server
        ],
    }


def _definition(definition: EntrySpec, server: ServerDefinition) -> dict[str, object]:
    if server.transport == HTTP:
        return {"url": definition.url}
    told: dict[str, object] = {"command": definition.command, "args": list(shown_words(("", *definition.args))[1:])}
    return {**told, "env": dict(definition.env)} if definition.env else told


def _registration(client: str, found: Registration) -> dict[str, object]:
    told: dict[str, object] = {"ide": client, "status": found.status.value}
    if found.locations:
        told["locations"] = [_location(one) for one in found.locations]
    if found.warnings:
        told["warnings"] = list(found.warnings)
    return told


def _location(location: Location) -> dict[str, object]:
    match = location.match
    told: dict[str, object] = {
        "path": location.path,
        "variant": match.variant,
        "transport": match.transport,
        "scope": location.place.scope.value,
        "key": match.entry.name,
    }
    if match.runner is not None and not match.own_way:
        told["runner"] = match.runner
    if location.legacy:
        told["legacy"] = True
    return told


def _lines(
    wanted: McpArguments, clients: Sequence[ClientStatus], steps: Sequence[str], answers: Sequence[ClientAnswer] | None
) -> Iterator[str]:
    listed = [one for one in clients if one.detected or one.profile is wanted.client]
    others = [one.profile.id for one in clients if not one.detected and one.profile in wanted.definitions.clients]
    yield from (styled(TITLE, Style.HEADING), styled("=" * len(TITLE), Style.HEADING), "")
    yield from _head("IDEs detected:", ", ".join(one.profile.id for one in clients if one.detected) or "none")
    if wanted.client is not None:
        yield from _head("Caller IDE:", wanted.client.id)
    runner = f", started by {wanted.variant.runner}" if wanted.variant.runner is not None else ""
    if not runner and any(default_runner(one, wanted.variant) != one.runner for one in wanted.servers):
        runner = "; entries name its path until it is released"
    yield from _head("Expected:", f"{wanted.variant.variant} ({wanted.variant_from}){runner}")
    for server in wanted.servers:
        yield from _server_lines(server, listed, wanted.here)
    if answers is not None:
        yield ""
        yield from verified_lines(answers)
    yield from bullets("Next steps", [_with_shown_paths(step, wanted.here) for step in steps])
    if others and wanted.client is None:
        yield ""
        call = " ".join(("uno-devserver mcp install <client>", *wanted.options))
        yield from folded(one_line(f"'{call}' also knows: {', '.join(others)}"), "", "  ")


def _head(title: str, value: str) -> Iterator[str]:
    return folded(one_line(value), styled(f"{title:<{_HEAD}}", Style.NAME), " " * _HEAD)


def _server_lines(server: ServerDefinition, listed: Sequence[ClientStatus], here: Here) -> Iterator[str]:
    to = f", to {shown_text(server.served.url)}" if server.served is not None and server.served.url else ""
    yield from ("", styled(one_line(f"{server.name} ({server.transport}{to})"), Style.HEADING))
    if not listed:
        yield "  no client was detected"
    width = max((len(client.profile.id) for client in listed), default=0) + 2
    rows = [(client, found) for client in listed for found in client.registrations if found.server is server]
    variant = max((len(_how(one.match)) + 1 for _, found in rows for one in found.locations), default=0)
    for client, found in rows:
        cannot = "" if server.transport in client.profile.transports else f"(takes no {server.transport} servers)"
        name = one_line(f"  {client.profile.id:<{width}}")
        yield from _client_lines(name, found, cannot, max(variant, _VARIANT), here)


def _client_lines(first: str, found: Registration, cannot: str, variant: int, here: Here) -> Iterator[str]:
    status = styled(f"{found.status.value:<{_STATUS}}", _STYLES[found.status])
    if not found.locations:
        yield f"{first}{status}{cannot}".rstrip()
    for number, location in enumerate(found.locations):
        before = f"{first}{status}" if number == 0 else " " * (len(first) + _STATUS)
        how, path = one_line(_how(location.match)), one_line(_where(location, found.server, here))
        line = f"{before}{how:<{variant}}"
        if columns(line) + columns(path) <= table_width():
            yield line + path
        else:
            yield from (line.rstrip(), " " * _INDENT + path)
    for warning in found.warnings:
        indent = " " * len(first)
        sentence = with_short_paths(one_line(_with_shown_paths(warning, here)))
        yield from folded(sentence, f"{indent}{styled('⚠', Style.WARN)} ", f"{indent}  ")


def _how(match: Match) -> str:
    """The version of the entry, and its runner if that is not the usual one."""
    if match.own_way:
        return "own"
    if match.server.runner and match.runner is None and match.transport != HTTP:
        return "other"
    if match.runner == PATH_RUNNER:
        return PATH_RUNNER  # it starts the installed version, whichever that is
    return match.variant if match.runner in (None, match.server.runner) else f"{match.runner} {match.variant}"


def _where(location: Location, server: ServerDefinition, here: Here) -> str:
    remarks = [f"as {location.match.entry.name}"] if location.match.entry.name != server.name else []
    remarks += ["no longer read"] if location.legacy else []
    where = _with_shown_paths(in_words(location.place, here), here).replace("'", "", 2)
    return where + (f" ({', '.join(remarks)})" if remarks else "")


def _with_shown_paths(sentence: str, here: Here) -> str:
    """The sentence with its paths, which are in quotes, shortened."""
    pieces = sentence.split("'")
    return "'".join(shown_path(piece, here) if number % 2 else piece for number, piece in enumerate(pieces))


def _steps(wanted: McpArguments, clients: Sequence[ClientStatus]) -> tuple[str, ...]:
    """The next steps for the named client, or for all detected ones."""
    meant = [one for one in clients if (one.detected if wanted.client is None else one.profile is wanted.client)]
    unread = {
        config.place.path: (client, config)
        for client in meant
        for config in client.configs
        if config.problem and config.place.use is not Use.LEGACY
    }
    lacking = [one for one in meant if all(one is not client for client, _ in unread.values()) and _is_lacking(one)]
    steps = [config.next_step for _, config in unread.values()]
    steps += [f"Make '{path}' writable: it is read-only." for one in lacking for path in _protected(one)]
    if lacking and wanted.undeclared is not None:
        steps.append(wanted.undeclared.next_step)
    elif lacking:
        steps.append(_install([one.profile.id for one in lacking], wanted.options))
    for one in meant:
        for found in one.registrations:
            if _is_named(found.server) and found.status is RegistrationStatus.OUTDATED:
                step = f"Run '{install_command(one.profile, found.server)}' to renew its entry."
                steps.append(_with_reserve(step, found, one, wanted))
    options = tuple(one for one in wanted.options if one.partition(" ")[0] not in _VARIANT_OPTIONS)
    for client in meant:
        for found in client.registrations:
            its = _of_entry(client, found, wanted, options)
            steps += [_with_reserve(step, found, client, wanted) for step in its]
            steps += _several_entries(client, found, wanted.here)
    return tuple(dict.fromkeys(steps))


def _with_reserve(step: str, found: Registration, client: ClientStatus, wanted: McpArguments) -> str:
    here = wanted.here_of(client.profile)
    return next((with_reserve(step, one.match, one.place, here) for one in found.locations if not one.legacy), step)


def _is_lacking(client: ClientStatus) -> bool:
    return not client.profile.no_client and any(_can_be_registered(client, one) for one in client.registrations)


def _is_named(server: ServerDefinition) -> bool:
    """Whether 'mcp install' needs options to mean this server: it is another folder's, or an entry of `servers`."""
    return server.served is not None and bool(server.served.options or server.served.entry)


def _can_be_registered(client: ClientStatus, found: Registration) -> bool:
    if _is_named(found.server):
        return False
    return found.status is not RegistrationStatus.REGISTERED and found.server.transport in client.profile.transports


def _protected(client: ClientStatus) -> Iterator[str]:
    """The read-only files that `mcp install` would have to change."""
    targets = client.profile.targets(client.profile.default_scope)
    existing = [one.place for one in client.configs if one.content is not None]
    usual = next((place.path for place in targets if place in existing), None)
    for found in client.registrations:
        path = found.effective.path if found.effective is not None else usual
        if path is not None and _can_be_registered(client, found) and is_write_protected(path):
            yield path


def _install(clients: Sequence[str], options: tuple[str, ...]) -> str:
    call = " ".join(("uno-devserver mcp install", clients[0] if len(clients) == 1 else "<client>", *options))
    everyone = f" for each of {', '.join(clients)}, or with --all-ides for all at once," if len(clients) > 1 else ""
    return f"Run '{call}'{everyone} to register what is missing or outdated."


def _of_entry(
    client: ClientStatus, found: Registration, wanted: McpArguments, options: tuple[str, ...]
) -> Iterator[str]:
    effective, profile, name, here = found.effective, client.profile, found.server.name, wanted.here
    if effective is None:
        return
    problem, says = cannot_start(effective, here), effective.match.says
    install = (f"uno-devserver mcp install {profile.id}", *options)
    if _is_named(found.server):
        install = (install_command(profile, found.server),)
    call = " ".join((install[0], f"--runner {PATH_RUNNER}", *install[1:]))
    if problem and not is_absolute(says.command) and PATH_RUNNER in found.server.runners:
        remedy = "correct that" if OWN_PATH in problem else "install it"
        yield f"{problem[0].upper()}{problem[1:]}: {remedy}, or '{call}' names this program by its path."
    elif found.status is RegistrationStatus.REGISTERED and _is_unreleased(effective.match, wanted.variant):
        yield f"Run '{call}' to name this program by its path."
    if is_disabled(effective.match.entry):
        where = in_words(effective.place, here)
        yield f"Switch the entry '{effective.match.entry.name}' on in {profile.name}, or in {where}."
    if IN_FILES in found.warnings:
        shared = any(one.place.use is Use.SHARED for one in found.locations)
        all_files = ("--all-scopes",) if shared else ()
        named = f"--servers {quoted_word(name)}"
        call = " ".join(("uno-devserver mcp uninstall", profile.id, named, *all_files, *options))
        yield f"{profile.name} uses the entry in '{effective.path}' for {name}; '{call}' removes all."


def _is_unreleased(match: Match, choice: VariantChoice) -> bool:
    return not choice.released and bool(index_problem(match.says, match.server, choice))


def _several_entries(client: ClientStatus, found: Registration, here: Here) -> Iterator[str]:
    for config in client.configs:
        names = ", ".join(f"'{name}'" for name in several(config, found.server))
        if names:
            where = in_words(config.place, here)
            yield f"Remove one of the entries {names} from {where}: one is enough for {found.server.name}."
