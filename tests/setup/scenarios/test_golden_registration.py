"""54 situations in which the .NET CLI registered servers: ours does the same, or docs/compatibility.md says why not.

Every recorded run is repeated, with the .NET tool's runner and the version that it had. Compared are the exit code,
what was done where, what the status says of each client that the .NET CLI knows, and what the files mean afterwards.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.files import write
from support.golden import GOLDEN, intended_differences
from support.machine import Machine, Result
from support.registration import Clients, without_comments

RECORDS = json.loads((GOLDEN / "uno-cli-registration" / "registration.json").read_text("utf-8"))
CASES = {record["id"]: record for record in RECORDS}

# The .NET CLI's names for clients, where ours has others; it understands both.
OUR_NAMES = {
    "gemini-antigravity": "antigravity",
    "codex-cli": "codex",
    "junie-rider": "junie",
    "copilot-vscode": "vscode",
    "copilot-vs": "visual-studio",
}
THEIR_CLIENTS = {
    *OUR_NAMES.values(),
    *("gemini-cli", "copilot-cli", "claude-code", "claude-desktop", "cursor", "kiro", "kimi-code", "jetbrains-air"),
    *("windsurf", "opencode", "unknown"),
}
EXIT_CODE, OPERATIONS, ACTIONS, PATHS = "exit code", "operations", "actions", "paths"
DETECTED, STATUS, LOCATIONS, WARNINGS, OTHERS = "detected", "status", "locations", "warnings", "other clients"
CONTENT, FILE = "content", "file"


class Row(NamedTuple):
    """One row of the table: what stands in backticks in its first two columns. Cases may have wildcards."""

    cases: list[str]
    fields: list[str]

    def holds_for(self, case: str) -> bool:
        return any(fnmatchcase(case, pattern) for pattern in self.cases)


DIFFERENCES = [Row(*row[:2]) for row in intended_differences("## Differences in registration from the .NET CLI")]


@pytest.mark.parametrize("case", CASES)
def test_ours_does_what_the_dotnet_cli_does_or_the_table_says_why_not(case: str, clients: Clients) -> None:
    record = _placed(CASES[case], clients.machine)
    for path, content in record["files"].items():
        write(Path(path), content)
    listed = {field for row in DIFFERENCES if row.holds_for(case) for field in row.fields}

    different: set[str] = set()
    for recorded in record["runs"]:
        different |= _compare(clients, recorded)

    assert different == listed & _recorded_fields(record["runs"])


def test_the_table_names_only_recorded_situations() -> None:
    assert len(CASES) == 54
    for row in DIFFERENCES:
        for pattern in row.cases:
            assert any(fnmatchcase(case, pattern) for case in CASES), pattern


def _placed(value: Any, machine: Machine) -> Any:
    if isinstance(value, str):
        return value.replace("{WS}", str(machine.workspace)).replace("{HOME}", str(machine.home))
    if isinstance(value, list):
        return [_placed(item, machine) for item in value]
    if isinstance(value, dict):
        return {_placed(key, machine): _placed(item, machine) for key, item in value.items()}
    return value


def _recorded_fields(runs: list[dict[str, Any]]) -> set[str]:
    """What can be compared in a situation."""
    fields = {EXIT_CODE}
    for run in runs:
        fields |= {OPERATIONS, ACTIONS, PATHS} if "operations" in run else set()
        fields |= {DETECTED, STATUS, LOCATIONS, WARNINGS, OTHERS} if "found" in run else set()
        fields |= {CONTENT, FILE} if "written" in run else set()
    return fields


def _compare(clients: Clients, recorded: dict[str, Any]) -> set[str]:
    """The fields in which a run differs from the recorded one."""
    result = clients.machine.run(*_as_their_tool(recorded["argv"]))
    assert not [path for path in clients.tree() if path.endswith((".bak", ".tmp"))], "copies are kept elsewhere"

    different = {EXIT_CODE} if result.exit_code != recorded["exit"] else set()
    if "operations" in recorded:
        different |= _different_operations(result, recorded)
    if "found" in recorded:
        different |= _different_status(result, recorded)
    for path, content in recorded.get("written", {}).items():
        file = Path(path)
        if not file.exists():
            different.add(FILE)
        elif _meaning(_content(file)) != _meaning(content):
            different.add(CONTENT)
    return different


def _content(file: Path) -> Any:
    text = file.read_text("utf-8-sig")
    return without_comments(text) if text.strip() else None


def _as_their_tool(argv: list[str]) -> list[str]:
    """The recorded tool was a prerelease, and there was one runner."""
    if len(argv) < 2 or argv[1] not in ("status", "install"):
        return argv
    chosen = any(option in argv for option in ("--channel", "--tool-version"))
    return [*argv, "--runner", "dnx", *([] if chosen else ["--prerelease"])]


def _our_name(ide: str, recorded: dict[str, Any]) -> str:
    """The name of a client in our answer: the one that was asked for, else ours."""
    return ide if ide in recorded["argv"] else OUR_NAMES.get(ide, ide)


def _different_operations(result: Result, recorded: dict[str, Any]) -> set[str]:
    theirs = recorded["operations"]
    ours = [(one["server"], one["ide"], one["action"], one["path"]) for one in result.json.get("operations", [])]
    if [one[:2] for one in ours] != [(server, _our_name(ide, recorded)) for server, ide, *_ in theirs]:
        return {OPERATIONS}
    pairs = list(zip(ours, theirs, strict=True))
    different = {ACTIONS} if any(one[2] != their[2] for one, their in pairs) else set()
    return different | ({PATHS} if any(one[3] != their[3] for one, their in pairs) else set())


def _different_status(result: Result, recorded: dict[str, Any]) -> set[str]:
    said = result.json
    assert said["expectedVariant"] == recorded["expectedVariant"]
    theirs = {(server, _our_name(ide, recorded)): rest for server, ide, *rest in recorded["found"]}
    ours = {(server["name"], ide["ide"]): _told(ide) for server in said["servers"] for ide in server["ides"]}
    detected = {ide["id"] for ide in said["ides"] if ide["detected"]} & {*THEIR_CLIENTS, *OUR_NAMES}
    different = {DETECTED} if detected != {_our_name(ide, recorded) for ide in recorded["detected"]} else set()
    caller = recorded["argv"][2]
    assert said["callerIde"] == (caller if not caller.startswith("--") else None)
    missing: list[Any] = ["missing", [], []]
    for server, client in {*theirs, *ours}:
        one, other = ours.get((server, client), missing), theirs.get((server, client), missing)
        if client in THEIR_CLIENTS and client != caller:
            different |= {OTHERS} if one != other else set()
        elif client == caller:
            fields = zip((STATUS, LOCATIONS, WARNINGS), one, other, strict=True)
            different |= {field for field, said_by_us, said_by_them in fields if said_by_us != said_by_them}
    return different


def _told(ide: dict[str, Any]) -> list[Any]:
    """As the records have it: without the reasons of others' parsers, and without what this machine's PATH lacks."""
    locations = [[one["path"], one["variant"], one["transport"]] for one in ide.get("locations", [])]
    warnings = [re.sub(r"(': ).*", r"\1...", text) for text in ide.get("warnings", []) if "PATH" not in text]
    return [ide["status"], locations, warnings]


def _meaning(content: Any) -> Any:
    """What a file says, with `dotnet dnx` as `dnx`: both start the same."""
    if isinstance(content, list):
        items = [_meaning(item) for item in content]
        return items[1:] if items[:2] == ["dotnet", "dnx"] else items
    if not isinstance(content, dict):
        return content
    if content.get("command") == "dotnet" and content.get("args", [])[:1] == ["dnx"]:
        content = {**content, "command": "dnx", "args": content["args"][1:]}
    return {key: _meaning(value) for key, value in content.items()}
