"""docs/troubleshooting.md has every code that a user can meet, once, and no other."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import uno_devserver
from documents.blocks import ROOT
from uno_devserver.issues import REMEDIES

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
SOURCES = sorted(Path(uno_devserver.__file__).parent.rglob("*.py"))


def test_every_code_is_explained_once_and_no_dead_one_is() -> None:
    explained = Counter(code for cell in _first_cells() for code in re.findall(r"`([A-Z]\w+)`", cell))
    met = {*REMEDIES, *(code for source in SOURCES for code in _error_codes(ast.parse(source.read_bytes())))}

    assert len(met) > 70, "the calls were found"
    assert {"PortTaken", "ServerOwned", "OutputFailed"} <= met, "also those of constants and of classes"
    assert sorted(met - set(explained)) == []
    assert sorted(set(explained) - met) == []
    assert [code for code, count in explained.items() if count > 1] == []


def test_every_row_says_what_is_seen_and_what_to_do() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| `[A-Z]", line)]

    assert all(len(row) == 3 and all(len(cell.strip(" |")) > 2 for cell in row) for row in rows)


def _first_cells() -> list[str]:
    return [line.split(" | ")[0] for line in PAGE.splitlines() if re.match(r"\| `[A-Z]", line)]


def _error_codes(tree: ast.Module) -> list[str]:
    """The codes with which a UserError is made: written there, or under a name of that module."""
    named = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = []
    for made in [*_calls(tree, "UserError"), *_calls_of_base(tree)]:
        code = made.args[0]
        value = (
            code.value if isinstance(code, ast.Constant) else named.get(code.id) if isinstance(code, ast.Name) else None
        )
        found += [value] if isinstance(value, str) else []
    return found


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _calls_of_base(tree: ast.Module) -> list[ast.Call]:
    """`super().__init__(…)` of the classes that are user errors."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    ours = [one for one in classes if any(isinstance(base, ast.Name) and base.id == "UserError" for base in one.bases)]
    calls = (node for one in ours for node in ast.walk(one) if isinstance(node, ast.Call) and node.args)
    return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"]
