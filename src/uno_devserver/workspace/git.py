"""Which files does git ignore? Asked of git itself, once for all files.

The answer is a courtesy: without git, or when git fails or takes too long, nothing counts as ignored. The call is
bounded in time and leaves no process behind, and neither the workspace's folders nor its git configuration can make
another program run.
"""

from __future__ import annotations

import os

from ..system.programs import find_program
from ..system.run import run
from .paths import upwards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# git answers in 5 ms; on a cold network drive 2 s is still bearable, and longer is worse than no answer.
LIMIT_SECONDS = 2.0
KEEP_BYTES = 16 * 1024 * 1024  # it repeats the questions

# Set inside git's own hooks: they would point git at another repository than the one we found.
_REPOSITORY_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
# A partial clone fetches a missing .gitignore, by a program that its configuration names.
_OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}


def ignored(paths: Sequence[str], directory: str) -> frozenset[str]:
    """Those of `paths` that the repository around `directory` ignores. All paths lie in `directory` or below."""
    root = repository(directory)
    git = find_program("git", os.environ) if root else None
    if not root or not git or not paths:
        return frozenset()
    questions = {path: _question(root, path) for path in paths}
    answers = _ask(git, root, sorted(set(questions.values())))
    return frozenset(path for path, question in questions.items() if question in answers)


def repository(directory: str) -> str | None:
    """The nearest folder upwards with a `.git` folder, or file as in worktrees and submodules."""
    for folder in upwards(directory):
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
    return None


def _question(root: str, path: str) -> str:
    """What to ask git for `path`, relative to the root.

    git refuses the whole question for a path inside a submodule or behind a symbolic link. Such a file stands or
    falls with that folder or link, so that is asked instead.
    """
    parts = os.path.relpath(path, root).split(os.sep)
    folder = root
    for count, part in enumerate(parts[:-1], start=1):
        folder = os.path.join(folder, part)
        if os.path.islink(folder) or os.path.exists(os.path.join(folder, ".git")):
            return "/".join(parts[:count])
    return "/".join(parts)


def _ask(git: str, root: str, questions: list[str]) -> frozenset[str]:
    # `./` keeps a leading colon from being read as git's pathspec magic. fsmonitor can name a program to run.
    outcome = run(
        [git, "-c", "core.fsmonitor=false", "check-ignore", "-z", "--stdin"],
        cwd=root,
        environ={name: value for name, value in os.environ.items() if name not in _REPOSITORY_VARIABLES} | _OFFLINE,
        seconds=LIMIT_SECONDS,
        keep_bytes=KEEP_BYTES,
        input_bytes=os.fsencode("".join(f"./{question}\0" for question in questions)),
        with_errors=False,
    )
    if not outcome.succeeded:  # 1: none is ignored; others: git could not tell
        return frozenset()
    return frozenset(os.fsdecode(answer).removeprefix("./") for answer in outcome.output.split(b"\0"))
