"""34 workspaces as a real `dotnet restore` left them: `disco` finds the add-ins that MSBuild finds for the solution.

A package with a manifest says itself what its add-ins are (seed 000, section 7), and MSBuild knows no manifests: such
a package's own list takes the place of what MSBuild says about it. There is no dotnet on these machines.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from support.golden import Recording, recorded_ids, restored_workspace
from support.machine import Machine

WORKSPACES = recorded_ids("restore")


class Sets(NamedTuple):
    expected: set[str]
    found: set[str]


@pytest.mark.parametrize("name", WORKSPACES)
def test_disco_finds_the_add_ins_that_msbuild_finds(name: str, machine: Machine) -> None:
    sets = _discover(name, machine)

    assert sets.expected - sets.found == set(), "no add-in is missed"
    assert sets.found - sets.expected == set(), "no add-in is found besides"


def test_all_34_recorded_workspaces_are_here() -> None:
    assert len(WORKSPACES) == 34


def _discover(name: str, machine: Machine) -> Sets:
    recording = restored_workspace(name, machine)

    result = machine.disco()

    assert result.json["selectedSolutionPath"] == str(machine.workspace / recording["expected"]["solution"])
    found = result.add_ins
    assert len(found) == len(set(found)), "no add-in is given twice"
    return Sets(_expected(recording), set(found))


def _expected(recording: Recording) -> set[str]:
    union = {item["fullPath"] for item in recording["expected"]["solutionUnion"] if item["exists"]}
    for manifest in _restored_manifests(recording):
        package = manifest.parent
        union = {path for path in union if not Path(path).is_relative_to(package)}
        entries = json.loads(manifest.read_text("utf-8"))["addins"]
        union |= {str(package / entry["entryPoint"]) for entry in entries}
    return union


def _restored_manifests(recording: Recording) -> list[Path]:
    """The manifests of the packages that restore gave to a project of the solution."""
    packages: set[Path] = set()
    for project in recording["expected"]["projects"]:
        assets = Path(project.get("restoreOutput", {}).get("dir", "")) / "project.assets.json"
        if project["inSolution"] and assets.exists():
            content = json.loads(assets.read_text("utf-8"))
            paths = [library["path"] for library in content["libraries"].values() if library["type"] == "package"]
            packages |= {Path(folder) / path for folder in content["packageFolders"] for path in paths}
    return [package / "devserver-addin.json" for package in packages if (package / "devserver-addin.json").exists()]
