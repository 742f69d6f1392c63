"""The add-ins of one package by convention, for packages that no restore tells about.

In this order, and the first that speaks decides: the manifest, `buildTransitive/*.targets`, `build/*.targets`. A
package that has `tools/devserver/` and names no entry point is reported; its files are never loaded on a guess.
"""

from __future__ import annotations

import os

from ..issues import Issue, warning
from .manifest import NAME as MANIFEST
from .manifest import read_manifest
from .targets import Candidate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def search_package(
    folder: str,
    name: str,
    host_version: str | None,
    evaluate: Callable[[Sequence[str]], Sequence[Candidate]],
    issues: list[Issue],
) -> list[Candidate]:
    """The entry points that the package names, existing or not; `evaluate` runs .props and .targets files."""
    manifest = read_manifest(folder, name, host_version)
    issues += manifest.issues
    if manifest.entry_points is not None:
        return [Candidate(path, os.path.join(folder, MANIFEST), "manifest") for path in manifest.entry_points]
    folders = _subfolders(folder)
    for kind in ("buildtransitive", "build"):
        files = _build_files(os.path.join(folder, folders[kind])) if kind in folders else []
        if not files:
            continue
        candidates = list(evaluate(files))
        if candidates and kind == "build":
            issues.append(deprecated(name, candidates[0].defined_in))
        return candidates or _undeclared(folder, name, folders, issues)
    return _undeclared(folder, name, folders, issues)


def _undeclared(folder: str, name: str, folders: dict[str, str], issues: list[Issue]) -> list[Candidate]:
    if "tools" in folders and os.path.isdir(os.path.join(folder, folders["tools"], "devserver")):
        issues.append(undeclared(name, folder))
    return []


def deprecated(name: str, path: str) -> Issue:
    message = f"{name} declares its add-in in {path}; only buildTransitive/ reaches every project."
    return warning("AddInTargetsDeprecated", message)


def undeclared(name: str, folder: str) -> Issue:
    message = f"{name} has a tools/devserver folder ({folder}) but names no entry point; nothing of it is loaded."
    return warning("AddInEntryPointUnknown", message)


def _subfolders(folder: str) -> dict[str, str]:
    try:
        return {entry.lower(): entry for entry in os.listdir(folder)}
    except OSError:
        return {}


def _build_files(folder: str) -> list[str]:
    """The .targets files, each behind the .props file of its name; none if there are only .props."""
    try:
        names = sorted(os.listdir(folder), key=str.lower)
    except OSError:
        return []
    files: list[str] = []
    for name in names:
        stem, extension = os.path.splitext(name)
        if extension.lower() == ".targets":
            props = next((other for other in names if other.lower() == f"{stem.lower()}.props"), None)
            files += [os.path.join(folder, one) for one in (props, name) if one]
    return files
