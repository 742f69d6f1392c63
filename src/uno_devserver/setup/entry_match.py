"""Recognises our entries in a file: for which server, in which variant, and with which runner."""

from __future__ import annotations

import re

from ..system.values import Value
from .entry_command import PROGRAM_NAMES, RUNS_MODULE, base_name
from .entry_format import spec_of, transport_of
from .profiles import HTTP, STDIO
from .servers import LEGACY_HTTP, PINNED, PRERELEASE, STABLE, EntrySpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .edits.document import ServerEntry
    from .profiles import Dialect
    from .servers import ServerDefinition

# The length of the searched text is limited, because patterns may come from a user's file and take quadratic time. A
# real command has a few hundred characters.
SEEN_CHARACTERS = 4096

PATH_RUNNER = "path"  # the runner of entries that start this program itself, by name or path

# `name@1.2.3` of uvx, dnx and npx, and `name==1.2.3` of pip.
_PINNED_NAME = r"(@?[\w.-]+(?:/[\w.-]+)?)(?:@|==)([^\s@/:]+)"
_NEWEST = "latest"
_MINOR = ".*"  # ends the version of an entry that takes each release of a minor version
# Programs that run what has a name on a package index, and the word with which they do. An option may name the package.
_INDEX_RUNNERS = {"uvx": "", "uv": "tool", "pipx": "run"}
_SOURCES = ("--from", "--spec")
_INDEX_NAME = re.compile(r"uno[-_.]+devserver(?:\[.*?\])?(?:(?:@|[=~<>!]=?=?)([^/:]*))?", re.IGNORECASE)
# Scheme, host, port and path of an address. Browsers take a backslash for a slash, so it ends the host, too.
_ADDRESS = re.compile(r"([^/\\?#]*://)?(?:[^/\\?#]*@)?(\[[^]/\\?#]*\]|[^:/\\?#]*)(:[^/\\?#]*)?([^?#]*)")
_STABLE_AFTER_ALL = ("disallow", "if-necessary")  # values of --prerelease that uvx has, and dnx has not


class Match(Value):
    """An entry that was recognised as a server's."""

    server: ServerDefinition
    entry: ServerEntry
    says: EntrySpec
    index: int  # the index among the entries of the file
    transport: str  # stdio, http or unknown
    variant: str  # stable, prerelease, pinned:<version> or legacy-http
    runner: str | None  # None if the entry uses none of the server's runners
    certain: bool  # False if the address may be another program's, and the name does not show whose it is
    own_way: bool  # whether the user has chosen a way to start it that no definition has
    shadowed: bool = False  # whether a later entry has the same name; clients use the last one


def matches(entries: Sequence[ServerEntry], servers: Iterable[ServerDefinition], dialect: Dialect) -> tuple[Match, ...]:
    """All entries of the servers, in the order of the file. An entry's name is more important than its content."""
    known = tuple(servers)
    last = {entry.name: index for index, entry in enumerate(entries)}
    found = []
    for index, entry in enumerate(entries):
        says = spec_of(entry, dialect)
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
                _is_own_way(says, server),
                last[entry.name] != index,
            )
        )
    return tuple(found)


def _owner(
    entry: ServerEntry, says: EntrySpec, servers: tuple[ServerDefinition, ...]
) -> tuple[ServerDefinition, bool] | None:
    for server in servers:
        if _any(server.detection.keys, entry.name):
            return server, True
    command = _line(says)
    for server in servers:
        if (command and _any(server.detection.commands, command)) or (
            says.url and _any_address(server.detection.urls, says.url)
        ):
            return server, True
    for server in servers:
        if says.url and _any_address(server.detection.weak_urls, says.url):
            return server, _any(server.detection.weak_keys, entry.name)
    return None


def _line(says: EntrySpec) -> str:
    return " ".join((says.command, *says.args)) if says.command else ""


def _any(patterns: tuple[str, ...], text: str) -> bool:
    # `re` caches compiled patterns, so each is compiled only once, and only if it is needed.
    return any(re.search(pattern, text[:SEEN_CHARACTERS], re.IGNORECASE) for pattern in patterns)


def _any_address(patterns: tuple[str, ...], url: str) -> bool:
    """Whether a pattern matches a whole host, or a path from its slash on; part of a host may be another's.

    User name, query and fragment do not count: they can contain any text.
    """
    parts = _ADDRESS.match(url[:SEEN_CHARACTERS].strip())
    assert parts is not None  # every part may be empty
    before, host, port, path = parts.groups("")
    text, begin = before + host + port + path, len(before)
    end, path_at = begin + len(host), begin + len(host + port)
    return any(
        (found.start() <= begin and found.end() >= end) or (found.start() >= path_at and re.match("/(?!/)", found[0]))
        for pattern in patterns
        for found in re.finditer(pattern, text, re.IGNORECASE)
    )


