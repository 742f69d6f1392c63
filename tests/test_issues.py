"""Issues: every one has a stable code, a severity, a sentence and the next step."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import uno_devserver
from uno_devserver.issues import REMEDIES, Issue, Severity, UserError, fatal, warning

SOURCES = sorted(Path(uno_devserver.__file__).parent.rglob("*.py"))


def test_an_issue_takes_the_usual_next_step_of_its_code() -> None:
    issue = warning("RestoreStale", "App.csproj changed.")

    assert issue == Issue("RestoreStale", Severity.WARNING, "App.csproj changed.", REMEDIES["RestoreStale"])
    assert not issue.fatal


def test_a_next_step_that_fits_better_replaces_the_usual_one() -> None:
    issue = fatal("SdkNotInCache", "Uno.Sdk 6.5.31 is missing.", "Connect to the network.")

    assert (issue.remediation, issue.fatal) == ("Connect to the network.", True)


@pytest.mark.parametrize(("severity", "name"), [(Severity.FATAL, "Fatal"), (Severity.WARNING, "Warning")])
def test_severities_are_written_as_the_net_tool_writes_them(severity: Severity, name: str) -> None:
    assert severity.value == name


def test_every_code_that_the_program_uses_has_a_next_step() -> None:
    """Else a code without one would show only when that issue comes up."""
    used = {code: path.name for path in SOURCES for code in _codes(ast.parse(path.read_bytes()))}

    assert len(used) > 20, "the calls were found"
    assert {code: file for code, file in used.items() if code not in REMEDIES} == {}


def _codes(tree: ast.Module) -> list[str]:
    """The first arguments of all calls of `fatal` and `warning`."""
    return [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("fatal", "warning")
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


@pytest.mark.parametrize("code", REMEDIES)
def test_codes_are_single_words_and_next_steps_whole_sentences(code: str) -> None:
    assert code.isidentifier()
    assert code[0].isupper()
    assert REMEDIES[code][0].isupper()
    assert REMEDIES[code].endswith(".")


def test_a_user_error_is_a_failure_unless_it_says_that_the_call_was_wrong() -> None:
    failed = UserError("Broken", "It is broken.", "Repair it.")
    wrong = UserError("UnknownOption", "There is no such option.", "Ask for help.", exit_code=2)

    assert (str(failed), failed.code, failed.next_step, failed.exit_code) == (
        "It is broken.",
        "Broken",
        "Repair it.",
        1,
    )
    assert wrong.exit_code == 2
