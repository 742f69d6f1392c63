"""docs/clients.md says what the profiles say."""

from __future__ import annotations

import json
import re
from pathlib import Path

from support.client_table import COLUMNS, PAGE, current, table
from support.files import write
from support.systems import LINUX, machine
from uno_devserver.setup.definitions import load


def test_the_table_of_clients_is_current() -> None:
    page = PAGE.read_text("utf-8")

    assert page == current(page), "run `python tests/support/client_table.py`"


def test_the_table_has_a_row_for_each_client_with_all_its_files() -> None:
    rows = table().splitlines()[2:]

    for row, profile in zip(rows, load(machine(LINUX)).profiles, strict=True):
        assert f"`{profile.id}`" in row
        for place in profile.places:
            assert re.search(rf"[/`]{re.escape(place.path.rsplit('/', 1)[1])}`", row), place.path
        for gate in profile.gates:
            assert gate.text in row
        assert row.count(" | ") == len(COLUMNS) - 1


def test_a_file_that_is_the_same_on_several_systems_stands_there_once() -> None:
    for cell in re.split(r"[|\n]", table()):
        paths = [line.partition(" (")[0] for line in cell.strip().split("<br>") if line.startswith(("`", "**`"))]
        assert len(paths) == len(set(paths)), cell


def test_the_example_of_a_client_of_ones_own_works(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    file = write(tmp_path / "mine.json", example)

    (profile,) = load(machine(LINUX), clients=str(file)).profiles

    assert profile.id in json.loads(example)
    assert profile.preferred is not None
