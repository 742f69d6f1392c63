"""Real git repositories, and stand-ins for git that misbehave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.files import write
from support.git import git


def repository(folder: Path, ignore: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    write(folder / ".gitignore", ignore)
    return folder


def replace_git(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a shell script in git's place; PATH keeps nothing else but the system's own commands."""
    command = write(folder / "git", f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
