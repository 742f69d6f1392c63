"""The folders whose packages may belong to the code of a package: its Git repository, and the workspace folder."""

from __future__ import annotations

import os

from ..system.files import is_foreign
from ..system.values import Value
from .config import can_be_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_PACKAGES = 200  # of one repository that one package uses; large ones have a few dozen


class Repository(Value):
    """All paths are real ones, because dependencies are often links."""

    root: str  # of the package that uses the others
    tops: tuple[str, ...]  # the folders that bound the search
    environment: str = ""  # the virtual environment that the package runs in, if it is known

    def packages(self, folder: str, places: Iterable[str]) -> list[str]:
        """The folders at these places, relative to `folder`, that another package of this repository can have."""
        found = (os.path.realpath(os.path.join(folder, place)) for place in places if can_be_given(place))
        return [place for place in dict.fromkeys(found) if self._may_use(place) and os.path.isdir(place)]

    def upwards(self, folder: str) -> Iterator[str]:
        """The folder and its parents, as far as they are in the repository."""
        while self.has(folder):
            yield folder
            above = os.path.dirname(folder)
            if above == folder:
                return
            folder = above

    def has(self, path: str) -> bool:
        return any(is_inside(path, top) for top in self.tops)

    def _may_use(self, folder: str) -> bool:
        # A folder around the package would count everything beside it; from another drive no relative path leads here.
        same_drive = os.path.splitdrive(folder)[0] == os.path.splitdrive(self.root)[0]
        own = "node_modules" not in folder.split(os.sep)
        return same_drive and own and self.has(folder) and not is_inside(self.root, folder)


def repository_of(root: str, workspace: str, environment: str = "") -> Repository:
    """The repository of the package in `root`; `workspace` is the workspace folder, or empty."""
    root = os.path.realpath(root)
    tops = [os.path.realpath(workspace)] if workspace else []
    folder = root
    while not belongs_to_us(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:  # there is no repository
            return Repository(root, tuple(tops or [root]), environment)
        folder = above
    return Repository(root, (folder, *tops), environment)


def belongs_to_us(path: str) -> bool:
    """Whether a file exists that no other user could have put there; where others may write, they could lure us."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return not is_foreign(status) or os.geteuid() == 0  # root runs what others own as a matter of course


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is the folder or is below it."""
    return path == folder or path.startswith(os.path.join(folder, ""))
