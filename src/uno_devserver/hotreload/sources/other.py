"""The files of a package of a kind that has no rules of its own: all that Git does not ignore.

Without Git, all files but those in hidden folders, folders of others and output folders, and the usual data files.
"""

from __future__ import annotations

import os

from .source_tree import hidden_and_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from .source_tree import SourceTree

GIT_SECONDS = 2.0  # a repository with 100,000 files takes 0.3 s
GIT_BYTES = 16 * 1024 * 1024
_OUTPUT = frozenset({"target", "build", "dist", "out", "bin", "obj", "vendor", "_build", "deps", "tmp", "log", "logs"})
# What servers write while they run must not restart them.
_DATA = (".log", ".db", ".sqlite", ".sqlite3", ".db-wal", ".db-shm", ".db-journal", ".pid", ".lock", ".tmp", "~")


def find_other(tree: SourceTree) -> None:
    """Add the files of the package in the root."""
    ignored = _ignored_by_git(tree.root)

    def skipped(folder: str, names: Collection[str]) -> Collection[str]:
        prefix = folder + "/" if folder else ""
        others = _OUTPUT if ignored is None else {name for name in names if f"{prefix}{name}/" in ignored}
        return hidden_and_foreign(names).union(others)

    def wanted(path: str) -> bool:
        if path.rpartition("/")[2].startswith("."):
            return False
        return not path.endswith(_DATA) if ignored is None else path not in ignored

    tree.walk("", wanted, skipped, deciding=(".gitignore",))


def _ignored_by_git(root: str) -> frozenset[str] | None:
    """The files and folders (with a slash at the end) below the root that Git ignores; None if Git cannot tell."""
    from ...system.programs import find_program
    from ...system.run import run
    from ...workspace.git import git_environment, repository
    from ...workspace.repository import belongs_to_us

    git, top = find_program("git", os.environ), repository(root)
    if git is None or top is None or not belongs_to_us(os.path.join(top, ".git")):
        return None
    # A repository can name programs, and nobody has agreed to run them: its file monitor, and what fetches missing
    # objects. A folder without .git can be one, too.
    command = (git, "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit", "ls-files", "-z")
    outcome = run(
        (*command, "--others", "--ignored", "--exclude-standard", "--directory"),
        cwd=root,
        environ=git_environment(),
        seconds=GIT_SECONDS,
        keep_bytes=GIT_BYTES,
        with_errors=False,
    )
    names = frozenset(os.fsdecode(outcome.output).split("\0"))
    return names if outcome.succeeded and "./" not in names else None
