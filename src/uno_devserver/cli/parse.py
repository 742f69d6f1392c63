"""Reads the command line into an `Invocation`: the command, its options and arguments.

Parsing runs, reads and prints nothing; `workspace_of` resolves the folder that an invocation names.
"""

from __future__ import annotations

import os

from ..issues import UserError
from ..system.values import Value
from .commands import CHILD, COMMANDS, GLOBAL_OPTIONS, GROUPS, MCP_APP, Command, Option, Unknown, command_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..workspace.resolver import Workspace

MAX_PORT = 65_535
MAX_DIGITS = 20  # Python refuses to read numbers of thousands of digits
_HELP = "Run 'uno-devserver --help' to see every command."
RELOAD = (
    "To serve an MCP server with hot reload, run 'uno-devserver mcp start --watch -- <its command>', or "
    "'uno-devserver inspect -- <its command>' for a page."
)


class Invocation(Value):
    """One call of the program. `command` is None if only the help or the version is asked for."""

    words: tuple[str, ...]  # the words of the command, which may be incomplete or unknown
    command: Command | None
    options: Mapping[str, str | bool | tuple[str, ...]]
    arguments: tuple[str, ...]
    forwarded: tuple[str, ...]  # unknown options and the arguments after them, in their order
    child: tuple[str, ...]  # everything after `--`, or after `host`

    def on(self, name: str) -> bool:
        return self.options.get(name) is True

    def value(self, name: str) -> str | None:
        value = self.options.get(name)
        return value if isinstance(value, str) else None

    def values(self, name: str) -> tuple[str, ...]:
        """All values of an option that may be given several times."""
        values = self.options.get(name)
        return values if isinstance(values, tuple) else ()

    def number(self, option: str, least: int, most: int) -> int | None:
        """The number given for an option, None if there is none; raises UserError unless it is in `least` to `most`."""
        text = self.value(option)
        if text is None:
            return None
        text = text.strip()
        if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and least <= int(text) <= most):
            message = f"The value '{text}' of --{option} cannot be used."
            raise UserError("BadValue", message, f"Use a whole number from {least} to {most}.", exit_code=2)
        return int(text)

    @property
    def names_folder(self) -> bool:
        return self.value("solution-dir") is not None

    def folder(self) -> str:
        """The absolute path of --solution-dir or of the current folder; raises UserError if the latter was removed."""
        return absolute(self.value("solution-dir") or ".")


def workspace_of(invocation: Invocation) -> Workspace:
    """The workspace of the invocation's folder, with the solution that --solution names."""
    from ..workspace.resolver import resolve

    return resolve(invocation.folder(), explicit=invocation.names_folder, solution=invocation.value("solution"))


def absolute(directory: str) -> str:
    """The absolute path of a folder; raises UserError if it is relative and the current folder was removed."""
    try:
        return os.path.abspath(directory)
    except OSError as error:
        message = "The current folder does not exist any more."
        next_step = "Change into a folder that exists, or use --solution-dir."
        raise UserError("NoCurrentFolder", message, next_step) from error


def check_url(url: str, option: str = "--upstream-url") -> None:
    """Raise UserError if an option's value is not the URL of an HTTP server, or has a password in it."""
    from ..system.text import has_credentials, shown_url

    problem = _problem_of_url(url)
    if problem:
        message = f"The value '{shown_url(url)}' of {option} {problem}."
        raise UserError("BadValue", message, "Write it as http://127.0.0.1:8000/mcp.", exit_code=2)
    if has_credentials(url):
        message = f"A user name or password before the host, as in the URL of {shown_url(url)}, is not supported."
        next_step = "Leave it out. If the server needs it, use --header 'Authorization: Basic ${NAME}'."
        raise UserError("BadValue", message, next_step, exit_code=2)


def _problem_of_url(url: str) -> str:
    """The end of a sentence; "" if the URL may be that of an HTTP server."""
    from urllib.parse import urlsplit

    from ..system.text import HIDDEN

    if HIDDEN in url:
        return f"has '{HIDDEN}' in the place of a part that was hidden"
    if not url.isprintable() or " " in url:
        return "has a space or an unprintable character"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        return "" if is_usable and parts.port != 0 else "is not an HTTP address"
    except ValueError:
        return "has a host or a port that cannot be used"


