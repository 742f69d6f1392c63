"""Path templates of profiles, expanded by the rules of each system.

Tokens are `{workspace}`, `{home}`, `{appdata}` (the system's folder for settings), `{localappdata}`, `{config}`
(`XDG_CONFIG_HOME`, or `~/.config` on every system), and variables that a profile declares (`{CODEX_HOME}`), with a
template for the case that they are not set.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
import sys

from ..system.folders import folders
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TOKENS = ("workspace", "home", "appdata", "localappdata", "config")
SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}  # names in profiles; others are like Linux
_TOKEN = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Here(Value):
    """The facts about a machine and workspace on which paths depend."""

    workspace: str
    home: str
    appdata: str
    localappdata: str
    environ: Mapping[str, str]
    platform: str  # a value of sys.platform
    repository: str = (
        ""  # the folder up to which a client's project may lie above the workspace; "" if the user named it
    )

    @property
    def path_rules(self) -> Any:
        """The module for paths of this platform: `ntpath` or `posixpath`."""
        return ntpath if self.platform == "win32" else posixpath


def here(workspace: str) -> Here:
    known = folders()
    return Here(workspace, known.home, known.application_data, known.local_application_data, os.environ, sys.platform)


def expand(template: str, here: Here, variables: Mapping[str, str]) -> str:
    """The absolute path that a template stands for; `variables` has the default template of each variable."""
    return str(here.path_rules.normpath(filled_in(template, here, variables)))


def filled_in(template: str, here: Here, variables: Mapping[str, str]) -> str:
    """The template with its tokens replaced by folders, which have no separator at the end."""
    return _TOKEN.sub(lambda token: _folder(token[1], here, variables).rstrip("/\\"), template)


def tokens_of(template: str) -> list[str]:
    return _TOKEN.findall(template)


def system_name(here: Here) -> str:
    """The name of this system in profiles."""
    return SYSTEMS.get(here.platform, "linux")


def _folder(name: str, here: Here, variables: Mapping[str, str]) -> str:
    known = {"workspace": here.workspace, "home": here.home}
    known |= {"appdata": here.appdata, "localappdata": here.localappdata}
    if name in known:
        return known[name]
    chosen = here.environ.get("XDG_CONFIG_HOME" if name == "config" else name, "")
    if name == "config":
        return chosen if _is_absolute(chosen, here) else f"{here.home}/.config"
    if not chosen:
        return filled_in(variables[name], here, variables)
    return chosen if _is_absolute(chosen, here) else f"{here.workspace}/{chosen}"  # the client is started there


def _is_absolute(path: str, here: Here) -> bool:
    return ntpath.isabs(path) if here.platform == "win32" else path.startswith("/")
