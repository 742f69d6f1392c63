"""The help texts, made from the table of commands."""

from __future__ import annotations

from .surface import COMMANDS, GLOBAL_OPTIONS, MCP_APP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .surface import Command, Option

_WIDTH = 34  # column of the explanations; the longest option of the main help fits


def main_help() -> str:
    lines = ["Usage: uno-devserver [options] <command> [options]", "", "Commands:"]
    lines += [_line(command.name, command.help) for command in COMMANDS]
    lines += [_line(MCP_APP, "The same as mcp start; the form that AI clients are configured with")]
    lines += ["", "Options of every command:", *_options(GLOBAL_OPTIONS)]
    lines += ["", "Run 'uno-devserver <command> --help' for the options of one command."]
    return "\n".join(lines)


def command_help(command: Command) -> str:
    usage = " ".join(["uno-devserver", command.name, "[options]", *(f"[{name}]" for name in command.arguments)])
    lines = [f"Usage: {usage}", "", command.help + "."]
    if command.options:
        lines += ["", "Options:", *_options(command.options)]
    own = {name for option in command.options for name in option.names}
    shared = tuple(option for option in GLOBAL_OPTIONS if not own.intersection(option.names))
    lines += ["", "Options of every command:", *_options(shared)]
    return "\n".join(lines)


def _options(options: tuple[Option, ...]) -> list[str]:
    return [
        _line(", ".join(option.names) + (f" {option.value}" if option.value else ""), option.help) for option in options
    ]


def _line(left: str, right: str) -> str:
    return f"  {left:<{_WIDTH}} {right}"
