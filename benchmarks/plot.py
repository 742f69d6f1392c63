"""The picture of the comparison with other proxies: a panel for each row, drawn from what was kept, by hand as SVG, and
by the system's Chromium as PNG. `python -m benchmarks.plot` draws it again from results/peers.json."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from benchmarks.figures import RESULTS
from benchmarks.peers.installed import ALONE, OURS
from benchmarks.peers.report import figure

TITLE = f"{OURS} and other MCP proxies"
LEFT_OUT = ("call",)  # the time with the server's own; `added` is the proxy's
COLUMNS = 3
WIDTH, MARGIN, GUTTER = 1360, 36, 30
HEADER, FOOTER = 138, 16
PANEL_HEADER, BAR, BAR_STEP, PANEL_FOOTER = 30, 14, 21, 34
NAMES, FIGURES = 111, 112  # room left of the bars, and right of the longest
PANEL_WIDTH = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GUTTER) / COLUMNS
BARS = PANEL_WIDTH - NAMES - FIGURES

INK, GREY, FAINT, PAPER = "#1c2430", "#667080", "#e6e9ee", "#ffffff"
ACCENT, OTHERS, BASELINE, REFUSED = "#5a45d6", "#b4bdc9", "#eef1f5", "#a5492f"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
HALO = f' paint-order="stroke" stroke="{PAPER}" stroke-width="3" stroke-linejoin="round"'  # before lines of the grid
SCALE = 2  # pixels of the PNG for one of the SVG: sharp on dense screens

Panel = Mapping[str, Any]


class Axis(NamedTuple):
    """Powers of ten, from below the smallest value to the largest."""

    low: float
    high: float

    def x(self, value: float) -> float:
        at = (math.log10(max(value, 10**self.low)) - self.low) / (self.high - self.low)
        return NAMES + at * BARS

    def decades(self) -> list[int]:
        return list(range(math.ceil(self.low), math.floor(self.high) + 1))


def main() -> int:
    data = json.loads((RESULTS / "peers.json").read_text("utf-8"))
    picture = RESULTS / "peers.svg"
    picture.write_text(draw(data), "utf-8")
    render(picture, RESULTS / "peers.png")
    print(picture, RESULTS / "peers.png")
    return 0


def draw(data: Mapping[str, Any]) -> str:
    panels = [row for row in data["rows"] if "peers" in row and row["key"] not in LEFT_OUT]
    names = list(panels[0]["peers"])
    panel_height = PANEL_HEADER + len(names) * BAR_STEP + PANEL_FOOTER
    height = HEADER + math.ceil(len(panels) / COLUMNS) * panel_height + FOOTER
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" role="img" aria-label="{TITLE}">',
        f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>',
        *_header(data, panels[0]["peers"]),
    ]
    for number, panel in enumerate(panels):
        left = MARGIN + number % COLUMNS * (PANEL_WIDTH + GUTTER)
        top = HEADER + number // COLUMNS * panel_height
        parts += [f'<g transform="translate({left:.1f} {top})">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def render(picture: Path, into: Path) -> None:
    """By the same browser as the tests; where there is none, the picture stays as it was."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print(f"{into.name} is not drawn: there is no chromium; {picture.name} is", file=sys.stderr)
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(device_scale_factor=SCALE)
        page.set_content(f'<body style="margin:0">{picture.read_text("utf-8")}</body>')
        page.locator("svg").screenshot(path=into)
        browser.close()


