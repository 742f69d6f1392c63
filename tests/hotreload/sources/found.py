"""What counts as the code of a package, for the tests of each kind."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hotreload.trees import watched
from support.files import write
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.sources.source_tree import Sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage


def sources_of(root: Path, workspace: Path | None = None) -> Sources:
    """The sources; each key leads from the root to its file."""
    sources = find_sources(WatchedPackage(Role.SERVER, str(root), workspace=str(workspace or "")))
    for name, path in sources.files.items():
        assert os.path.samefile(path, root.resolve() / name)
    assert sum(package.files for package in sources.packages) == len(sources.files)
    return sources


def names(root: Path, workspace: Path | None = None) -> list[str]:
    return sorted(sources_of(root, workspace).files)


def assert_noticed(root: Path, path: Path, content: str = "# edited\n") -> None:
    """An edit of that file is news, and the only change."""
    with watched(root) as one:
        before = one.digest()
        write(path, content)
        assert one.news() is True
        assert one.digest() != before
        assert one.changed_paths == (os.path.relpath(path, root),)


def package_json(path: Path, name: str, *dependencies: str, **more: object) -> None:
    document = {"name": name, "version": "1.0.0", "dependencies": dict.fromkeys(dependencies, "*"), **more}
    write(path / "package.json", json.dumps(document))


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))
