"""What an entry should say, whether it does, and what an outdated one becomes; pure but for a look at the disk.

Whatever starts an entry, and whatever the user put behind our arguments, is the user's choice, and kept. One that is
started in a way of its own is what it should be, until somebody asks for another.
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

_PROGRAM = "{program}"  # in a definition: the command that starts this program


def expected(server: ServerDefinition, wish: VariantChoice, runner: str | None = None) -> EntrySpec:
    """What an entry should say, started by `runner`, else by the wished one, else by the server's default."""
    kind, _, version = wish.variant.partition(":")
    variants = server.runners.get(runner or wish.runner or server.runner, server.variants)
    wanted = variants.get(kind) or variants.get(STABLE) or next(iter(variants.values()))
    command, *before = own_command() if wanted.command == _PROGRAM else (wanted.command,)
    return EntrySpec(
        command.replace("{version}", version),
        (*before, *(one.replace("{version}", version) for one in wanted.args)),
        {name: value.replace("{version}", version) for name, value in wanted.env.items()},
        wanted.url.replace("{version}", version),
    )


def renewed(match: Match, wish: VariantChoice) -> EntrySpec:
    """What an outdated entry should say, with the user's arguments behind ours."""
    definition = expected(match.server, meant(wish, match), kept_runner(match, wish))
    _, users = divided(match.says.args, match.server)
    return definition.replace(args=(*definition.args, *users))


def kept_runner(match: Match, wish: VariantChoice) -> str | None:
    """What starts an entry after it was changed; None: the server's default."""
    if wish.runner is None and wish.asked and match.runner == PATH_RUNNER:
        return None  # a path cannot say which version
    return wish.runner or match.runner


def meant(wish: VariantChoice, match: Match) -> VariantChoice:
    """Whoever asked for no variant gets this program's, but other programs have versions of their own."""
    if wish.asked or wish.runner is not None or match.runner in (None, match.server.runner):
        return wish
    return wish.replace(variant=match.variant)


def up_to_date(
    match: Match, wish: VariantChoice, dialect: Dialect, exists: Callable[[str], bool] = os.path.exists
) -> bool:
    """Whether the entry says what it should, in the form of any runner, or of the wished one."""
    if match.transport != match.server.transport or not _has_kind_of_command(match.entry, dialect):
        return False
    says = match.says
    if match.transport == HTTP:
        return says.url == expected(match.server, wish).url and _has_needed_type(match.entry, dialect)
    if is_absolute(says.command) and not exists(says.command):
        return False
    if match.own_way and wish.runner is None and not wish.asked:
        return True
    says = says.replace(args=divided(says.args, match.server)[0])
    if wish.runner is not None:
        return _same_command(says, expected(match.server, wish))
    if match.runner == PATH_RUNNER:
        return _is_our_program(says) and not wish.asked
    wanted = meant(wish, match)
    others = (one for one in (match.server.runner, *match.server.runners) if one != PATH_RUNNER)
    return any(_same_command(says, expected(match.server, wanted, one)) for one in others)


def _has_kind_of_command(entry: ServerEntry, dialect: Dialect) -> bool:
    """A list where the client takes a list, and a string where it takes a string: others it refuses, or ignores."""
    command = (entry.settings or {}).get(dialect.command_key)
    return command is None or isinstance(command, list if dialect.one_array else str)


def _has_needed_type(entry: ServerEntry, dialect: Dialect) -> bool:
    """A client whose entries have a type for addresses alone takes one without for a broken command."""
    return set(dialect.types) != {HTTP} or "type" in (entry.settings or {})


def _same_command(says: EntrySpec, wanted: EntrySpec) -> bool:
    """`dotnet dnx` is `dnx`; and a program's path, which some clients need, is as good as its bare name."""
    says, wanted = without_dotnet(says), without_dotnet(wanted)
    if says.args != wanted.args:
        return False
    return says.command == wanted.command or (is_absolute(says.command) and base_name(says.command) == wanted.command)


def _is_our_program(says: EntrySpec) -> bool:
    if base_name(says.command) in PROGRAM_NAMES:
        return says.args == ("--mcp-app",)
    return runs_our_module(says) and says.args == (*RUNS_MODULE, "--mcp-app")
