"""`demo`: the story is told while it happens, and proves itself: exit code 1 where a step did not do what it says."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time

from ... import __version__
from ...setup.entry_command import PROGRAM_NAMES, is_temporary, own_command
from ...system.text import visible
from ..result import Result
from ..terminal import WIDTH, Style, folded, styled, table_width
from .client import DemoFailed
from .sandbox import Sandbox
from .steps import Demo

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
    narrator = DemoOutput(silent=invocation.on("json"))
    narrator.introduction(f"uno-devserver {__version__}", INTRODUCTION)
    stage = Sandbox()
    try:
        with stage:
            steps, problem = _perform(Demo(stage, narrator), narrator)
    except KeyboardInterrupt:
        narrator.interrupted(f"Interrupted. {_left(stage) or 'What was started has been ended and removed.'}")
        raise
    problem = problem or _left(stage)
    seconds = time.monotonic() - began
    if not problem:
        command = typed(own_command(), os.environ)
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


def _left(stage: Sandbox) -> str:
    return f"The demo could not tidy up: {stage.left}." if stage.left else ""


def _perform(story: Demo, narrator: DemoOutput) -> tuple[list[dict[str, object]], str]:
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


def _explained(number: int, error: Exception, story: Demo) -> str:
    reason = str(error) if isinstance(error, DemoFailed) else f"It met a {type(error).__name__}: {error}"
    lines = [*folded(f"The demo failed in step {number}. {reason}")]
    said = story.agent.last_words() if story.agent is not None else []
    if said:
        lines += ["The proxy's last lines:", *(f"  {line}" for line in said)]
    return "\n".join(lines)


def typed(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """How the person at the keyboard would start this very program."""
    script = command[0]
    if "UV" in environ and is_temporary(script, environ):
        return f"uvx {PROGRAM_NAMES[0]}"  # it lies in uv's cache, from which it may be gone tomorrow
    found = shutil.which(PROGRAM_NAMES[0], path=environ.get("PATH"))
    if found is not None and len(command) == 1 and os.path.realpath(found) == os.path.realpath(script):
        return PROGRAM_NAMES[0]
    return shlex.join(command)


INDENT = "   "
_TIME = len("12345 ms")
_OF_DIFFERENCE = {"+": Style.GOOD, "-": Style.BAD}


class DemoOutput:
    def __init__(self, *, silent: bool) -> None:
        self._silent = silent or sys.stdout is None
        self.proofs: list[str] = []  # of this step

    def introduction(self, title: str, text: str) -> None:
        self._line(title, Style.HEADING)
        for line in folded(text, width=_width()):
            self._line(line)

    def step(self, number: int, title: str) -> None:
        self.proofs = []
        self._line("")
        for line in folded(title, f"{number}. ", INDENT, _width()):
            self._line(line, Style.HEADING)

    def measured(self, what: str, milliseconds: float) -> None:
        """Something that was done, with its time at the right edge."""
        left = INDENT + what
        self._line(f"{left:<{_width() - _TIME}}{milliseconds:{_TIME - 3}.0f} ms", Style.NAME)

    def done(self, what: str) -> None:
        """Something that was done, and takes no time worth telling."""
        self._line(INDENT + what, Style.NAME)

    def proof(self, sentence: str) -> None:
        """What was seen, and how it was proven."""
        self.proofs.append(sentence)
        for line in folded(sentence, INDENT, INDENT, _width()):
            self._line(line)

    def difference(self, lines: list[str]) -> None:
        """Of a file: what went, what came, and what stands around it."""
        for line in lines:
            self._line(INDENT + line, _OF_DIFFERENCE.get(line[:1], Style.DIM))

    def conclusion(self, verdict: str, *more: str) -> None:
        self._line("")
        self._line(verdict, Style.GOOD)
        for line in more:
            self._line(line)

    def interrupted(self, sentence: str) -> None:
        self._line("")
        self._line(sentence, Style.WARN)

    def _line(self, text: str, style: Style | None = None) -> None:
        if self._silent:
            return
        data = (styled(text, style) + "\n").encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        except OSError:
            self._silent = True
            # What is left in the buffer would fail once more when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _width() -> int:
    return min(table_width(), WIDTH)
