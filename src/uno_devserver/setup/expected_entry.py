"""The expected content of an entry, whether an entry has it, and the new content of an outdated entry.

The runner of an entry and further arguments are the user's choice, and are kept; but in a file of a workspace, further
arguments and settings that decide what runs may have come with a repository. An entry with a way to start of its own is
up to date until another runner or variant is requested. An entry that takes this program from a package index names its
minor version; until there is a release, the default is the path of this program instead.
"""

from __future__ import annotations

import os
import re

from .entry_command import PROGRAM_NAMES, RUNS_MODULE, base_name, is_absolute, own_command
from .entry_format import APPROVAL_KEYS, ENV_KEYS, decides, environments, is_deciding, launch_settings
from .entry_match import PATH_RUNNER, divided, index_version, runs_our_module, without_dotnet
from .profiles import HTTP, STDIO, Scope
from .server_definition import STABLE, EntrySpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .edits.document import ServerEntry
    from .entry_match import Match
    from .profiles import Dialect, Place, Profile
    from .server_definition import ServerDefinition, VariantChoice

TRUST_VARIABLE = "UNO_DEVSERVER_TRUST"  # as in workspace/trust.py, which takes longer to import
AGREES = f"sets {TRUST_VARIABLE}, which agrees in your name that code of the workspace runs"
_PROGRAM = "{program}"  # stands for the command of this program in a definition


def expected(server: ServerDefinition, choice: VariantChoice, runner: str | None = None) -> EntrySpec:
    """The expected content of an entry, for `runner`, else for the chosen runner, else for the default."""
    kind, _, version = choice.variant.partition(":")
    variants = server.runners.get(runner or choice.runner or default_runner(server, choice), server.variants)
    wanted = variants.get(kind) or variants.get(STABLE) or next(iter(variants.values()))
    command, *before = own_command() if wanted.command == _PROGRAM else (wanted.command,)
    minor = _minor(choice.tool)

    def filled(text: str) -> str:
        return text.replace("{version}", version).replace("{minor}", minor)

    return EntrySpec(
        filled(command),
        (*before, *(filled(one) for one in wanted.args), *server.folder_words),
        {name: filled(value) for name, value in wanted.env.items()},
        filled(wanted.url),
    )


def _minor(version: str) -> str:
    """The first two numbers of a version."""
    found = re.match(r"\d+(\.\d+)?", version)
    return found[0] if found is not None else ""


def default_runner(server: ServerDefinition, choice: VariantChoice) -> str:
    """The runner of a new entry: the server's, but the path of this program as long as its name may be another's."""
    unreleased = PATH_RUNNER in server.runners and not (choice.released or choice.asked)
    return PATH_RUNNER if unreleased else server.runner


def index_problem(says: EntrySpec, server: ServerDefinition, choice: VariantChoice) -> str:
    """The end of a sentence: what is wrong with taking this program from a package index; "" if nothing is."""
    version = index_version(says, server) if PATH_RUNNER in server.runners else None
    if version is None or (choice.released and version == f"{_minor(choice.tool)}.*"):
        return ""
    if not choice.released:
        name = PROGRAM_NAMES[0]
        return f"runs whatever has the name {name} on the package index: version {choice.tool} of it is not released"
    if not version:
        return "runs each later version unseen, because it names none"
    return f"runs version {version}, and this program is {choice.tool}"


def renewed(match: Match, choice: VariantChoice, *, keeps: bool = True) -> EntrySpec:
    """The new content of an outdated entry, with the user's arguments after ours if it `keeps` them."""
    definition = expected(match.server, meant(choice, match), kept_runner(match, choice))
    users = divided(match.says.args, match.server)[1] if keeps else ()
    return definition.replace(args=(*definition.args, *users))


