"""One digest of what a build reads besides the sources: manifests, lockfiles and the packages that are installed.

A build that failed is repeated when it has changed, for example by `npm install`. Only contents and names count.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..system.state_files import sha256
from ..workspace.config import PROJECTS
from ..workspace.dotnet_answers import content_key
from .build_command import up_to_repository

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MANIFESTS = (
    *(".json", ".jsonc", ".yaml", ".yml", ".toml", ".lock", ".lockb", ".npmrc", ".config"),
    *(*PROJECTS, ".props", ".targets", ".rsp", ".mod", ".sum", ".work"),
)
PACKAGES = "node_modules"
# What package managers record there: npm, pnpm, and two versions of yarn.
RECORDS = (".package-lock.json", ".modules.yaml", ".yarn-integrity", ".yarn-state.yml")


def build_inputs(roots: Iterable[str]) -> str:
    """The digest for the packages in these folders, in hexadecimal digits. Blocks, usually for a millisecond."""
    files: list[str] = []
    installed: list[str] = []
    for folder in dict.fromkeys(folder for root in roots for folder in up_to_repository(root)):
        packages = os.path.join(folder, PACKAGES)
        names = (name for name in _names(folder) if name.endswith(MANIFESTS) or name == ".pnp.cjs")
        files += [os.path.join(folder, name) for name in names]
        files += [os.path.join(packages, name) for name in RECORDS]
        installed += [packages, *_installed(packages)]
    return sha256(repr((content_key(files), installed)).encode())


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
