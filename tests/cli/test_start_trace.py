"""A `start` passes few functions in few modules, and docs/architecture.md lists them.

Traced is a real `start` in a workspace with one Python add-in and the bundled Host, with nothing running and nothing
agreed to before, from `cli/main.py` to the printed result. This is how steps are counted:

- A step is a call from a function of one module to a function of another, also where that leads back into a module that
  was left before. Calls of the standard library in between do not count. What a module calls in itself is not a step.
- The story is told by `cli/` and `instances/`. A call from there into another folder is a step; what that folder does
  inside, or calls in turn, is a story of its own.
- A function that the same module calls again (in a loop, or to wait) is the same step.
- Not counted: `system/` and `issues.py`, which every module uses; methods and constructors of `Value`, and properties;
  class and module bodies, comprehensions and lambdas.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from support.files import write
from support.machine import Machine

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "uno_devserver"
DOCUMENT = ROOT / "docs" / "architecture.md"
MOST_STEPS, MOST_FILES = 45, 20
STEP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)

# Notes the calls between modules of ours, in their order: the calling module, the called one, and the function.
PROGRAM = """
import inspect, json, sys
source, target = sys.argv[1:3]
calls = []
def module(frame):
    file = frame.f_code.co_filename
    return file[len(source) + 1:].replace("\\\\", "/") if file.startswith(source) else None
def profile(frame, event, argument):
    code = frame.f_code
    if event != "call" or module(frame) is None or not code.co_flags & inspect.CO_OPTIMIZED or code.co_name[0] == "<":
        return
    caller = frame.f_back
    while caller is not None and module(caller) is None:
        caller = caller.f_back
    owner = frame.f_locals.get("self")
    is_value = any(base.__name__ == "Value" for base in type(owner).__mro__)
    is_property = isinstance(getattr(type(owner), code.co_name, None), property)
    if not is_value and not is_property:
        calls.append((caller and module(caller), module(frame), code.co_qualname.replace(".<locals>", "")))
from uno_devserver.cli.main import main
sys.setprofile(profile)
code = main(sys.argv[3:])
sys.setprofile(None)
with open(target, "w") as stream:
    json.dump(calls, stream)
sys.exit(code)
"""


def test_a_start_takes_the_steps_of_the_architecture_and_no_more(machine: Machine) -> None:
    steps = traced_start(machine)

    assert steps == documented_steps(), "docs/architecture.md lists other steps; these were taken:\n" + "\n".join(
        f"{number}. `{file}` `{function}`" for number, (file, function) in enumerate(steps, 1)
    )
    assert len(steps) <= MOST_STEPS
    assert len({file for file, _ in steps}) <= MOST_FILES


def documented_steps() -> list[tuple[str, str]]:
    text = DOCUMENT.read_text("utf-8")
    chapter = text.partition("## A start, step by step")[2].partition("\n## ")[0]
    return [(file, function) for file, function in STEP.findall(chapter)]


def traced_start(machine: Machine) -> list[tuple[str, str]]:
    write(machine.workspace / ".devtools" / "addins" / "greeter.py", "def register(addin):\n    pass\n")
    target = machine.root / "trace.json"
    started = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(SOURCE), str(target), "start", "--trust"],
        cwd=machine.workspace,
        env=machine.variables(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    machine.run("stop")
    assert "1 of 1 loaded" in started.stdout, started.stderr
    steps: dict[tuple[str | None, str, str], None] = {}
    for caller, file, function in json.loads(target.read_text("utf-8")):
        tells = caller is None or caller.startswith(("cli/", "instances/"))
        if tells and caller != file and not file.startswith("system/") and file != "issues.py":
            steps[caller, file, function] = None
    return [(file, function) for _, file, function in steps]
