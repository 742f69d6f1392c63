"""Writing trees of files, and telling what changed in one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def write(path: Path, content: str | bytes) -> Path:
    """Write a file and the folders above it; text as UTF-8, newlines as they stand."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def write_all(root: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        write(root / name, content)


def snapshot(*roots: Path) -> dict[str, bytes | str]:
    """Every file with its content, every folder and link: equal snapshots mean that nothing was written."""
    seen: dict[str, bytes | str] = {}
    for root in roots:
        for folder, folders, files in os.walk(root):
            for name in folders:
                seen[os.path.join(folder, name)] = "folder"
            for name in files:
                path = os.path.join(folder, name)
                seen[path] = os.readlink(path) if os.path.islink(path) else Path(path).read_bytes()
    return seen
