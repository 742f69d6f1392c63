"""The picture of how the cost grows: a panel for each axis, both scales logarithmic, a line for each thing measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.plot import ACCENT, FAINT, FONT, GREY, INK, MARGIN, PAPER, REFUSED, WIDTH, drawn_text

TITLE = "How the cost grows"
COLUMNS, GUTTER = 2, 60
PANEL, PLOT, TOP = 300, 190, 84
AXIS_ROOM, LABEL_ROOM = 56, 250  # left of a plot, and right of it for the names of its lines
LINES = (ACCENT, INK, REFUSED, "#2f7d5b", "#b07d12")
PANEL_WIDTH = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GUTTER) / COLUMNS
PLOT_WIDTH = PANEL_WIDTH - AXIS_ROOM - LABEL_ROOM

Rows = Sequence[Mapping[str, Any]]


def draw(rows: Rows) -> str:
    axes = list(dict.fromkeys(row["axis"] for row in rows))
    height = TOP + math.ceil(len(axes) / COLUMNS) * PANEL
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" role="img" aria-label="{TITLE}">',
        f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>',
        drawn_text(MARGIN, 40, TITLE, size=25, weight=700),
        drawn_text(MARGIN, 62, "Both scales are logarithmic.", fill=GREY),
    ]
    for number, axis in enumerate(axes):
        left = MARGIN + number % COLUMNS * (PANEL_WIDTH + GUTTER)
        top = TOP + number // COLUMNS * PANEL
        panel = _panel(axis, [row for row in rows if row["axis"] == axis])
        parts += [f'<g transform="translate({left:.1f} {top})">', *panel, "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(axis: str, rows: Rows) -> list[str]:
    sizes = [size for size, _ in rows[0]["points"]]
    values = [max(value, 0.001) for row in rows for _, value in row["points"]]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 0.01)

    def x(size: float) -> float:
        return AXIS_ROOM + PLOT_WIDTH * math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])

    def y(value: float) -> float:
        return 30 + PLOT * (high - math.log10(max(value, 0.001))) / (high - low)

    parts = [drawn_text(0, 14, axis, size=14, weight=600)]
    for decade in range(low, high + 1):
        at = y(10**decade)
        end = AXIS_ROOM + PLOT_WIDTH
        parts.append(f'<line x1="{AXIS_ROOM}" x2="{end:.1f}" y1="{at:.1f}" y2="{at:.1f}" stroke="{FAINT}"/>')
        parts.append(drawn_text(AXIS_ROOM - 8, at + 4, f"{10.0**decade:g} ms", size=10, fill=GREY, anchor="end"))
    parts += [drawn_text(x(size), PLOT + 48, f"{size:,}", size=10, fill=GREY, anchor="middle") for size in sizes]
    labels = _apart([y(row["points"][-1][1]) for row in rows])
    for row, colour, label in zip(rows, LINES, labels, strict=False):
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in row["points"])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            drawn_text(AXIS_ROOM + PLOT_WIDTH + 8, label + 4, row["what"].replace("`", ""), size=11.5, fill=colour)
        )
    return parts


def _apart(heights: Sequence[float]) -> list[float]:
    """The same heights in their order, but no two names over each other."""
    placed: dict[int, float] = {}
    lowest = -math.inf
    for number, height in sorted(enumerate(heights), key=lambda each: each[1]):
        lowest = placed[number] = max(height, lowest + 15)
    return [placed[number] for number in range(len(heights))]
