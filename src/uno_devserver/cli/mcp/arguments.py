"""The arguments that the registration commands share: client, workspace, servers, version and scope."""

from __future__ import annotations

import os
import re

from ... import __version__
from ...issues import UserError
from ...setup.config_file import content_of, parse_place, read_place
from ...setup.definitions import Definitions, load
from ...setup.entry_match import PATH_RUNNER, matches, others_in
from ...setup.paths import here
from ...setup.profiles import Scope
from ...setup.server_definition import (
    NAME,
    PINNED,
    PRERELEASE,
    SERVER,
    SOLUTION_DIR,
    STABLE,
    UPSTREAM_URL,
    Served,
    VariantChoice,
    is_release,
)
from ...system.files import FileProblem
from ...system.values import Value
from ...workspace.config import read_config
from ...workspace.paths import is_inside, same_place, upwards
from ...workspace.resolver import ResolutionKind, resolve
from ..parse import absolute, check_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...setup.paths import Here
    from ...setup.profiles import Place, Profile
    from ...setup.server_definition import ServerDefinition
    from ...workspace.resolver import Workspace
    from ..parse import Invocation

PROTOCOL = "1.0"  # the version of the JSON format that IDE extensions read
_VERSION = re.compile(r"v?[0-9][A-Za-z0-9.+!*_-]*")  # versions of SemVer and Python, and NuGet's `5.*`
# Options that `mcp status` repeats in the commands that it suggests.
_REPEATED = {"workspace", "solution-dir", "ide-definitions", "server-definitions", "name"}
_REPEATED |= {"release", "prerelease", "version", "channel", "runner"}
# How similar a suggested name must be (1 is equal): names of at most `_SHORT` letters more than others.
_SHORT, _ALIKE_IF_SHORT, _ALIKE = 4, 0.75, 0.6
_CHANNELS = {"stable": STABLE, "prerelease": PRERELEASE}


class McpArguments(Value):
    here: Here
    definitions: Definitions
    client: Profile | None  # None if no client was named
    servers: tuple[ServerDefinition, ...]
    directory: str | None  # the folder of the workspace that is served; None if there are several, or a URL is
    variant: VariantChoice
    variant_from: str  # "auto-detected from tool v5.6.0", "--version"
    scope: Scope | None
    options: tuple[str, ...]  # the options to repeat in suggested commands
    undeclared: UserError | None  # why nothing can be registered: no config says that the folder's package is a server

    def here_of(self, profile: Profile) -> Here:
        """The machine with the workspace that a client sees."""
        return self.here.replace(workspace=profile.project)


def mcp_arguments(invocation: Invocation, *, others: bool = False) -> McpArguments:
    """Read the options, and with `others` the entries of this program for other folders.

    Raises UserError with exit code 2 if the options are wrong, or 1 for an unknown client.
    """
    machine, folder = _folders(invocation)
    definitions = load(machine, invocation.value("ide-definitions"), invocation.value("server-definitions"))
    variant, variant_from = _variant(invocation)
    _check_runner(variant, definitions.servers)
    definitions, client = _with_client(invocation, definitions)
    workspace = resolve(folder, explicit=True)
    known = _with_folder(invocation, definitions, workspace)
    known, entries = _with_entries(invocation, known, workspace)
    profiles = (client,) if client is not None else definitions.profiles
    more = _others(profiles, known, entries) if others else ()
    url = _url(invocation)
    known, servers = _with_name(invocation, known, entries, more, profiles, url) or (
        (*known, *entries, *(one for one in more if one not in entries)),
        _servers(invocation, known, entries, more),
    )
    if invocation.value("servers") is None and not _is_uno(invocation, workspace):
        servers = tuple(one for one in servers if one.served is not None) or servers
    _check_variants(variant, servers)
    return McpArguments(
        machine,
        definitions.replace(servers=known),
        client,
        servers,
        None if url is not None or workspace.kind is ResolutionKind.Ambiguous else workspace.working_directory,
        variant,
        variant_from,
        _scope(invocation),
        tuple(_repeated(invocation)),
        _undeclared(invocation, workspace, machine.repository),
    )


