"""Detects whether a client is installed on this machine, by its files, its own folders, and its program."""

from __future__ import annotations

import os

from .entry_command import on_path
from .paths import expand
from .profiles import Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .paths import Here
    from .profiles import Profile

# Folders that clients read, but that often exist for other reasons: GitHub's own, and those for skills of any agent.
_COMMON_NAMES = (".github", ".agents", ".agent", "_agents")


def detected(profile: Profile, here: Here) -> bool:
    """Whether the client is installed; files of other clients and common folders are no evidence."""
    if profile.hidden:
        return False
    paths = [place.path for place in profile.places if place.use is not Use.SHARED]
    signs = dict.fromkeys((*paths, *_own_folders(paths, here), *profile.signs))  # without duplicates
    if any(map(os.path.exists, signs)):
        return True
    return profile.cli is not None and on_path(profile.cli.executable, here.environ, here.platform)


def _own_folders(paths: Iterable[str], here: Here) -> list[str]:
    common = {here.workspace, here.home, here.appdata, here.localappdata, expand("{config}", here, {})}
    folders = dict.fromkeys(map(os.path.dirname, paths))
    return [one for one in folders if one not in common and os.path.basename(one) not in _COMMON_NAMES]