def parse(argv: Sequence[str]) -> Invocation:
    """Read the command line; raises UserError with exit code 2 if it is wrong."""
    own, child = _split_child(argv)
    words, rest = _take_command(own)
    found = (_find(token, None) for token in rest)
    switches: dict[str, str | bool | tuple[str, ...]] = {
        option.name: True for option in found if option and option.value is None
    }
    if "help" in switches or words == ("help",):  # even if the rest of the call is wrong
        asked = tuple(word.lower() for word in rest if not _is_option(word)) if words == ("help",) else words
        return Invocation(words, command_named(asked), {**switches, "help": True}, (), (), ())
    command = _command(words)
    options: dict[str, str | bool | tuple[str, ...]] = {}
    arguments: list[str] = []
    forwarded: list[str] = []
    position = 0
    while position < len(rest):
        token = rest[position]
        position += 1
        if not _is_option(token):
            (forwarded if forwarded and command and command.unknown is Unknown.FORWARD else arguments).append(token)
            continue
        name, inline = _split_value(token)
        option = _find(name, command)
        if option is None:
            _unknown(token, command, forwarded)
        elif option.value is None:
            options[option.name] = _switch(option, inline)
        else:
            if inline is None and position < len(rest) and _is_value(rest[position], option, command):
                inline = rest[position]
                position += 1
            value = True if inline is None and option.optional else _value(option, inline)
            if option.repeated and isinstance(value, str):
                before = options.get(option.name)
                options[option.name] = (*(before if isinstance(before, tuple) else ()), value)
            else:
                options[option.name] = value
    _check_arguments(command, arguments)
    _check_child(command, child, given="--" in argv)
    return Invocation(words, command, options, tuple(arguments), tuple(forwarded), tuple(child))


