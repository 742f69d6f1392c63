"""`completion`: prints the completion script of bash, zsh or fish, made from the table of commands.

Hand-written: shtab and argcomplete need parsers of argparse, which `commands.py` does not use.
"""

from __future__ import annotations

from ..issues import UserError
from ..setup.definitions import CLIENTS, SERVERS, packaged
from ..system.values import Value
from .commands import CHILD, CLIENT, COMMANDS, FOLDER, GLOBAL_OPTIONS, GROUPS, MCP_APP, PATH, SHELL, SHELLS, Unknown
from .result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .commands import Command, Option
    from .parse import Invocation

NEXT_STEP = "Write 'uno-devserver completion bash', zsh or fish; --help shows where the script goes."
PROGRAMS = ("uno-devserver", "uno.devserver")
MCP_APP_IS = ("mcp", "start")
_PATHS, _SERVER_NAMES = "<paths>", "<names>"


def run(invocation: Invocation) -> Result:
    shell = next(iter(invocation.arguments), None)
    if shell is None:
        raise UserError("MissingValue", f"Which shell: {', '.join(SHELLS)}?", NEXT_STEP, exit_code=2)
    if shell.lower() not in SHELLS:
        message = f"There is no completion script for '{shell}', only for {', '.join(SHELLS)}."
        raise UserError("BadValue", message, NEXT_STEP, exit_code=2)
    text = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[shell.lower()]()
    return Result({"shell": shell.lower(), "script": text}, text)


class Offer(Value):
    """The completions for one word: words with their meanings, files, or folders; none of these for free text."""

    words: tuple[tuple[str, str], ...] = ()
    files: bool = False
    folders: bool = False


def options_of(command: Command | None) -> tuple[Option, ...]:
    """The command's own options, and the global ones that it does not hide."""
    if command and command.unknown is Unknown.LEAVE:
        return command.options  # the Host's own parser reads the rest
    own = command.options if command else ()
    names = {name for option in own for name in option.names}
    return (*own, *(option for option in GLOBAL_OPTIONS if not names.intersection(option.names)))


def early_options() -> dict[str, Option]:
    """The options of single commands by name, for use before the command."""
    shared = {name for option in GLOBAL_OPTIONS for name in option.names}
    known: dict[str, Option] = {}
    for option in (option for command in COMMANDS for option in command.options):
        for name in option.names:
            if name not in shared:
                known.setdefault(name, option)  # of options with the same name the first is used, as in the parser
    return known


def value_of(option: Option) -> Offer:
    if option.choices:
        return Offer(tuple((choice, "") for choice in option.choices))
    return offer_for(option.value or "")


def argument_of(command: Command) -> Offer:
    """The offer for the command's argument."""
    return offer_for(next(iter(command.arguments), ""))


