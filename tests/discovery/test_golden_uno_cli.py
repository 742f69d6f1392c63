"""62 workspaces on which the .NET CLI was run: `disco` says the same, or docs/compatibility.md says why not.

All runs of `disco` are compared, field by field; `health`, recorded with them, belongs to the part that brings it.
Durations are ignored, and so are fields that we added. The .NET CLI's sentences are not kept, only how many there were.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.golden import recorded_ids, uno_cli_workspace
from support.machine import Machine

CASES = recorded_ids("uno-cli-discovery")
TABLE = Path(__file__).parent.parent.parent / "docs" / "compatibility.md"
HEADING = "## Differences from the .NET CLI"

DURATIONS = {"discoveryDurationMs", "addInsDiscoveryDurationMs"}
EXIT_CODE = "exit code"
ADD_INS_ONLY = "--addins-only"


class Difference(NamedTuple):
    case: str
    field: str


def intended_differences() -> set[Difference]:
    """Rows of the table: cases and fields stand in backticks in the first two columns."""
    section = TABLE.read_text("utf-8").split(HEADING, 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|") and "`" in line]
    assert rows, f"no table under '{HEADING}'"
    named = [(re.findall("`([^`]+)`", row[0]), re.findall("`([^`]+)`", row[1])) for row in rows]
    return {Difference(case, field) for cases, fields in named for case in cases for field in fields}


@pytest.mark.parametrize("case", CASES)
def test_disco_says_what_the_dotnet_cli_says_or_the_table_says_why_not(case: str, machine: Machine) -> None:
    if case == "git-ignored-solution" and not shutil.which("git"):
        pytest.skip("needs git")

    differences = _differences(case, machine)

    intended = {difference.field for difference in intended_differences() if difference.case == case}
    assert differences == intended


def test_every_case_of_the_table_was_recorded() -> None:
    assert len(CASES) == 62
    assert {difference.case for difference in intended_differences()} <= set(CASES)


def _differences(case: str, machine: Machine) -> set[str]:
    dotnet = machine.install_dotnet()
    recording = uno_cli_workspace(case, machine, dotnet.sdks[-1])
    different: set[str] = set()
    for recorded in recording["runs"]:
        result = machine.run(*recorded["argv"])
        if result.exit_code != recorded["exit"]:
            different.add(EXIT_CODE)
        if "addIns" in recorded and result.add_ins != recorded["addIns"]:
            different.add(ADD_INS_ONLY)
        if "json" in recorded:
            different |= _different_fields(result.json, recorded["json"])
    return different


def _different_fields(ours: dict[str, Any], theirs: dict[str, Any]) -> set[str]:
    assert list(ours)[: len(theirs)] == list(theirs), "the fields of the contract come first, in its order"
    return {
        field
        for field, value in theirs.items()
        if field not in DURATIONS and _comparable(field, ours[field]) != _comparable(field, value)
    }


def _comparable(field: str, value: Any) -> Any:
    if field == "errors":
        return bool(value)
    if field == "warnings":
        return None  # ours has more of them, on purpose: every file that could not be used is named
    if field == "addIns":
        return [
            {key: entry[key] for key in ("packageName", "packageVersion", "entryPointDll", "discoverySource")}
            for entry in value
        ]
    return value
