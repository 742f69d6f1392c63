"""Packages of kinds that have no rules of their own: what Git does not ignore."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hotreload.sources.found import assert_noticed, names, sources_of
from hotreload.trees import watched
from support.files import write, write_all
from uno_devserver.hotreload.sources import other


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, timeout=60)


@pytest.fixture
def rust(tmp_path: Path) -> Path:
    root = tmp_path / "repo/server"
    write_all(root, dict.fromkeys(["Cargo.toml", "src/main.rs", "data/a.json", "target/debug/server", ".env"], ""))
    write_all(root, {"kept.log": "", "notes.log": "", ".gitignore": "target/\n*.log\n"})
    git(root.parent, "init", "-q")
    git(root.parent, "add", "-f", "server/kept.log")
    return root


def test_files_that_git_does_not_ignore_are_the_code(rust: Path) -> None:
    sources = sources_of(rust)

    assert sorted(sources.files) == ["Cargo.toml", "data/a.json", "kept.log", "src/main.rs"]
    assert sources.packages[0].kind == "other"
    assert str(rust / "target") not in sources.folders


def test_new_files_and_folders_are_noticed_and_ignored_ones_are_not(rust: Path) -> None:
    with watched(rust) as one:
        before = one.digest()
        write_all(rust, {"target/debug/more": "x", "new.log": "x"})
        assert one.digest() == before
        (rust / "src/empty").mkdir()
        assert one.digest() == before
        write(rust / "src/empty/a.rs", "")
        assert one.news() is True
        assert one.digest() != before
        write(rust / ".gitignore", "target/\n")
        one.digest()
        assert "new.log" in one.files
    assert_noticed(rust, rust / "src/main.rs")


def test_without_git_hidden_output_and_data_are_left_out(rust: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    assert names(rust) == ["Cargo.toml", "data/a.json", "src/main.rs"]


def test_a_package_that_git_ignores_as_a_whole_is_read_without_git(rust: Path) -> None:
    git(rust.parent, "rm", "-q", "--cached", "server/kept.log")
    write(rust.parent / ".gitignore", "server/\n")

    assert "src/main.rs" in names(rust)


def test_no_program_that_a_repository_names_is_run(rust: Path) -> None:
    """Nobody has agreed to anything when the files are listed."""
    program = write(rust / "monitor.sh", f"#!/bin/sh\ntouch {rust}/ran\n")
    program.chmod(0o755)
    git(rust.parent, "config", "core.fsmonitor", str(program))
    write(rust / "src/b.rs", "")

    assert "src/b.rs" in names(rust)
    assert not (rust / "ran").exists()


@pytest.mark.parametrize("is_bare", [False, True])
def test_nor_is_one_that_would_fetch_a_missing_object(tmp_path: Path, is_bare: bool) -> None:
    """A partial clone fetches a missing .gitignore by a program that its configuration names."""
    program = write(tmp_path / "fetch.sh", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    root = tmp_path / "ws"
    write_all(root, {"Cargo.toml": "", "src/a.rs": "", ".gitignore": "target/\n"})
    git(root, "init", "-q")
    git(root, "add", ".gitignore")
    git(root, "update-index", "--skip-worktree", ".gitignore")
    (root / ".gitignore").unlink()
    (blob,) = [path for path in (root / ".git/objects").rglob("*") if path.is_file()]
    blob.unlink()
    for key, value in (
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", str(root)),
        ("remote.origin.uploadpack", str(program)),
    ):
        git(root, "config", key, value)
    if is_bare:  # as plain files of another repository
        git(root, "config", "core.worktree", str(root))
        for path in (root / ".git").iterdir():
            path.rename(root / path.name)

    assert "src/a.rs" in names(root)
    assert not (tmp_path / "ran").exists()


def test_variables_of_another_repository_do_not_matter(rust: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", os.path.join(rust, "none"))

    assert "notes.log" not in names(rust)


def test_a_git_that_takes_too_long_is_not_waited_for(rust: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write(rust.parent / "bin/git", "#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(other, "GIT_SECONDS", 0.2)

    assert names(rust) == ["Cargo.toml", "data/a.json", "src/main.rs"]


def test_an_empty_folder_has_no_code(tmp_path: Path) -> None:
    sources = sources_of(tmp_path)

    assert not sources.files
    assert [(package.kind, package.files) for package in sources.packages] == [("other", 0)]