def next_words(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The words that can follow these words of a command, with their meanings."""
    found = [command for command in COMMANDS if command.words[: len(words)] == words != command.words]
    for word in dict.fromkeys(command.words[len(words)] for command in found):
        exact = next((command for command in found if command.words == (*words, word)), None)
        yield word, exact.help if exact else GROUPS[word]


def offer_for(value: str) -> Offer:
    """The offer for a value, by its name in the table."""
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


_BASH = """\
# Completes uno-devserver in bash. In ~/.bashrc: eval "$(uno-devserver completion bash)"

# The value of an option, in $found: words, or @files, @folders, @any; empty if it takes none.
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
        elif [[ ' {groups} ' == *" $command "* ]]; then
            command="$command $token"
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


def bash_script() -> str:
    return _BASH.format(
        values="\n".join(_bash_values()),
        options="\n".join(_bash_options()),
        arguments="\n".join(_bash_arguments()),
        groups=" ".join(GROUPS),
        mcp_app=MCP_APP,
        mcp_app_is=" ".join(MCP_APP_IS),
        programs=" ".join(PROGRAMS),
    ).rstrip("\n")


def _bash_values() -> Iterator[str]:
    """Cases for the options of each command, then for the global ones; bash uses the first that matches."""
    for command in (*COMMANDS, None):
        for option in command.options if command else options_of(None):
            if option.needs_value:
                begin = f'"{command.name} {{}}"' if command else '*" {}"'
                names = "|".join(begin.format(name) for name in option.names)
                yield f"        {names}) found='{_bash_found(value_of(option))}' ;;"
    for name, option in early_options().items():
        if option.needs_value:
            names = "|".join(f"'{group} {name}'" for group in ("", *GROUPS))
            yield f"        {names}) found='{_bash_found(value_of(option))}' ;;"


def _bash_found(offer: Offer) -> str:
    if offer.words:
        return " ".join(word for word, _ in offer.words)
    return "@files" if offer.files else "@folders" if offer.folders else "@any"


def _bash_options() -> Iterator[str]:
    for command in COMMANDS:
        yield f"            '{command.name}') found='{' '.join(_bash_names(options_of(command)))}' ;;"
    yield f"            *) found='{' '.join((MCP_APP, *_bash_names(options_of(None))))}' ;;"


def _bash_names(options: tuple[Option, ...]) -> Iterator[str]:
    return (name for option in options for name in option.names)


def _bash_arguments() -> Iterator[str]:
    for words in ((), *((group,) for group in GROUPS)):
        yield f"            '{' '.join(words)}') found='{' '.join(word for word, _ in next_words(words))}' ;;"
    for command in COMMANDS:
        if command.arguments and CHILD not in command.arguments:
            yield f"            '{command.name}') found='{_bash_found(argument_of(command))}' ;;"


_ZSH = """\
#compdef {programs}
# Completes uno-devserver in zsh. In ~/.zshrc, behind compinit: eval "$(uno-devserver completion zsh)"

_uno-devserver() {{
    local curcontext="$curcontext" state line
    local -a found
    local behind=$(( ${{words[(i)--]}} < CURRENT ))  # behind '--' stands another command line
    local group
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
            group="$words[1]"
            [[ ' {groups} ' == *" $group "* ]] || {{ _uno-devserver-command "$group"; return }}
            _arguments -C -A "-*" \\
{shared}
                '1: :->command' '*:: :->rest' && return
            if [[ "$state" == command ]]; then
                case "$group" in
{group_commands}
                esac
                _describe command found
            else
                _uno-devserver-command "$group $words[1]"
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


def zsh_script() -> str:
    shared = [spec for option in options_of(None) for spec in _zsh_specs(option)]
    # These options are declared but not offered (!), so that zsh does not take their values for the command.
    shared += [_zsh_quoted(f"!{name}{_zsh_early(option)}") for name, option in early_options().items()]
    shared.append(_zsh_quoted(f"{MCP_APP}[{_zsh_explained('The same as mcp start')}]"))
    return _ZSH.format(
        programs=" ".join(PROGRAMS),
        shared="\n".join(f"        {spec} \\" for spec in shared),
        commands="            " + _zsh_described(()),
        group_commands="\n".join(f"                    {group}) {_zsh_described((group,))} ;;" for group in GROUPS),
        options="\n".join(line for command in COMMANDS for line in _zsh_command(command)),
        groups=" ".join(GROUPS),
        mcp_app=MCP_APP,
        mcp_app_is=" ".join(MCP_APP_IS),
    ).rstrip("\n")


def _zsh_early(option: Option) -> str:
    """The specification of the value of an option before the command; none for an optional value."""
    return f"={_zsh_value(option)}" if option.needs_value else ""


def _zsh_described(words: tuple[str, ...]) -> str:
    entries = (_zsh_quoted(f"{word}:{help_}") for word, help_ in next_words(words))
    return f"found=({' '.join(entries)})"


def _zsh_command(command: Command) -> Iterator[str]:
    specs = [spec for option in options_of(command) for spec in _zsh_specs(option)]
    if CHILD in command.arguments:
        specs.append("'*:::command:{ (( behind )) && _normal }'")
    elif command.arguments:
        specs.append(_zsh_quoted(f"1:{command.arguments[0].strip('<>')}:{_zsh_action(argument_of(command))}"))
    if not specs:
        return
    yield f"        '{command.name}')"
    yield "            _arguments -S \\"
    yield from (f"                {spec} \\" for spec in specs[:-1])
    yield f"                {specs[-1]} ;;"


def _zsh_specs(option: Option) -> Iterator[str]:
    """One specification per name; each name excludes the others."""
    others = f"({' '.join(option.names)})"
    for name in option.names:
        value = _zsh_value(option)
        equals = "=" if value and name.startswith("--") else ""
        yield _zsh_quoted(f"{others}{name}{equals}[{_zsh_explained(option.help)}]{value}")


def _zsh_value(option: Option) -> str:
    if option.value is None:
        return ""
    colons = "::" if option.optional else ":"
    return f"{colons}{option.value.strip('<>')}:{_zsh_action(value_of(option))}"


def _zsh_action(offer: Offer) -> str:
    if offer.words and any(meaning for _, meaning in offer.words):
        return "((" + " ".join(f'{word}\\:"{meaning}"' for word, meaning in offer.words) + "))"
    if offer.words:
        return f"({' '.join(word for word, _ in offer.words)})"
    return "_files" if offer.files else "_files -/" if offer.folders else " "


def _zsh_explained(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_FISH = """\
# Completes uno-devserver in fish. In ~/.config/fish/config.fish: uno-devserver completion fish | source

# The command that was typed so far: none, 'disco', 'mcp', 'mcp install'; 'behind' after '--'.
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
        else if test (count $command) = 0; or contains -- "$command" {groups}
            set -a command $token
        end
    end
    echo "$command"
end

function __uno_devserver_at
    test (__uno_devserver_command) = "$argv"
end

# Behind '--' stands another command line.
function __uno_devserver_child
    set -l tokens (commandline -opc)
    set -l at (contains -i -- -- $tokens)
    set -l rest (string escape -- $tokens[(math $at + 1)..-1]) (commandline -ct)
    complete "--do-complete=$rest"
end

# Not as a list behind -a, because fish would run the text in its brackets.
function __uno_devserver_clients
    printf '%s\\t%s\\n' {clients}
end

for program in {programs}
    complete -c $program -f
    complete -c $program -n '__uno_devserver_at behind' -a '(__uno_devserver_child)'
{completions}
end
"""


def fish_script() -> str:
    return _FISH.format(
        groups=" ".join(GROUPS),
        mcp_app=MCP_APP,
        mcp_app_is=" ".join(MCP_APP_IS),
        valued=" ".join(_fish_valued()),
        clients=" ".join(_fish_quoted(text) for pair in offer_for(CLIENT).words for text in pair),
        programs=" ".join(PROGRAMS),
        completions="\n".join(f"    complete -c $program {line}" for line in _fish_completions()),
    ).rstrip("\n")


def _fish_valued() -> Iterator[str]:
    """Patterns of a command and an option whose value is the next word; global options match any command."""
    for command in (*COMMANDS, None):
        for option in command.options if command else options_of(None):
            if option.needs_value:
                yield from (f"'{command.name if command else '*'} {name}'" for name in option.names)
    early = [name for name, option in early_options().items() if option.needs_value]
    yield from (f"'{group} {name}'" for name in early for group in ("", *GROUPS))


def _fish_completions() -> Iterator[str]:
    for words in ((), *((group,) for group in GROUPS)):
        for word, help_ in next_words(words):
            yield f"-n {_fish_at(' '.join(words))} -a {word} -d {_fish_quoted(help_)}"
    yield f"-n {_fish_at('')} -l {MCP_APP.lstrip('-')} -d {_fish_quoted('The same as mcp start')}"
    for name, command in (
        ("", None),
        *((group, None) for group in GROUPS),
        *((command.name, command) for command in COMMANDS),
    ):
        condition = _fish_at(name)
        for option in options_of(command):
            yield f"-n {condition} {_fish_option(option)}"
        if command and command.arguments and CHILD not in command.arguments:
            yield f"-n {condition} {_fish_values(argument_of(command))}"


def _fish_option(option: Option) -> str:
    names = " ".join(_fish_name(name) for name in option.names)
    described = f"{names} -d {_fish_quoted(option.help)}"
    if option.value is None:
        return described
    offer = value_of(option)
    if offer.files:
        return f"{described} -r -F"
    needed = "" if option.optional else " -x"
    return described + needed + (f" {_fish_values(offer)}" if offer.words or offer.folders else "")


def _fish_values(offer: Offer) -> str:
    if offer.files:
        return "-F"
    if offer.folders:
        return "-a '(__fish_complete_directories)'"
    if any(meaning for _, meaning in offer.words):
        return "-a '(__uno_devserver_clients)'"
    return f"-a {_fish_quoted(' '.join(word for word, _ in offer.words))}"


def _fish_name(name: str) -> str:
    if name.startswith("--"):
        return f"-l {name[2:]}"
    return f"-s {name[1:]}" if len(name) == 2 else f"-o {name[1:]}"


def _fish_at(command: str) -> str:
    return _fish_quoted(f"__uno_devserver_at {command}".rstrip())


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
