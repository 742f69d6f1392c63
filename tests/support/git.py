"""Git in tests, independent of the configuration of this machine and its user."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
SETTINGS = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "protocol.file.allow=always")
SECONDS = 60


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", *SETTINGS, *words],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
