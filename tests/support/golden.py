"""Recorded workspaces, put on disk again: `{WS}`, `{NUGET}` and the like become real folders, in contents too."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.files import write
from support.machine import Machine
from support.packages import sdk

GOLDEN = Path(__file__).parent.parent / "golden"


class Recording:
    """One recorded file, with its placeholders filled in for one machine."""

    def __init__(self, path: Path, places: Mapping[str, Path | str]) -> None:
        self._places = {f"{{{name}}}": str(value) for name, value in places.items()}
        self._recorded: dict[str, Any] = json.loads(path.read_text("utf-8"))

    def placed(self, value: Any) -> Any:
        """The value with real paths, in strings at any depth and in the keys of objects."""
        if isinstance(value, str):
            for placeholder, place in self._places.items():
                value = value.replace(placeholder, place)
            return value
        if isinstance(value, list):
            return [self.placed(item) for item in value]
        if isinstance(value, dict):
            return {self.placed(key): self.placed(item) for key, item in value.items()}
        return value

    def __getitem__(self, key: str) -> Any:
        return self.placed(self._recorded[key])


def recorded_ids(folder: str) -> list[str]:
    return sorted(path.stem for path in (GOLDEN / folder).glob("*.json"))


def restored_workspace(name: str, machine: Machine) -> Recording:
    """A workspace as a real restore left it, made a Uno workspace by global.json and an SDK that lists no packages."""
    at_home = machine.home / ".nuget" / "packages"
    path = GOLDEN / "restore" / f"{name}.json"
    environment = json.loads(path.read_text("utf-8"))["expected"]["environment"]
    nuget = machine.nuget if environment else at_home
    places: dict[str, Path | str] = {"WS": machine.workspace, "NUGET": nuget, "HOME": machine.home}
    places |= {"FEED": machine.root / "feed", "SOURCE": "registry", "DOTNET": machine.root / "dotnet"}
    recording = Recording(path, places)
    machine.environment = recording["expected"]["environment"]
    folders = {"ws": machine.workspace, "nuget": nuget}
    for file, content in recording["files"].items():
        root, _, inside = file.partition("/")
        write(folders[root] / inside, content if isinstance(content, str) else base64.b64decode(content["base64"]))
    _add_uno_sdk(machine.workspace / "global.json", at_home)
    return recording


def _add_uno_sdk(global_json: Path, cache: Path) -> None:
    content = json.loads(global_json.read_text("utf-8")) if global_json.exists() else {}
    content.setdefault("msbuild-sdks", {})["Uno.Sdk"] = "6.5.31"
    write(global_json, json.dumps(content))
    sdk("Uno.Sdk", "6.5.31", groups=()).write(cache)


def intended_differences(heading: str) -> list[list[list[str]]]:
    """The table under a heading of docs/compatibility.md: for each row and column, the words in backticks."""
    page = (GOLDEN.parents[1] / "docs" / "compatibility.md").read_text("utf-8")
    section = page.split(heading, 1)[1].split("\n## ", 1)[0]
    lines = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")][2:]
    assert lines, f"no table under '{heading}'"
    return [[re.findall("`([^`]+)`", cell) for cell in line] for line in lines]
