"""Which files does git ignore? Asked of git itself, once for all files.

The answer is a courtesy: without git, or when git fails or takes too long, nothing counts as ignored. The call is
bounded in time and leaves no process behind, and neither the workspace's folders nor its git configuration can make
another program run.
"""

from __future__ import annotations

import os
import sys

from .paths import upwards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from subprocess import Popen

# git answers in 5 ms; on a cold network drive 2 s is still bearable, and longer is worse than no answer.
LIMIT_SECONDS = 2.0
# A killed process goes at once, except while the kernel waits for a disk.
KILL_SECONDS = 0.5

# Set inside git's own hooks: they would point git at another repository than the one we found.
_REPOSITORY_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")


def ignored(paths: Sequence[str], directory: str) -> frozenset[str]:
    """Those of `paths` that the repository around `directory` ignores. All paths lie in `directory` or below."""
    root = repository(directory)
    git = executable(os.environ, sys.platform) if root else None
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


def executable(environ: Mapping[str, str], platform: str) -> str | None:
    """git's full path. Found here, because Windows would look into the current folder, the workspace's, first."""
    name, separator = ("git.exe", ";") if platform == "win32" else ("git", ":")
    for folder in environ.get("PATH", "").split(separator):
        candidate = os.path.join(folder, name)
        if os.path.isabs(folder) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
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
    import subprocess

    environ = {name: value for name, value in os.environ.items() if name not in _REPOSITORY_VARIABLES}
    # `./` keeps a leading colon from being read as git's pathspec magic. fsmonitor can name a program to run.
    text = "".join(f"./{question}\0" for question in questions)
    try:
        process = subprocess.Popen(
            [git, "-c", "core.fsmonitor=false", "check-ignore", "-z", "--stdin"],
            cwd=root,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:
        return frozenset()
    try:
        output, _ = process.communicate(os.fsencode(text), LIMIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        _kill(process)
        return frozenset()
    if process.returncode != 0:  # 1: none is ignored; others: git could not tell
        return frozenset()
    return frozenset(os.fsdecode(answer).removeprefix("./") for answer in output.split(b"\0"))


def _kill(process: Popen[bytes]) -> None:
    """End git and what it started. Nothing is read any more: a grandchild may hold the pipe open for ever."""
    import subprocess

    try:
        if sys.platform == "win32":
            process.kill()
        else:
            import signal

            os.killpg(process.pid, signal.SIGKILL)
        process.wait(KILL_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        pass
    for stream in (process.stdin, process.stdout):
        if stream:
            try:
                stream.close()
            except OSError:
                pass
