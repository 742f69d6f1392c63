"""Finds out whether an entry may have come with the workspace, and could start anything that its author wants.

A repository can contain a client's file. An entry in it counts as registered only if its command is one that `mcp
install` writes, and `mcp doctor` starts it only if, in addition, nothing else of the workspace decides what runs.
"""

from __future__ import annotations

import os
import re

from ..system.programs import named_program_candidates
from .entry_command import base_name, find_command, own_command
from .entry_format import launch_settings
from .entry_match import PATH_RUNNER, divided, has_stale_address, index_version, served_folder, without_dotnet
from .expected_entry import brought_along, expected, renewed, up_to_date
from .profiles import HTTP, STDIO, Scope
from .server_definition import UPSTREAM_URL, VariantChoice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .entry_match import Match
    from .paths import Here
    from .profiles import Place, Profile

_OTHER_COMMAND = (
    "has a command that 'mcp install' does not write: it may have come with the workspace, and run another program"
)
# Runners that use no settings from their working folder. Others do: dnx uses the feeds of a NuGet.config there, npx
# prefers node_modules, and `python -m` imports from the folder itself.
_ISOLATED_RUNNERS = ("uvx", PATH_RUNNER)
# After `name@` there can also be a file of the workspace.
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc|\.dev|\.post)\d+)*")
_FURTHER_SETTINGS = ("headers", "http_headers", "bearer_token_env_var", "bearerTokenEnvVar")


def is_current(match: Match, place: Place, profile: Profile, choice: VariantChoice, here: Here) -> bool:
    """Whether an entry has the expected content, and nothing that may have come with the workspace."""
    return (
        up_to_date(match, choice, place.dialect)
        and not has_stale_address(match)
        and not brought_along(match, place, profile, choice)
        and not other_command(match, place, profile, choice, here)
    )


def other_command(match: Match, place: Place, profile: Profile, choice: VariantChoice, here: Here) -> str:
    """The command of an entry in a workspace's file, without secrets, if `mcp install` does not write it; else ""."""
    if match.transport != STDIO or profile.holder(place) is not Scope.WORKSPACE:
        return ""
    says, ours = match.says, renewed(match, choice, keeps=False)
    command = says.replace(args=divided(says.args, match.server)[0])
    if (command.command, command.args) == (ours.command, ours.args) or _is_installed(match, here):
        return ""
    from ..system.command_lines import quoted_line
    from ..system.text import shown_words

    return quoted_line(shown_words((says.command, *says.args)))


def why_other(match: Match, here: Here) -> str:
    """The end of a sentence: what is wrong with an entry that has another command; its folder may have been moved."""
    folder, served = served_folder(match.says), match.server.served
    if served is None or not folder or os.path.isdir(folder):
        return _OTHER_COMMAND
    there = match.server.replace(served=served.replace(folder=folder, own=True, found_from=()))
    written = _is_installed(match.replace(server=there), here)
    return f"is for the folder '{folder}', which does not exist" if written else _OTHER_COMMAND


def may_be_foreign(match: Match, place: Place, here: Here) -> bool:
    """Whether an entry is to be started only with the user's consent.

    Where the home folder is the workspace, or is below it, the user's own files are nevertheless the user's.
    """
    is_users = place.scope is Scope.USER and _is_in_workspace(here.path_rules.join(here.home, "any"), here)
    return not is_users and _is_in_workspace(place.path, here) and not _is_safe(match, place, here)


def foreign_url(match: Match, place: Place, here: Here) -> str:
    """The end of a sentence: the server at a URL of an entry that may have come with the workspace; else ""."""
    url = match.server.served.url if match.server.served is not None else ""
    if not url or not may_be_foreign(match, place, here):
        return ""
    from ..system.text import shown_text

    return f"is for a server that may have come with the workspace: {shown_text(url)}"


def with_reserve(step: str, match: Match, place: Place, here: Here) -> str:
    """The step; if it registers a URL that may have come with the workspace, it is for a user who knows the server."""
    is_reserved = UPSTREAM_URL in step and foreign_url(match, place, here)
    return f"{step} Do that only if you know this server." if is_reserved else step


def _is_in_workspace(path: str, here: Here) -> bool:
    rules = here.path_rules
    folder: str = rules.join(rules.normcase(rules.normpath(here.workspace)), "")
    return str(rules.normcase(rules.normpath(path))).startswith(folder)


def _is_safe(match: Match, place: Place, here: Here) -> bool:
    says = match.says
    further = launch_settings(match.entry, place.dialect).values()
    if any(match.transport != HTTP or value != says.url for value in further):
        return False
    if any(key in (match.entry.settings or {}) for key in _FURTHER_SETTINGS):
        return False
    if match.server.served is not None and match.server.served.url:
        return False  # the file's own word
    if match.transport == HTTP:
        return says.url in {one.url for one in match.server.variants.values()}
    further_arguments = divided(says.args, match.server)[1]
    return match.runner in _ISOLATED_RUNNERS and not further_arguments and _is_installed(match, here)


def _is_installed(match: Match, here: Here) -> bool:
    """Whether the command is one that `mcp install` writes, in this or another version, or this program on PATH."""
    says, server = without_dotnet(match.says), match.server
    args = divided(says.args, server)[0]
    if match.runner == PATH_RUNNER:
        ours = expected(server, VariantChoice(match.variant), PATH_RUNNER)
        if (says.command, args) == (ours.command, ours.args):
            return True
        variants = server.runners.get(PATH_RUNNER, server.variants).values()
        as_written = any(args == (*one.args, *server.folder_words) for one in variants)
        return as_written and _is_users_program(says.command, here)
    asked = index_version(says, server)
    version = (asked or "").removesuffix(".*")
    ours = expected(server, VariantChoice(match.variant, tool=version), match.runner)
    if args != ours.args or base_name(says.command) != base_name(ours.command):
        return False
    named = not any(separator in match.says.command for separator in "/\\")
    return (asked is None or _VERSION.fullmatch(version) is not None) and (
        named or _is_users_program(match.says.command, here)
    )


def _is_users_program(command: str, here: Here) -> bool:
    """Whether the command is this program, or names one on PATH outside of the workspace, or none that is there."""
    if command == own_command()[0]:
        return True
    if any(separator in command for separator in "/\\"):
        on_path = named_program_candidates(base_name(command), "", here.environ, here.platform)
        return command in on_path and not _is_in_workspace(command, here)
    found = find_command(command, "", here.environ, here.platform)
    return found is None or found == own_command()[0] or not _is_in_workspace(found, here)
