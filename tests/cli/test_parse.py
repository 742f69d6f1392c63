"""Arguments become a command with its options; a wrong call is a UserError with exit code 2."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.tables import every
from uno_devserver.cli.commands import COMMANDS, GLOBAL_OPTIONS, Command, Option, Unknown, command_named
from uno_devserver.cli.parse import MAX_PORT, Invocation, parse
from uno_devserver.issues import UserError
from uno_devserver.system.command_lines import quoted_word

# `host` takes nothing itself: what stands behind it is the Host's.
READING = [command for command in COMMANDS if command.unknown is not Unknown.LEAVE]
# Every option that a command takes; one of its own hides the global one of the same name.
OPTIONS = [
    (command, option)
    for command in READING
    for option in {option.name: option for option in (*GLOBAL_OPTIONS, *command.options)}.values()
]
IN_QUOTES = quoted_word("a b.js")
REFUSING = [command for command in COMMANDS if command.unknown is Unknown.REFUSE]
FORWARDING = [command for command in COMMANDS if command.unknown is Unknown.FORWARD]


def _id(value: object) -> str | None:
    if isinstance(value, Command):
        return value.name.replace(" ", "-")
    if isinstance(value, Option):
        return value.name
    return " ".join(value) if isinstance(value, list) else None


def _pair(pair: tuple[Command, Option]) -> str:
    return f"{_id(pair[0])} {_id(pair[1])}"


def refusal(*argv: str) -> UserError:
    with pytest.raises(UserError) as error:
        parse(argv)
    assert error.value.exit_code == 2
    assert error.value.next_step
    return error.value


def given_option(invocation: Invocation, option: Option) -> bool:
    """Whether the invocation has the option, with the value that these tests give."""
    if option.value is None:
        return invocation.on(option.name) and invocation.value(option.name) is None
    if option.repeated:
        return invocation.values(option.name) == ("the value",)
    return invocation.value(option.name) == "the value" and not invocation.on(option.name)


# --- commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", [str.lower, str.upper, str.title])
def test_every_command_is_known_in_any_case(spelling: type[str]) -> None:
    def check(command: Command) -> None:
        invocation = parse([spelling(word) for word in command.words])

        assert invocation == Invocation(command.words, command, {}, (), (), ())

    every(READING, check, _id)


def test_everything_behind_host_is_left_to_it() -> None:
    flags = ("--json", "/httpPort", "5000", "--addins", "", "--help", "--", "list", "-x")

    invocation = parse(["--log-level", "list", "HOST", *flags])

    assert (invocation.words, invocation.child) == (("host",), flags)
    assert (invocation.arguments, invocation.forwarded) == ((), ())
    assert invocation.options == {"log-level": "list"}


@pytest.mark.parametrize("words", [["mcp", "install", "cursor"], ["health"], ["trust"]])
def test_a_command_that_nothing_would_start_is_refused(words: list[str]) -> None:
    with pytest.raises(UserError, match="takes no command behind '--', so 'npx' would be ignored"):
        parse([*words, "--", "npx", "tsx"])


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["inspect", "node", "x.js"], "Write a command behind '--': uno-devserver inspect -- node x.js"),
        (["inspect", "node", "a b.js"], f"Write a command behind '--': uno-devserver inspect -- node {IN_QUOTES}"),
        (["watch", "--", "node", "x.js"], "To serve an MCP server with hot reload, run 'uno-devserver mcp start"),
    ],
)
def test_a_server_in_the_wrong_place_is_told_where_it_belongs(argv: list[str], hint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(argv)

    assert caught.value.next_step.startswith(hint)
    assert f"'{argv[1] if argv[0] == 'inspect' else argv[0]}'" in caught.value.message


HERE = "http://127.0.0.1:8000/mcp"


@pytest.mark.parametrize(
    ("argv", "step"),
    [
        (["inspect", HERE], f"uno-devserver mcp start --inspector --upstream-url {HERE}"),
        (["inspect", "--", HERE], f"uno-devserver mcp start --inspector --upstream-url {HERE}"),
        (["mcp", "start", "--", HERE], f"uno-devserver mcp start --upstream-url {HERE}"),
        (["config", "--", HERE], f"uno-devserver init {HERE}"),
        (["inspect", f"{HERE}?a=1&b"], f"--upstream-url {quoted_word('<its URL>')}"),
    ],
)
def test_a_url_in_the_place_of_a_command_is_told_where_it_belongs(argv: list[str], step: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(argv)

    assert step in caught.value.next_step


@pytest.mark.parametrize("option", ["--upstream-url", "--watch", "--header"])
def test_options_of_the_proxy_are_not_passed_to_a_host(option: str) -> None:
    with pytest.raises(UserError, match="'mcp start'"):
        parse(["start", option, HERE])


@pytest.mark.parametrize("argv", [[], ["--version"], ["--json", "--version"]], ids=_id)
def test_without_a_command_there_is_none(argv: list[str]) -> None:
    assert parse(argv).command is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["disc"], "disco"),
        (["strat"], "start"),
        (["mcp", "instal"], "mcp install"),
        (["mcp", "foo"], None),
        (["doctor"], "mcp doctor"),
        (["frobnicate"], None),
        (["-"], None),
    ],
    ids=_id,
)
def test_an_unknown_command_is_named_with_the_nearest_one(typed: list[str], meant: str | None) -> None:
    error = refusal(*typed)

    assert error.code == "UnknownCommand"
    assert f"'{' '.join(typed)}'" in error.message
    assert (f"Did you mean '{meant}'?" in error.message) if meant else ("Did you mean" not in error.message)


def test_mcp_alone_lists_what_may_follow() -> None:
    error = refusal("mcp")

    assert all(word in error.message for word in ("start", "serve", "status", "install", "uninstall"))


# --- the form that clients are configured with --------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["--mcp-app"],
        ["--mcp-app", "--port", "5000"],
        ["--port", "5000", "--mcp-app"],
        ["-l", "Trace", "--mcp-app", "--solution-dir", "/src"],
        ["--mcp-app", "--", "--mcp-app", "x"],
    ],
    ids=_id,
)
def test_mcp_app_stands_anywhere_and_means_mcp_start(argv: list[str]) -> None:
    start = [token for token in argv if token != "--mcp-app"]
    behind = [] if "--" not in argv else argv[argv.index("--") + 1 :]
    own = start[: start.index("--")] if "--" in start else start

    invocation = parse(argv)

    assert invocation == parse(["mcp", "start", *own]).replace(child=tuple(behind))
    assert invocation.command
    assert invocation.command.name == "mcp start"


# --- options ------------------------------------------------------------------------------------------------------


def test_every_option_of_every_command_is_taken_under_each_of_its_names() -> None:
    def check(pair: tuple[Command, Option]) -> None:
        command, option = pair
        value = ["the value"] if option.value else []

        for name in option.names:
            assert given_option(parse([*command.words, name, *value]), option)

    every([pair for pair in OPTIONS if pair[1].name != "help"], check, _pair)


def test_options_stand_before_or_after_the_command() -> None:
    def check(pair: tuple[Command, Option]) -> None:
        command, option = pair
        tokens = [option.names[0], *(["the value"] if option.value else [])]

        before = parse([*tokens, *command.words])

        assert before == parse([*command.words, *tokens])
        assert before == parse([command.words[0], *tokens, *command.words[1:]])
        assert given_option(before, option)

    # `mcp install --version <v>` is another option than the global `--version`, so it must come after its command
    every([pair for pair in OPTIONS if pair[1].name not in ("help", "version")], check, _pair)


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["mcp", "start", "--inspector"], True),
        (["mcp", "start", "--inspector", "7000"], "7000"),
        (["mcp", "start", "--inspector=7000"], "7000"),
        (["mcp", "start", "--inspector", "--wait-calls"], True),
        (["mcp", "start", "--inspector", "-l", "Debug"], True),
        (["mcp", "start", "--inspector", "--metadata-updates"], True),
        (["mcp", "start", "--inspector", "--", "python", "server.py"], True),
        (["mcp", "start", "--inspector", "7000", "--", "python", "server.py"], "7000"),
        (["--mcp-app", "--inspector"], True),
        (["--inspector", "--mcp-app"], True),
        (["--inspector", "7000", "--mcp-app"], "7000"),
        (["--inspector", "mcp", "start"], True),
        (["mcp", "--inspector", "start"], True),
        (["--inspector", "7000", "mcp", "start"], "7000"),
        (["mcp", "start", "--inspector", "start"], "start"),
        (["mcp", "start", "--inspector", "-5"], "-5"),
    ],
)
def test_an_optional_value_is_what_follows_unless_that_is_something_else(argv: list[str], value: str | bool) -> None:
    invocation = parse(argv)

    assert invocation.options["inspector"] == value
    assert invocation.command == command_named(("mcp", "start"))
    assert not invocation.arguments


def test_the_help_says_which_values_may_be_left_out() -> None:
    assert Option(("--page", "-p"), "", value="<port>", optional=True).usage == "--page, -p [<port>]"
    assert Option(("--page",), "", value="<port>").usage == "--page <port>"
    assert Option(("--page",), "").usage == "--page"


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        # long names ignore case, short ones do not
        (["disco", "--SOLUTION-DIR", "/src"], {"solution-dir": "/src"}),
        (["--Solution-Dir", "/src", "disco"], {"solution-dir": "/src"}),
        (["disco", "--solution-DIR=/src"], {"solution-dir": "/src"}),
        # a value can be written behind an equals sign
        (["disco", "--solution-dir=a=b"], {"solution-dir": "a=b"}),
        (["disco", "--solution-dir= x "], {"solution-dir": " x "}),
        (["disco", "--solution-dir=--json"], {"solution-dir": "--json"}),
        (["list", "-l=Trace", "-fl=/log.txt"], {"log-level": "Trace", "file-log": "/log.txt"}),
        # a value may look like something else, but not like one of our options
        (["stop", "--pid", "-1"], {"pid": "-1"}),
        (["stop", "--pid", "-"], {"pid": "-"}),
        (["stop", "--pid", "mcp"], {"pid": "mcp"}),
        (["--pid", "start", "stop"], {"pid": "start"}),
        (["disco", "--solution-dir", "--odd-name"], {"solution-dir": "--odd-name"}),
        # the last of two counts
        (
            ["-l", "Trace", "list", "--log-level", "Error", "--json", "--json=false"],
            {"log-level": "Error", "json": False},
        ),
        # an option of the command hides the global one of its name
        (["mcp", "install", "--version", "1.2.3"], {"version": "1.2.3"}),
        (["disco"], {}),
    ],
    ids=_id,
)
def test_options_and_their_values(argv: list[str], options: dict[str, str | bool]) -> None:
    assert parse(argv).options == options


def test_short_names_do_not_ignore_case() -> None:
    assert refusal("list", "-L", "Trace").code == "UnknownOption"


@pytest.mark.parametrize(("text", "on"), [("true", True), ("TRUE", True), ("false", False), ("False", False)])
def test_a_switch_can_be_set_to_true_or_false(text: str, on: bool) -> None:
    assert parse(["disco", f"--json={text}"]).on("json") == on


@pytest.mark.parametrize("text", ["", "1", "yes", "on"])
def test_a_switch_takes_no_other_value(text: str) -> None:
    error = refusal("disco", f"--json={text}")

    assert error.code == "BadValue"
    assert "--json" in error.message


@pytest.mark.parametrize(
    "argv",
    [
        ["disco", "--solution-dir"],
        ["--solution-dir"],
        ["disco", "-fl"],
        ["disco", "-fl", " "],
        ["stop", "--pid", ""],
        ["stop", "--pid="],
        ["stop", "--pid", "--"],
        ["mcp", "start", "--inspector="],
    ],
    ids=_id,
)
def test_a_missing_or_blank_value_says_what_to_write(argv: list[str]) -> None:
    error = refusal(*argv)

    assert error.code == "MissingValue"
    assert error.next_step.startswith("Write --")


def test_an_option_is_not_taken_for_the_value_of_another() -> None:
    assert refusal("disco", "--solution-dir", "--json").message == "The value of --solution-dir is missing."


# --- help ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--help", "-h", "--HELP"])
def test_help_is_of_the_command_that_stands_beside_it(option: str) -> None:
    def check(command: Command) -> None:
        for argv in ([*command.words, option], [option, *command.words]):
            invocation = parse(argv)
            assert (invocation.command, invocation.on("help")) == (command, True)

    every(READING, check, _id)


@pytest.mark.parametrize(
    "argv",
    [
        ["help"],
        ["frobnicate", "--help"],
        ["mcp", "--help"],
        ["list", "--frobnicate", "--help"],
        ["list", "extra", "-h"],
        ["disco", "--help", "--solution-dir"],
        ["--frobnicate", "-h"],
    ],
    ids=_id,
)
def test_help_is_given_whatever_else_is_wrong(argv: list[str]) -> None:
    assert parse(argv).on("help")


def test_help_can_be_asked_for_as_json() -> None:
    invocation = parse(["frobnicate", "--json", "--help"])

    assert (invocation.on("help"), invocation.on("json"), invocation.command) == (True, True, None)


# --- what a command does not know ---------------------------------------------------------------------------------


def test_most_commands_refuse_options_and_arguments_that_they_do_not_know() -> None:
    def check(command: Command) -> None:
        taken = ["cursor" for argument in command.arguments if argument != "-- <command>"]
        option, argument = refusal(*command.words, "--frobnicate"), refusal(*command.words, *taken, "extra")

        assert parse([*command.words, *taken]).arguments == tuple(taken)
        assert option.code == "UnknownOption"
        assert f"'{command.name}' has no option '--frobnicate'" in option.message
        assert (argument.code, "'extra'" in argument.message) == ("UnexpectedArgument", True)

    every(REFUSING, check, _id)
    assert refusal("--frobnicate").code == "UnknownOption"


def test_disco_ignores_what_it_does_not_know() -> None:
    """Visual Studio calls it with an option that the .NET tool ignores too."""
    invocation = parse(["disco", "--solution", "/src/App.sln", "--json", "--future=1"])

    assert invocation.on("json")
    assert invocation.command == parse(["disco"]).command


@pytest.mark.parametrize(
    ("typed", "forwarded", "options"),
    [
        (
            "start --metadata-updates true --httpPort 5000 -x --y=1 z --ppid=7 --last",
            "--metadata-updates true -x --y=1 z --last",
            {"httpPort": "5000", "ppid": "7"},
        ),
        ("login --headless --account me --json --silent", "--account me --silent", {"headless": True, "json": True}),
        ("start --MetaData-Updates TRUE", "--MetaData-Updates TRUE", {}),
        ("START --HTTPPORT 1", "", {"httpPort": "1"}),
    ],
)
def test_unknown_options_are_forwarded_in_their_order_and_case(
    typed: str, forwarded: str, options: dict[str, str | bool]
) -> None:
    invocation = parse(typed.split())

    assert (invocation.forwarded, invocation.options) == (tuple(forwarded.split()), options)
    assert invocation.arguments == ()


@pytest.mark.parametrize("command", FORWARDING, ids=_id)
def test_a_free_word_before_any_unknown_option_is_an_argument(command: Command) -> None:
    invocation = parse([*command.words, "word", "--unknown", "value"])

    assert (invocation.arguments, invocation.forwarded) == (("word",), ("--unknown", "value"))


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["mcp", "start", "--port", "1", "--", "python", "-m", "server", "--port", "2", "--", "x"], "mcp start"),
        (["mcp", "start", "--", "server", "--help"], "mcp start"),
        (["disco", "--", "--mcp-app"], "disco"),
        (["disco", "--"], "disco"),
    ],
    ids=_id,
)
def test_everything_behind_the_dashes_is_the_childs(argv: list[str], command: str) -> None:
    invocation = parse(argv)

    assert invocation.child == tuple(argv[argv.index("--") + 1 :])
    assert invocation.replace(child=()) == parse(argv[: argv.index("--")])
    assert invocation.command == command_named(tuple(command.split()))


# --- anything -----------------------------------------------------------------------------------------------------

WORDS = sorted({word for command in COMMANDS for word in command.words})
NAMES = sorted({name for _, option in OPTIONS for name in option.names})


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([*WORDS, *NAMES, "--mcp-app", "--", "-", "", "=", "--=", "value"]) | st.text(), max_size=8)
)
def test_any_command_line_is_understood_or_refused_with_exit_code_2(argv: list[str]) -> None:
    try:
        invocation = parse(argv)
    except UserError as error:
        exit_code = error.exit_code
    else:
        exit_code = 0 if invocation.command is None or invocation.command in COMMANDS else 1

    assert exit_code in (0, 2)


# --- slips of the keyboard ----------------------------------------------------------------------------------------


def test_a_mistyped_option_is_guessed_and_the_help_is_that_of_the_command() -> None:
    error = refusal("stop", "--al")

    assert "Did you mean '--all'?" in error.message
    assert "uno-devserver stop --help" in error.next_step


@pytest.mark.parametrize("option", ["--scope", "--scope=user"])
def test_an_option_of_other_commands_is_told_with_these(option: str) -> None:
    error = refusal("mcp", "status", option)

    others = "'login', 'mcp install', 'mcp uninstall', 'mcp restore' have it."
    assert error.message == f"'mcp status' has no option '{option}'. {others}"


def test_help_of_a_command_by_its_name() -> None:
    invocation = parse(["help", "START"])

    assert (invocation.command, invocation.on("help")) == (command_named(("start",)), True)
    assert parse(["mcp", "--help"]).words == ("mcp",)


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("65535", 65_535), (" 80 ", 80), ("00080", 80)])
def test_a_number_is_read(text: str, value: int) -> None:
    assert parse(["mcp", "start", "--port", text]).number("port", 1, MAX_PORT) == value
    assert parse(["mcp", "start"]).number("port", 1, MAX_PORT) is None


@pytest.mark.parametrize("text", ["0", "65536", "+1", "1.0", "x", "\uff11", "9" * 5000])
def test_what_is_none_of_the_numbers_allowed_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse(["mcp", "start", "--port", text]).number("port", 1, MAX_PORT)

    assert (refused.value.code, refused.value.exit_code) == ("BadValue", 2)
    assert "--port" in refused.value.message
    assert "from 1 to 65535" in refused.value.next_step
