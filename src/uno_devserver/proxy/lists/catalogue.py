"""Stores the lists that an upstream offered last, so that a proxy lists tools before it has an upstream.

There is one file per upstream, readable by its user only. A file that cannot be used is skipped and logged; a list of
tools is never replaced by an empty one. Cheap to import and to read: of the lists, only the names are decoded.
"""

from __future__ import annotations

import json
import os

from ...system.files import FileProblem
from ...system.log import log
from ...system.state_files import name_for, read_own, sha256, write_own
from ...system.values import Value, field_names
from ..own_tools import OwnToolFacts
from .merge import Offered, ServerOffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..options import ProxyOptions
    from .merge import Entries


VERSION = 1
MAX_BYTES = 32 * 1024 * 1024  # a thousand tools with long descriptions have 2 MB
MAX_TOOLS = 10_000
MAX_NAME = 128  # the longest name of a tool that MCP allows
NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./")
HASH_DIGITS = 16  # as in the .NET tool's cache

# The files of a workspace. `workspace/` has the rules, but the first list cannot wait for its import.
SOLUTIONS = (".sln", ".slnx")
GLOBAL_JSON = "global.json"
CONFIG = os.path.join(".devtools", "host.config.jsonc")
ADDINS = os.path.join(".devtools", "addins")


class CatalogueIdentity(Value):
    """The upstream of a catalogue. It is stored in the file, because file names may collide."""

    workspace: str  # the folder, if the upstream depends on it
    command: str | None = None  # the name of the program, and a digest of the whole command line
    url: str | None = None  # the URL without its secrets, and a digest of the whole URL


class Catalogue(Value):
    offered: Offered
    server: Mapping[str, Any]  # the upstream's serverInfo, unchanged
    capabilities: Mapping[str, Any]
    instructions: str | None
    saved_at: float  # in seconds since 1970
    sdk_version: str | None = None  # of the workspace
    selects_solution: bool = True  # whether the workspace had solutions
    hot_reload: bool = False
    servers: tuple[ServerOffer, ...] = ()  # the further servers


def identity_of(options: ProxyOptions) -> CatalogueIdentity:
    if options.url is not None:
        from ...system.text import shown_url

        return CatalogueIdentity(
            "", url=f"{shown_url(options.url)} {sha256(options.url.encode('utf-8', 'surrogatepass'))}"
        )
    words = [*options.command, *(word for server in options.servers for word in server), *(options.entries or ())]
    if not words:
        return identity_in(options.directory)
    digest = sha256("\0".join(words).encode("utf-8", "surrogatepass"))
    return _of_folder(options.directory).replace(command=f"{os.path.basename(words[0])} {digest}")


def identity_in(directory: str) -> CatalogueIdentity:
    """The identity of a Host's workspace, the same for all folders below its global.json or `.devtools`."""
    folder = start = os.path.realpath(directory)
    while not any(os.path.exists(os.path.join(folder, name)) for name in (GLOBAL_JSON, CONFIG, ADDINS)):
        above = os.path.dirname(folder)
        if above == folder:
            return _of_folder(start)
        folder = above
    return _of_folder(folder)


def _of_folder(directory: str) -> CatalogueIdentity:
    return CatalogueIdentity(os.path.normcase(os.path.realpath(directory)))


def own_tool_facts(options: ProxyOptions, kept: Catalogue | None) -> OwnToolFacts:
    """Return the facts that decide which of our tools to list before the workspace is resolved: those of the last time.

    At the very first start, the files in the folder decide; after a wrong guess, a tool too many is listed briefly, but
    none is missing, because some clients list only once.
    """
    by_workspace, forced = options.uses_host, options.force_fallback
    if kept is not None:
        selects = by_workspace and kept.selects_solution
        uno = by_workspace and kept.sdk_version is not None
        reloads = kept.hot_reload or options.watch
        return OwnToolFacts(by_workspace, selects, fallback=forced, hot_reload=reloads, uno=uno)
    if not by_workspace or forced:
        reloads = options.watch or (bool(options.command) and _reloads_near(options.directory))
        return OwnToolFacts(by_workspace, by_workspace, fallback=forced, hot_reload=reloads, uno=by_workspace)
    return _guessed_facts(options.directory)


