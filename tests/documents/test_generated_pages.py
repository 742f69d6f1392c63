"""The generated parts of docs/ are current, and say what clients, commands and settings are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from documents.blocks import blocks, steps
from documents.console import invocation_of
from documents.generated_pages import (
    CLIENT_PAGE,
    COLUMNS,
    COMMAND_PAGE,
    SCHEMA,
    SETTING_PAGE,
    client_table,
    current,
    described_commands,
    setting_tables,
)
from support.files import write
from support.systems import LINUX, machine
from uno_devserver.cli.commands import COMMANDS, Command
from uno_devserver.setup.definitions import load
from uno_devserver.workspace.config import FIELDS, Field


@pytest.mark.parametrize("page", [CLIENT_PAGE, COMMAND_PAGE, SETTING_PAGE], ids=lambda page: page.name)
def test_the_generated_parts_of_a_page_are_current(page: Path) -> None:
    assert page.read_text("utf-8") == current(page), "run `python tests/documents/generated_pages.py`"


# --- clients ----------------------------------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_client_with_all_its_files() -> None:
    rows = client_table().splitlines()[2:]

    for row, profile in zip(rows, load(machine(LINUX)).profiles, strict=True):
        assert f"`{profile.id}`" in row
        for place in profile.places:
            assert re.search(rf"[/`]{re.escape(place.path.rsplit('/', 1)[1])}`", row), place.path
        for gate in profile.gates:
            assert gate.text in row
        assert row.count(" | ") == len(COLUMNS) - 1


def test_a_file_that_is_the_same_on_several_systems_is_listed_once() -> None:
    for cell in re.split(r"[|\n]", client_table()):
        paths = [line.partition(" (")[0] for line in cell.strip().split("<br>") if line.startswith(("`", "**`"))]
        assert len(paths) == len(set(paths)), cell


def test_the_example_of_a_client_of_ones_own_works(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", CLIENT_PAGE.read_text("utf-8"), re.DOTALL)
    file = write(tmp_path / "mine.json", example)

    (profile,) = load(machine(LINUX), clients=str(file)).profiles

    assert profile.id in json.loads(example)
    assert profile.preferred is not None


# --- commands ---------------------------------------------------------------------------------------------------------


def test_the_page_has_a_section_for_each_command_and_for_no_other() -> None:
    begun = re.findall(r"^## (.*)\n\n<!-- begin: (.*) -->", COMMAND_PAGE.read_text("utf-8"), re.MULTILINE)
    sections = {heading: name for heading, name in begun if heading != "For all of them"}

    assert sections == {command.name: command.name for command in described_commands()}


@pytest.mark.parametrize("command", described_commands(), ids=lambda command: command.name)
def test_each_command_has_an_example_of_its_own(command: Command) -> None:
    (block,) = (each for each in blocks("console", pages=(COMMAND_PAGE,)) if each.heading == command.name)

    typed = [invocation_of(step.command) for step in steps(block)]

    assert command.runner in {each.command.runner for each in typed if each and each.command}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_page_names_each_option_of_a_command(command: Command) -> None:
    page = COMMAND_PAGE.read_text("utf-8")

    for option in command.options:
        assert f"| `{option.usage}` | " in page


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.title)
def test_a_row_says_what_a_setting_is_and_what_counts_without_it(field: Field) -> None:
    (row,) = (line for line in setting_tables().splitlines() if line.startswith(f"| `{field.title}` |"))

    _, _, kind, default, meaning, _ = (cell.strip() for cell in row.split("|"))

    assert kind.startswith(field.kind.value)
    assert default
    assert meaning.endswith(".")
    assert "Default" not in meaning


def test_there_is_one_row_for_each_setting_of_the_schema() -> None:
    properties = json.loads(SCHEMA.read_text("utf-8"))["properties"]
    sections = {name: part["properties"] for name, part in properties.items() if "properties" in part}
    settings = [f"{name}.{key}" for name, part in sections.items() for key in part]
    settings += [name for name in properties if name not in sections and name not in ("$schema", "servers")]
    settings += ["servers.<name>.root", "servers.<name>.prefix", "servers.<name>.enabled"]

    rows = [line.split("`")[1] for line in setting_tables().splitlines() if line.startswith("| `")]

    assert sorted(rows) == sorted(settings)
