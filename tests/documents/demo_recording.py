"""Record the demo in a terminal, and draw it as the animated picture of the README: `make screenshots` runs this.

The times are those of the run, but each step begins after a pause, so that people can read along.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.machine import RUN_SECONDS, Machine
from support.terminals import Terminal
from uno_devserver import __version__

INSTALLED = "~/.local/bin/uno-devserver"  # shown instead of the place in this repository
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "demo.svg"
STEP = re.compile(r"\d+\. ")
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")

PAUSE_SECONDS = 2.0  # before each step: time to read the one before
END_SECONDS = 6.0  # for the last lines, before it begins again
ROWS, COLUMNS = 26, 80
LINE, CHARACTER, PADDING = 18, 8.43, 16  # pixels, of a font of 14
WIDTH, HEIGHT = round(COLUMNS * CHARACTER) + 2 * PADDING, ROWS * LINE + 2 * PADDING
COLOURS = {"1": "#ffffff", "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff"}
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
INK, PAPER = "#c9d1d9", "#0d1117"


class Line(NamedTuple):
    at: float  # seconds since the beginning
    text: str
    colour: str


def main() -> None:
    PICTURE.write_text(draw(record()), "utf-8")
    print(PICTURE)


def record() -> list[Line]:
    program = Path(sys.executable).with_name("uno-devserver")
    with tempfile.TemporaryDirectory(prefix="u") as root:
        terminal = Terminal(Machine(Path(root)), "demo", columns=COLUMNS, program=[str(program)])
        lines: list[Line] = []
        begin = time.monotonic()
        while terminal.read(begin + RUN_SECONDS):
            at, (*complete, _) = time.monotonic() - begin, terminal.sent.split("\r\n")
            lines += [_line(_general(text, str(program)), at) for text in complete[len(lines) :]]
        terminal.end()
    if terminal.process.returncode:
        raise SystemExit(f"The demo failed:\n{terminal.sent}")
    return lines


def _general(text: str, program: str) -> str:
    """The text without what the next version, or another machine, would print differently."""
    return text.replace(program, INSTALLED).replace(f" {__version__}", "")


def _line(text: str, at: float) -> Line:
    codes = [code for code in ESCAPE.findall(text) if code in COLOURS]
    return Line(at, ESCAPE.sub("", text.rsplit("\r", 1)[-1]), COLOURS[codes[0]] if codes else INK)


def draw(lines: list[Line]) -> str:
    """The lines as one block, moved up when one is added: what has not been printed lies below the window."""
    steps = [bool(STEP.match(line.text)) for line in lines]
    total = lines[-1].at + PAUSE_SECONDS * sum(steps) + END_SECONDS
    frames = [f"0%{_moved(0)}"]
    for number, line in enumerate(lines, 1):
        at = line.at + PAUSE_SECONDS * sum(steps[:number])
        frames.append(f"{100 * at / total:.2f}%{_moved(number)}")
    texts = [
        f'<text y="{number * LINE - 5}" fill="{line.colour}">{escape(line.text)}</text>'
        for number, line in enumerate(lines, 1)
        if line.text
    ]
    size, window = f'width="{WIDTH}" height="{HEIGHT}"', f'width="{WIDTH - 2 * PADDING}" height="{ROWS * LINE}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {size}>',
            "<title>uno-devserver demo</title>",
            f"<style>@keyframes run{{{''.join(frames)}}}",
            f"#lines{_moved(len(lines))}",
            f"#lines{{animation:run {total:.1f}s step-end infinite}}",
            "@media (prefers-reduced-motion:reduce){#lines{animation:none}}",
            f"text{{font:14px {FONT};white-space:pre}}</style>",
            f'<rect {size} rx="8" fill="{PAPER}"/>',
            f'<svg x="{PADDING}" y="{PADDING}" {window}><g id="lines">',
            *texts,
            "</g></svg></svg>\n",
        ]
    )


def _moved(shown: int) -> str:
    """The style of the block when this number of lines is in the window, or above it."""
    return f"{{transform:translateY({(ROWS - shown) * LINE}px)}}"


if __name__ == "__main__":
    main()
