"""What git ignores, asked of real repositories, and of stand-ins for git that misbehave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.files import write, write_all
from support.git import git
from uno_devserver.workspace import git as git_module
from uno_devserver.workspace.git import ignored

from .repositories import replace_git, repository

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for git are shell scripts")


def ignored_names(root: Path, *names: str, start: str = ".") -> list[str]:
    paths = [os.path.join(root, name) for name in names]
    answer = ignored(paths, str((root / start).resolve()))
    return [name for name, path in zip(names, paths, strict=True) if path in answer]


def test_files_below_an_ignored_folder_are_ignored(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws", "gen/\n*.tmp.sln\n")
    write_all(root, {"App.sln": "", "gen/G.slnx": "", "src/X.tmp.sln": ""})

    assert ignored_names(root, "App.sln", "gen/G.slnx", "src/X.tmp.sln") == ["gen/G.slnx", "src/X.tmp.sln"]


def test_the_repository_may_begin_above_the_directory(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws", "gen/\n")
    write_all(root, {"src/App.sln": "", "src/gen/G.sln": ""})

    assert ignored_names(root, "src/App.sln", "src/gen/G.sln", start="src") == ["src/gen/G.sln"]


def test_a_tracked_file_is_not_ignored_though_a_pattern_matches(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws", "*.sln\n")
    write_all(root, {"Kept.sln": "", "Other.sln": ""})
    git(root, "add", "--force", "Kept.sln")

    assert ignored_names(root, "Kept.sln", "Other.sln") == ["Other.sln"]


def test_odd_names_are_asked_as_they_are(tmp_path: Path) -> None:
    folders = (":(attr:x)y", "a*b", " blank ", "new\nline", "jalapeño", "-x", '"q"')
    names = [f"{folder}/A.sln" for folder in folders]
    root = repository(tmp_path / "ws", "*.sln\n!a*b/A.sln\n")
    write_all(root, dict.fromkeys(names, ""))

    assert ignored_names(root, *names) == [name for name in names if name != "a*b/A.sln"]


def test_a_submodule_does_not_spoil_the_answer_for_the_others(tmp_path: Path) -> None:
    # given git's "is in submodule" refusal, which fails the whole question
    library = repository(tmp_path / "library")
    write(library / "Lib.sln", "")
    git(library, "add", ".")
    git(library, "commit", "--quiet", "--message", "x")
    root = repository(tmp_path / "ws", "gen/\n")
    git(root, "submodule", "--quiet", "add", str(library), "library")
    write_all(root, {"App.sln": "", "gen/G.sln": ""})

    assert ignored_names(root, "App.sln", "gen/G.sln", "library/Lib.sln") == ["gen/G.sln"]


def test_a_worktree_in_an_ignored_folder_is_ignored(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws", ".worktrees/\n")
    write(root / "App.sln", "")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "x")
    git(root, "worktree", "add", "--quiet", ".worktrees/feature")

    assert ignored_names(root, "App.sln", ".worktrees/feature/App.sln") == [".worktrees/feature/App.sln"]


def test_a_file_behind_a_link_stands_or_falls_with_the_link(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws", "/unwanted\ngen/\n")
    write_all(tmp_path, {"elsewhere/E.sln": "", "ws/gen/G.sln": ""})
    (root / "wanted").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (root / "unwanted").symlink_to(tmp_path / "elsewhere", target_is_directory=True)

    assert ignored_names(root, "wanted/E.sln", "unwanted/E.sln", "gen/G.sln") == ["unwanted/E.sln", "gen/G.sln"]


def test_variables_of_a_surrounding_git_hook_do_not_mislead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "ws", "gen/\n")
    other = repository(tmp_path / "other")
    write(root / "gen" / "G.sln", "")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))

    assert ignored_names(root, "gen/G.sln") == ["gen/G.sln"]


def test_variables_cannot_make_git_write_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may stand in a repository's file of an AI client, which starts the proxy with them."""
    root = repository(tmp_path / "ws", "gen/\n")
    monkeypatch.setenv("GIT_TRACE2", str(tmp_path / "written"))

    assert ignored_names(root, "gen/G.sln") == ["gen/G.sln"]
    assert not (tmp_path / "written").exists()


def test_a_program_named_in_the_repository_configuration_is_not_run(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws", "gen/\n")
    write(root / "gen" / "G.sln", "")
    hook = write(tmp_path / "hook", f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(hook))
    (tmp_path / "ran").unlink(missing_ok=True)

    assert ignored_names(root, "gen/G.sln") == ["gen/G.sln"]
    assert not (tmp_path / "ran").exists()


def test_a_partial_clone_cannot_make_git_run_a_program_of_the_workspace(tmp_path: Path) -> None:
    """A .gitignore that is not checked out would be fetched, by whatever the repository's configuration names."""
    root = repository(tmp_path / "ws", "gen/\n")
    git(root, "add", ".gitignore")
    git(root, "update-index", "--skip-worktree", ".gitignore")
    blob = next((root / ".git" / "objects").glob("??/*"))
    blob.unlink()
    (root / ".gitignore").unlink()
    evil = write(tmp_path / "evil", f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    evil.chmod(0o755)
    for name, value in (
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", str(root)),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", str(evil)),
    ):
        git(root, "config", name, value)
    write(root / "A.sln", "")

    ignored_names(root, "A.sln")

    assert not (tmp_path / "ran").exists()


def test_outside_a_repository_git_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_git(tmp_path / "bin", f"touch '{tmp_path}/ran'", monkeypatch)

    assert ignored_names(tmp_path / "ws", "A.sln") == []
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "script",
    [
        "printf './A.sln\\0'; exit 128",
        "printf './A.sln\\0'; exit 1",
        "kill -9 $$",
        "exec 0<&-; exit 3",
        "printf '\\377\\376\\0garbage'",
    ],
)
def test_a_git_that_fails_or_talks_nonsense_ignores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    root = repository(tmp_path / "ws", "*.sln\n")
    replace_git(tmp_path / "bin", script, monkeypatch)

    assert ignored_names(root, "A.sln") == []


@pytest.mark.parametrize("content", [None, "\x7fELF no program"], ids=["no git", "a git that cannot be run"])
def test_without_a_git_that_runs_nothing_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    root = repository(tmp_path / "ws", "*.sln\n")
    if content is not None:
        write(tmp_path / "bin" / "git", content).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert ignored_names(root, "A.sln") == []


def test_a_git_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a git that waits for a child of its own, and both hold the pipes open
    root = repository(tmp_path / "ws", "*.sln\n")
    replace_git(tmp_path / "bin", f"sleep 600 &\necho $$ $! > '{tmp_path}/pids'\nwait", monkeypatch)

    # when
    begin = time.monotonic()
    answer = ignored_names(root, "A.sln")
    seconds = time.monotonic() - begin

    # then
    assert answer == []
    assert git_module.LIMIT_SECONDS <= seconds < git_module.LIMIT_SECONDS + 2
    for pid in (tmp_path / "pids").read_text().split():
        assert _ends(int(pid))


def _ends(pid: int) -> bool:
    """Whether the process is gone, or is a zombie that nobody in this container collects."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
        if not state.strip() or state.startswith("Z"):
            return True
    os.kill(pid, signal.SIGKILL)
    return False
