"""The parts of docs/commands.md that the command line's own table says.

`python tests/support/command_pages.py` brings them up to date. They stand between `<!-- begin: name -->` and
`<!-- end: name -->`; everything else on the page is written by people, and stays. A command that the page does not have
yet gets a section at the end, for somebody to go on with.
"""

from __future__ import annotations

from pathlib import Path

from uno_devserver.cli.commands import COMMANDS, GLOBAL_OPTIONS, Command, Option, Unknown

PAGE = Path(__file__).parent.parent.parent / "docs" / "commands.md"
OVERVIEW, SHARED = "all commands", "options of every command"
UNKNOWN = {
    Unknown.REFUSE: "",
    Unknown.IGNORE: "Unknown options are ignored, with a warning.",
    Unknown.FORWARD: "Unknown options, and everything behind `--`, are passed on.",
    Unknown.LEAVE: "Everything behind the command belongs to the Host: `uno-devserver host --help` shows its flags.",
}
TO_HOST = "Unknown options are passed on to the Host. A command behind `--` is an MCP server to proxy instead."


def current(page: str) -> str:
    """The page with these parts as they should be."""
    for name, text in _parts().items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        if begin not in page:
            page = f"{page.rstrip()}\n\n## {name}\n\n{begin}\n{end}\n"
        before, rest = page.split(f"{begin}\n")
        after = rest.split(f"{end}\n")[1]
        page = f"{before}{begin}\n\n{text}\n{end}\n{after}"
    return page


def described() -> list[Command]:
    """All but those that are another name for one before them."""
    first: dict[str, Command] = {}
    for command in COMMANDS:
        first.setdefault(command.runner, command)
    return list(first.values())


def _parts() -> dict[str, str]:
    return {
        OVERVIEW: _overview(),
        SHARED: _options(GLOBAL_OPTIONS),
        **{command.name: _section(command) for command in described()},
    }


def _overview() -> str:
    rows = [f"| [`{command.name}`](#{command.name.replace(' ', '-')}) | {command.help} |\n" for command in described()]
    return "| command | |\n|---|---|\n" + "".join(rows)


def _section(command: Command) -> str:
    usage = " ".join(["uno-devserver", command.name, "[options]", *(f"[{name}]" for name in command.arguments)])
    others = [f"`{other.name}`" for other in COMMANDS if other.runner == command.runner and other is not command]
    parts = [
        f"{command.help}.",
        f"`{usage}`" + (f", also {', '.join(others)}" if others else ""),
        "\n".join(f"- {what}: `{line}`" for what, line in command.examples),
        _options(command.options).rstrip() if command.options else "",
        TO_HOST if command.arguments and command.unknown is Unknown.FORWARD else UNKNOWN[command.unknown],
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _options(options: tuple[Option, ...]) -> str:
    rows = [f"| `{option.usage}` | {option.help} |\n" for option in options]
    return "| option | |\n|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text("utf-8")), "utf-8")
