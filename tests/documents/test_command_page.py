"""docs/commands.md has every command, as the command line's own table says it."""

from __future__ import annotations

import re

import pytest

from documents.blocks import blocks, steps
from documents.console import invocation_of
from support.command_pages import PAGE, current, described
from uno_devserver.cli.commands import COMMANDS, Command


def test_the_page_of_commands_is_current() -> None:
    page = PAGE.read_text("utf-8")

    assert page == current(page), "run `python tests/support/command_pages.py`"


def test_the_page_has_a_section_for_each_command_and_for_no_other() -> None:
    begun = re.findall(r"^## (.*)\n\n<!-- begin: (.*) -->", PAGE.read_text("utf-8"), re.MULTILINE)
    sections = {heading: name for heading, name in begun if heading != "For all of them"}

    assert sections == {command.name: command.name for command in described()}


@pytest.mark.parametrize("command", described(), ids=lambda command: command.name)
def test_each_command_has_an_example_of_its_own(command: Command) -> None:
    (block,) = (each for each in blocks("console", pages=(PAGE,)) if each.heading == command.name)

    typed = [invocation_of(step.command) for step in steps(block)]

    assert command.runner in {each.command.runner for each in typed if each and each.command}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_page_names_each_option_of_a_command(command: Command) -> None:
    page = PAGE.read_text("utf-8")

    for option in command.options:
        assert f"| `{option.usage}` | " in page
