"""How the cost grows: the slope and its verdict, and a line of the picture for everything that was measured."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from benchmarks.scale import as_line, slope
from benchmarks.scale_plot import draw

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([[1, 5.0], [10, 50.0]], 1.0),
        ([[1, 900.0], [10, 5.0], [100, 5.0]], 0.0),  # the last step counts
        ([[10, 1.0], [100, 100.0]], 2.0),
        ([[10, 0.0], [100, 0.0]], 0.0),
    ],
)
def test_the_slope_is_that_of_the_last_step_on_logarithmic_scales(points: list[list[float]], expected: float) -> None:
    assert slope(points) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("points", "usual", "verdict"),
    [
        ([[1, 5.0], [10, 50.0], [100, 90.0]], 100, "pass"),
        ([[1, 5.0], [10, 50.0], [100, 101.0]], 100, "MISS"),  # somebody waits that long
        ([[1, 5.0], [10, 50.0], [100, 101.0]], 10, "pass"),
        ([[1, 1.0], [10, 5.0], [100, 90.0]], 100, "MISS"),  # steeper than linear
    ],
)
def test_a_bar_is_missed_by_what_takes_long_and_by_what_grows_too_fast(
    points: list[list[float]], usual: int, verdict: str
) -> None:
    row = {"axis": "tools", "what": "a call", "points": points, "usual": usual}

    assert as_line(row).endswith(f"| {verdict} |")


def test_the_picture_has_a_panel_for_each_axis_and_a_line_for_each_thing_measured() -> None:
    rows = [
        {"axis": axis, "what": what, "points": [[1, 0.0], [10, 5.0]]}
        for axis in ("tools", "projects")
        for what in ("`disco` of <all>", "a call")
    ]

    picture = ElementTree.fromstring(draw(rows))

    assert len(picture.findall(f"{SVG}g")) == 2
    assert len(picture.findall(f".//{SVG}polyline")) == 4
    assert "disco of <all>" in {text.text for text in picture.iter(f"{SVG}text")}
