"""Finds out whether an entry may have come with the workspace, and could start anything that its author wants.

A repository can contain a client's file. An entry in it is used without the user's consent only if it is exactly what
`mcp install` writes, and no file of the workspace can influence which program it starts.
"""

from __future__ import annotations

import re

from ...system.programs import named_program_candidates
from ..entry_command import base_name, own_command
from ..entry_format import launch_settings
from ..entry_match import PATH_RUNNER, index_version
from ..expected_entry import expected
from ..profiles import HTTP
from ..servers import VariantChoice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..entry_match import Match
    from ..paths import Here
    from ..profiles import Place

# uvx uses no settings from its working folder. Others do: dnx uses the feeds of a NuGet.config there, npx prefers
# node_modules, and `python -m` imports from the folder itself.
_ISOLATED_RUNNER = "uvx"
# After `name@` there can also be a file of the workspace.
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc|\.dev|\.post)\d+)*")
_FURTHER_SETTINGS = ("headers", "http_headers", "bearer_token_env_var", "bearerTokenEnvVar")


def may_be_foreign(match: Match, place: Place, here: Here) -> bool:
    return _is_in_workspace(place.path, here) and not _is_as_installed(match, place, here)


def _is_in_workspace(path: str, here: Here) -> bool:
    rules = here.path_rules
    folder: str = rules.join(rules.normcase(rules.normpath(here.workspace)), "")
    return str(rules.normcase(rules.normpath(path))).startswith(folder)


def _is_as_installed(match: Match, place: Place, here: Here) -> bool:
    says = match.says
    further = launch_settings(match.entry, place.dialect).values()
    if any(match.transport != HTTP or value != says.url for value in further):
        return False
    if any(key in (match.entry.settings or {}) for key in _FURTHER_SETTINGS):
        return False
    server = match.server
    if match.transport == HTTP:
        return says.url in {one.url for one in server.variants.values()}
    if match.runner == PATH_RUNNER:
        as_written = any(says.args == one.args for one in server.runners.get(PATH_RUNNER, server.variants).values())
        return as_written and _is_the_users(says.command, here)
    if match.runner == _ISOLATED_RUNNER:
        version = (index_version(says, server) or "").removesuffix(".*")  # of an entry that another version wrote, too
        as_written = says.args == expected(server, VariantChoice(match.variant, tool=version), _ISOLATED_RUNNER).args
        return as_written and _VERSION.fullmatch(version) is not None and _is_the_users(says.command, here)
    return False


def _is_the_users(command: str, here: Here) -> bool:
    """Whether the command is a bare name, the file of that name on PATH, or this program, not any other file."""
    if not any(separator in command for separator in "/\\"):
        return True
    return command == own_command()[0] or command in named_program_candidates(
        base_name(command), "", here.environ, here.platform
    )
