"""The README's recording shows the demo of today."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from documents.demo_recording import COLUMNS, PICTURE, STEP
from uno_devserver.cli.demo.steps import Demo


def test_the_recording_shows_each_step_of_the_demo_and_no_path_of_the_machine_that_made_it() -> None:
    picture = ElementTree.parse(PICTURE).getroot()
    lines = [text.text or "" for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    steps = Demo(None, None).steps  # type: ignore[arg-type]

    headings = [STEP.sub("", line) for line in lines if STEP.match(line)]
    assert headings == [step.title for step in steps], "run `make screenshots`"
    assert any(f"All {len(steps)} steps" in line for line in lines)
    assert all(len(line) <= COLUMNS for line in lines)
    assert not any(str(Path(__file__).parents[2]) in line or ".venv" in line for line in lines)
