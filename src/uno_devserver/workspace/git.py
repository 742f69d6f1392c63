"""Asks git which files it ignores, once for all files.

If git is missing, fails or takes too long, no file is treated as ignored. The call is limited in time and leaves no
process running, and neither the folders of the workspace nor its git configuration can make another program run.
"""

from __future__ import annotations

import os

from ..system.programs import find_program
from ..system.run import run
from .paths import upwards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT_SECONDS = 2.0  # git answers in 5 ms, and even on a cold network drive within this limit
KEEP_BYTES = 16 * 1024 * 1024  # git prints the ignored paths, which may be many

# The only variables of git that it gets: others could name another repository, a program to run or a file to write. A
# partial clone would fetch a missing .gitignore, by a program that its configuration names.
_VARIABLES = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}


def ignored(paths: Sequence[str], directory: str) -> frozenset[str]:
    """Those of `paths` that the repository of `directory` ignores; all paths must be in `directory` or below."""
    root = repository(directory)
    git = find_program("git", os.environ) if root else None
    if not root or not git or not paths:
        return frozenset()
    questions = {path: _question(root, path) for path in paths}
    answers = _ask(git, root, sorted(set(questions.values())))
    return frozenset(path for path, question in questions.items() if question in answers)


def repository(directory: str) -> str | None:
    """The nearest folder upwards with a `.git` folder, or with a `.git` file, as in worktrees and submodules."""
    return next((folder for folder in upwards(directory) if os.path.exists(os.path.join(folder, ".git"))), None)


def git_environment() -> dict[str, str]:
    """The environment of git: ours, but of git's own variables only those that keep it from running other programs."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")} | _VARIABLES


def _question(root: str, path: str) -> str:
    """The path to pass to git, relative to the root.

    git refuses all paths if one of them is inside a submodule or behind a symbolic link. For such a file, the submodule
    or link is passed instead.
    """
    parts = os.path.relpath(path, root).split(os.sep)
    folder = root
    for count, part in enumerate(parts[:-1], start=1):
        folder = os.path.join(folder, part)
        if os.path.islink(folder) or os.path.exists(os.path.join(folder, ".git")):
            return "/".join(parts[:count])
    return "/".join(parts)


def _ask(git: str, root: str, questions: list[str]) -> frozenset[str]:
    # Paths begin with `./`, because a leading colon has a special meaning for git. fsmonitor could run a program.
    outcome = run(
        [git, "-c", "core.fsmonitor=false", "check-ignore", "-z", "--stdin"],
        cwd=root,
        environ=git_environment(),
        seconds=LIMIT_SECONDS,
        keep_bytes=KEEP_BYTES,
        input_bytes=os.fsencode("".join(f"./{question}\0" for question in questions)),
        with_errors=False,
    )
    if not outcome.succeeded:  # 1 means that no path is ignored; other codes, that git has failed
        return frozenset()
    return frozenset(os.fsdecode(answer).removeprefix("./") for answer in outcome.output.split(b"\0"))
