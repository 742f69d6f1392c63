"""The script for fish."""

from __future__ import annotations

from ..surface import CHILD, CLIENT, COMMANDS, MCP_APP
from .offers import MCP_APP_IS, PROGRAMS, argument_of, early_options, next_words, offer_for, options_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..surface import Option
    from .offers import Offer

_SCRIPT = """\
# Completes uno-devserver in fish. In ~/.config/fish/config.fish: uno-devserver completion fish | source

# The command that was typed so far: none, 'disco', 'mcp', 'mcp install'; 'behind' where '--' was.
function __uno_devserver_command
    set -l command
    set -l skip 0
    for token in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if test "$token" = --
            echo behind
            return
        else if test "$token" = {mcp_app}
            set command {mcp_app_is}
        else if string match -q -- '-*' $token
            switch "$command $token"
                case {valued}
                    set skip 1
            end
        else if test (count $command) = 0; or test "$command" = mcp
            set -a command $token
        end
    end
    echo "$command"
end

function __uno_devserver_at
    test (__uno_devserver_command) = "$argv"
end

# What is behind '--' is a command line of its own.
function __uno_devserver_child
    set -l tokens (commandline -opc)
    set -l at (contains -i -- -- $tokens)
    set -l rest (string escape -- $tokens[(math $at + 1)..-1]) (commandline -ct)
    complete "--do-complete=$rest"
end

# Not as a list behind -a, in which fish would run what stands in brackets.
function __uno_devserver_clients
    printf '%s\\t%s\\n' {clients}
end

for program in {programs}
    complete -c $program -f
    complete -c $program -n '__uno_devserver_at behind' -a '(__uno_devserver_child)'
{completions}
end
"""


def script() -> str:
    return _SCRIPT.format(
        mcp_app=MCP_APP,
        mcp_app_is=" ".join(MCP_APP_IS),
        valued=" ".join(_valued()),
        clients=" ".join(_quoted(text) for pair in offer_for(CLIENT).words for text in pair),
        programs=" ".join(PROGRAMS),
        completions="\n".join(f"    complete -c $program {line}" for line in _completions()),
    ).rstrip("\n")


def _valued() -> Iterator[str]:
    """Options whose value is the next word, each behind its command; those of every command behind any."""
    for command in (*COMMANDS, None):
        for option in command.options if command else options_of(None):
            if option.needs_value:
                yield from (f"'{command.name if command else '*'} {name}'" for name in option.names)
    yield from (f"' {name}' 'mcp {name}'" for name, option in early_options().items() if option.needs_value)


def _completions() -> Iterator[str]:
    for words in ((), ("mcp",)):
        for word, help_ in next_words(words):
            yield f"-n {_at(' '.join(words))} -a {word} -d {_quoted(help_)}"
    yield f"-n {_at('')} -l {MCP_APP.lstrip('-')} -d {_quoted('The same as mcp start')}"
    for name, command in (("", None), ("mcp", None), *((command.name, command) for command in COMMANDS)):
        condition = _at(name)
        for option in options_of(command):
            yield f"-n {condition} {_option(option)}"
        if command and command.arguments and CHILD not in command.arguments:
            yield f"-n {condition} {_values(argument_of(command))}"


def _option(option: Option) -> str:
    names = " ".join(_name(name) for name in option.names)
    described = f"{names} -d {_quoted(option.help)}"
    if option.value is None:
        return described
    offer = value_of(option)
    if offer.files:
        return f"{described} -r -F"
    needed = "" if option.optional else " -x"
    return described + needed + (f" {_values(offer)}" if offer.words or offer.folders else "")


def _values(offer: Offer) -> str:
    if offer.folders:
        return "-a '(__fish_complete_directories)'"
    if any(meaning for _, meaning in offer.words):
        return "-a '(__uno_devserver_clients)'"
    return f"-a {_quoted(' '.join(word for word, _ in offer.words))}"


def _name(name: str) -> str:
    if name.startswith("--"):
        return f"-l {name[2:]}"
    return f"-s {name[1:]}" if len(name) == 2 else f"-o {name[1:]}"


def _at(command: str) -> str:
    return _quoted(f"__uno_devserver_at {command}".rstrip())


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
