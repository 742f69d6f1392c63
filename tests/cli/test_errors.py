"""Whatever goes wrong, the next step is something that one can do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import uno_devserver
from support.machine import Machine

SOURCES = Path(uno_devserver.__file__).parent
# How a step may begin: with what to do.
VERBS = {"Ask", "Change", "Check", "Choose", "Correct", "Create", "End", "Give", "Install", "Leave", "Let", "Look"}
VERBS |= {"Make", "Move", "Name", "Put", "Read", "Remove", "Repair", "Report", "Run", "See", "Set", "Start", "Stop"}
VERBS |= {"Take", "Try", "Update", "Use", "Wait", "Write"}


def _next_steps() -> Iterator[tuple[str, str]]:
    """Where a UserError is made, and the beginning of its next step, as far as the source tells it."""
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            known = {
                target.id: node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for call in ast.walk(function):
                step = _step_of(call)
                if isinstance(step, ast.Name):
                    step = known.get(step.id, step)
                text = _beginning(step)
                if text is not None:
                    yield f"{path.relative_to(SOURCES)}:{call.lineno}", text  # type: ignore[attr-defined]


def _step_of(call: ast.AST) -> ast.expr | None:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    position = {"UserError": 2, "_usage": 1}.get(call.func.id)
    return call.args[position] if position is not None and len(call.args) > position else None


def _beginning(step: ast.expr | None) -> str | None:
    if isinstance(step, ast.JoinedStr) and step.values:
        step = step.values[0]
    return step.value if isinstance(step, ast.Constant) and isinstance(step.value, str) else None


def test_the_next_step_of_every_error_says_what_to_do() -> None:
    steps = list(_next_steps())

    weak = [(where, text) for where, text in steps if re.split(r"[\s,:]", text)[0] not in VERBS]
    assert weak == []
    assert len(steps) > 50, "they are no longer found, or nobody writes them any more"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("helth", "'health'"),
        ("mcp doktor", "'mcp doctor'"),
        ("complete", "'completion'"),
        ("disco --addin-only", "'--addins-only'"),
        ("mcp install cursor --dryrun", "'--dry-run'"),
        ("mcp install cursr", "'cursor'"),
        ("--jsn", "'--json'"),
        ("mcp status --scope user", "'mcp install', 'mcp uninstall', 'mcp restore' have it"),
    ],
)
def test_what_was_probably_meant_is_suggested(machine: Machine, typed: str, meant: str) -> None:
    assert meant in machine.run(*typed.split()).stderr


@pytest.mark.parametrize("option", ["--runner", "--scope", "--channel"])
def test_a_missing_value_is_named_with_those_that_there_are(machine: Machine, option: str) -> None:
    result = machine.run("mcp", "install", "cursor", option)

    assert result.exit_code == 2
    assert re.search(rf"next: Write {option} \S+\. It is one of: \w+, \w+", result.stderr)
