"""Where a client's files are on this machine: path templates, expanded by each system's rules; pure but for `here`.

`{workspace}`, `{home}`, `{appdata}` (the system's folder for settings), `{localappdata}`, `{config}` (`~/.config`,
on every system), and the variables that a profile declares (`{CODEX_HOME}`), which count where they are set.
"""

from __future__ import annotations

import os
import sys

from ..system.folders import folders
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


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
