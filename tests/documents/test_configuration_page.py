"""docs/configuration.md has every setting, as the schema describes it and the program reads it."""

from __future__ import annotations

import json

import pytest

from support.setting_table import PAGE, SCHEMA, current, tables
from uno_devserver.workspace.config import FIELDS, Field


def test_the_table_of_settings_is_current() -> None:
    page = PAGE.read_text("utf-8")

    assert page == current(page), "run `python tests/support/setting_table.py`"


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.title)
def test_a_row_says_what_a_setting_is_and_what_counts_without_it(field: Field) -> None:
    (row,) = (line for line in tables().splitlines() if line.startswith(f"| `{field.title}` |"))

    _, _, kind, default, meaning, _ = (cell.strip() for cell in row.split("|"))

    assert kind.startswith(field.kind.value)
    assert default
    assert meaning.endswith(".")
    assert "Default" not in meaning


def test_there_is_one_row_for_each_setting_of_the_schema() -> None:
    properties = json.loads(SCHEMA.read_text("utf-8"))["properties"]
    sections = {name: part["properties"] for name, part in properties.items() if "properties" in part}
    settings = [f"{name}.{key}" for name, part in sections.items() for key in part]
    settings += [name for name in properties if name not in sections and name != "$schema"]

    rows = [line.split("`")[1] for line in tables().splitlines() if line.startswith("| `")]

    assert sorted(rows) == sorted(settings)