def _reloads_near(directory: str) -> bool:
    """Whether code of a typed command is reloaded, because a config near it says where that is."""
    from ...workspace.devtools_folder import find_config

    path = find_config(directory)
    if path is None:
        return False
    from ...workspace.config import read_config  # imported late: the first answer waits for this
    from ...workspace.trust import is_trusted

    return is_trusted(os.environ, os.path.dirname(os.path.dirname(path))) and read_config(path).hot_reload.enabled


def _guessed_facts(directory: str) -> OwnToolFacts:
    """Guess from a folder: a workspace with solutions, one with its own server or add-ins, or no workspace."""
    from ...workspace.devtools_folder import config_in  # imported late: not needed with a catalogue
    from ...workspace.paths import absolute, upwards

    start = absolute(directory)
    try:
        found = any(name.lower().endswith(SOLUTIONS) for name in os.listdir(start))
    except OSError:
        found = False
    for folder in upwards(start):
        if config_in(folder) or os.path.isdir(os.path.join(folder, ADDINS)):
            return _own_code(start, folder)
        found = found or os.path.isfile(os.path.join(folder, GLOBAL_JSON))
    return OwnToolFacts(by_workspace=True, selects_solution=True, fallback=not found)


def _own_code(start: str, folder: str) -> OwnToolFacts:
    """The facts of a workspace that names a server or has add-ins, in `folder`; the proxy was started in `start`.

    Its code is reloaded if the user trusts it.
    """
    from ...workspace.config import read_config  # imported late: few first starts need it
    from ...workspace.devtools_folder import config_in
    from ...workspace.global_json import find_global_json, read_global_json
    from ...workspace.trust import is_trusted

    config = read_config(config_in(folder))
    path = find_global_json(start)
    uno = path is not None and read_global_json(path).uno_sdk is not None
    has_main = config.names_server or not config.servers or uno or os.path.isdir(os.path.join(folder, ADDINS))
    served = (config, *config.servers) if has_main else config.servers
    reloads = any(each.reloads for each in served) and is_trusted(os.environ, folder)
    return OwnToolFacts(by_workspace=True, selects_solution=not config.names_server, hot_reload=reloads, uno=uno)


def path_of(state: str, identity: CatalogueIdentity) -> str:
    """Return the path of the file below `state`, the folder of our own state."""
    if identity.url is not None:
        host = identity.url.partition("://")[2].partition(" ")[0].partition("/")[0]
        name = name_for(os.path.join(os.sep, identity.url), shown=host)
    else:
        path = os.path.join(identity.workspace, identity.command or "")
        name = name_for(path, shown=os.path.basename(identity.workspace))
    return os.path.join(state, "catalogue", f"{name}.json")


def load(state: str, identity: CatalogueIdentity) -> tuple[Catalogue | None, str]:
    """Return the catalogue, or None; and a sentence for the log if the file cannot be used, or ""."""
    path = path_of(state, identity)
    try:
        return _read(read_own(path, MAX_BYTES), identity), ""
    except FileNotFoundError:
        return None, ""
    except FileProblem as problem:
        return None, f"The tool catalogue cannot be read: {problem}."
    except _Unusable as why:
        return None, f"The tool catalogue {path} is not used: {why}."
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        return None, f"The tool catalogue {path} is not used: it is damaged ({type(error).__name__}: {error})."


def save(state: str, identity: CatalogueIdentity, catalogue: Catalogue) -> None:
    """Store the catalogue for the next start. Waits for the disk; a failure is only logged."""
    tools = _storable(catalogue.offered).tools
    if not tools and not catalogue.servers and (kept := load(state, identity)[0]) and kept.offered.tools:
        log.debug("The tool catalogue stays as it is: the upstream has no tools at the moment.")
        return
    servers = tuple(each.replace(offered=_storable(each.offered)) for each in catalogue.servers)
    data = _written(identity, catalogue.replace(offered=_storable(catalogue.offered), servers=servers))
    if len(data) > MAX_BYTES or len(tools) > MAX_TOOLS:
        log.debug(f"The upstream offers too much for a tool catalogue: {len(tools):,} tools, {len(data):,} bytes.")
        return
    try:
        write_own(path_of(state, identity), data)
    except OSError as error:
        log.warn(f"The tool catalogue cannot be written, so the next start will list no tools at first: {error}")


