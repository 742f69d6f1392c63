"""One digest of what a build reads besides the sources: manifests, lockfiles and the packages that are installed.

A build that failed is repeated when it has changed, for example by `npm install`. Only contents and names count.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from ..system.files import FileProblem, read_bytes
from .build_command import up_to_repository

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_BYTES = 16 * 1024 * 1024  # lockfiles have some MB at most
MANIFESTS = (
    *(".json", ".jsonc", ".yaml", ".yml", ".toml", ".lock", ".lockb", ".npmrc", ".config"),
    *(".csproj", ".fsproj", ".props", ".targets", ".mod", ".sum", ".work"),
)
PACKAGES = "node_modules"
# What package managers record there: npm, pnpm, and two versions of yarn.
RECORDS = (".package-lock.json", ".modules.yaml", ".yarn-integrity", ".yarn-state.yml")


def build_inputs(roots: Iterable[str]) -> str:
    """The digest for the packages in these folders, in hexadecimal digits. Blocks, usually for a millisecond."""
    digest = hashlib.sha256()
    for folder in dict.fromkeys(folder for root in roots for folder in up_to_repository(root)):
        packages = os.path.join(folder, PACKAGES)
        files = [name for name in _names(folder) if name.endswith(MANIFESTS) or name == ".pnp.cjs"]
        for path in (*(os.path.join(folder, name) for name in files), *(os.path.join(packages, n) for n in RECORDS)):
            digest.update(f"{path}\0".encode("utf-8", "surrogateescape") + _content(path))
        digest.update("\0".join(_installed(packages)).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _installed(packages: str) -> Iterator[str]:
    """The names of the installed packages; tools write hidden folders beside them."""
    for name in _names(packages):
        if name.startswith("@"):
            yield from (f"{name}/{scoped}" for scoped in _names(os.path.join(packages, name)))
        elif not name.startswith("."):
            yield name


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _content(path: str) -> bytes:
    try:
        return hashlib.sha256(read_bytes(path, MAX_BYTES)).digest()
    except (OSError, FileProblem):
        return b""
