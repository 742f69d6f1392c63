"""Workflows cannot run here. They are read by the tools that know them, and what their steps call can be run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.pythons import TESTED
from support import npm
from support.files import write

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HOOKS = ROOT / ".pre-commit-config.yaml"
SECONDS = 120  # both take one
# What may stand before: on Linux the tests run as root.
STEP = re.compile(r'(?:sudo env "PATH=\$PATH" CI=1 )?make ([a-z-]+)(?: PYTHON=python[\d.]*)?(?: ARGS=.+)?')
BAD = """\
on: push
jobs:
  test:
    runs-on: ubuntu-24.04
    steps:
      - runs: make test
"""


def test_actionlint_finds_nothing() -> None:
    ran = _actionlint(ROOT)

    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert f"Checking {len(WORKFLOWS)} workflow file(s)" in ran.stdout


def test_actionlint_would_find_something(tmp_path: Path) -> None:
    write(tmp_path / ".github" / "workflows" / "bad.yml", BAD)

    ran = _actionlint(tmp_path)

    assert ran.returncode == 1
    assert 'unexpected key "runs"' in ran.stdout


def test_permissions_are_the_least_and_actions_are_named_by_their_hash() -> None:
    """As zizmor judges, with all else that it knows to be unsafe."""
    zizmor = [str(Path(sys.executable).with_name("zizmor")), "--offline", "--no-progress", "--strict-collection"]

    ran = subprocess.run(
        [*zizmor, *map(str, (ROOT / ".github", HOOKS))], capture_output=True, encoding="utf-8", timeout=SECONDS
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_is_a_target_of_make_or_an_action(path: Path) -> None:
    targets = _targets()

    for job in _loaded(path)["jobs"].values():
        for step in job["steps"]:
            called = STEP.fullmatch(step.get("run", ""))
            assert "uses" in step or (called is not None and called[1] in targets), step


def test_hooks_call_what_make_lint_calls() -> None:
    (repository,) = _loaded(HOOKS)["repos"]

    assert [hook["entry"] for hook in repository["hooks"]] == ["make lint"]
    assert "lint" in _targets()


def test_the_suite_runs_with_every_python_that_the_metadata_name() -> None:
    jobs = _loaded(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    tested = [f"{major}.{minor}" for major, minor in TESTED]

    assert jobs["linux"]["strategy"]["matrix"]["python"] == tested
    assert jobs["others"]["strategy"]["matrix"]["python"] == [tested[0], tested[-1]]


@pytest.mark.parametrize("path", [*WORKFLOWS, HOOKS], ids=lambda path: path.stem)
def test_no_host_is_named(path: Path) -> None:
    assert "://" not in path.read_text("utf-8")


def _actionlint(root: Path) -> subprocess.CompletedProcess[str]:
    home = npm.installed(Path(__file__).parent)
    program = home / "node_modules" / "@tktco" / "node-actionlint" / "bin" / "node-actionlint.js"
    command = [str(npm.NODE), str(program), ".github/workflows/*.yml"]
    return subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", timeout=SECONDS)


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def _loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))
