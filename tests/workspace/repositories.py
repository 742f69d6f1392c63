"""Real git repositories, and stand-ins for git that misbehave."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.files import write

# Independent of the git configuration of whoever runs the tests.
ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.com")


def git(folder: Path, *arguments: str) -> None:
    command = ["git", *IDENTITY, "-c", "protocol.file.allow=always", *arguments]
    subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )


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
