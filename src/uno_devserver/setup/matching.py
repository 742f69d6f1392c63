"""Which entries of a file are ours, what they say, and what they should say; pure.

Entries are looked at as they are: a command may be a string or a list, an address may have any of the names that
clients use, and whatever has an odd kind counts as absent. Nothing that stands in a file makes this raise.
"""

from __future__ import annotations

import os
import re

from ..system.values import Value
from .commands import base_name, is_absolute
from .profiles import HTTP, STDIO
from .program import MODULE, NAMES, program
from .servers import LEGACY_HTTP, PINNED, PRERELEASE, STABLE, Definition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .edits.document import Entry
    from .profiles import Dialect
    from .servers import Server, Wish

UNKNOWN = "unknown"  # the transport of an entry that has neither a command nor an address

# Patterns may come from a user's file, and Python cannot interrupt a search that tries every way: the text that they
# see is bounded instead. A real command has some hundred characters.
SEEN_CHARACTERS = 4096

PATH_RUNNER = "path"  # this program itself, by its name or path
_NAME = "{name}"  # in what a dialect adds: the server's
_PROGRAM = "{program}"  # in a definition: the command that starts this program

# What clients call the same thing; the dialect's own name counts first.
_COMMAND_KEYS = ("command", "cmd")
_ARGS_KEYS = ("args",)
_ENV_KEYS = ("env", "environment", "envs")
_URL_KEYS = ("url", "serverUrl", "httpUrl", "uri")
# What else belongs to one transport, and would confuse a client beside the other one.
_ONLY_STDIO = ("envFile", "env_file", "cwd", "working_directory")
_ONLY_HTTP = ("headers", "http_headers", "env_http_headers", "bearer_token_env_var", "transport")

# `name@1.2.3` of uvx, dnx and npx, and `name==1.2.3` of pip.
_PINNED_NAME = r"@?[\w.-]+(?:/[\w.-]+)?(?:@|==)([^\s@/:]+)"
_NEWEST = "latest"
_STABLE_AFTER_ALL = ("disallow", "if-necessary")  # values of uvx's --prerelease; dnx's has none


class Match(Value):
    """An entry that is a server's."""

    server: Server
    entry: Entry
    says: Definition  # in whatever dialect that is written
    index: int  # among the entries of the file
    transport: str  # stdio, http or unknown
    variant: str  # stable, prerelease, pinned:<version> or legacy-http
    runner: str | None  # what starts it, where that is one of the server's
    certain: bool  # False: a local address such as others have, under a name that does not say whose it is
    shadowed: bool = False  # a later entry has the same name, and clients read the last of such twins


def matches(entries: Sequence[Entry], servers: Iterable[Server], dialect: Dialect) -> tuple[Match, ...]:
    """All entries that are a server's, in the order of the file. Names of all servers count before any content."""
    known = tuple(servers)
    last = {entry.name: index for index, entry in enumerate(entries)}
    found = []
    for index, entry in enumerate(entries):
        says = definition_of(entry, dialect)
        owner = _owner(entry, says, known)
        if owner is None:
            continue
        server, certain = owner
        found.append(
            Match(
                server,
                entry,
                says,
                index,
                transport_of(says),
                _variant(says, server),
                _runner(says, server),
                certain,
                last[entry.name] != index,
            )
        )
    return tuple(found)


def expected(server: Server, wish: Wish, runner: str | None = None) -> Definition:
    """What an entry should say, started by `runner`, else by the wished one, else by the server's default."""
    kind, _, version = wish.variant.partition(":")
    variants = server.runners.get(runner or wish.runner or server.runner, server.variants)
    wanted = variants.get(kind) or variants.get(STABLE) or next(iter(variants.values()))
    command, *before = program() if wanted.command == _PROGRAM else (wanted.command,)
    return Definition(
        command.replace("{version}", version),
        (*before, *(one.replace("{version}", version) for one in wanted.args)),
        {name: value.replace("{version}", version) for name, value in wanted.env.items()},
        wanted.url.replace("{version}", version),
    )


def renewed(match: Match, wish: Wish) -> Definition:
    """What an outdated entry should say, with the user's arguments behind ours."""
    definition = expected(match.server, meant(wish, match), kept_runner(match, wish))
    _, users = _divided(match.says.args, match.server)
    return definition.replace(args=(*definition.args, *users))


def kept_runner(match: Match, wish: Wish) -> str | None:
    """What starts an entry after it was changed; None: the server's default."""
    if wish.runner is None and wish.asked and match.runner == PATH_RUNNER:
        return None  # a path cannot say which version
    return wish.runner or match.runner


