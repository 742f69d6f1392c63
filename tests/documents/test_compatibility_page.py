"""docs/compatibility.md names the versions that the program speaks and that the tests use."""

from __future__ import annotations

import json
import re
import tomllib

from documents.blocks import ROOT
from uno_devserver.protocol.versions import ALL_VERSIONS

SECTION = (ROOT / "docs" / "compatibility.md").read_text("utf-8").partition("\n## What works with what\n")[2]
ROWS = {row.split("|")[1].strip(): row for row in SECTION.partition("\n## ")[0].splitlines() if row.startswith("| ")}


def test_the_versions_of_mcp_are_those_that_are_spoken() -> None:
    named = [*re.findall(r"\d{4}-\d\d-\d\d", ROWS["MCP, handshake era"] + ROWS["MCP, modern era"])]

    assert sorted(named) == sorted(ALL_VERSIONS)


def test_the_versions_of_python_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))

    assert declared
    assert all(version in ROWS["Python"] for version in declared)


def test_the_versions_of_the_suite_and_the_sdks_are_those_that_tests_use() -> None:
    suite = _dependencies("conformance")

    assert suite["@modelcontextprotocol/conformance"] in ROWS["MCP, handshake era"]
    assert suite["conformance-modern"].rpartition("@")[2] in ROWS["MCP, modern era"]
    assert (
        _dependencies("proxy/scenarios/typescript_client")["@modelcontextprotocol/client"]
        in ROWS["official SDK, TypeScript"]
    )
    dev = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["dev"]
    assert next(one for one in dev if one.startswith("mcp>=")).partition(">=")[2] in ROWS["official SDK, Python"]


def _dependencies(folder: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((ROOT / "tests" / folder / "package.json").read_text("utf-8"))["dependencies"]
    return found


def test_each_difference_says_who_may_notice_it() -> None:
    page = (ROOT / "docs" / "compatibility.md").read_text("utf-8")
    tables = [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]
    differences = [table for table in tables if "| theirs | ours |" in table[0]]

    assert len(differences) == 5
    assert all("who may notice" in table[0] for table in differences)
    assert all(row.split("|")[-2].strip() for table in differences for row in table)
    for row in (row for table in tables if "| held by | difference" in table[0] for row in table[2:]):
        difference = row.split("|")[-2].strip()
        assert difference.startswith("none") or "otice" in difference, row
