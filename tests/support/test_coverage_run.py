from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.coverage_run import Module, combined, figures_of_a_part, measuring_python, problems
from support.files import write

TESTS = Path(__file__).parents[1]
GOOD = Module("good.py", 100, 0, 100, 0)
BAD = Module("bad.py", 10, 5, 10, 5)


def test_a_module_that_is_hardly_covered_needs_a_reason() -> None:
    assert problems([GOOD, BAD], {}) == ["bad.py: 50.0 %, and no reason why"]
    assert problems([GOOD, BAD], {"bad.py": "because"}) == []


def test_a_reason_that_excuses_nothing_is_a_problem() -> None:
    assert problems([GOOD], {"good.py": "because"}) == ["good.py: a reason, and nothing to excuse"]


def test_the_branches_of_all_modules_together_are_judged_too() -> None:
    # Statements hide it: of these 96 % are taken, together with the branches.
    hidden = Module("hidden.py", 1000, 0, 50, 40)

    assert problems([hidden], {}) == ["20.0 % of all branches"]


@pytest.mark.parametrize(
    "end", ["pass", "os._exit(0)", "os.kill(os.getpid(), signal.SIGTERM)"], ids=["by itself", "at once", "by a signal"]
)
def test_what_a_process_did_counts_however_it_ends_and_in_whatever_environment(tmp_path: Path, end: str) -> None:
    # given
    pytest.importorskip("coverage", reason="make coverage installs it")
    source = tmp_path / "src" / "measured"
    write(source / "__init__.py", "")
    write(source / "work.py", "def work(done):\n    if done:\n        return 1\n    done.append(1)\n")
    program = f"""
import os, signal, _thread
from measured.work import work
done, ended = [], _thread.allocate_lock()
ended.acquire()
def run():
    work(done)
    ended.release()
_thread.start_new_thread(run, ())
ended.acquire()
{end}
"""

    # when
    python = measuring_python(tmp_path, source)
    process = subprocess.run([python, "-c", program], env={}, capture_output=True)

    # then
    assert process.returncode == (-signal.SIGTERM if "SIGTERM" in end else 0)
    assert (process.stdout, process.stderr) == (b"", b"")
    work = next(module for module in combined(tmp_path, source) if module.name == "work.py")
    assert work == Module("work.py", statements=4, missed=1, branches=2, missed_branches=1)


@pytest.mark.parametrize(
    ("program", "arguments", "sentence"),
    [
        ("support/coverage_run.py", ["--save", "-k", "words"], "only a run of all tests is recorded"),
        ("release/run.py", ["--python", "/nope"], "/nope is no released Python; name one from 3.11 on"),
        ("release/run.py", ["--python", "/bin/true"], "/bin/true is no released Python"),
        ("chaos/run.py", ["--minutes", "0"], "argument --minutes: '0' is no number above 0"),
        ("soak/run.py", ["--minutes", "nan"], "argument --minutes: 'nan' is no number above 0"),
    ],
)
def test_what_a_proof_cannot_be_made_with_is_a_sentence(program: str, arguments: list[str], sentence: str) -> None:
    if "coverage" in program:
        pytest.importorskip("coverage", reason="make coverage installs it")

    process = subprocess.run([sys.executable, str(TESTS / program), *arguments], capture_output=True, text=True)

    assert process.returncode == 2
    assert sentence in process.stderr
    assert "Traceback" not in process.stderr


def test_of_a_part_of_the_tests_only_the_modules_that_ran_are_told() -> None:
    told = figures_of_a_part([GOOD, BAD, Module("never.py", 10, 10, 4, 4)])

    assert "nothing is judged" in told
    assert "| `bad.py` | 50.0 % |" in told
    assert "never.py" not in told
