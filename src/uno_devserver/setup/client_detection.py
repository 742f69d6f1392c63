"""Whether a client is on this machine, by what it left there: its files, its own folders, its program."""

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

# Folders in which clients look, and which are there for other reasons: GitHub's own, and those of any agent's skills.
_COMMON_NAMES = (".github", ".agents", ".agent", "_agents")


def detected(profile: Profile, here: Here) -> bool:
    """A file that other clients own says nothing, and neither does a folder that everybody has."""
    if profile.hidden:
        return False
    paths = [place.path for place in profile.places if place.use is not Use.SHARED]
    signs = dict.fromkeys((*paths, *_own_folders(paths, here), *profile.signs))  # each is looked at once
    if any(map(os.path.exists, signs)):
        return True
    return profile.program is not None and on_path(profile.program.executable, here.environ, here.platform)


def _own_folders(paths: Iterable[str], here: Here) -> list[str]:
    everybodys = {here.workspace, here.home, here.appdata, here.localappdata, expand("{config}", here, {})}
    folders = dict.fromkeys(map(os.path.dirname, paths))
    return [one for one in folders if one not in everybodys and os.path.basename(one) not in _COMMON_NAMES]
