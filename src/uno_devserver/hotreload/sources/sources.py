"""The seam between finding out which files count and finding out whether they have changed."""

from __future__ import annotations

from ...system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Sources(Value):
    """The code of one package, as it lies on disk now. All paths are absolute but for the keys of `files`."""

    root: str
    # By the path relative to the root, with forward slashes, also on Windows; a file beside the root begins with `../`.
    files: Mapping[str, str]
    folders: frozenset[str]  # that were looked into: what appears in one of them may be a source
    deciding: frozenset[str] = frozenset()  # files that decide which others count: tsconfig.json and what it extends
    problems: tuple[str, ...] = ()  # sentences: what could not be read, and what was taken instead
    # How the names of all that may count end, from the last dot on, in small letters; None: in any way. What appears in
    # one of the folders under another name is no reason to look at all of them again.
    endings: frozenset[str] | None = None