def _header(data: Mapping[str, Any], peers: Mapping[str, Any]) -> list[str]:
    versions = " · ".join(f"{name} {told['version']}" for name, told in peers.items() if name != ALONE)
    where = f"{data['cores']} cores, {data['system']}, Python {data['python']}, {data['date']}"
    parts = [
        drawn_text(MARGIN, 46, TITLE, size=25, weight=700),
        drawn_text(MARGIN, 72, versions, fill=GREY),
        drawn_text(
            MARGIN,
            91,
            f"{where}; medians of {data['rounds']} rounds, in one run; official SDK {peers[ALONE]['version']}",
            fill=GREY,
        ),
    ]
    left = WIDTH - MARGIN - 470
    for label, fill, offset in (
        (OURS, ACCENT, 0),
        ("other proxies", OTHERS, 132),
        ("no proxy: the server", BASELINE, 256),
    ):
        parts.append(f'<rect x="{left + offset}" y="35" width="14" height="14" rx="3" fill="{fill}"{_border(fill)}/>')
        parts.append(drawn_text(left + offset + 21, 46, label))
    parts.append(
        drawn_text(left, 72, "Shorter is better, but for the calls per second. Each line of the grid is", fill=GREY)
    )
    parts.append(drawn_text(left, 91, "ten times the one before it. 12×: twelve times worse than ours.", fill=GREY))
    return parts


def _panel(panel: Panel) -> list[str]:
    peers: Mapping[str, Any] = panel["peers"]
    values = [told["median"] for told in peers.values() if "median" in told]
    axis = _axis(values)
    bottom = PANEL_HEADER + len(peers) * BAR_STEP
    better = " (more is better)" if panel["unit"] == "/s" else ""
    parts = [drawn_text(0, 14, panel["what"].replace("`", "") + better, size=14, weight=600)]
    for decade in axis.decades():
        x = axis.x(10**decade)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{PANEL_HEADER - 6}" y2="{bottom}" stroke="{FAINT}"/>')
        parts.append(drawn_text(x, bottom + 11, _tick(decade, panel["unit"]), fill=GREY, size=10, anchor="middle"))
    ours = peers[OURS].get("median")
    for number, (name, told) in enumerate(peers.items()):
        parts += _bar(name, told, PANEL_HEADER + number * BAR_STEP, axis, panel["unit"], ours)
    return parts


def _bar(name: str, told: Mapping[str, Any], top: float, axis: Axis, unit: str, ours: float | None) -> list[str]:
    base = top + BAR - 3
    weight = 700 if name == OURS else 400
    parts = [drawn_text(NAMES - 9, base, name, anchor="end", weight=weight, fill=ACCENT if name == OURS else INK)]
    if "median" not in told:
        word, fill = ("no", REFUSED) if "no" in told else ("–", GREY)
        return [*parts, drawn_text(NAMES + 6, base, word, fill=fill)]
    value = told["median"]
    fill = {OURS: ACCENT, ALONE: BASELINE}.get(name, OTHERS)
    end = max(axis.x(value), NAMES + 3)
    parts.append(
        f'<rect x="{NAMES}" y="{top}" width="{end - NAMES:.1f}" height="{BAR}" rx="3" fill="{fill}"{_border(fill)}/>'
    )
    parts.append(drawn_text(end + 6, base, figure(value, unit), weight=weight, fill=ACCENT if name == OURS else INK))
    if ours and name not in (OURS, ALONE):
        worse = ours / value if unit == "/s" else value / ours
        parts.append(drawn_text(PANEL_WIDTH, base, _times(worse), size=11.5, fill=GREY, anchor="end"))
    return parts


def _axis(values: Sequence[float]) -> Axis:
    """It begins a third of a decade below the smallest value, so that this one has a bar, too."""
    positive = [value for value in values if value > 0] or [1.0]
    return Axis(math.log10(min(positive)) - 0.35, math.log10(max(positive)) + 0.001)


def _tick(decade: int, unit: str) -> str:
    if unit == "ms" and decade >= 3:
        return f"{10 ** (decade - 3):,} s"
    number = f"{10**decade:,}" if decade >= 0 else f"{10.0**decade:g}"
    return f"{number}/s" if unit == "/s" else f"{number} {unit}"


def _times(worse: float) -> str:
    return f"{worse:.0f}×" if worse >= 10 else f"{worse:.1f}×"


def _border(fill: str) -> str:
    return f' stroke="{OTHERS}"' if fill == BASELINE else ""


def drawn_text(
    x: float, y: float, text: str, *, size: float = 12.5, weight: int = 400, fill: str = INK, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{fill}" '
        f'text-anchor="{anchor}"{HALO}>{escape(text)}</text>'
    )


if __name__ == "__main__":
    sys.exit(main())
