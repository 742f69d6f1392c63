"""Runs the demo and prints each step as it happens; the exit code is 1 if a step failed."""

from __future__ import annotations

import os
import shutil
import sys
import time

from ... import __version__
from ...setup.entry_command import PROGRAM_NAMES, is_temporary, own_command
from ...setup.server_definition import is_release
from ...system.command_lines import quoted_line
from ...system.text import visible
from ..result import Result, write_out
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
    "client; everything else is real. It runs in a temporary folder, which is removed at the end."
)


def run(invocation: Invocation) -> Result:
    began = time.monotonic()
    output = DemoOutput(silent=invocation.on("json"))
    output.introduction(f"uno-devserver {__version__}", INTRODUCTION)
    sandbox = Sandbox()
    try:
        with sandbox:
            steps, problem = _perform(Demo(sandbox, output), output)
    except KeyboardInterrupt:
        output.interrupted(f"Interrupted. {_left(sandbox) or 'All processes were ended, and all files removed.'}")
        raise
    problem = problem or _left(sandbox)
    seconds = time.monotonic() - began
    if not problem:
        command = typed(own_command(), os.environ)
        output.conclusion(
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


def _left(sandbox: Sandbox) -> str:
    return f"The demo could not clean up: {sandbox.left}." if sandbox.left else ""


def _perform(demo: Demo, output: DemoOutput) -> tuple[list[dict[str, object]], str]:
    """The outcome of each step up to the first that failed, and the reason for the failure."""
    done: list[dict[str, object]] = []
    for number, step in enumerate(demo.steps, 1):
        output.step(number, step.title)
        began, problem = time.perf_counter(), ""
        try:
            milliseconds = step.act()
        except Exception as error:  # any error: the proxy's last lines explain more than a traceback
            milliseconds, problem = (time.perf_counter() - began) * 1000, _explained(number, error, demo)
        detail = problem or " ".join(output.proofs)
        done.append({"name": step.name, "milliseconds": round(milliseconds, 1), "ok": not problem, "detail": detail})
        if problem:
            return done, problem
    return done, ""


def _explained(number: int, error: Exception, demo: Demo) -> str:
    reason = str(error) if isinstance(error, DemoFailed) else f"{type(error).__name__}: {error}"
    lines = [*folded(f"The demo failed in step {number}. {reason}")]
    printed = demo.client.last_lines() if demo.client is not None else []
    if printed:
        lines += ["The proxy's last lines:", *(f"  {line}" for line in printed)]
    return "\n".join(lines)


def typed(command: Sequence[str], environ: Mapping[str, str], version: str = __version__) -> str:
    """The command line by which the user starts this installation of the program."""
    script = command[0]
    if "UV" in environ and is_temporary(script, environ) and is_release(version):
        return f"uvx {PROGRAM_NAMES[0]}"  # the script is in uv's cache, which may be cleared
    found = shutil.which(PROGRAM_NAMES[0], path=environ.get("PATH"))
    if found is not None and len(command) == 1 and os.path.realpath(found) == os.path.realpath(script):
        return PROGRAM_NAMES[0]
    return quoted_line(command)


INDENT = "   "
_TIME = len("12345 ms")
_OF_DIFFERENCE = {"+": Style.GOOD, "-": Style.BAD}


class DemoOutput:
    def __init__(self, *, silent: bool) -> None:
        self._silent = silent or sys.stdout is None
        self.proofs: list[str] = []  # the proofs of the current step

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
        """Print an action, with the milliseconds that it took at the right edge."""
        left = INDENT + what
        self._line(f"{left:<{_width() - _TIME}}{milliseconds:{_TIME - 3}.0f} ms", Style.NAME)

    def done(self, what: str) -> None:
        """Print an action without its time."""
        self._line(INDENT + what, Style.NAME)

    def proof(self, sentence: str) -> None:
        """Print what the step proved."""
        self.proofs.append(sentence)
        for line in folded(sentence, INDENT, INDENT, _width()):
            self._line(line)

    def difference(self, lines: list[str]) -> None:
        """Print the lines of a diff; a path in them may be too long for the terminal."""
        for line in lines:
            shown = INDENT + line if len(INDENT + line) <= _width() else f"{(INDENT + line)[: _width() - 1]}…"
            self._line(shown, _OF_DIFFERENCE.get(line[:1], Style.DIM))

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
        self._silent = write_out(data) is not None


def _width() -> int:
    return min(table_width(), WIDTH)