def _variant(says: EntrySpec, server: ServerDefinition) -> str:
    if server.transport == STDIO and transport_of(says) == HTTP:
        return LEGACY_HTTP
    args, _ = divided(says.args, server)
    unpinned = STABLE
    for word, following in zip(args, (*args[1:], ""), strict=False):
        option, _, value = word.partition("=")
        if option == "--version" and (value or following):
            return f"{PINNED}:{value or following}"
        if option == "--prerelease":
            unpinned = STABLE if (value or following) in _STABLE_AFTER_ALL else PRERELEASE
        named = re.fullmatch(_PINNED_NAME, word) if "@" in word or "==" in word else None
        if named is not None and named[2] != _NEWEST and not named[2].endswith(_MINOR):
            return f"{PINNED}:{named[2]}"
    return unpinned


def _runner(says: EntrySpec, server: ServerDefinition) -> str | None:
    """The runner, recognised by its program, with any version and further arguments; None if it is none of ours."""
    if not says.command or not (_ends(server).intersection(says.args) or _any(server.detection.commands, _line(says))):
        return None
    program = base_name(without_dotnet(says).command)
    for name, variants in ((server.runner, server.variants), *server.runners.items()):
        if name == PATH_RUNNER:
            if program in PROGRAM_NAMES or runs_our_module(says):
                return name
        elif name and any(base_name(without_dotnet(one).command) == program for one in variants.values()):
            return name
    return None


def _is_own_way(says: EntrySpec, server: ServerDefinition) -> bool:
    line = _line(says)
    if not server.runner or _ends(server).isdisjoint(line.split()) or not _any(server.detection.commands, line):
        return False
    if _runner(says, server) is None:
        return True
    args = divided(without_dotnet(says).args, server)[0]
    known = {_unpinned(word) for one in _definitions(server) for word in one.args}
    known |= set(RUNS_MODULE) if runs_our_module(says) else set()
    return any(
        _unpinned(word) not in known and before != "--version" for before, word in zip(("", *args), args, strict=False)
    )


def _unpinned(word: str) -> str:
    """An argument without its version or option value, which differ between variants of the same way to start."""
    named = re.fullmatch(_PINNED_NAME, word.replace("{version}", "0").replace("{minor}", "0"))
    return named[1] if named is not None else word.partition("=")[0] if word.startswith("--") else word


def divided(args: tuple[str, ...], server: ServerDefinition) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split an entry's arguments into ours and those that the user added after them."""
    ends = _ends(server)
    at = next((number for number, word in enumerate(args, 1) if word in ends), len(args))
    return args[:at], args[at:]


def _ends(server: ServerDefinition) -> set[str]:
    """The last argument of each definition, such as `--mcp-app`."""
    return {one.args[-1] for one in _definitions(server) if one.args}


def _definitions(server: ServerDefinition) -> list[EntrySpec]:
    return [one for variants in (server.variants, *server.runners.values()) for one in variants.values()]


def without_dotnet(definition: EntrySpec) -> EntrySpec:
    if base_name(definition.command) == "dotnet" and definition.args[:1] == ("dnx",):
        return definition.replace(command="dnx", args=definition.args[1:])
    return definition


def index_version(says: EntrySpec, server: ServerDefinition) -> str | None:
    """The version of this program that a package index is asked for, "" for any; None if no index is asked."""
    words = (says.command, *divided(says.args, server)[0])
    at = next((number for number, word in enumerate(words, 1) if base_name(word) in _INDEX_RUNNERS), None)
    if at is None or _INDEX_RUNNERS[base_name(words[at - 1])] not in ("", *words[at:]):
        return None
    options = (word.partition("=") for word in words[at:])
    following = (*words[at + 1 :], "")
    sources = [value or then for (name, _, value), then in zip(options, following, strict=False) if name in _SOURCES]
    named = (_INDEX_NAME.fullmatch(word.replace(" ", "")) for word in sources or words[at:])
    found = next((one for one in named if one is not None), None)
    if found is None:
        return None
    return found[1] if found[1] and found[1] != _NEWEST else ""


def runs_our_module(says: EntrySpec) -> bool:
    """Whether the command is `python -m uno_devserver`, with or without -P."""
    args = says.args[1:] if says.args[:1] == RUNS_MODULE[:1] else says.args
    return base_name(says.command).startswith("python") and args[:2] == RUNS_MODULE[1:]
