"""Real shells complete the command line: what is offered at the end of a line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.machine import Machine
from uno_devserver.cli.commands import CLIENT, COMMANDS, GLOBAL_OPTIONS, SHELLS, Option
from uno_devserver.cli.mcp.arguments import _CHANNELS
from uno_devserver.cli.shell_completion import offer_for, options_of
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.setup.definitions import packaged
from uno_devserver.setup.profiles import Scope

from .shells import PROMPT, SECONDS, Shell, Typing, shell_or_leave_out

PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zsh") / "dump"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, machine: Machine, tmp_path: Path, dump: Path) -> Shell:
    name = shell_or_leave_out(request.param)
    script = machine.run("completion", name)
    assert (script.exit_code, script.stderr) == (0, "")
    folder = tmp_path / name
    folder.mkdir()
    shell = Shell(name, script.stdout, folder, PROGRAMS)
    shell.dump = dump
    return shell


# --- what is offered ----------------------------------------------------------------------------------------------


def test_all_commands_are_offered_and_the_next_words_of_those_that_have_two(shell: Shell) -> None:
    assert shell.offers("uno-devserver ") == sorted({command.words[0] for command in COMMANDS})
    assert shell.offers("uno-devserver mcp ") == sorted(
        command.words[1] for command in COMMANDS if command.words[0] == "mcp"
    )


def test_all_options_of_every_command_are_offered(shell: Shell) -> None:
    for command in COMMANDS:
        names = {name for option in options_of(command) for name in option.names if name.startswith("--")}

        assert set(shell.offers(f"uno-devserver {command.name} --")) == names


def test_words_are_offered(shell: Shell) -> None:
    wrong = {line: found for line, words in OFFERED.items() if (found := shell.offers(line)) != words.split()}

    assert wrong == {}


# What is offered at the end of a line.
OFFERED = {
    # both names of the program
    "uno-devserver dis": "disco",
    "uno.devserver dis": "disco",
    "uno.devserver mcp ins": "install",
    # options of the command and of every command
    "uno-devserver disco --addins": "--addins-only",
    "uno-devserver mcp install --js": "--json",
    "uno-devserver disco --runn": "",
    # options before the command do not hide it
    "uno-devserver -l Debug --json lis": "list",
    "uno-devserver --solution-dir mcp hea": "health",
    "uno-devserver mcp -l Debug ins": "install",
    # nor do options of a single command
    "uno-devserver --solution App.slnx dis": "disco",
    "uno-devserver mcp --workspace place ins": "install",
    "uno-devserver --upstream-url http://localhost:1/mcp mcp ser": "serve",
    "uno-devserver --bind ::1 sta": "start",
    "uno-devserver --inspector mcp sta": "start status",
    "uno-devserver --dry-run mcp ins": "install",
    # options behind the command do not hide the next ones
    "uno-devserver disco --log-level Debug --json --addins": "--addins-only",
    "uno-devserver mcp install --runner uvx cursor --dry": "--dry-run",
    # the flags of the Host are not ours
    "uno-devserver host --": "",
    # the form in clients' configurations
    "uno-devserver --mcp-a": "--mcp-app",
    "uno-devserver --mcp-app --wait-c": "--wait-calls",
    "uno-devserver --mcp-app --inspector ": "",
    # values
    "uno-devserver mcp install --runner ": "dnx path uvx",
    "uno-devserver mcp install --scope u": "user",
    "uno-devserver mcp status --channel ": "prerelease stable",
    "uno-devserver start --host ": "bundled dotnet",
    "uno-devserver mcp uninstall --servers UnoD": "UnoDocs",
    "uno-devserver --log-level De": "Debug",
    "uno-devserver completion ": "bash fish zsh",
    "uno-devserver mcp install claude-d": "claude-desktop",
    "uno-devserver mcp doctor --ide kimi-": "kimi-code",
}


def test_a_value_may_stand_behind_an_equals_sign(shell: Shell) -> None:
    # fish offers whole words
    (offered,) = shell.offers("uno-devserver mcp install --runner=uv")

    assert offered.removeprefix("--runner=") == "uvx"


@pytest.mark.parametrize("command", ["status", "install", "uninstall", "restore", "doctor"])
def test_every_client_is_offered_by_all_its_names(shell: Shell, command: str) -> None:
    profiles = {id_: data for id_, data in packaged("client-profiles.json").items() if id_ != "$schema"}
    clients = {id_: data for id_, data in profiles.items() if not data.get("noClient") and id_ != "unknown"}
    names = {name for id_, data in clients.items() for name in (id_, *data.get("aliases", ()))}

    assert len(names) > 30
    assert set(shell.offers(f"uno-devserver mcp {command} ")) & (names | set(profiles)) == names


def test_nothing_is_offered_for_free_text(shell: Shell) -> None:
    assert [one for one in shell.offers("uno-devserver mcp install --version ") if one] == []
    assert [one for one in shell.offers("uno-devserver start --httpPort ") if one] == []


def test_behind_two_dashes_a_command_is_completed(shell: Shell) -> None:
    assert "python3" in shell.offers("uno-devserver mcp start -- python")
    assert "python3" not in shell.offers("uno-devserver mcp start python")
    assert "python3" in shell.offers("uno-devserver --mcp-app -- python")
    assert "--wait-calls" not in shell.offers("uno-devserver mcp start -- --wai")
    assert "--wait-calls" not in shell.offers("uno-devserver mcp start -- python3 --wai")


# --- files and folders --------------------------------------------------------------------------------------------


def test_folders_are_completed_where_one_is_wanted_and_files_where_a_path_is(shell: Shell) -> None:
    (shell.temp / "place").mkdir()
    (shell.temp / "plan.slnx").touch()

    folders = shell.offers("uno-devserver --solution-dir pla")
    files = shell.offers("uno-devserver disco --solution pla")

    assert shell.offers("uno-devserver mcp start -- cat pla") == files

    if shell.name == "bash":  # it is told what to complete, and does so by itself: see the next test
        assert (folders, files) == (["dirnames"], ["default"])
    else:
        assert [one.rstrip("/") for one in folders] == ["place"]
        assert [one.rstrip("/") for one in files] == ["place", "plan.slnx"]


def test_bash_completes_what_is_typed(machine: Machine, tmp_path: Path) -> None:
    shell = Shell("bash", machine.run("completion", shell_or_leave_out("bash")).stdout, tmp_path / "home", PROGRAMS)
    (shell.temp / "a place with blanks").mkdir()
    (shell.temp / ".bashrc").write_text(f"PS1='{PROMPT}'\nsource {shell.script}\n")
    meant = "uno-devserver mcp install --workspace a\\ place\\ with\\ blanks/ --runner uvx "

    with Typing(shell) as typing:
        typing.press("uno-devserver mcp insta\t--workspace a\t --runn\tuv\t")
        typing.until(lambda: meant in typing.shown)


def test_zsh_finds_the_script_among_its_functions(machine: Machine, tmp_path: Path) -> None:
    """As a file of $fpath, which is read at the first completion."""
    shell = Shell("zsh", machine.run("completion", shell_or_leave_out("zsh")).stdout, tmp_path / "home", PROGRAMS)
    (shell.temp / "functions").mkdir()
    shell.script = shell.script.rename(shell.temp / "functions" / "_uno-devserver")
    shell.sourced = False
    shell.before = f"fpath=({shell.temp}/functions $fpath)"

    assert shell.offers("uno-devserver mcp ins") == ["install"]
    assert shell.offers("uno-devserver disco --addins") == ["--addins-only"]


def test_bash_splits_words_whatever_the_user_has_set(machine: Machine, tmp_path: Path) -> None:
    script = machine.run("completion", shell_or_leave_out("bash")).stdout
    shell = Shell("bash", f"{script}\nIFS=,\n", tmp_path / "home", PROGRAMS)

    assert shell.offers("uno-devserver mcp install --runner ") == ["dnx", "path", "uvx"]


def test_zsh_says_where_the_line_belongs_that_comes_too_early(machine: Machine, tmp_path: Path) -> None:
    script = tmp_path / "early.zsh"
    script.write_text(machine.run("completion", shell_or_leave_out("zsh")).stdout)

    ran = subprocess.run(["zsh", "-f", script], capture_output=True, text=True, timeout=SECONDS)

    assert "behind compinit" in ran.stderr


# --- the command --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [(), ("ksh",), ("powershell",)])
def test_without_a_shell_that_is_known_the_three_are_named(machine: Machine, argv: tuple[str, ...]) -> None:
    result = machine.run("completion", *argv)

    assert (result.exit_code, result.stdout) == (2, "")
    assert all(name in result.stderr for name in SHELLS)
    assert "next: Write 'uno-devserver completion bash'" in result.stderr


def test_the_help_tells_where_the_script_goes(machine: Machine) -> None:
    result = machine.run("completion", "--help")

    assert '  eval "$(uno-devserver completion bash)"\n' in result.stdout
    assert "fpath" in result.stdout
    assert "  uno-devserver completion fish | source\n" in result.stdout


# --- the table ----------------------------------------------------------------------------------------------------


def _option(name: str) -> Option:
    options = (*GLOBAL_OPTIONS, *(option for command in COMMANDS for option in command.options))
    return next(option for option in options if option.name == name and option.choices)


def test_the_choices_of_the_table_are_those_that_are_accepted() -> None:
    servers = [data for name, data in packaged("server-definitions.json").items() if name != "$schema"]
    runners = {name for server in servers for name in (server.get("runner"), *server.get("runners", {})) if name}

    assert set(_option("scope").choices) == {scope.value for scope in Scope}
    assert set(_option("channel").choices) == set(_CHANNELS)
    assert set(_option("runner").choices) == runners
    assert set(_option("host").choices) == {HostKind.BUNDLED.value, HostKind.DOTNET.value}


def test_no_name_of_a_client_or_server_means_anything_to_a_shell() -> None:
    """They stand in scripts that people evaluate."""
    for word, meaning in (*offer_for(CLIENT).words, *offer_for("<names>").words):
        assert re.fullmatch(r"[\w.-]+", word)
        assert re.fullmatch(r"[\w .,()/'-]*", meaning)


def test_the_help_of_an_option_names_its_choices() -> None:
    for command in COMMANDS:
        for option in options_of(command):
            assert all(choice in option.help for choice in option.choices), option.name