def _folders(invocation: Invocation) -> tuple[Here, str]:
    """The machine, with the workspace whose files clients read, and the folder that is served."""
    workspace, served = invocation.value("workspace"), invocation.value("solution-dir")
    folder = _checked_folder(served or workspace or ".")
    if workspace is not None:
        return here(_checked_folder(workspace)), folder
    from ...workspace.git import repository

    machine, top = here(folder), repository(folder)
    # A repository of the home folder, for settings, is no project.
    is_project = top is not None and not same_place(machine.home, top) and not is_inside(machine.home, top)
    return machine.replace(repository=top if is_project else ""), folder


def _checked_folder(named: str) -> str:
    path = absolute(named)
    if not os.path.isdir(path):
        raise _usage(f"Workspace directory does not exist: {path}", "Name an existing folder with --workspace.")
    if os.path.dirname(path) == path:
        raise _usage(f"Workspace cannot be a filesystem root: {path}", "Name your project's folder with --workspace.")
    return path


def _with_client(invocation: Invocation, definitions: Definitions) -> tuple[Definitions, Profile | None]:
    """The named client, under the identifier that was asked for: a caller looks for itself in the answer."""
    free, option = next(iter(invocation.arguments), None), invocation.value("ide")
    if free is not None and option is not None and free.lower() != option.lower():
        raise _usage(f"Two clients are named: '{free}' and, with --ide, '{option}'.", "Leave one of them out.")
    name = free if free is not None else option
    if name is None:
        return definitions, None
    profile = definitions.profile(name)
    if profile is None:
        known = ", ".join(one.id for one in definitions.clients)
        raise UserError("UnknownClient", f"Unknown client '{name}'. Known clients: {known}", _close(name, definitions))
    asked = next((alias for alias in profile.aliases if alias.lower() == name.lower()), profile.id)
    client = profile.replace(id=asked)
    profiles = tuple(client if one is profile else one for one in definitions.profiles)
    return definitions.replace(profiles=profiles), client


def _close(name: str, definitions: Definitions) -> str:
    from difflib import get_close_matches

    names = [other for one in definitions.profiles if not one.hidden for other in (one.id, *one.aliases)]
    family = [other for other in names if other.startswith(f"{name.lower()}-")]  # 'claude' may mean several clients
    alike = get_close_matches(name.lower(), names, 1, _ALIKE if len(name) > _SHORT else _ALIKE_IF_SHORT)
    close = " or ".join(f"'{other}'" for other in family or alike)
    return f"Did you mean {close}?" if close else "Take one of these, or describe yours with --ide-definitions."


def _with_folder(
    invocation: Invocation, definitions: Definitions, workspace: Workspace
) -> tuple[ServerDefinition, ...]:
    """The servers, with this program as that of the folder that is served, under the name of the folder's server."""
    folder, projects = workspace.working_directory, {one.project for one in definitions.profiles}
    found_from = tuple(
        one
        for one in {folder, *projects}
        if not workspace.resolved or same_place(one, folder) or same_place(resolve(one).working_directory, folder)
    )
    own = _own_name(workspace) if are_built_in(invocation) else None
    if own is not None and own.lower() in (one.name.lower() for one in definitions.servers):
        own = f"{own}-server"  # under the name of another server, its entries would be taken for that one's
    listed = [name.strip().lower() for name in (invocation.value("servers") or "").split(",")]
    return tuple(
        server.of_folder(
            own if own is not None and server.name.lower() not in listed else server.name,
            Served(folder, own=own is not None, found_from=found_from),
        )
        if PATH_RUNNER in server.runners
        else server
        for server in definitions.servers
    )


