"""What there is to complete, whatever the shell: commands, the options of each, and what may stand as a value.

Names of clients and servers are put into the script when it is made: to ask the program for them at each press of the
key would take fifty times as long, and they change only with the program.
"""

from __future__ import annotations

from ...setup.definitions import CLIENTS, SERVERS, packaged
from ...system.values import Value
from ..surface import CLIENT, COMMANDS, FOLDER, GLOBAL_OPTIONS, PATH, SHELL, SHELLS, Command, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..surface import Option

PROGRAMS = ("uno-devserver", "uno.devserver")
MCP_APP_IS = ("mcp", "start")
_PATHS, _SERVER_NAMES = "<paths>", "<names>"


class Offer(Value):
    """What may stand in a place: these words (each with what it means), files, folders, or what nobody can know."""

    words: tuple[tuple[str, str], ...] = ()
    files: bool = False
    folders: bool = False


def options_of(command: Command | None) -> tuple[Option, ...]:
    """Its own, and those of every command that it does not hide."""
    if command and command.unknown is Unknown.LEAVE:
        return command.options  # what stands behind it is read by others
    own = command.options if command else ()
    names = {name for option in own for name in option.names}
    return (*own, *(option for option in GLOBAL_OPTIONS if not names.intersection(option.names)))


def early_options() -> dict[str, Option]:
    """By name: those of single commands, which may stand before the command, too."""
    shared = {name for option in GLOBAL_OPTIONS for name in option.names}
    known: dict[str, Option] = {}
    for option in (option for command in COMMANDS for option in command.options):
        for name in option.names:
            if name not in shared:
                known.setdefault(name, option)  # the first one, as the parser does
    return known


def value_of(option: Option) -> Offer:
    if option.choices:
        return Offer(tuple((choice, "") for choice in option.choices))
    return offer_for(option.value or "")


def argument_of(command: Command) -> Offer:
    """What stands free behind the command; nothing where only options do."""
    return offer_for(next(iter(command.arguments), ""))


def next_words(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """How a command goes on that was begun so: the next word, and what it does."""
    found = [command for command in COMMANDS if command.words[: len(words)] == words != command.words]
    for word in dict.fromkeys(command.words[len(words)] for command in found):
        exact = next((command for command in found if command.words == (*words, word)), None)
        yield word, exact.help if exact else "Serve AI clients, and be known to them"


def offer_for(value: str) -> Offer:
    """By what the table calls it."""
    if value == CLIENT:
        return Offer(tuple(_clients()))
    if value == _SERVER_NAMES:
        return Offer(tuple((name, "") for name in packaged(f"{SERVERS}.json") if name != "$schema"))
    if value == SHELL:
        return Offer(tuple((shell, "") for shell in SHELLS))
    return Offer(files=value in (PATH, _PATHS), folders=value == FOLDER)


def _clients() -> Iterator[tuple[str, str]]:
    for name, profile in packaged(f"{CLIENTS}.json").items():
        if name != "$schema" and not profile.get("noClient") and not profile.get("excludeFromDetection"):
            yield from ((each, profile.get("name", name)) for each in (name, *profile.get("aliases", ())))
