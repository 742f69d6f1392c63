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
from ..colours import Style, styled
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
    "An AI client keeps its tools while the server behind them starts, crashes and changes. Here a script plays the "
    "client; all else is real. It happens in a temporary folder, and nothing of it stays."
)


def run(invocation: Invocation) -> Result:
    began = time.monotonic()
    narrator = Narrator(silent=invocation.on("json"))
    narrator.introduction(f"uno-devserver {__version__}", INTRODUCTION)
    stage = Stage()
    try:
        with stage:
            steps, problem = _perform(Story(stage, narrator), narrator)
    except KeyboardInterrupt:
        narrator.interrupted(f"Interrupted. {_left(stage) or 'What was started has been ended and removed.'}")
        raise
    problem = problem or _left(stage)
    seconds = time.monotonic() - began
    if not problem:
        command = typed(program(), os.environ)
        narrator.conclusion(
            f"All {len(steps)} steps did what they say, in {seconds:.1f} s. Nothing is left running, or on disk.",
            "",
            "Try next, in a workspace of yours:",
            f"{INDENT}{command} inspect",
            f"{INDENT}{command} mcp install <client>",
        )
    elif not invocation.on("json") and sys.stderr is not None:
        sys.stderr.write(f"\n{styled(visible(problem), Style.BAD, sys.stderr)}\n")
    data = {"ok": not problem, "steps": steps, "seconds": round(seconds, 3)}
    return Result(data, None, 1 if problem else 0)


def _left(stage: Stage) -> str:
    return f"The demo could not tidy up: {stage.left}." if stage.left else ""


def _perform(story: Story, narrator: Narrator) -> tuple[list[dict[str, object]], str]:
    """What became of each step, up to the first that failed, and why that was."""
    done: list[dict[str, object]] = []
    for number, step in enumerate(story.steps, 1):
        narrator.step(number, step.title)
        began, problem = time.perf_counter(), ""
        try:
            milliseconds = step.act()
        except Exception as error:  # whatever it meets: with the proxy's last words more is known than from a traceback
            milliseconds, problem = (time.perf_counter() - began) * 1000, _explained(number, error, story)
        detail = problem or " ".join(narrator.proofs)
        done.append({"name": step.name, "milliseconds": round(milliseconds, 1), "ok": not problem, "detail": detail})
        if problem:
            return done, problem
    return done, ""


def _explained(number: int, error: Exception, story: Story) -> str:
    reason = str(error) if isinstance(error, Failed) else f"It met a {type(error).__name__}: {error}"
    lines = [*folded(f"The demo failed in step {number}. {reason}")]
    said = story.agent.last_words() if story.agent is not None else []
    if said:
        lines += ["The proxy's last lines:", *(f"  {line}" for line in said)]
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
