"""What the registration commands have in common: which client, workspace, servers and version are meant."""

from __future__ import annotations

import os
import re

from ... import __version__
from ...issues import UserError
from ...setup.definitions import Definitions, load
from ...setup.entry_match import PATH_RUNNER
from ...setup.paths import here
from ...setup.profiles import Scope
from ...setup.servers import PINNED, PRERELEASE, STABLE, VariantChoice
from ...system.values import Value
from ..parse import absolute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...setup.paths import Here
    from ...setup.profiles import Profile
    from ...setup.servers import ServerDefinition
    from ..parse import Invocation

PROTOCOL = "1.0"  # of the JSON that IDE extensions read
_PRERELEASE = re.compile(r"-|\d(a|b|rc|\.?dev)\d*", re.IGNORECASE)  # by SemVer, and by Python's rules
_VERSION = re.compile(r"v?[0-9][A-Za-z0-9.+!*_-]*")  # SemVer's, Python's, and NuGet's `5.*`
# What decides what is meant, besides the client: `mcp status` repeats it where it names `mcp install`.
_REPEATED = {"workspace", "solution-dir", "ide-definitions", "server-definitions"}
_REPEATED |= {"release", "prerelease", "version", "channel", "runner"}
# How alike a name must be that is suggested: of three letters, two are no sign.
_SHORT, _ALIKE_IF_SHORT, _ALIKE = 4, 0.75, 0.6
_CHANNELS = {"stable": STABLE, "prerelease": PRERELEASE}


class McpArguments(Value):
    here: Here
    definitions: Definitions
    client: Profile | None  # None: none was named
    servers: tuple[ServerDefinition, ...]
    wish: VariantChoice
    wish_from: str  # "auto-detected from tool v5.6.0", "--version"
    scope: Scope | None
    options: tuple[str, ...]  # how all of this was said, but for the client: to say it again


def mcp_arguments(invocation: Invocation) -> McpArguments:
    """Read the options; raises UserError: exit code 2, and 1 for a client that nobody knows."""
    workspace = _workspace(invocation)
    around = here(workspace)
    definitions = load(around, invocation.value("ide-definitions"), invocation.value("server-definitions"))
    wish, wish_from = _wish(invocation)
    _check_runner(wish, definitions.servers)
    return McpArguments(
        around,
        definitions,
        _client(invocation, definitions),
        _servers(invocation, definitions.servers),
        wish,
        wish_from,
        _scope(invocation),
        tuple(_said(invocation)),
    )


def _workspace(invocation: Invocation) -> str:
    named = [absolute(value) for name in ("workspace", "solution-dir") if (value := invocation.value(name))]
    if len(set(named)) > 1:
        raise _usage(
            f"--workspace and --solution-dir name two folders: {' and '.join(named)}", "Leave one of them out."
        )
    path = named[0] if named else absolute(".")
    if not os.path.isdir(path):
        raise _usage(f"Workspace directory does not exist: {path}", "Name an existing folder with --workspace.")
    if os.path.dirname(path) == path:
        raise _usage(f"Workspace cannot be a filesystem root: {path}", "Name your project's folder with --workspace.")
    return path


def _client(invocation: Invocation, definitions: Definitions) -> Profile | None:
    free, option = next(iter(invocation.arguments), None), invocation.value("ide")
    if free is not None and option is not None and free.lower() != option.lower():
        raise _usage(f"Two clients are named: '{free}' and, with --ide, '{option}'.", "Leave one of them out.")
    name = free if free is not None else option
    if name is None:
        return None
    profile = definitions.profile(name)
    if profile is None:
        known = ", ".join(one.id for one in definitions.profiles if not one.hidden)
        raise UserError("UnknownClient", f"Unknown client '{name}'. Known clients: {known}", _close(name, definitions))
    return profile


def _close(name: str, definitions: Definitions) -> str:
    from difflib import get_close_matches

    names = [other for one in definitions.profiles if not one.hidden for other in (one.id, *one.aliases)]
    family = [other for other in names if other.startswith(f"{name.lower()}-")]  # all that 'claude' may mean
    alike = get_close_matches(name.lower(), names, 1, _ALIKE if len(name) > _SHORT else _ALIKE_IF_SHORT)
    close = " or ".join(f"'{other}'" for other in family or alike)
    return f"Did you mean {close}?" if close else "Take one of these, or describe yours with --ide-definitions."