def _split_child(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own tokens, and those after `--` or `host`."""
    tokens = list(argv)
    word = _first_word(tokens)
    command = command_named((tokens[word].lower(),)) if word is not None else None
    if word is not None and command and command.unknown is Unknown.LEAVE:
        return tokens[: word + 1], tokens[word + 1 :]
    if "--" not in tokens:
        return tokens, []
    at = tokens.index("--")
    return tokens[:at], tokens[at + 1 :]


def _first_word(tokens: list[str]) -> int | None:
    """The position of the first token that is neither an option nor the value of one."""
    at = 0
    while at < len(tokens):
        if not _is_option(tokens[at]):
            return at
        at += 2 if _has_value(tokens[at], tokens[at + 1 :]) else 1
    return None


def _take_command(tokens: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """The words of the command, which may be anywhere, and the other tokens in their order."""
    if MCP_APP in tokens:
        return ("mcp", "start"), [token for token in tokens if token != MCP_APP]
    words: list[str] = []
    rest: list[str] = []
    is_value = False
    for at, token in enumerate(tokens):
        if not is_value and not _is_option(token) and (not words or (len(words) == 1 and words[0] in GROUPS)):
            words.append(token.lower())
        else:
            rest.append(token)
            is_value = not is_value and _is_option(token) and _has_value(token, tokens[at + 1 :])
    return tuple(words), rest


def _command(words: tuple[str, ...]) -> Command | None:
    command = command_named(words)
    if words and command is None:
        next_step = RELOAD if words[0] in ("watch", "reload", "dev") else _HELP
        raise UserError("UnknownCommand", _unknown_command(words), next_step, exit_code=2)
    return command


def _unknown_command(words: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    if len(words) == 1 and words[0] in GROUPS:
        second = ", ".join(command.words[1] for command in COMMANDS if _begins(command, words))
        return f"'{words[0]}' needs one of: {second}."
    # Only the last word is compared, because the commands of a group have the same first word.
    group, last = words[:-1], words[-1]
    known = {" ".join(command.words[len(group) :]): command.name for command in COMMANDS if _begins(command, group)}
    close = get_close_matches(last, known, 1)
    return f"There is no command '{' '.join(words)}'." + (f" Did you mean '{known[close[0]]}'?" if close else "")


def _begins(command: Command, group: tuple[str, ...]) -> bool:
    return command.words[: len(group)] == group


def _is_option(token: str) -> bool:
    return token.startswith("-") and len(token) > 1


def _has_value(token: str, following: Sequence[str]) -> bool:
    """Whether the token is an option of any command, and the first of the `following` tokens is its value."""
    option = next((found for command in (None, *COMMANDS) if (found := _find(token, command))), None)
    if option is None or option.value is None:
        return False
    is_word = bool(following) and any(following[0].lower() in command.words for command in COMMANDS)
    return not option.optional or (_is_optional_value(following) and not is_word)


def _is_value(token: str, option: Option, command: Command | None) -> bool:
    """Whether the token after an option is its value; a required value may look like an unknown option."""
    return _is_optional_value((token,)) if option.optional else _find(token, command) is None


def _is_optional_value(following: Sequence[str]) -> bool:
    """Whether the next token can be an optional value. A negative number is a (wrong) value, not an option."""
    return bool(following) and (not _is_option(following[0]) or following[0][1:].isdigit())


def _split_value(token: str) -> tuple[str, str | None]:
    name, equals, value = token.partition("=")
    return (name, value) if equals else (token, None)


def _find(name: str, command: Command | None) -> Option | None:
    """The option of that name, the command's own before a global one; the case of long names is ignored."""
    known = (command.options if command else ()) + GLOBAL_OPTIONS
    lowered = name.lower()
    return next(
        (option for option in known if name in option.names),
        next((option for option in known if lowered in (n.lower() for n in option.names if n.startswith("--"))), None),
    )


def _unknown(token: str, command: Command | None, forwarded: list[str]) -> None:
    if command is None or command.unknown is Unknown.REFUSE or (command.words == ("start",) and _is_of_proxies(token)):
        where = f"'{command.name}'" if command else "uno-devserver"
        raise UserError(
            "UnknownOption", f"{where} has no option '{token}'.{_hint(token, command)}", _help_of(command), 2
        )
    forwarded.append(token)


def _is_of_proxies(token: str) -> bool:
    """Whether only the proxy has this option, so that no Host would do anything with it."""
    proxy = command_named(("mcp", "start"))
    return proxy is not None and any(_split_value(token)[0] in option.names for option in proxy.options)


def _hint(token: str, command: Command | None) -> str:
    """A sentence that names the commands with this option, or else the option that was probably meant; may be empty."""
    name = _split_value(token)[0]
    others = [f"'{other.name}'" for other in COMMANDS if any(name in option.names for option in other.options)]
    if others:
        return f" {', '.join(others)} {'has' if len(others) == 1 else 'have'} it."
    close = close_option(token, command)
    return f" Did you mean '{close}'?" if close else ""


def close_option(token: str, command: Command | None, alike: float = 0.6) -> str | None:
    """The known option that resembles the token most; None if none is similar enough."""
    from difflib import get_close_matches

    known = [name for option in (*(command.options if command else ()), *GLOBAL_OPTIONS) for name in option.names]
    known += [] if command else [MCP_APP]
    return next(iter(get_close_matches(token.partition("=")[0], known, 1, alike)), None)


def _help_of(command: Command | None) -> str:
    return f"Run 'uno-devserver {command.name} --help' to see its options." if command else _HELP


def _switch(option: Option, inline: str | None) -> bool:
    if inline is None:
        return True
    if inline.lower() in ("true", "false"):
        return inline.lower() == "true"
    raise UserError(
        "BadValue", f"--{option.name} takes no value, got '{inline}'.", f"Write --{option.name}.", exit_code=2
    )


def _value(option: Option, value: str | None) -> str:
    if value is None or (not value.strip() and not option.may_be_blank):
        what = "is missing" if value is None else "is blank"
        known = f" It is one of: {', '.join(option.choices)}." if option.choices else ""
        next_step = f"Write --{option.name} {option.value}.{known}"
        raise UserError("MissingValue", f"The value of --{option.name} {what}.", next_step, 2)
    return value


def _check_arguments(command: Command | None, arguments: list[str]) -> None:
    if command is None or command.unknown is not Unknown.REFUSE:
        return
    taken = [argument for argument in command.arguments if argument != CHILD]
    if len(arguments) > len(taken):
        first = arguments[len(taken)]
        next_step = _help_of(command)
        if CHILD in command.arguments:
            from ..system.command_lines import quoted_line

            line = quoted_line(("uno-devserver", *command.words, "--", *arguments))
            next_step = _for_url(command, first) or f"Write a command behind '--': {line}"
        shown = _shown_url(first) if "://" in first else first
        raise UserError("UnexpectedArgument", f"'{command.name}' does not take '{shown}'.", next_step, exit_code=2)


def _check_child(command: Command | None, child: list[str], *, given: bool) -> None:
    if command and CHILD in command.arguments and given and not (child and child[0].strip()):
        next_step = "Write it behind '--', or leave '--' out for the server of the workspace."
        raise UserError("MissingValue", "There is no command behind '--'.", next_step, exit_code=2)
    if command and CHILD in command.arguments and child and (elsewhere := _for_url(command, child[0])):
        raise UserError("BadValue", f"'{_shown_url(child[0])}' is a URL and no command.", elsewhere, exit_code=2)
    if command and CHILD not in command.arguments and child and command.unknown is Unknown.REFUSE:
        message = f"'{command.name}' takes no command behind '--', so '{child[0]}' would be ignored."
        raise UserError("UnexpectedArgument", message, _for_typed(command, child), exit_code=2)


def _for_typed(command: Command, child: list[str]) -> str:
    """The next step for the command of a server behind a command that takes none."""
    if command.name not in ("mcp install", "trust"):
        return _help_of(command)
    from ..system.command_lines import quoted_line

    return f"Run '{quoted_line(('uno-devserver', 'init', '--', *child))}' first, then '{command.name}' without it."


def _for_url(command: Command, word: str) -> str | None:
    """The next step for a URL in the place of a command."""
    if not word.lower().startswith(("http://", "https://")):
        return None
    from ..system.command_lines import quoted_word

    url = quoted_word(word if _shown_url(word) == word else "<its URL>")
    if command.name in ("config", "init"):
        return f"Write: uno-devserver init {url}"
    page = "--inspector " if command.name == "inspect" else ""
    return f"Write: uno-devserver mcp start {page}--upstream-url {url}"


def _shown_url(word: str) -> str:
    from ..system.text import shown_url

    return shown_url(word)
