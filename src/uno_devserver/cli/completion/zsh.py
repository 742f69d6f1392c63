"""The script for zsh: for eval, and as a file of $fpath, which zsh reads when it is needed first."""

from __future__ import annotations

from ..surface import CHILD, COMMANDS, MCP_APP
from .offers import MCP_APP_IS, PROGRAMS, argument_of, early_options, next_words, options_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..surface import Command, Option
    from .offers import Offer

_SCRIPT = """\
#compdef {programs}
# Completes uno-devserver in zsh. In ~/.zshrc, behind compinit: eval "$(uno-devserver completion zsh)"

_uno-devserver() {{
    local curcontext="$curcontext" state line
    local -a found
    local behind=$(( ${{words[(i)--]}} < CURRENT ))  # of '--', where a command line of its own is
    typeset -A opt_args
    if (( ${{words[(I){mcp_app}]}} )); then
        words=("${{(@)words:#{mcp_app}}}")
        (( CURRENT -= 1 ))
        _uno-devserver-command '{mcp_app_is}'
        return
    fi
    _arguments -C -A "-*" \\
{shared}
        '1: :->command' '*:: :->rest' && return
    case "$state" in
        command)
{commands}
            _describe command found ;;
        rest)
            [[ "$words[1]" == mcp ]] || {{ _uno-devserver-command "$words[1]"; return }}
            _arguments -C -A "-*" \\
{shared}
                '1: :->command' '*:: :->rest' && return
            if [[ "$state" == command ]]; then
{mcp_commands}
                _describe command found
            else
                _uno-devserver-command "mcp $words[1]"
            fi ;;
    esac
}}

_uno-devserver-command() {{
    case "$1" in
{options}
    esac
}}

# As a file of $fpath this is the function's first call.
if [[ "$funcstack[1]" == _uno-devserver ]]; then
    _uno-devserver "$@"
elif (( ! $+functions[compdef] )); then
    print -u2 'uno-devserver: In ~/.zshrc, put the line that completes uno-devserver behind compinit.'
else
    compdef _uno-devserver {programs}
fi
"""


def script() -> str:
    shared = [spec for option in options_of(None) for spec in _specs(option)]
    # Known, but not offered: what is behind them is no command.
    shared += [_quoted(f"!{name}{_early(option)}") for name, option in early_options().items()]
    shared.append(_quoted(f"{MCP_APP}[{_explained('The same as mcp start')}]"))
    return _SCRIPT.format(
        programs=" ".join(PROGRAMS),
        shared="\n".join(f"        {spec} \\" for spec in shared),
        commands="            " + _described(()),
        mcp_commands="                " + _described(("mcp",)),
        options="\n".join(line for command in COMMANDS for line in _of_command(command)),
        mcp_app=MCP_APP,
        mcp_app_is=" ".join(MCP_APP_IS),
    ).rstrip("\n")


def _early(option: Option) -> str:
    """What stands behind it there; a value that may be left out is taken for the command."""
    return f"={_value(option)}" if option.needs_value else ""


def _described(words: tuple[str, ...]) -> str:
    entries = (_quoted(f"{word}:{help_}") for word, help_ in next_words(words))
    return f"found=({' '.join(entries)})"


def _of_command(command: Command) -> Iterator[str]:
    specs = [spec for option in options_of(command) for spec in _specs(option)]
    if CHILD in command.arguments:
        specs.append("'*:::command:{ (( behind )) && _normal }'")
    elif command.arguments:
        specs.append(_quoted(f"1:{command.arguments[0].strip('<>')}:{_action(argument_of(command))}"))
    if not specs:
        return
    yield f"        '{command.name}')"
    yield "            _arguments -S \\"
    yield from (f"                {spec} \\" for spec in specs[:-1])
    yield f"                {specs[-1]} ;;"


def _specs(option: Option) -> Iterator[str]:
    """One for each of its names; each of them shuts out the others."""
    others = f"({' '.join(option.names)})"
    for name in option.names:
        value = _value(option)
        equals = "=" if value and name.startswith("--") else ""
        yield _quoted(f"{others}{name}{equals}[{_explained(option.help)}]{value}")


def _value(option: Option) -> str:
    if option.value is None:
        return ""
    colons = "::" if option.optional else ":"
    return f"{colons}{option.value.strip('<>')}:{_action(value_of(option))}"


def _action(offer: Offer) -> str:
    if offer.words and any(meaning for _, meaning in offer.words):
        return "((" + " ".join(f'{word}\\:"{meaning}"' for word, meaning in offer.words) + "))"
    if offer.words:
        return f"({' '.join(word for word, _ in offer.words)})"
    return "_files" if offer.files else "_files -/" if offer.folders else " "


def _explained(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
