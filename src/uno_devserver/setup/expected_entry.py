"""The expected content of an entry, whether an entry has it, and the new content of an outdated entry.

The runner of an entry and further arguments are the user's choice, and are kept. An entry with a way to start of its
own is up to date until another runner or variant is requested.
"""

from __future__ import annotations

import os

from .entry_command import PROGRAM_NAMES, RUNS_MODULE, base_name, is_absolute, own_command
from .entry_match import PATH_RUNNER, divided, runs_our_module, without_dotnet
from .profiles import HTTP
from .servers import STABLE, EntrySpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .edits.document import ServerEntry
    from .entry_match import Match
    from .profiles import Dialect
    from .servers import ServerDefinition, VariantChoice

_PROGRAM = "{program}"  # stands for the command of this program in a definition


def expected(server: ServerDefinition, choice: VariantChoice, runner: str | None = None) -> EntrySpec:
    """The expected content of an entry, for `runner`, else for the chosen runner, else for the server's default."""
    kind, _, version = choice.variant.partition(":")
    variants = server.runners.get(runner or choice.runner or server.runner, server.variants)
    wanted = variants.get(kind) or variants.get(STABLE) or next(iter(variants.values()))
    command, *before = own_command() if wanted.command == _PROGRAM else (wanted.command,)
    return EntrySpec(
        command.replace("{version}", version),
        (*before, *(one.replace("{version}", version) for one in wanted.args)),
        {name: value.replace("{version}", version) for name, value in wanted.env.items()},
        wanted.url.replace("{version}", version),
    )


def renewed(match: Match, choice: VariantChoice) -> EntrySpec:
    """The new content of an outdated entry, with the user's arguments after ours."""
    definition = expected(match.server, meant(choice, match), kept_runner(match, choice))
    _, users = divided(match.says.args, match.server)
    return definition.replace(args=(*definition.args, *users))


def kept_runner(match: Match, choice: VariantChoice) -> str | None:
    """The runner of an entry after a change; None for the server's default."""
    if choice.runner is None and choice.asked and match.runner == PATH_RUNNER:
        return None  # a path cannot select a version
    return choice.runner or match.runner


def meant(choice: VariantChoice, match: Match) -> VariantChoice:
    """The choice for an entry: unless the user chose a variant, an entry with another runner keeps its own."""
    if choice.asked or choice.runner is not None or match.runner in (None, match.server.runner):
        return choice
    return choice.replace(variant=match.variant)


def up_to_date(
    match: Match, choice: VariantChoice, dialect: Dialect, exists: Callable[[str], bool] = os.path.exists
) -> bool:
    """Whether the entry has the expected content for the chosen runner, or for any runner if none was chosen."""
    if match.transport != match.server.transport or not _has_kind_of_command(match.entry, dialect):
        return False
    says = match.says
    if match.transport == HTTP:
        return says.url == expected(match.server, choice).url and _has_needed_type(match.entry, dialect)
    if is_absolute(says.command) and not exists(says.command):
        return False
    if match.own_way and choice.runner is None and not choice.asked:
        return True
    says = says.replace(args=divided(says.args, match.server)[0])
    if choice.runner is not None:
        return _same_command(says, expected(match.server, choice))
    if match.runner == PATH_RUNNER:
        return _is_our_program(says) and not choice.asked
    wanted = meant(choice, match)
    others = (one for one in (match.server.runner, *match.server.runners) if one != PATH_RUNNER)
    return any(_same_command(says, expected(match.server, wanted, one)) for one in others)


def _has_kind_of_command(entry: ServerEntry, dialect: Dialect) -> bool:
    """Whether the command is a list or a string, whichever the client needs; it refuses or ignores the other."""
    command = (entry.settings or {}).get(dialect.command_key)
    return command is None or isinstance(command, list if dialect.one_array else str)


def _has_needed_type(entry: ServerEntry, dialect: Dialect) -> bool:
    """Whether the entry has a type if the client needs it: a client that has types only for addresses requires them."""
    return set(dialect.types) != {HTTP} or "type" in (entry.settings or {})


def _same_command(says: EntrySpec, wanted: EntrySpec) -> bool:
    """Whether both start the same program: `dotnet dnx` equals `dnx`, and a path in `says` equals its bare name."""
    says, wanted = without_dotnet(says), without_dotnet(wanted)
    if says.args != wanted.args:
        return False
    return says.command == wanted.command or (is_absolute(says.command) and base_name(says.command) == wanted.command)


def _is_our_program(says: EntrySpec) -> bool:
    if base_name(says.command) in PROGRAM_NAMES:
        return says.args == ("--mcp-app",)
    return runs_our_module(says) and says.args == (*RUNS_MODULE, "--mcp-app")
