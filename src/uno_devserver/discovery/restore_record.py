"""Restore's own record of its work, and what it says against trusting the result: it failed, or is out of date."""

from __future__ import annotations

import os
import re

from ..issues import Issue, warning
from ..system.files import FileProblem, read_bytes, read_head
from .versions import folder_spellings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .projects import Project

MAX_BYTES = 32 * 1024 * 1024
HEAD_BYTES = 1024  # the first target framework stands in the first lines of project.assets.json


def doubts(project: Project) -> Iterator[Issue]:
    """Reasons to restore again; nothing when there is no record."""
    path = os.path.join(project.restore_folder, "project.nuget.cache")
    try:
        record = read_bytes(path, MAX_BYTES).lower()
    except (FileNotFoundError, FileProblem):
        return
    head, _, files = record.partition(b'"expectedpackagefiles"')
    if os.fsencode(os.path.basename(project.path).lower()) not in head:
        return  # another project's: the folder is shared
    if b'"success": false' in head or b'"success":false' in head:
        yield warning("RestoreFailed", f"The last restore of {project.path} failed: packages may be missing.")
    elif missing := _unrecorded(project.references, files.replace(b"\\\\", b"/")):
        names = ", ".join(missing)
        yield warning("RestoreStale", f"{project.path} asks for {names}, in a version that was not restored.")
    elif other := _other_framework(project):
        message = f"{project.path} targets {project.frameworks[0]}, but was restored for {other}."
        yield warning("RestoreStale", message)


def _unrecorded(references: Iterable[tuple[str, str]], record: bytes) -> list[str]:
    """References that restore did not know. Ranges, floating and central versions are only looked up by name."""
    raised = b"nu1603" in record  # a higher version was taken because the asked one does not exist
    missing = []
    for name, version in references:
        exact = version[:1].isdigit() and "*" not in version and not raised
        tails = [f"{spelling.lower()}/" for spelling in folder_spellings(version)] if exact else [""]
        if not any(os.fsencode(f"/{name.lower()}/{tail}") in record for tail in tails):
            missing.append(name)
    return missing


def _other_framework(project: Project) -> str | None:
    """The framework that a project with a single one was restored for, if that is certainly another."""
    if len(project.frameworks) != 1:
        return None
    try:
        head = read_head(os.path.join(project.restore_folder, "project.assets.json"), HEAD_BYTES)
    except (FileNotFoundError, FileProblem):
        return None
    found = re.search(rb'"targets": \{\s*"([^"/]+)', head)
    if not found or found[1].decode("utf-8", "replace").lower() == project.frameworks[0].lower():
        return None
    from ..msbuild.frameworks import parse
    from .assets import short_name

    restored = short_name(found[1].decode("utf-8", "replace"))
    one, other = parse(restored), parse(project.frameworks[0])
    # Restore may spell out the platform's version; everything else must be the same.
    if one is None or other is None or one.replace(platform_version=()) == other.replace(platform_version=()):
        return None
    return restored
