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
    signs = dict.fromkeys((*paths, *_own_folders(profile, paths, here), *profile.signs))  # without duplicates
    if any(map(os.path.exists, signs)):
        return True
    return profile.cli is not None and on_path(profile.cli.executable, here.environ, here.platform)


def workspace_signs(profile: Profile, here: Here) -> list[str]:
    """The files that the client reads in the workspace, and its own folders there."""
    places = [place for place in profile.places if place.within is not None and place.use is not Use.LEGACY]
    own = [place.path for place in places if place.use is not Use.SHARED]
    return [*(place.path for place in places), *_own_folders(profile, own, here)]


def _own_folders(profile: Profile, paths: Iterable[str], here: Here) -> list[str]:
    common = {here.workspace, profile.project, here.home, here.appdata, here.localappdata, expand("{config}", here, {})}
    folders = dict.fromkeys(map(os.path.dirname, paths))
    return [one for one in folders if one not in common and os.path.basename(one) not in _COMMON_NAMES]
