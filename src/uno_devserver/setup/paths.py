"""Where a client's files are on this machine: path templates, expanded by each system's rules; pure but for `here`.

`{workspace}`, `{home}`, `{appdata}` (the system's folder for settings), `{localappdata}`, `{config}` (`~/.config` on
every system, or what `XDG_CONFIG_HOME` says), and the variables that a profile declares (`{CODEX_HOME}`), which count
where they are set.
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

TOKENS = ("workspace", "home", "appdata", "localappdata", "config")
SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}  # as profiles call them; others are like Linux
_TOKEN = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Here(Value):
    """The machine, as far as paths depend on it."""

    workspace: str
    home: str
    appdata: str
    localappdata: str
    environ: Mapping[str, str]
    platform: str  # as sys.platform


def here(workspace: str) -> Here:
    known = folders()
    return Here(workspace, known.home, known.application_data, known.local_application_data, os.environ, sys.platform)


def expand(template: str, here: Here, variables: Mapping[str, str]) -> str:
    """The absolute path that a template stands for; `variables` has a template for each that may not be set."""
    path = filled_in(template, here, variables)
    return ntpath.normpath(path) if here.platform == "win32" else posixpath.normpath(path)


def filled_in(template: str, here: Here, variables: Mapping[str, str]) -> str:
    """The text with its tokens replaced, each folder without a separator at its end."""
    return _TOKEN.sub(lambda token: _folder(token[1], here, variables).rstrip("/\\"), template)


def tokens_of(template: str) -> list[str]:
    return _TOKEN.findall(template)


def system_name(here: Here) -> str:
    """What profiles call this system."""
    return SYSTEMS.get(here.platform, "linux")


def _folder(token: str, here: Here, variables: Mapping[str, str]) -> str:
    match token:
        case "workspace":
            return here.workspace
        case "home":
            return here.home
        case "appdata":
            return here.appdata
        case "localappdata":
            return here.localappdata
        case "config":
            chosen = here.environ.get("XDG_CONFIG_HOME", "")
            return chosen if _is_absolute(chosen, here) else f"{here.home}/.config"
    chosen = here.environ.get(token, "")
    if not chosen:
        return filled_in(variables[token], here, variables)
    return chosen if _is_absolute(chosen, here) else f"{here.workspace}/{chosen}"  # the client is started there


def _is_absolute(path: str, here: Here) -> bool:
    return ntpath.isabs(path) if here.platform == "win32" else path.startswith("/")
