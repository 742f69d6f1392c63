"""The help texts name everything that the table of commands holds."""

from __future__ import annotations

import pytest

from uno_devserver.cli.commands import COMMANDS, GLOBAL_OPTIONS, Command, command_named
from uno_devserver.cli.help import command_help, main_help


def _id(command: Command) -> str:
    return command.name.replace(" ", "-")


def lines_of(text: str) -> dict[str, str]:
    """What is explained, and the explanation: the two columns of a help text, folded lines put together."""
    explained: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("   "):
            last = next(reversed(explained))
            explained[last] = f"{explained[last]} {line.strip()}".strip()
        elif line.startswith("  "):
            left, _, right = line.strip().partition("  ")
            explained[left] = right.strip()
    return explained


def test_help_fits_eighty_columns() -> None:
    texts = [main_help(), main_help(("mcp",)), *map(command_help, COMMANDS)]

    assert max(len(line) for text in texts for line in text.splitlines()) <= 80


def test_the_help_of_mcp_names_only_its_commands() -> None:
    names = [left for left in lines_of(main_help(("mcp",))) if not left.startswith("-")]

    assert names == [command.name for command in COMMANDS if command.words[0] == "mcp"]


def test_the_main_help_explains_every_command_and_every_global_option() -> None:
    explained = lines_of(main_help())

    assert all(explained[command.name].startswith(command.help) for command in COMMANDS)
    assert explained["--mcp-app"]
    assert "registrations and sockets of Hosts and proxies" in explained["cleanup"], "all that it removes"
    assert explained["--file-log, -fl <path>"] == "Also write the log to a file; {Date} is replaced by today's date"
    assert all(any(option.names[0] in left for left in explained) for option in GLOBAL_OPTIONS)


@pytest.mark.parametrize("command", COMMANDS, ids=_id)
def test_the_help_of_a_command_explains_each_of_its_options_once(command: Command) -> None:
    text = command_help(command)

    own_names = {name for option in command.options for name in option.names}
    shared = [option for option in GLOBAL_OPTIONS if not own_names.intersection(option.names)]
    expected = [option.usage for option in (*command.options, *shared)]
    assert [left for left in lines_of(text) if left.startswith("-")] == expected
    assert command.help in text
    assert text.startswith(f"Usage: uno-devserver {command.name} [options]")


def test_the_help_says_which_commands_pass_on_what_they_do_not_know() -> None:
    passing = [command.name for command in COMMANDS if "are passed on." in command_help(command)]

    assert passing == ["start", "login"]
    proxies = [command.name for command in COMMANDS if "are passed on to the Host." in command_help(command)]
    assert proxies == ["mcp start", "mcp serve"]


def test_an_option_of_a_command_hides_the_global_one_of_its_name() -> None:
    install = command_named(("mcp", "install"))
    assert install

    assert "--version, --tool-version <version>" in lines_of(command_help(install))
    assert "--version" not in lines_of(command_help(install))


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (("disco",), "Usage: uno-devserver disco [options]"),
        (("mcp", "install"), "Usage: uno-devserver mcp install [options] [<client>]"),
        (("mcp", "start"), "Usage: uno-devserver mcp start [options] [-- <command>]"),
    ],
)
def test_the_usage_line_names_the_arguments(words: tuple[str, ...], usage: str) -> None:
    command = command_named(words)
    assert command

    assert command_help(command).splitlines()[0] == usage


def test_explanations_stand_in_one_column_of_the_main_help() -> None:
    rows = [line for line in main_help().splitlines() if line.startswith("  ")]
    starts = {line.index(right) for line in rows for right in [line[2:].partition("  ")[2].strip()]}

    assert len(starts) == 1
