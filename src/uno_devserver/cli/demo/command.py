"""`demo`: the story is told while it happens, and proves itself: exit code 1 where a step did not do what it says."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time

from ... import __version__
from ...setup.program import NAMES, passing, program
from ...system.text import visible
from ..folding import folded
from ..results import Result
from .failure import Failed
from .narrator import INDENT, Narrator
from .stage import Stage
from .story import Story

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..parse import Invocation

INTRODUCTION = (
    "A small script plays the AI client. The rest is real: processes, a kill, files. It all happens in a temporary "
    "folder, and nothing of it stays."
)


def run(invocation: Invocation) -> Result:
    began = time.monotonic()
    narrator = Narrator(silent=invocation.on("json"))
    narrator.introduction(f"uno-devserver {__version__}, shown by itself.")
    narrator.introduction(INTRODUCTION)
    with Stage() as stage:
        steps = _perform(Story(stage, narrator), narrator)
    seconds = time.monotonic() - began
    passed = all(step["ok"] for step in steps)
    if passed:
        narrator.conclusion(
            f"All {len(steps)} steps did what they say, in {seconds:.1f} s. Nothing is left running, or on disk.",
            "",
            "Try next, in a workspace of yours:",
            f"{INDENT}{typed(program(), os.environ)} inspect",
            f"{INDENT}{typed(program(), os.environ)} mcp install <client>",
        )
    elif not invocation.on("json") and sys.stderr is not None:
        sys.stderr.write(f"\n{visible(str(steps[-1]['detail']))}\n")
    return Result({"ok": passed, "steps": steps, "seconds": round(seconds, 3)}, None, 0 if passed else 1)


def _perform(story: Story, narrator: Narrator) -> list[dict[str, object]]:
    """What became of each step, up to the first that failed."""
    done: list[dict[str, object]] = []
    for number, step in enumerate(story.steps, 1):
        narrator.step(number, step.title)
        failure = None
        try:
            step.act()
        except Failed as error:
            failure = error
        detail = " ".join(narrator.details) if failure is None else _explained(number, failure, story)
        done.append(
            {
                "name": step.name,
                "milliseconds": round(narrator.milliseconds, 1),
                "ok": failure is None,
                "detail": detail,
            }
        )
        if failure is not None:
            break
    return done


def _explained(number: int, failure: Failed, story: Story) -> str:
    lines = [*folded(f"The demo failed in step {number}. {failure}")]
    said = story.agent.last_words() if story.agent is not None else []
    if said:
        lines += ["The proxy's last lines:", *(f"  {line}" for line in said)]
    lines.append("Run 'uno-devserver demo --json' for the details of each step, and report this.")
    return "\n".join(lines)


def typed(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """How the person at the keyboard would start this very program."""
    script = command[0]
    if "UV" in environ and passing(script, environ):
        return f"uvx {NAMES[0]}"  # it lies in uv's cache, from which it may be gone tomorrow
    found = shutil.which(NAMES[0], path=environ.get("PATH"))
    if found is not None and len(command) == 1 and os.path.realpath(found) == os.path.realpath(script):
        return NAMES[0]
    return shlex.join(command)