def kept_runner(match: Match, choice: VariantChoice) -> str | None:
    """The runner of an entry after a change; None for an entry that has none of the server's."""
    if choice.runner is not None:
        return choice.runner
    # A path cannot select a version; and what the server is usually started by depends on this program.
    usual = match.runner == match.server.runner or (match.runner == PATH_RUNNER and choice.asked)
    return default_runner(match.server, choice) if usual else match.runner


def meant(choice: VariantChoice, match: Match) -> VariantChoice:
    """The choice for an entry: unless the user chose a variant, an entry with another runner keeps its own."""
    if choice.asked or choice.runner is not None or match.runner in (None, match.server.runner):
        return choice
    return choice.replace(variant=match.variant)


def brought_along(match: Match, place: Place, profile: Profile, choice: VariantChoice) -> tuple[str, ...]:
    """What decides what an entry in a workspace's file runs, beyond what we write: in words, without secrets."""
    if profile.holder(place) is not Scope.WORKSPACE:
        return ()
    its_settings = launch_settings(match.entry, place.dialect)
    if match.server.transport != STDIO:
        return tuple(f"{key}={_shown_text(value)}" for key, value in its_settings.items() if is_deciding(key))
    from ..system.command_lines import quoted_line
    from ..system.text import shown_words

    ours = expected(match.server, meant(choice, match), kept_runner(match, choice)).env
    _, arguments = divided(match.says.args, match.server)
    words = [f"the arguments {quoted_line(shown_words(('', *arguments))[1:])}"] if arguments else []
    its = environments(match.entry, place.dialect)
    words += [_shown(name, value) for name, value in its.items() if decides(name) and value != ours.get(name)]
    for key, value in its_settings.items():
        is_environment = key in (place.dialect.env_key, *ENV_KEYS) and isinstance(value, dict)
        if not is_environment and not (match.transport == HTTP and value == match.says.url):
            words.append(f"{key}={_shown_text(value)}")
    return tuple(words)


def kept_settings(match: Match, place: Place, profile: Profile) -> tuple[str, ...]:
    """Variables and approvals of an entry in a workspace's file, in the same words: they stay, and are told."""
    if profile.holder(place) is not Scope.WORKSPACE:
        return ()
    its = environments(match.entry, place.dialect) if match.server.transport == STDIO else {}
    approvals = {key: value for key in APPROVAL_KEYS if (value := (match.entry.settings or {}).get(key))}
    return tuple(_shown(name, value) for name, value in {**its, **approvals}.items() if not decides(name))


def _shown(name: str, value: object) -> str:
    from ..system.text import shown_variable

    return f"{name}={shown_variable(name, _text(value))}"


def _shown_text(value: object) -> str:
    from ..system.text import shown_text

    return shown_text(_text(value))


def _text(value: object) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, default=str)


def agrees_for_the_user(match: Match, place: Place, profile: Profile) -> bool:
    """Whether an entry in a workspace's file sets the variable by which users agree that the workspace's code runs."""
    if match.server.transport != STDIO or profile.holder(place) is not Scope.WORKSPACE:
        return False
    return TRUST_VARIABLE in (name.upper() for name in environments(match.entry, place.dialect))  # as Windows has it


def without_further(match: Match, choice: VariantChoice) -> EntrySpec:
    """The content of an entry that is up to date, without further arguments and variables."""
    says = match.says
    ours = expected(match.server, meant(choice, match), kept_runner(match, choice))
    return says.replace(args=divided(says.args, match.server)[0], env=ours.env)


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
    if kept_runner(match, choice) != match.runner:
        return False
    if match.runner == PATH_RUNNER:
        return _is_our_program(says, match.server) and not choice.asked
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


def _is_our_program(says: EntrySpec, server: ServerDefinition) -> bool:
    args = (*server.runners[PATH_RUNNER][STABLE].args, *server.folder_words)
    if base_name(says.command) in PROGRAM_NAMES:
        return says.args == args
    return runs_our_module(says) and says.args == (*RUNS_MODULE, *args)
