"""The help texts, made from the table of commands. Separate from main.py, because only `--help` needs them."""

from __future__ import annotations

from .commands import CHILD, COMMANDS, GLOBAL_OPTIONS, MCP_APP, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .commands import Command, Option

_COLUMN = 30  # the column of the explanations; after a longer left side, the explanation is on the next line
_WIDTH = 80
_FORWARDED = "Other options, and everything behind '--', are passed on."
_FORWARDED_TO_HOST = (
    "Other options are passed on to the Host. A command behind '--' is an MCP server\nto proxy instead of a Host."
)


def main_help(words: tuple[str, ...] = ()) -> str:
    """The help of the commands that begin with `words` (`mcp`); of all commands if none does."""
    if not any(command.words[: len(words)] == words for command in COMMANDS):
        words = ()
    usage = " ".join(["uno-devserver [options]", *words, "<command> [options]"])
    lines = [f"Usage: {usage}", "", "Commands:"]
    for command in COMMANDS:
        if command.words[: len(words)] == words:
            lines += _entry(command.name, command.help)
    if not words:
        lines += _entry(MCP_APP, "The same as mcp start; the form in AI clients' configurations")
    lines += ["", "Options of every command:", *_options(GLOBAL_OPTIONS)]
    lines += ["", "Run 'uno-devserver <command> --help' for the options of one command."]
    return "\n".join(lines)


def command_help(command: Command) -> str:
    usage = " ".join(["uno-devserver", command.name, "[options]", *(f"[{name}]" for name in command.arguments)])
    lines = [f"Usage: {usage}", "", f"{command.help}."]
    if command.options:
        lines += ["", "Options:", *_options(command.options)]
    if command.unknown is Unknown.FORWARD:
        lines += ["", _FORWARDED_TO_HOST if CHILD in command.arguments else _FORWARDED]
    for description, line in command.examples:
        lines += ["", f"{description}:", f"  {line}"]
    own = {name for option in command.options for name in option.names}
    shared = tuple(option for option in GLOBAL_OPTIONS if not own.intersection(option.names))
    lines += ["", "Options of every command:", *_options(shared)]
    return "\n".join(lines)


def _options(options: tuple[Option, ...]) -> list[str]:
    return [line for option in options for line in _entry(option.usage, option.help)]


def _entry(left: str, right: str) -> list[str]:
    from textwrap import wrap

    first, *more = [" " * _COLUMN + line for line in wrap(right, _WIDTH - _COLUMN)]
    if len(left) + 4 > _COLUMN:
        return [f"  {left}", first, *more]
    return [f"  {left:<{_COLUMN - 2}}{first.lstrip()}", *more]