def _servers(invocation: Invocation, known: tuple[ServerDefinition, ...]) -> tuple[ServerDefinition, ...]:
    listed = invocation.value("servers")
    if listed is None:
        return known
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if not names:
        raise _usage("Empty value for --servers", f"Name some of: {', '.join(one.name for one in known)}.")
    for name in names:
        if name.lower() not in (one.name.lower() for one in known):
            listing = ", ".join(one.name for one in known)
            raise _usage(f"Unknown server '{name}'. Known servers: {listing}", "Take one of these.")
    wanted = {name.lower() for name in names}
    return tuple(one for one in known if one.name.lower() in wanted)


def _wish(invocation: Invocation) -> tuple[VariantChoice, str]:
    version, channel = invocation.value("version"), invocation.value("channel")
    chosen = [f"--{name}" for name in ("release", "prerelease") if invocation.on(name)]
    chosen += [f"--{name}" for name in ("version", "channel") if invocation.value(name) is not None]
    runner = invocation.value("runner")
    if len(chosen) > 1:
        raise _usage(f"{' and '.join(chosen)} are mutually exclusive", "Take one of them.")
    if channel is not None and channel.lower() not in _CHANNELS:
        raise _usage(f"Invalid value for --channel '{channel}'. Valid values: stable, prerelease", "Take one of these.")
    if runner == PATH_RUNNER and chosen:
        raise _usage(
            f"{chosen[0]} has no meaning with --runner path",
            f"Leave {chosen[0]} out: a path is the version that is there.",
        )
    if version is not None:
        variant = f"{PINNED}:{_checked(version.strip())}"
    elif channel is not None:
        variant = _CHANNELS[channel.lower()]
    elif chosen:
        variant = PRERELEASE if invocation.on("prerelease") else STABLE
    else:
        variant = PRERELEASE if _PRERELEASE.search(__version__) else STABLE
    return VariantChoice(variant, runner, bool(chosen)), chosen[
        0
    ] if chosen else f"auto-detected from tool v{__version__}"


def _checked(version: str) -> str:
    """It becomes part of a command line that clients start."""
    if not _VERSION.fullmatch(version):
        raise _usage(f"Invalid value for --version '{version}'", "Write one that begins with a digit: --version 1.2.3.")
    return version


def _check_runner(wish: VariantChoice, servers: tuple[ServerDefinition, ...]) -> None:
    known = {name for server in servers for name in (server.runner, *server.runners) if name}
    if wish.runner is not None and not known:
        raise _usage(
            f"Unknown runner '{wish.runner}'", "Leave --runner out: these servers are started in one way only."
        )
    if wish.runner is not None and wish.runner not in known:
        raise _usage(f"Unknown runner '{wish.runner}'. Known runners: {', '.join(sorted(known))}", "Take one of these.")


def _scope(invocation: Invocation) -> Scope | None:
    named = invocation.value("scope")
    if named is None:
        return None
    scope = next((one for one in Scope if one.value == named.lower()), None)
    if scope is None:
        raise _usage(f"Invalid value for --scope '{named}'. Valid values: workspace, user", "Take one of these.")
    return scope


def _said(invocation: Invocation) -> Iterator[str]:
    for name, value in invocation.options.items():
        if name in _REPEATED and isinstance(value, str):
            from shlex import quote

            yield f"--{name} {quote(value)}"
        elif name in _REPEATED and value:
            yield f"--{name}"


def _usage(message: str, next_step: str) -> UserError:
    return UserError("BadValue", message, next_step, exit_code=2)


def shown_path(path: str, here: Here) -> str:
    """As people call it: from the workspace, or from their home folder."""
    for folder, instead in ((here.workspace, ""), (here.home, "~/")):
        inside = path.removeprefix(folder.rstrip("/\\"))
        if inside != path and inside.startswith(("/", "\\")):
            return instead + inside[1:]
    return path