def up_to_date(match: Match, wish: Wish, dialect: Dialect, exists: Callable[[str], bool] = os.path.exists) -> bool:
    """Whether the entry says what it should, in the form of any runner, or of the wished one."""
    if match.transport != match.server.transport or not _has_kind_of_command(match.entry, dialect):
        return False
    says = match.says
    if match.transport == HTTP:
        return says.url == expected(match.server, wish).url and _has_needed_type(match.entry, dialect)
    if is_absolute(says.command) and not exists(says.command):
        return False
    says = says.replace(args=_divided(says.args, match.server)[0])
    if wish.runner is not None:
        return _same_command(says, expected(match.server, wish))
    if match.runner == PATH_RUNNER:
        return _is_our_program(says) and not wish.asked
    wanted = meant(wish, match)
    others = (one for one in (match.server.runner, *match.server.runners) if one != PATH_RUNNER)
    return any(_same_command(says, expected(match.server, wanted, one)) for one in others)


def written(
    definition: Definition, server: Server, dialect: Dialect, was: Match | None = None
) -> tuple[dict[str, object], tuple[str, ...]]:
    """The settings that put a definition into a new entry, or into the one that `was` there, and those to drop.

    What the user added to an entry stays, except what belongs to a transport that it no longer has.
    """
    transport = server.transport
    settings: dict[str, object] = {"type": dialect.types[transport]} if transport in dialect.types else {}
    if transport == HTTP:
        settings[dialect.url_key] = definition.url
        drop = [*_URL_KEYS, dialect.command_key, *_COMMAND_KEYS, dialect.args_key, *_ARGS_KEYS]
        drop += [dialect.env_key, *_ENV_KEYS, *_ONLY_STDIO] if _changes_transport(was, server) else []
    else:
        settings |= _stdio_settings(definition, dialect, was)
        drop = [dialect.url_key, *_URL_KEYS, *((dialect.args_key, *_ARGS_KEYS) if dialect.one_array else ())]
        drop += _ONLY_HTTP if _changes_transport(was, server) else []
    if was is None:
        extra = dialect.extra.get(transport, {})
        settings |= {key: server.name if value == _NAME else value for key, value in extra.items()}
    elif _changes_transport(was, server):
        drop.append("type")
    if was is not None and isinstance((was.entry.settings or {}).get("transport"), dict):
        drop.append("transport")  # Cline's nested form: what it says would stand beside ours
    return settings, tuple(dict.fromkeys(key for key in drop if key not in settings))


def definition_of(entry: Entry, dialect: Dialect) -> Definition:
    """What an entry says, whatever dialect it is really written in."""
    settings = entry.settings
    if settings is None:
        return Definition()
    nested = settings.get("transport")  # Cline: {"transport": {"type": ..., "command": ...}}
    if isinstance(nested, dict):
        settings = {**settings, **nested}
    command = _first(settings, (dialect.command_key, *_COMMAND_KEYS), (str, list, dict))
    args = _strings(_first(settings, (dialect.args_key, *_ARGS_KEYS), (list,)))
    env = _first(settings, (dialect.env_key, *_ENV_KEYS), (dict,))
    if isinstance(command, dict):  # Zed, earlier: {"command": {"path": ..., "args": [...]}}
        args = _strings(command.get("args"))
        command = command.get("path")
    words = [*_strings(command), *args] if isinstance(command, list) else [command, *args]
    program = words[0] if words and isinstance(words[0], str) else ""
    url = _first(settings, (dialect.url_key, *_URL_KEYS), (str,))
    return Definition(
        program,
        tuple(_strings(words[1:])) if program else (),
        {key: value for key, value in env.items() if isinstance(value, str)} if isinstance(env, dict) else {},
        url if isinstance(url, str) else "",
    )


def is_disabled(entry: Entry) -> bool:
    """It is switched off, in either of the ways that clients know."""
    settings = entry.settings or {}
    return settings.get("disabled") is True or settings.get("enabled") is False


def transport_of(definition: Definition) -> str:
    if definition.command:
        return STDIO
    return HTTP if definition.url else UNKNOWN


def _first(settings: Mapping[str, object], keys: Iterable[str], kinds: tuple[type, ...]) -> object:
    """The first of these settings that has one of the kinds, and is not empty."""
    return next((value for key in keys if isinstance(value := settings.get(key), kinds) and value), None)


