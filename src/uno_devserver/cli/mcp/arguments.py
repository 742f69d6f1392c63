"""The arguments that the registration commands share: client, workspace, servers, version and scope."""

from __future__ import annotations

import os
import re

from ... import __version__
from ...issues import UserError
from ...setup.definitions import Definitions, load
from ...setup.entry_match import PATH_RUNNER
from ...setup.paths import here
from ...setup.profiles import Scope
from ...setup.servers import PINNED, PRERELEASE, STABLE, VariantChoice, is_release
from ...system.values import Value
from ..parse import absolute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...setup.paths import Here
    from ...setup.profiles import Profile
    from ...setup.servers import ServerDefinition
    from ..parse import Invocation

PROTOCOL = "1.0"  # the version of the JSON format that IDE extensions read
_VERSION = re.compile(r"v?[0-9][A-Za-z0-9.+!*_-]*")  # versions of SemVer and Python, and NuGet's `5.*`
# Options that `mcp status` repeats in the commands that it suggests.
_REPEATED = {"workspace", "solution-dir", "ide-definitions", "server-definitions"}
_REPEATED |= {"release", "prerelease", "version", "channel", "runner"}
# How similar a suggested name must be (1 is equal): names of at most `_SHORT` letters more than others.
_SHORT, _ALIKE_IF_SHORT, _ALIKE = 4, 0.75, 0.6
_CHANNELS = {"stable": STABLE, "prerelease": PRERELEASE}


class McpArguments(Value):
    here: Here
    definitions: Definitions
    client: Profile | None  # None if no client was named
    servers: tuple[ServerDefinition, ...]
    variant: VariantChoice
    variant_from: str  # "auto-detected from tool v5.6.0", "--version"
    scope: Scope | None
    options: tuple[str, ...]  # the options to repeat in suggested commands


def mcp_arguments(invocation: Invocation) -> McpArguments:
    """Read the options; raises UserError with exit code 2 if they are wrong, or 1 for an unknown client."""
    machine = here(_workspace(invocation))
    definitions = load(machine, invocation.value("ide-definitions"), invocation.value("server-definitions"))
    variant, variant_from = _variant(invocation)
    _check_runner(variant, definitions.servers)
    return McpArguments(
        machine,
        definitions,
        _client(invocation, definitions),
        _servers(invocation, definitions.servers),
        variant,
        variant_from,
        _scope(invocation),
        tuple(_repeated(invocation)),
    )


def _workspace(invocation: Invocation) -> str:
    named = [absolute(value) for name in ("workspace", "solution-dir") if (value := invocation.value(name))]
    if len(set(named)) > 1:
        message = f"--workspace and --solution-dir name two folders: {' and '.join(named)}"
        raise _usage(message, "Leave one of them out.")
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
        known = ", ".join(one.id for one in definitions.clients)
        raise UserError("UnknownClient", f"Unknown client '{name}'. Known clients: {known}", _close(name, definitions))
    return profile


def _close(name: str, definitions: Definitions) -> str:
    from difflib import get_close_matches

    names = [other for one in definitions.profiles if not one.hidden for other in (one.id, *one.aliases)]
    family = [other for other in names if other.startswith(f"{name.lower()}-")]  # 'claude' may mean several clients
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
            from shlex import quote

            yield f"--{name} {quote(value)}"
        elif name in _REPEATED and value:
            yield f"--{name}"


def _usage(message: str, next_step: str) -> UserError:
    return UserError("BadValue", message, next_step, exit_code=2)


def shown_path(path: str, here: Here) -> str:
    """The path, shortened if it is in the workspace or in the home folder."""
    for folder, instead in ((here.workspace, ""), (here.home, "~/")):
        inside = path.removeprefix(folder.rstrip("/\\"))
        if inside != path and inside.startswith(("/", "\\")):
            return instead + inside[1:]
    return path
