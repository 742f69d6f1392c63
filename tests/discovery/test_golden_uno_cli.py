"""62 workspaces on which the .NET CLI was run: ours says the same, or docs/compatibility.md says why not.

All runs of `disco` and `health` are compared, field by field. Durations and our version are ignored, and so are fields
that we added. The .NET CLI's sentences are not kept, only how many there were, and the codes of its issues.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.files import write
from support.golden import GOLDEN, Recording, intended_differences, recorded_ids
from support.machine import Machine

CASES = recorded_ids("uno-cli-discovery")

NOT_COMPARED = {"discoveryDurationMs", "addInsDiscoveryDurationMs", "devServerVersion"}
# The codes that the .NET CLI has for what is on disk; ours has more of them, on purpose.
THEIR_CODES = {
    "HostNotStarted",
    "WorkspaceAmbiguous",
    "WorkspaceNotResolved",
    "NoSolutionFound",
    "GlobalJsonNotFound",
    "UnoSdkNotInGlobalJson",
    "SdkNotInCache",
    "PackagesJsonNotFound",
    "DotNetNotFound",
    "DevServerPackageNotCached",
    "HostBinaryNotFound",
    "AddInPackageNotCached",
    "AddInDiscoveryFallback",
}
EXIT_CODE = "exit code"
ADD_INS_ONLY = "--addins-only"
EVERYTHING = "*"


def uno_cli_record(name: str, machine: Machine, dotnet_version: str) -> Recording:
    """What the .NET CLI said; `dotnet_version` is what its dotnet answered."""
    places: dict[str, Path | str] = {"WS": machine.workspace, "NUGET": machine.nuget, "HOME": machine.home}
    places["VER"] = dotnet_version
    return Recording(GOLDEN / "uno-cli-discovery" / f"{name}.json", places)


def uno_cli_workspace(name: str, machine: Machine, dotnet_version: str) -> None:
    """Write a workspace on which the .NET CLI was run."""
    for file, content in uno_cli_record(name, machine, dotnet_version)["files"].items():
        if file.endswith("/.git/"):
            subprocess.run(["git", "init", "--quiet", str(Path(file).parent)], check=True)
        else:
            write(Path(file), content)


class Row(NamedTuple):
    """One row of the table: what stands in backticks in its columns."""

    cases: list[str]
    fields: list[str]
    theirs: list[str]
    ours: list[str]

    @property
    def same_as(self) -> str | None:
        """With `*` as the field, ours says whose record holds instead."""
        return self.ours[0] if self.fields == [EVERYTHING] else None


DIFFERENCES = [Row(*row[:4]) for row in intended_differences("## Differences from the .NET CLI")]


@pytest.mark.parametrize("case", CASES)
def test_ours_says_what_the_dotnet_cli_says_or_the_table_says_why_not(case: str, machine: Machine) -> None:
    rows = [row for row in DIFFERENCES if case in row.cases]
    record = next((row.same_as for row in rows if row.same_as), case)
    dotnet = machine.install_dotnet()
    uno_cli_workspace(case, machine, dotnet.sdks[-1])

    differences = _compare(machine, uno_cli_record(record, machine, dotnet.sdks[-1])["runs"])

    assert differences.fields == {field for row in rows if not row.same_as for field in row.fields}
    added, removed = ([name[1:] for row in rows for name in row.ours if name[0] == sign] for sign in "+-")
    assert _ends(differences.added, added)
    assert _ends(differences.removed, removed)


def test_the_table_names_only_recorded_cases() -> None:
    assert len(CASES) == 62
    assert {case for row in DIFFERENCES for case in row.cases} <= set(CASES)


@dataclass
class Differences:
    """What is not as recorded: the fields, and the add-ins that `disco --json` has more or less."""

    fields: set[str] = dataclass_field(default_factory=set)
    added: set[str] = dataclass_field(default_factory=set)
    removed: set[str] = dataclass_field(default_factory=set)


def _compare(machine: Machine, runs: list[dict[str, Any]]) -> Differences:
    different = Differences()
    for recorded in runs:
        result = machine.run(*recorded["argv"])
        if result.exit_code != recorded["exit"]:
            different.fields.add(EXIT_CODE)
        if "addIns" in recorded and result.add_ins != recorded["addIns"]:
            different.fields.add(ADD_INS_ONLY)
        if recorded["argv"][0] == "health":
            different.fields |= _different_fields(result.json, recorded["json"])
            different.fields |= _different_fields(result.json["discovery"], recorded["json"]["discovery"])
        elif "json" in recorded:
            different.fields |= _different_fields(result.json, recorded["json"])
            theirs = {entry["entryPointDll"] for entry in recorded["json"]["addIns"]}
            different.added |= set(result.add_ins) - theirs
            different.removed |= theirs - set(result.add_ins)
    return different


def _different_fields(ours: dict[str, Any], theirs: dict[str, Any]) -> set[str]:
    assert list(ours)[: len(theirs)] == list(theirs), "the fields of the contract come first, in its order"
    compared = [name for name in theirs if name not in {*NOT_COMPARED, "discovery"}]
    return {name for name in compared if _comparable(name, ours[name]) != _comparable(name, theirs[name])}


def _comparable(name: str, value: Any) -> Any:
    if name == "errors":
        return bool(value)
    if name == "warnings":
        return None  # ours has more of them, on purpose: every file that could not be used is named
    if name == "issues":
        return sorted((issue["code"], issue["severity"]) for issue in value if issue["code"] in THEIR_CODES)
    if name == "addIns":
        fields = ("packageName", "packageVersion", "entryPointDll", "discoverySource")
        return [{key: entry[key] for key in fields} for entry in value]
    return value


def _ends(paths: set[str], ends: list[str]) -> bool:
    """Whether each path ends in one of these, and each of these is needed."""
    return len(paths) == len(ends) and all(any(path.endswith("/" + end) for path in paths) for end in ends)
