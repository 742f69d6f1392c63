"""The script for bash. It needs nothing but bash itself, and starts no program while somebody types."""

from __future__ import annotations

from ..surface import CHILD, COMMANDS, MCP_APP
from .offers import MCP_APP_IS, PROGRAMS, argument_of, early_options, next_words, options_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..surface import Option
    from .offers import Offer

_SCRIPT = """\
# Completes uno-devserver in bash. In ~/.bashrc: eval "$(uno-devserver completion bash)"

# What stands behind an option, in $found: words, or @files, @folders, @any; nothing where it has no value.
_uno_devserver_value() {{
    found=
    case "$1 $2" in
{values}
    esac
}}

_uno_devserver() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} command= option= child=0 found= token at IFS=$' \\t\\n'
    for ((at = 1; at < COMP_CWORD; at++)); do
        token=${{COMP_WORDS[at]}}
        if [[ $token == '=' ]]; then  # bash makes three words of --option=value
            option=${{option:-${{COMP_WORDS[at - 1]}}}}
        elif [[ $token == :* ]]; then  # and three of a:b
            option=
            ((at++))
        elif [[ -n $option ]]; then
            option=
        elif [[ $token == -- ]]; then
            child=$((at + 1))
            break
        elif [[ $token == {mcp_app} ]]; then
            command='{mcp_app_is}'
        elif [[ $token == -* ]]; then
            _uno_devserver_value "$command" "$token"
            [[ -n $found ]] && option=$token
        elif [[ -z $command ]]; then
            command=$token
        elif [[ $command == mcp ]]; then
            command="mcp $token"
        fi
    done
    [[ $current == '=' ]] && current= && option=${{option:-${{COMP_WORDS[COMP_CWORD - 1]}}}}

    found=
    if ((child)); then
        found=@files
        ((child == COMP_CWORD)) && found=@commands
    elif [[ -n $option ]]; then
        _uno_devserver_value "$command" "$option"
    elif [[ $current == -* ]]; then
        case "$command" in
{options}
        esac
    else
        case "$command" in
{arguments}
        esac
    fi

    case "$found" in
        @files) compopt -o default 2>/dev/null ;;
        @folders) compopt -o dirnames 2>/dev/null ;;
        @commands) COMPREPLY=($(compgen -c -- "$current")) ;;
        @any) ;;
        *) COMPREPLY=($(compgen -W "$found" -- "$current")) ;;
    esac
}}

complete -F _uno_devserver {programs}
"""


def script() -> str:
    return _SCRIPT.format(
        values="\n".join(_values()),
        options="\n".join(_options()),
        arguments="\n".join(_arguments()),
        mcp_app=MCP_APP,
        mcp_app_is=" ".join(MCP_APP_IS),
        programs=" ".join(PROGRAMS),
    ).rstrip("\n")


def _values() -> Iterator[str]:
    """Of each option of each command, then of those of every command; the first that fits counts."""
    for command in (*COMMANDS, None):
        for option in command.options if command else options_of(None):
            if option.needs_value:
                begin = f'"{command.name} {{}}"' if command else '*" {}"'
                names = "|".join(begin.format(name) for name in option.names)
                yield f"        {names}) found='{_found(value_of(option))}' ;;"
    for name, option in early_options().items():
        if option.needs_value:
            yield f"        ' {name}'|'mcp {name}') found='{_found(value_of(option))}' ;;"


def _found(offer: Offer) -> str:
    if offer.words:
        return " ".join(word for word, _ in offer.words)
    return "@files" if offer.files else "@folders" if offer.folders else "@any"


def _options() -> Iterator[str]:
    for command in COMMANDS:
        yield f"            '{command.name}') found='{' '.join(_names(options_of(command)))}' ;;"
    yield f"            *) found='{' '.join((MCP_APP, *_names(options_of(None))))}' ;;"


def _names(options: tuple[Option, ...]) -> Iterator[str]:
    return (name for option in options for name in option.names)


def _arguments() -> Iterator[str]:
    for words in ((), ("mcp",)):
        yield f"            '{' '.join(words)}') found='{' '.join(word for word, _ in next_words(words))}' ;;"
    for command in COMMANDS:
        if command.arguments and CHILD not in command.arguments:
            yield f"            '{command.name}') found='{_found(argument_of(command))}' ;;"
