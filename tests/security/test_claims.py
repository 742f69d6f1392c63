"""docs/security.md claims nothing without a test, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from documents.blocks import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
_ROW = re.compile(r"^\| \*\*(?P<name>[a-z0-9-]+)\*\* \| (?P<claim>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<test>\w+)`")
CLAIMS = {row["name"]: row for row in _ROW.finditer(PAGE)}
NAMED = sorted({(found["file"], found["test"]) for found in _TEST.finditer(PAGE)})


def test_every_row_of_a_table_of_claims_is_one_with_a_name_of_its_own() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| **")]

    assert len(rows) == len(CLAIMS) > 0


def test_each_no_to_an_attacker_is_a_claim() -> None:
    matrix = PAGE.partition("## Who against what")[2].partition("\n## ")[0]
    cells = [
        cell for line in matrix.splitlines() if line.startswith(("| a ", "| an")) for cell in line.split("|")[2:-1]
    ]
    named = {name for cell in cells for name in re.findall(r"`([a-z][a-z-]+)`", cell)}

    assert len(cells) == 8 * 5
    assert all("no: `" in cell or "**yes**" in cell or "it may" in cell for cell in cells)
    assert named <= CLAIMS.keys()


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_has_a_test(name: str) -> None:
    assert _TEST.search(CLAIMS[name]["tests"]) is not None


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_test_that_is_named_exists(file: str, test: str) -> None:
    assert test in _tests_of(file)


@cache
def _tests_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
