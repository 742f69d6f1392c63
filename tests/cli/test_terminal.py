"""Colours, folded lines, short paths and the layout of reports: on terminals only; a pipe gets the text alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.machine import Machine
from support.packages import app_mcp, settings
from support.registration import DNX
from support.servers import Processes, Registry
from support.terminals import Terminal, columns_of, open_terminal, shown
from support.workspace import WorkspaceBuilder
from uno_devserver.cli import terminal
from uno_devserver.cli.result import Bullets, Report, Row, Section
from uno_devserver.cli.terminal import ENABLE_VIRTUAL_TERMINAL_PROCESSING as ESCAPES
from uno_devserver.cli.terminal import (
    MAX_KEY,
    MAX_WIDTH,
    WIDTH,
    Style,
    colours_wanted,
    columns,
    explained,
    folded,
    laid_out,
    mode_with_escapes,
    styled,
    terminal_width,
    with_short_paths,
)
from uno_devserver.system.text import one_line

if sys.platform != "win32":
    pass

COMMANDS = ["disco", "list", "health", "mcp status", "mcp doctor", "config", "trust --list"]
NAME = "Contoso.Field.Service.Mobile.Application"
CLIENTS = [".claude", ".cursor", ".codeium/windsurf", ".gemini", ".codex", ".config/opencode", ".vscode", ".kiro"]
CLIENTS += [".junie", ".qwen", ".copilot", ".factory", ".trae", ".continue", ".config/goose", ".config/zed", ".kimi"]
CONFIG = {
    "mcpServerRoot": "../servers/contoso-mcp",
    "client": {"command": "no-such-node", "args": ["--enable-source-maps", "dist/client/index.js", "--workspace", "."]},
    "hotReload": {"bogus": 1},
    "unknown": True,
}


@pytest.fixture
def rich(machine: Machine, registry: Registry, processes: Processes) -> Iterator[Path]:
    """A workspace with long names and much that is wrong; three servers, and clients that know it in several ways."""
    machine.install_dotnet()
    workspace = WorkspaceBuilder(machine, NAME).uno_6_5()
    project = "src/Contoso.Field.Service.Mobile/Contoso.Field.Service.Mobile.csproj"
    workspace.project(project, [app_mcp(), settings()], missing=[settings("9.9.9")])
    workspace.solution("Contoso.Field.Service.Mobile.slnx")
    for number in range(3):
        solution = str(workspace.root / "Contoso.Field.Service.Mobile.slnx") if number < 2 else None
        registry.sign_in(processes.start().pid, port=5611 + number, workspace=workspace.root, solution=solution)
    for folder in CLIENTS:
        (machine.home / folder).mkdir(parents=True)
    missing = str(workspace.root / "tools" / "that-is-not-there" / "uno-devserver")
    servers = {"contoso-mcp": {"command": missing, "args": ["--mcp-app"]}, "uno-other": DNX}
    workspace.file(".mcp.json", json.dumps({"mcpServers": servers}))
    workspace.file(".cursor/mcp.json", "{ broken")
    workspace.file(".devtools/host.config.jsonc", json.dumps(CONFIG))
    machine.run("trust", cwd=workspace.root)
    workspace.file(".devtools/host.config.jsonc", json.dumps(CONFIG) + "\n")
    yield workspace.root
    shutil.rmtree(workspace.root)


OF_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # not what a busy machine shows of its progress


def on_terminal(machine: Machine, command: str, *, cwd: Path | None = None, **options: object) -> str:
    return Terminal(machine, *command.split(), cwd=cwd, **options).end()  # type: ignore[arg-type]


# --- colours ------------------------------------------------------------------------------------------------------


def test_a_terminal_has_colours_and_a_pipe_has_none(machine: Machine, rich: Path) -> None:
    for command in COMMANDS:
        assert OF_COLOURS.search(on_terminal(machine, command, cwd=rich)), command
        assert "\x1b" not in machine.run(*command.split(), cwd=rich).stdout, command


@pytest.mark.parametrize("variables", [{"NO_COLOR": "0"}, {"TERM": "dumb"}], ids=str)
def test_colours_can_be_turned_off(machine: Machine, rich: Path, variables: dict[str, str]) -> None:
    for command in COMMANDS:
        assert not OF_COLOURS.search(on_terminal(machine, command, cwd=rich, env=variables)), command


def test_an_empty_no_color_says_nothing(machine: Machine) -> None:
    assert "\x1b[1m" in on_terminal(machine, "list", env={"NO_COLOR": ""})


@pytest.mark.parametrize("variables", [{"FORCE_COLOR": "1"}, {"CLICOLOR_FORCE": "1"}], ids=str)
def test_a_pipe_is_never_given_colours(machine: Machine, variables: dict[str, str]) -> None:
    """Editors set these for all that they start, and read what we print."""
    assert "\x1b" not in machine.run("list", env=variables).stdout


@pytest.mark.parametrize("command", ["list --json", "health --json", "frobnicate --json"])
def test_json_has_no_colours_on_a_terminal_either(machine: Machine, command: str) -> None:
    sent = on_terminal(machine, command)

    assert "\x1b" not in sent
    assert json.loads(sent)


def test_what_is_wrong_is_red_and_what_to_do_about_it_can_be_found(machine: Machine) -> None:
    sent = on_terminal(machine, "frobnicate")

    assert sent.startswith(f"\x1b[{Style.BAD.value}merror:\x1b[0m There is no command")
    assert f"\r\n\x1b[{Style.NAME.value}mnext:\x1b[0m Run" in sent


def test_a_status_word_has_the_colour_of_what_it_means(machine: Machine, rich: Path) -> None:
    health, status = (on_terminal(machine, command, cwd=rich) for command in ("health", "mcp status"))

    assert f"\x1b[{Style.WARN.value}mDegraded\x1b[0m" in health
    assert f"\x1b[{Style.WARN.value}m[Warning] \x1b[0m" in health
    assert f"\x1b[{Style.WARN.value}moutdated" in status
    assert f"\x1b[{Style.DIM.value}mmissing" in status


def test_what_is_missing_stands_out(machine: Machine) -> None:
    missing = f"\x1b[{Style.WARN.value}m<null> (missing a .sln or .slnx file)"

    assert missing in on_terminal(machine, "disco --verbose")


def test_warnings_of_the_log_stand_out_on_a_terminal(machine: Machine) -> None:
    assert f"\x1b[{Style.WARN.value}mwarn:\x1b[0m Ignoring '--frob'." in on_terminal(machine, "disco --frob")
    assert machine.run("disco", "--frob").stderr.startswith("warn: Ignoring '--frob'.")


def test_each_output_has_colours_if_it_is_a_terminal_itself(machine: Machine, tmp_path: Path) -> None:
    """One of them goes to a file, while the other is looked at."""
    for command in ("disco --frob", "frobnicate", "list"):
        for kept in ("stdout", "stderr"):
            with (tmp_path / "kept").open("wb") as file:
                sent = on_terminal(machine, command, **{kept: file.fileno()})  # type: ignore[arg-type]
            assert b"\x1b" not in (tmp_path / "kept").read_bytes()
            assert bool(OF_COLOURS.search(sent)) is bool(sent), (command, kept)


def test_a_log_file_has_no_colours(machine: Machine, tmp_path: Path) -> None:
    on_terminal(machine, f"disco --frob --file-log {tmp_path / 'log'}")

    log = (tmp_path / "log").read_text()
    assert "Ignoring '--frob'." in log
    assert "\x1b" not in log


def test_every_line_of_a_text_is_coloured_by_itself() -> None:
    ours, theirs = open_terminal()
    with os.fdopen(theirs, "w") as terminal:
        text = styled("one\n\ntwo", Style.GOOD, terminal)
    os.close(ours)

    assert text == "\x1b[32mone\x1b[0m\n\n\x1b[32mtwo\x1b[0m"


def test_a_file_cannot_bring_colours_of_its_own(machine: Machine, rich: Path) -> None:
    odd = {"\x1b[31mred": {"command": "\x1b[7muno-devserver", "args": ["--mcp-app"]}}
    (rich / ".mcp.json").write_text(json.dumps({"mcpServers": odd}))

    for command in ("mcp status", "mcp doctor", "mcp install claude-code --dry-run"):
        sent = on_terminal(machine, command, cwd=rich)
        assert "\x1b[7m" not in sent
        assert "\x1b[31mred" not in sent


def test_the_name_of_a_folder_cannot_move_the_cursor(machine: Machine) -> None:
    folder = machine.workspace / "odd\x1b[7m\x9b2J\u202e"
    folder.mkdir()
    (folder / ".mcp.json").write_text("{ broken")

    for command in (*COMMANDS, "trust", "disco --solution none.sln", "mcp install claude-code"):
        sent = on_terminal(machine, command, cwd=folder, env={"NO_COLOR": "1"})
        assert "\x1b[7m" not in sent
        assert "\x9b" not in sent
        assert "\u202e" not in sent


@pytest.mark.parametrize(
    ("environ", "is_terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "yes"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm", "CLICOLOR_FORCE": "1"}, False, False),
    ],
)
def test_when_colours_are_wanted(environ: dict[str, str], is_terminal: bool, expected: bool) -> None:
    assert colours_wanted(environ, is_terminal=is_terminal) is expected


def test_a_windows_console_is_told_to_show_them_once() -> None:
    assert mode_with_escapes(0x0003) == 0x0003 | ESCAPES
    assert mode_with_escapes(0x0003 | ESCAPES) is None


# --- widths -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 60, 132])
def test_lines_fit_the_terminal(machine: Machine, rich: Path, columns: int) -> None:
    """Except for a longer path or command, which can be copied from where the terminal itself wraps it."""
    for command in COMMANDS:
        lines = shown(on_terminal(machine, command, cwd=rich, columns=columns))

        # Behind its key or mark, such a line has a single word, and perhaps where it was found.
        assert [line for line in lines if columns_of(line) > columns and not _is_a_path(line)] == []


def _is_a_path(line: str) -> bool:
    if line.strip(" .,").count("'") == 2 and line.strip(" .,").startswith("'"):
        return True  # a command, which is never broken either
    *before, path = line.removesuffix(" (targets)").rstrip(":;,.").split()
    return "/" in path and len(before) <= 2


def test_paths_are_relative_to_the_current_folder_on_a_terminal(machine: Machine, rich: Path) -> None:
    for command in COMMANDS:
        sent = "\n".join(shown(on_terminal(machine, command, cwd=rich, columns=300)))

        assert f"{rich}/" not in sent, command


def test_a_pipe_has_whole_paths_in_lines_of_any_length(machine: Machine, rich: Path) -> None:
    for command in ("disco", "health", "config"):
        text = machine.run(command, cwd=rich).stdout

        assert f"{rich}/.devtools/host.config.jsonc" in text
        assert max(len(line) for line in text.splitlines()) > 80


@pytest.mark.parametrize(("columns", "longest"), [(20, 20), (80, 80), (300, MAX_WIDTH)])
def test_an_error_fits_its_terminal_and_is_never_too_wide(machine: Machine, columns: int, longest: int) -> None:
    lines = shown(on_terminal(machine, "mcp install nobody", columns=columns))

    assert longest - 15 < max(map(len, lines)) <= longest


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_thrown_away_is_no_error(machine: Machine, command: str) -> None:
    line = [sys.executable, "-m", "uno_devserver", *command.split()]
    ran = subprocess.run(
        line, cwd=machine.workspace, env=machine.variables(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )

    assert b"went wrong" not in ran.stderr


def test_nul_which_windows_takes_for_a_terminal_has_the_usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "w") as nul:
        monkeypatch.setattr(nul, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(sys, "stdout", nul)

        assert terminal_width() == WIDTH


def test_the_width_of_a_text_is_that_on_the_screen() -> None:
    assert columns("plain") == 5
    assert columns("\x1b[31mred\x1b[0m") == 3
    assert columns("日本") == 4
    assert columns("e\u0301") == 1


def test_words_are_put_into_lines_of_the_width() -> None:
    lines = list(folded("word " * 40, "first: ", "  "))

    assert all(len(line) <= WIDTH for line in lines)
    assert lines[0].startswith("first: word word")
    assert lines[1].startswith("  word word")
    assert " ".join(" ".join(lines).split()[1:]) == ("word " * 40).strip()


def test_a_line_may_have_the_whole_width_and_no_column_more() -> None:
    exactly = f"{'a' * (WIDTH - 4)} bb"

    assert list(folded(f"{exactly} c", "-")) == [f"-{exactly}", "c"]


def test_a_long_word_has_a_line_of_its_own_and_stays_whole() -> None:
    assert list(folded(f"a {'b' * 100} c", "- ", "  ")) == ["- a", "  " + "b" * 100, "  c"]
    assert list(folded("", "- ", "  ")) == ["- "]


def test_sentences_do_not_use_all_of_a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "terminal_width", lambda: 300)

    assert max(map(len, folded("word " * 100))) == MAX_WIDTH - 1


def test_a_line_end_in_a_name_makes_no_line() -> None:
    assert one_line("a\nb\x1b[7m") == "a\\nb\\x1b[7m"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The current folder, in the home folder, on a terminal."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(terminal, "terminal_width", lambda: WIDTH)
    return folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{here}/a", "./a"),
        ("'{here}/a b'", "'./a b'"),
        ("see {home}/a, {home}/b", "see ~/a, ~/b"),
        ("'{home}/a b'", "'{home}/a b'"),
        ("--log={home}/a", "--log={home}/a"),
        ("file://{home}/a", "file://{home}/a"),
        ("/mnt{here}/a", "/mnt{here}/a"),
        ("{here}", "~/here"),
        ("{home}", "{home}"),
        ("{home}-old/a", "{home}-old/a"),
    ],
)
def test_paths_are_said_as_one_can_type_them(here: Path, text: str, said: str) -> None:
    assert with_short_paths(text.format(here=here, home=here.parent)) == said.format(here=here, home=here.parent)


def test_paths_in_the_home_folder_stay_whole_on_windows_where_few_shells_know_the_short_form(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    assert with_short_paths(f"{here}/a {here.parent}/b") == f"./a {here.parent}/b"


def test_paths_stay_whole_in_the_root_folder_and_in_a_removed_one(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here.rmdir()
    assert with_short_paths("/etc/hosts") == "/etc/hosts"

    monkeypatch.chdir("/")
    assert with_short_paths("//etc/hosts /etc/hosts") == "//etc/hosts /etc/hosts"


# --- reports ------------------------------------------------------------------------------------------------------

NARROW = 40


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "terminal_width", lambda: NARROW)


def facts(*rows: Row) -> list[str]:
    return laid_out(Report("Title", (Section("", rows),))).splitlines()[2:]


def items(*texts: str) -> list[str]:
    return laid_out(Report("Title", (Bullets("Items", texts),))).splitlines()[3:]


def test_an_error_keeps_several_words_in_a_line_however_narrow_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _descriptor: os.terminal_size((5, 5)))

    lines = explained("error: It cannot be done now.").splitlines()

    assert lines == ["error: It cannot be", "  done now."]


@pytest.mark.usefixtures("narrow")
def test_a_value_stands_beside_its_key_as_long_as_it_fits() -> None:
    fits = "v" * (NARROW - 9)

    assert facts(Row("short", "a"), Row("s", fits)) == ["  short  a", f"  s      {fits}"]
    assert facts(Row("short", "a"), Row("s", f"{fits}v")) == ["  short  a", "  s", f"    {fits}v"]


@pytest.mark.usefixtures("narrow")
def test_a_long_key_does_not_push_all_values_to_the_right() -> None:
    long = "k" * (MAX_KEY + 1)

    assert facts(Row("short", "a"), Row(long, "b")) == ["  short  a", f"  {long}", "    b"]


@pytest.mark.usefixtures("narrow")
def test_control_characters_are_shown_and_take_the_room_that_they_need() -> None:
    assert facts(Row("a\x1b[7m", "b\x1b[7m"), Row("key", "c")) == ["  a\\x1b[7m  b\\x1b[7m", "  key       c"]
    assert laid_out(Report("a\x1b[7m", (Bullets("b\x1b[7m", ("c\x1b[7m",)),))).count("\\x1b[7m") == 3


@pytest.mark.usefixtures("narrow")
def test_a_sentence_is_folded_and_a_path_is_not() -> None:
    path = "/a folder/" + "with a long name/" * 3

    assert facts(Row("where", path), Row("why", "because " * 6)) == [
        "  where",
        f"    {path}",
        "  why",
        "    because because because because",
        "    because because",
    ]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("root", ["/a folder/", "C:\\my folder\\", "C:/my folder/", "\\\\server\\a b\\"])
def test_items_are_paths_or_sentences_with_their_next_steps(root: str) -> None:
    path = root + "with a long name/" * 3

    whole, *others = items(path, "It is wrong.\n  next: Do what this long sentence says.", f"{path}: it is wrong")

    assert whole == f"- {path}"
    assert others[:2] == ["- It is wrong.", "  next: Do what this long sentence says."]
    assert others[2:] == list(folded(f"{path}: it is wrong", "- ", "  ", NARROW))
    assert len(others[2:]) > 1