def _own_name(workspace: Workspace) -> str | None:
    """The name of what the workspace's config declares, as clients accept it; None if a Host is served."""
    from ...proxy.upstream.base import has_work_for_host

    config = read_config(workspace.config)
    if not config.names_server and (not config.servers or has_work_for_host(workspace)):
        return None
    from ...workspace.server_command import server_name

    name = server_name(config).rpartition("/")[2]  # without the scope of an npm package
    found = NAME.search(re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-"))
    return found[0] if found is not None else "server"


def _undeclared(invocation: Invocation, workspace: Workspace, repository: str) -> UserError | None:
    """The error if the folder has a package, and nothing says what to serve: Uno's servers would be of no use there."""
    from ...proxy.upstream.base import has_work_for_host

    asked = any(invocation.value(option) is not None for option in ("servers", "upstream-url"))
    if (
        asked
        or not are_built_in(invocation)
        or workspace.config is not None
        or workspace.resolved
        or has_work_for_host(workspace)
    ):
        return None
    from ...workspace.server_command import package_folder

    folder = workspace.working_directory
    inside = (one for one in upwards(folder) if one in (folder, repository) or is_inside(one, repository or folder))
    found = next((one for one in inside if package_folder(one) is not None), None)
    if found is None:
        return None
    message = f"No config says that the package in '{found}' is an MCP server, and it is no Uno workspace."
    there = "" if found == folder else f" in '{found}'"
    step = f"Run 'uno-devserver init'{there}, then 'mcp install' again. Or name Uno's server: --servers UnoApp."
    return UserError("NoServer", message, step)


def are_built_in(invocation: Invocation) -> bool:
    """Whether the servers are our own: it is not known whether others run code of the workspace."""
    return invocation.value("server-definitions") is None


def _is_uno(invocation: Invocation, workspace: Workspace) -> bool:
    """Whether all servers are meant by default: in the folder of another server than a Host, only that one is."""
    return not are_built_in(invocation) or workspace.global_json is not None or _own_name(workspace) is None


def _with_entries(
    invocation: Invocation, known: tuple[ServerDefinition, ...], workspace: Workspace
) -> tuple[tuple[ServerDefinition, ...], tuple[ServerDefinition, ...]]:
    """The servers, and a definition for each entry of the config's `servers`, which clients can be given alone."""
    ours = next((one for one in known if one.served is not None), None)
    if ours is None or not are_built_in(invocation):
        return known, ()
    taken = {one.name.lower() for one in known}
    names = [one.name for one in read_config(workspace.config).servers if one.name and one.name.lower() not in taken]
    entries = tuple(ours.of_entry(name) for name in names)
    return tuple(one.beside(names) if one is ours else one for one in known), entries


def _with_name(
    invocation: Invocation,
    known: tuple[ServerDefinition, ...],
    entries: tuple[ServerDefinition, ...],
    more: tuple[ServerDefinition, ...],
    profiles: Sequence[Profile],
    url: str | None,
) -> tuple[tuple[ServerDefinition, ...], tuple[ServerDefinition, ...]] | None:
    """All servers and those that --name selects; None without --name.

    It names the server at a `url`; else it selects an entry of this folder's config, else this folder's server, else
    those of other folders.
    """
    name = invocation.value("name")
    if name is None:
        return None
    if invocation.value("servers") is not None:
        raise _usage("--name and --servers are mutually exclusive", "Leave one of them out.")
    more = tuple(one for one in more if one not in entries)
    entry = next((one for one in entries if one.name.lower() == name.lower()), None) if url is None else None
    if entry is not None:
        return (*known, *entries, *more), (entry,)
    ours = [one for one in known if one.served is not None]
    alike = [one for one in more if one.name.lower() == name.lower()]
    elsewhere = tuple([one for one in alike if one.name == name] or alike)
    if elsewhere and (len(ours) != 1 or not _is_here(ours[0], name, profiles)):
        return (*known, *entries, *more), elsewhere
    if not NAME.fullmatch(name):
        rule = "Use 1 to 40 letters, digits, '-' and '_', the first a letter or digit: clients accept no other names."
        raise _usage(f"Invalid value for --name '{name}'", rule)
    others = [one.name for one in known if one.served is None and one.name.lower() == name.lower()]
    if len(ours) != 1 or others:
        taken = f"'{name}' is the name of another server" if others else "these definitions do not have this program"
        raise _usage(f"Invalid value for --name '{name}': {taken}", "Choose another name, or leave --name out.")
    if url is not None:
        return (*known, *entries, at_url := ours[0].of_url(name, url)), (at_url,)
    renamed = _named(ours[0], name)
    return (*(renamed if one is ours[0] else one for one in known), *entries, *more), (renamed,)


def _url(invocation: Invocation) -> str | None:
    """The URL whose server is to be registered; raises UserError if it is none, or has no name."""
    url = invocation.value("upstream-url")
    if url is None:
        return None
    check_url(url)
    if invocation.value("name") is None:
        raise _usage("A server at a URL needs a name", "Name it: --name <name>.")
    return url


def _named(server: ServerDefinition, name: str) -> ServerDefinition:
    served = server.served
    assert served is not None
    own = served.own or name.lower() != server.name.lower()
    return server.of_folder(name, served.replace(own=own, named=True))


def _is_here(server: ServerDefinition, name: str, profiles: Iterable[Profile]) -> bool:
    """Whether a name is that of this folder's server, by default or in a file of the clients."""
    if name.lower() == server.name.lower():
        return True
    renamed = _named(server, name)
    return any(read_place(place, (renamed,)).matches for profile in profiles for place in profile.places)


def _others(
    profiles: Iterable[Profile], known: tuple[ServerDefinition, ...], entries: tuple[ServerDefinition, ...]
) -> tuple[ServerDefinition, ...]:
    """The servers of other folders, and the `entries`, that the clients' files register, each name of a folder once."""
    found: dict[tuple[str, str], ServerDefinition] = {}
    for place in (place for one in profiles for place in one.places):
        try:
            content = content_of(place.path, place.within) or b""
        except FileProblem:
            continue  # it is reported where the servers of this folder are looked for
        plain = content.replace(b"\0", b"")  # also of UTF-16
        named = any(option.encode() in plain for option in (SOLUTION_DIR, SERVER, UPSTREAM_URL))  # parsing takes long
        document = parse_place(place, content, ()).document if named else None
        if document is None:
            continue
        here_too = {one.server.name for one in matches(document.entries, _at(place, entries, known), place.dialect)}
        found |= {(one.name, ""): one for one in entries if one.name in here_too}
        for server in others_in(document.entries, _at(place, known), place.dialect):
            assert server.served is not None
            found.setdefault((server.name, server.served.url or server.served.folder), server)
    return tuple(found.values())


def _at(place: Place, *servers: tuple[ServerDefinition, ...]) -> Iterator[ServerDefinition]:
    return (one.at(place) for some in servers for one in some)


def _servers(
    invocation: Invocation,
    known: tuple[ServerDefinition, ...],
    entries: tuple[ServerDefinition, ...],
    more: tuple[ServerDefinition, ...],
) -> tuple[ServerDefinition, ...]:
    listed = invocation.value("servers")
    if listed is None:
        return (*known, *more)
    every = (*known, *entries, *(one for one in more if one not in entries))
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if not names:
        raise _usage("Empty value for --servers", f"Name some of: {', '.join(one.name for one in every)}.")
    for name in names:
        if name.lower() not in (one.name.lower() for one in every):
            listing = ", ".join(one.name for one in every)
            raise _usage(f"Unknown server '{name}'. Known servers: {listing}", "Take one of these.")
    wanted = {name.lower() for name in names}
    here = {one.name.lower() for one in known}
    return tuple(one for one in every if one.name.lower() in wanted and (one in known or one.name.lower() not in here))


def _check_variants(choice: VariantChoice, servers: tuple[ServerDefinition, ...]) -> None:
    kind = choice.variant.partition(":")[0]
    for server in servers:
        variants = server.runners.get(choice.runner or "", server.variants)
        if choice.asked and kind not in variants and STABLE not in variants:
            message = f"The definition of {server.name} has neither a {kind} nor a stable variant"
            raise UserError("DefinitionsInvalid", message, f"Choose one of: {', '.join(variants)}.", exit_code=2)


def _variant(invocation: Invocation) -> tuple[VariantChoice, str]:
    """The version and runner to expect or write, and where the choice comes from."""
    version, channel = invocation.value("version"), invocation.value("channel")
    chosen = [f"--{name}" for name in ("release", "prerelease") if invocation.on(name)]
    chosen += [f"--{name}" for name in ("version", "channel") if invocation.value(name) is not None]
    runner = invocation.value("runner")
    if len(chosen) > 1:
        raise _usage(f"{' and '.join(chosen)} are mutually exclusive", "Take one of them.")
    if channel is not None and channel.lower() not in _CHANNELS:
        raise _usage(f"Invalid value for --channel '{channel}'. Valid values: stable, prerelease", "Take one of these.")
    if runner == PATH_RUNNER and chosen:
        next_step = f"Leave {chosen[0]} out: the path leads to the installed version."
        raise _usage(f"{chosen[0]} has no meaning with --runner path", next_step)
    if version is not None:
        variant = f"{PINNED}:{_checked(version.strip())}"
    elif channel is not None:
        variant = _CHANNELS[channel.lower()]
    elif chosen:
        variant = PRERELEASE if invocation.on("prerelease") else STABLE
    else:
        variant = STABLE if is_release(__version__) else PRERELEASE
    source = chosen[0] if chosen else f"auto-detected from tool v{__version__}"
    return VariantChoice(variant, runner, bool(chosen), __version__), source


def _checked(version: str) -> str:
    """Return the version; raises UserError if it must not become part of a command line that clients start."""
    if not _VERSION.fullmatch(version):
        raise _usage(f"Invalid value for --version '{version}'", "Write one that begins with a digit: --version 1.2.3.")
    return version


def _check_runner(variant: VariantChoice, servers: tuple[ServerDefinition, ...]) -> None:
    runner, known = variant.runner, {name for server in servers for name in (server.runner, *server.runners) if name}
    if runner is None or runner in known:
        return
    if not known:
        raise _usage(f"Unknown runner '{runner}'", "Leave --runner out: these servers are started in one way only.")
    raise _usage(f"Unknown runner '{runner}'. Known runners: {', '.join(sorted(known))}", "Take one of these.")


def _scope(invocation: Invocation) -> Scope | None:
    named = invocation.value("scope")
    if named is None:
        return None
    scope = next((one for one in Scope if one.value == named.lower()), None)
    if scope is None:
        raise _usage(f"Invalid value for --scope '{named}'. Valid values: workspace, user", "Take one of these.")
    return scope


def _repeated(invocation: Invocation) -> Iterator[str]:
    for name, value in invocation.options.items():
        if name in _REPEATED and isinstance(value, str):
            from ...system.command_lines import quoted_word

            yield f"--{name} {quoted_word(value)}"
        elif name in _REPEATED and value:
            yield f"--{name}"


def _usage(message: str, next_step: str) -> UserError:
    return UserError("BadValue", message, next_step, exit_code=2)


def shown_path(path: str, here: Here) -> str:
    """The path, shortened if it is in the workspace or in the home folder."""
    for folder, instead in ((here.workspace, ""), (here.home, "~")):
        inside = path.removeprefix(folder.rstrip("/\\"))
        if inside != path and inside.startswith(("/", "\\")):
            return instead + inside if instead else inside[1:]
    return path