def _strings(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _owner(entry: Entry, says: Definition, servers: tuple[Server, ...]) -> tuple[Server, bool] | None:
    for server in servers:
        if _any(server.detection.keys, entry.name):
            return server, True
    command = _line(says)
    for server in servers:
        if (command and _any(server.detection.commands, command)) or (
            says.url and _any(server.detection.urls, says.url)
        ):
            return server, True
    for server in servers:
        if says.url and _any(server.detection.weak_urls, says.url):
            return server, _any(server.detection.weak_keys, entry.name)
    return None


def _line(says: Definition) -> str:
    return " ".join((says.command, *says.args)) if says.command else ""


def _any(patterns: tuple[str, ...], text: str) -> bool:
    # `re` keeps what it has compiled, so each pattern costs that once, and only where it is needed.
    return any(re.search(pattern, text[:SEEN_CHARACTERS], re.IGNORECASE) for pattern in patterns)


def _variant(says: Definition, server: Server) -> str:
    if server.transport == STDIO and transport_of(says) == HTTP:
        return LEGACY_HTTP
    args, _ = _divided(says.args, server)
    unpinned = STABLE
    for word, following in zip(args, (*args[1:], ""), strict=False):
        option, _, value = word.partition("=")
        if option == "--version" and (value or following):
            return f"{PINNED}:{value or following}"
        if option == "--prerelease":
            unpinned = STABLE if (value or following) in _STABLE_AFTER_ALL else PRERELEASE
        named = re.fullmatch(_PINNED_NAME, word) if "@" in word or "==" in word else None
        if named is not None and named[1] != _NEWEST:
            return f"{PINNED}:{named[1]}"
    return unpinned


def _runner(says: Definition, server: Server) -> str | None:
    """By its program: an entry of any version, and with any further arguments, keeps the runner that it has."""
    if not says.command or not (_ends(server).intersection(says.args) or _any(server.detection.commands, _line(says))):
        return None
    program = base_name(_without_dotnet(says).command)
    for name, variants in ((server.runner, server.variants), *server.runners.items()):
        if name == PATH_RUNNER:
            if program in NAMES or _runs_our_module(says):
                return name
        elif name and any(base_name(_without_dotnet(one).command) == program for one in variants.values()):
            return name
    return None


def _divided(args: tuple[str, ...], server: Server) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is ours of an entry's arguments, and what the user put behind that."""
    ends = _ends(server)
    at = next((number for number, word in enumerate(args, 1) if word in ends), len(args))
    return args[:at], args[at:]


def _ends(server: Server) -> set[str]:
    """The last arguments of all definitions: for UnoApp that is `--mcp-app`, however it is started."""
    all_variants = (server.variants, *server.runners.values())
    return {one.args[-1] for variants in all_variants for one in variants.values() if one.args}


def meant(wish: Wish, match: Match) -> Wish:
    """Whoever asked for no variant gets this program's, but other programs have versions of their own."""
    if wish.asked or wish.runner is not None or match.runner in (None, match.server.runner):
        return wish
    return wish.replace(variant=match.variant)


def _has_kind_of_command(entry: Entry, dialect: Dialect) -> bool:
    """A list where the client takes a list, and a string where it takes a string: others it refuses, or ignores."""
    command = (entry.settings or {}).get(dialect.command_key)
    return command is None or isinstance(command, list if dialect.one_array else str)


def _has_needed_type(entry: Entry, dialect: Dialect) -> bool:
    """A client whose entries have a type for addresses alone takes one without for a broken command."""
    return set(dialect.types) != {HTTP} or "type" in (entry.settings or {})


def _same_command(says: Definition, wanted: Definition) -> bool:
    """`dotnet dnx` is `dnx`; and a program's path, which some clients need, is as good as its bare name."""
    says, wanted = _without_dotnet(says), _without_dotnet(wanted)
    if says.args != wanted.args:
        return False
    return says.command == wanted.command or (is_absolute(says.command) and base_name(says.command) == wanted.command)


def _without_dotnet(definition: Definition) -> Definition:
    if base_name(definition.command) == "dotnet" and definition.args[:1] == ("dnx",):
        return definition.replace(command="dnx", args=definition.args[1:])
    return definition


def _is_our_program(says: Definition) -> bool:
    if base_name(says.command) in NAMES:
        return says.args == ("--mcp-app",)
    return _runs_our_module(says) and says.args[2:] == ("--mcp-app",)


def _runs_our_module(says: Definition) -> bool:
    return base_name(says.command).startswith("python") and says.args[:2] == ("-m", MODULE)


def _changes_transport(was: Match | None, server: Server) -> bool:
    return was is not None and was.transport != server.transport


def _stdio_settings(definition: Definition, dialect: Dialect, was: Match | None) -> dict[str, object]:
    settings: dict[str, object] = {}
    if dialect.one_array:
        settings[dialect.command_key] = [definition.command, *definition.args]
    else:
        settings[dialect.command_key] = definition.command
        settings[dialect.args_key] = list(definition.args)
    if definition.env:
        mine = ((was.entry.settings or {}) if was is not None else {}).get(dialect.env_key)
        settings[dialect.env_key] = {**(mine if isinstance(mine, dict) else {}), **definition.env}
    return settings
