"""Whether an entry may be somebody else's: one that came with a workspace, and starts what its author wants; pure.

A repository can bring a client's file with it. What stands there is started, or reached, without a question only where
it says what `mcp install` writes, and nothing of the workspace decides what that leads to.
"""

from __future__ import annotations

import ntpath
import posixpath
import re

from ...system.programs import named_program_candidates
from ..entry_command import base_name, own_command
from ..entry_match import PATH_RUNNER
from ..expected_entry import expected
from ..profiles import HTTP
from ..servers import PINNED, VariantChoice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..entry_match import Match
    from ..paths import Here
    from ..profiles import Place

# It takes no settings from the folder that it is started in. Others do: dnx asks the feeds of a NuGet.config there, npx
# prefers what lies in node_modules, and `python -m` imports from the folder itself.
_HEEDLESS_RUNNER = "uvx"
# Behind its `name@` there could also be a file of the workspace.
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc|\.dev|\.post)\d+)*")
_DECIDES_MORE = ("cwd", "working_directory", "headers", "http_headers", "bearer_token_env_var", "bearerTokenEnvVar")


def may_be_foreign(match: Match, place: Place, here: Here) -> bool:
    return _is_in_workspace(place.path, here) and not _is_as_installed(match, here)


def _is_in_workspace(path: str, here: Here) -> bool:
    rules = ntpath if here.platform == "win32" else posixpath
    folder: str = rules.join(rules.normcase(rules.normpath(here.workspace)), "")
    return str(rules.normcase(rules.normpath(path))).startswith(folder)


def _is_as_installed(match: Match, here: Here) -> bool:
    says = match.says
    if says.env or any(key in (match.entry.settings or {}) for key in _DECIDES_MORE):
        return False
    server = match.server
    if match.transport == HTTP:
        return says.url in {one.url for one in server.variants.values()}
    if match.runner == PATH_RUNNER:
        as_written = any(says.args == one.args for one in server.runners.get(PATH_RUNNER, server.variants).values())
        return as_written and _is_the_users(says.command, here)
    if match.runner == _HEEDLESS_RUNNER:
        kind, _, version = match.variant.partition(":")
        as_written = says.args == expected(server, VariantChoice(match.variant), _HEEDLESS_RUNNER).args
        as_written = as_written and (kind != PINNED or _VERSION.fullmatch(version) is not None)
        return as_written and _is_the_users(says.command, here)
    return False


def _is_the_users(command: str, here: Here) -> bool:
    """Of that name, it is looked for on PATH, or is a file that is there, or this program; not one from anywhere."""
    if not any(separator in command for separator in "/\\"):
        return True
    return command == own_command()[0] or command in named_program_candidates(
        base_name(command), "", here.environ, here.platform
    )
