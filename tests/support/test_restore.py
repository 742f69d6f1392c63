"""The builder's restore files are NuGet's own: compared with recorded ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.golden import GOLDEN
from support.packages import Package
from support.restore import Restored

BOTH = Package("Acme.Both", "1.0.0", {"buildTransitive/Acme.Both.targets": "", "tools/x.dll": ""})
TRANS_ONLY = Package("Acme.TransOnly", "1.0.0", {"buildTransitive/Acme.TransOnly.targets": "", "tools/x.dll": ""})
MISSING = Package("Acme.DoesNotExist", "1.0.0")


@pytest.mark.parametrize(
    ("workspace", "project", "packages", "missing"),
    [
        ("shared-obj", "One.csproj", [TRANS_ONLY], []),
        ("shared-obj", "Two.csproj", [BOTH], []),
        ("failed-restore", "Bad/Bad.csproj", [BOTH], [MISSING]),
    ],
)
def test_written_files_equal_recorded_ones(
    tmp_path: Path, workspace: str, project: str, packages: list[Package], missing: list[Package]
) -> None:
    recorded = json.loads((GOLDEN / "restore" / f"{workspace}.json").read_text("utf-8"))["files"]
    restored = Restored(tmp_path / "ws" / project, {"net10.0": packages}, tmp_path / "nuget", missing=missing)

    restored.write()

    folder = f"ws/{Path(project).parent}/obj".replace("/./", "/")
    for name in (f"{restored.project.name}.nuget.g.props", f"{restored.project.name}.nuget.g.targets"):
        assert _read(restored.obj / name, tmp_path) == recorded[f"{folder}/{name}"]


@pytest.mark.parametrize("name", ["project.assets.json", "project.nuget.cache", "Bad.csproj.nuget.dgspec.json"])
def test_written_json_has_only_keys_that_were_recorded(tmp_path: Path, name: str) -> None:
    recorded = json.loads((GOLDEN / "restore" / "failed-restore.json").read_text("utf-8"))["files"]
    restored = Restored(tmp_path / "ws/Bad/Bad.csproj", {"net10.0": [BOTH]}, tmp_path / "nuget", missing=[MISSING])

    restored.write()

    written = json.loads(_read(restored.obj / name, tmp_path))
    assert _paths(written) <= _paths(json.loads(recorded[f"ws/Bad/obj/{name}"]))


def _read(path: Path, root: Path) -> str:
    text = path.read_text("utf-8").replace('"feed"', '"{FEED}"')
    return text.replace(f"{root}/ws", "{WS}").replace(f"{root}/nuget", "{NUGET}")


def _paths(value: Any) -> set[tuple[str, ...]]:
    """Where values stand in a document; values themselves and positions in lists do not count."""
    if isinstance(value, dict):
        return {(key, *rest) for key, item in value.items() for rest in _paths(item) or {()}}
    if isinstance(value, list):
        return {rest for item in value for rest in _paths(item)}
    return set()
