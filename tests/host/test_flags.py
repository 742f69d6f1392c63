"""The flags of the Host: every form that launchers write, and a clear error for every wrong value."""

from __future__ import annotations

from pathlib import Path

import pytest

from uno_devserver.host.flags import read_flags
from uno_devserver.issues import UserError


@pytest.mark.parametrize(
    "arguments",
    [
        ["--httpPort", "5000"],
        ["--httpPort=5000"],
        ["/httpPort", "5000"],
        ["/httpPort=5000"],
        ["httpPort=5000"],
        ["--HTTPPORT", "5000"],
        ["--httpport", " 5000 "],
    ],
)
def test_a_flag_is_read_in_every_form_of_dotnet(arguments: list[str]) -> None:
    assert read_flags(arguments, {}).port == 5000


def test_the_environment_is_read_and_the_command_line_wins() -> None:
    environ = {"UNO_DEVSERVER_httpPort": "5000", "uno_devserver_PPID": "7", "httpPort": "1"}

    assert read_flags([], environ).port == 5000
    assert read_flags(["--httpPort", "6000"], environ).port == 6000
    assert read_flags([], environ).parent == 7


def test_nothing_said_is_not_the_same_as_zero_or_empty() -> None:
    configuration = read_flags([], {})

    assert configuration.port is None
    assert configuration.addins is None
    assert configuration.parent == 0
    assert configuration.verb is None
    assert configuration.workspace is None


def test_port_zero_stays_zero() -> None:
    assert read_flags(["--httpPort", "0"], {}).port == 0


@pytest.mark.parametrize("arguments", [["--addins", ""], ["--addins="], ["--addins"], ["--addins", "--ppid", "0"]])
def test_empty_addins_are_kept_as_empty(arguments: list[str]) -> None:
    assert read_flags(arguments, {}).addins == ""


def test_addins_with_blanks_and_semicolons_are_one_value() -> None:
    assert read_flags(["--addins", "/a b/x.py;/c/y.dll"], {}).addins == "/a b/x.py;/c/y.dll"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--httpPort", "abc"], "httpPort"),
        (["--httpPort", "-5"], "httpPort"),
        (["--httpPort", "70000"], "httpPort"),
        (["--httpPort", "9" * 400], "httpPort"),
        (["--httpPort", "٣"], "httpPort"),
        (["--httpPort", "0" * 20 + "70000"], "httpPort"),
        (["--httpPort", "0" * 5000], "httpPort"),
        (["--ppid", "abc"], "ppid"),
        (["--ppid", "-1"], "ppid"),
        (["--solution", "/nowhere/App.sln"], "solution"),
        (["--solution", "a\0b"], "solution"),
        (["--workingDir", "/nowhere"], "workingDir"),
        (["--command", "dance"], "command"),
        (["--force-msbuild-discovery=maybe"], "force-msbuild-discovery"),
        (["--log-level", "loud"], "log-level"),
        (["--httpPort"], "httpPort"),
        (["--solution", "--ppid", "1"], "solution"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_the_flag(arguments: list[str], named: str) -> None:
    with pytest.raises(UserError) as caught:
        read_flags(arguments, {})

    assert f"--{named}" in caught.value.message
    assert caught.value.next_step
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("arguments", [["--command=list"], ["--command", "LIST"], ["-c", "list"], ["/command", "list"]])
def test_the_verb_of_a_controller_in_every_form(arguments: list[str]) -> None:
    assert read_flags(arguments, {}).verb == "list"


def test_a_switch_does_not_swallow_the_next_flag() -> None:
    configuration = read_flags(["--force-msbuild-discovery", "--httpPort", "5000"], {})

    assert configuration.force_msbuild
    assert configuration.port == 5000


def test_a_switch_takes_true_and_false() -> None:
    assert not read_flags(["--force-msbuild-discovery", "false"], {}).force_msbuild
    assert read_flags(["--metadata-updates", "true"], {}).settings["metadata-updates"] == "true"


def test_flags_of_processors_are_kept(tmp_path: Path) -> None:
    configuration = read_flags(["--update-file-queue-timeout", "5", "--My-Flag=x", "--bare"], {})

    assert configuration.settings["update-file-queue-timeout"] == "5"
    assert configuration.settings["my-flag"] == "x"
    assert configuration.settings["bare"] == "true"


def test_free_standing_words_and_unknown_short_switches_are_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    configuration = read_flags(["word", "-x", "/a/path", "b/path=x", "--httpPort", "5000"], {})

    assert configuration.port == 5000
    assert capsys.readouterr().err.count("Ignoring") == 4


def test_the_workspace_is_the_working_folder_or_else_the_solutions(tmp_path: Path) -> None:
    solution = tmp_path / "src" / "App.sln"
    solution.parent.mkdir()
    solution.touch()

    assert read_flags(["--solution", str(solution)], {}).workspace == str(solution.parent)
    assert read_flags(["--solution", str(solution), "--workingDir", str(tmp_path)], {}).workspace == str(tmp_path)


def test_a_relative_solution_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "App.sln").touch()
    monkeypatch.chdir(tmp_path)

    assert read_flags(["--solution", "App.sln"], {}).solution == str(tmp_path / "App.sln")


def test_a_blank_value_counts_as_absent() -> None:
    configuration = read_flags(["--solution", " ", "--ideChannel", "", "--httpPort= "], {})

    assert (configuration.solution, configuration.ide_channel, configuration.port) == (None, None, None)