def _storable(offered: Offered) -> Offered:
    """The lists without tools whose names `load` refuses."""
    return offered.replace(tools=tuple((name, text) for name, text in offered.tools if _is_name(name)))


class _Unusable(Exception):
    pass


def _read(data: bytes, identity: CatalogueIdentity) -> Catalogue:
    first, _, sealed = data.partition(b"\n")
    seal = json.loads(first)
    if seal["version"] != VERSION:
        raise _Unusable("another version of uno-devserver wrote it")
    if seal["sha256"] != sha256(sealed):
        raise _Unusable("its checksum is wrong")
    first, *lines = sealed.removesuffix(b"\n").split(b"\n")
    about = json.loads(first)
    if (
        about["workspaceHash"] != _workspace_hash(identity)
        or CatalogueIdentity(about["workspace"], about["command"], about["url"]) != identity
    ):
        raise _Unusable("it belongs to another workspace or server")
    servers = about.get("servers", ())  # older versions wrote none
    named = [[each["names"][name] for name in field_names(Offered)] for each in (about, *servers)]
    if any(len(names[0]) > MAX_TOOLS or not all(_is_name(name) for name in names[0]) for names in named):
        raise _Unusable("it has too many tools, or invalid names of tools")
    if sum(len(names) for each in named for names in each) != len(lines):
        raise _Unusable("its number of entries is wrong")
    following = iter(lines)
    # The names come first: at the end of its names, `zip` must not take an entry of the next list.
    offers = [Offered(*(tuple(zip(names, following, strict=False)) for names in each)) for each in named]
    return Catalogue(
        offers[0],
        about["serverInfo"],
        about["capabilities"],
        about["instructions"],
        float(about["timestamp"]),
        about["unoSdkVersion"],
        # Files of older versions have neither of these members.
        about.get("selectsSolution", about.get("usesHost")) is not False,
        about.get("hotReload") is True,
        tuple(
            ServerOffer(each["name"], offered, each["prefix"], each["instructions"])
            for each, offered in zip(servers, offers[1:], strict=True)
        ),
    )


def _written(identity: CatalogueIdentity, catalogue: Catalogue) -> bytes:
    """Make a line with version and checksum, a line about the upstream, then a line for each entry of the lists."""
    about = {
        "workspace": identity.workspace,
        "workspaceHash": _workspace_hash(identity),
        "command": identity.command,
        "url": identity.url,
        "unoSdkVersion": catalogue.sdk_version,
        "selectsSolution": catalogue.selects_solution,
        "hotReload": catalogue.hot_reload,
        "timestamp": catalogue.saved_at,
        "names": _names(catalogue.offered),
        "serverInfo": catalogue.server,
        "capabilities": catalogue.capabilities,
        "instructions": catalogue.instructions,
        "servers": [
            {
                "name": each.name,
                "prefix": each.prefix,
                "instructions": each.instructions,
                "names": _names(each.offered),
            }
            for each in catalogue.servers
        ],
    }
    offers = (catalogue.offered, *(each.offered for each in catalogue.servers))
    lists: list[Entries] = [getattr(offered, name) for offered in offers for name in field_names(Offered)]
    lines = [_json(about), *(text for found in lists for _, text in found), b""]
    sealed = b"\n".join(lines)
    return _json({"version": VERSION, "sha256": sha256(sealed)}) + b"\n" + sealed


def _names(offered: Offered) -> dict[str, list[str]]:
    return {name: [entry for entry, _ in getattr(offered, name)] for name in field_names(Offered)}


def _workspace_hash(identity: CatalogueIdentity) -> str:
    return sha256(identity.workspace.encode("utf-8", "surrogatepass"))[:HASH_DIGITS]


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= MAX_NAME and NAME_CHARACTERS.issuperset(name)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
