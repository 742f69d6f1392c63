"""Recognises our entries in a file: for which server, in which variant, and with which runner."""

from __future__ import annotations

import os
import re

from ..system.values import Value
from ..workspace.paths import is_inside, same_place
from .entry_command import PROGRAM_NAMES, RUNS_MODULE, base_name, is_absolute, option_value, proxied_url
from .entry_format import spec_of, transport_of
from .profiles import HTTP, STDIO
from .server_definition import LEGACY_HTTP, NAME, PINNED, PRERELEASE, SERVER, SOLUTION_DIR, STABLE, EntrySpec, Served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .edits.document import ServerEntry
    from .profiles import Dialect
    from .server_definition import ServerDefinition

# A longer text matches no pattern: patterns may come from a user's file and take quadratic time, and a part of the text
# could match where the whole does not. A real command has a few hundred characters.
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


# Ends of sentences about an entry.
NO_OBJECT = "is null or another value without settings"
STALE_ADDRESS = "has an address beside its command, which clients may use instead"


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


def has_stale_address(match: Match) -> bool:
    """Whether an entry with a command has an address, too, as one that was registered by it before."""
    return match.transport == STDIO and bool(match.says.url)


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
        if _any(server.detection.keys, entry.name) and not _serves_elsewhere(entry.name, says, server):
            return server, True
    for server in servers:
        if _starts(says, server) and _serves(entry.name, says, server):
            return server, True
        if says.url and _any_address(server.detection.urls, says.url):
            return server, True
    for server in servers:
        if says.url and _any_address(server.detection.weak_urls, says.url):
            return server, _any(server.detection.weak_keys, entry.name)
    return None


def _starts(says: EntrySpec, server: ServerDefinition) -> bool:
    """Whether an entry's command is the server's, whichever folder it serves."""
    line = _line(says)
    if not line or len(line) > SEEN_CHARACTERS:
        return False
    url = server.served.url if server.served is not None else ""
    ours = PATH_RUNNER in server.runners and proxied_url((says.command, *says.args)) == url
    return (ours or _any(server.detection.commands, line)) and _selects(says, server)


def _selects(says: EntrySpec, server: ServerDefinition) -> bool:
    """Whether an entry serves what the server is: one entry of the config's `servers`, or all of them."""
    served, named = server.served, option_value(says.args, SERVER)
    return served is None or (named == served.entry if served.entry else named not in served.apart)


def _serves(name: str, says: EntrySpec, server: ServerDefinition) -> bool:
    """Whether an entry that starts this program is for the server, by its name and by the folder that it names."""
    served, folder = server.served, served_folder(says)
    if served is None:
        return True
    if served.url:
        return _has_name(name, server) or not served.named
    if _has_name(name, server):
        return not _serves_elsewhere(name, says, server)
    if served.named:
        return False
    if folder:
        return same_place(folder, served.folder) or not (served.own or _serves_elsewhere(name, says, server))
    # Without a folder, an entry is for the folder that its client opens. The user's entry is for all of them, and not
    # for the server of one.
    opens = server.opens
    return not served.own or (bool(opens) and any(same_place(str(opens), one) for one in served.found_from))


def _has_name(name: str, server: ServerDefinition) -> bool:
    return name.lower() == server.name.lower() or _any(server.detection.keys, name)


def _serves_elsewhere(name: str, says: EntrySpec, server: ServerDefinition) -> bool:
    """Whether an entry is for another folder.

    Under the server's own name, an entry counts also if its folder is gone, or outside of the workspace whose file it
    is in: then the folder was moved. An entry with another name may be for a folder that comes back.
    """
    served, folder = server.served, served_folder(says)
    if served is not None and served.own and not folder:
        return server.opens == ""  # in the user's file it is for all folders
    if served is None or not folder or any(same_place(folder, one) for one in (served.folder, *served.found_from)):
        return False
    if not _has_name(name, server):
        return True
    if (server.opens == "" and not served.own) or not os.path.isdir(folder):
        return False  # in the user's file, the one that its user named is for all folders
    return not server.opens or is_inside(folder, server.opens)


def served_folder(says: EntrySpec) -> str:
    """The absolute path that an entry names with --solution-dir; "" if it names none."""
    folder = option_value(says.args, SOLUTION_DIR)
    return folder if is_absolute(folder) else ""


def others_in(
    entries: Iterable[ServerEntry], servers: Iterable[ServerDefinition], dialect: Dialect
) -> Iterator[ServerDefinition]:
    """The servers of other folders and at URLs that entries of this program are for, by the names of these entries."""
    known = [server for server in servers if server.served is not None]
    for entry in entries:
        if NAME.fullmatch(entry.name) is None:
            continue  # no option can name it
        says = spec_of(entry, dialect)
        for server in known:
            url = proxied_url((says.command, *says.args)) if PATH_RUNNER in server.runners else None
            if url and not _any(server.detection.keys, entry.name):
                yield server.of_url(entry.name, url)
            elif served_folder(says) and _starts(says, server) and _serves_elsewhere(entry.name, says, server):
                yield server.of_folder(entry.name, Served(served_folder(says), own=True, named=True))


def _line(says: EntrySpec) -> str:
    return " ".join((says.command, *says.args)) if says.command else ""


def _any(patterns: tuple[str, ...], text: str) -> bool:
    if len(text) > SEEN_CHARACTERS:
        return False
    # `re` caches compiled patterns, so each is compiled only once, and only if it is needed.
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _any_address(patterns: tuple[str, ...], url: str) -> bool:
    """Whether a pattern matches a whole host, or a path from its slash on; part of a host may be another's.

    User name, query and fragment do not count: they can contain any text.
    """
    if len(url) > SEEN_CHARACTERS:
        return False
    parts = _ADDRESS.match(url.strip())
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
    if not says.command or not (_ends(server).intersection(says.args) or _starts(says, server)):
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
    words = (says.command, *says.args)
    parts = (says.replace(command=word, args=words[at:]) for at, word in enumerate(words, 1))  # after any other program
    if (
        not server.runner
        or _ends(server).isdisjoint(_line(says).split())
        or not any(_starts(one, server) for one in parts)
    ):
        return False
    if _runner(says, server) is None:
        return True
    args = without_dotnet(says).args
    args = args[: _end(args, server)]
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
    """Split an entry's arguments into ours, with the folder if it is to be named, and those that the user added."""
    at = _end(args, server)
    if server.folder_words and args[at : at + 1] == (SOLUTION_DIR,):
        at += 2
    return args[:at], args[at:]


def _end(args: tuple[str, ...], server: ServerDefinition) -> int:
    ends = _ends(server)
    return next((number for number, word in enumerate(args, 1) if word in ends), len(args))


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
