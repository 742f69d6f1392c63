"""The command line as a user or an IDE types it: every command, the global options, exit codes and streams."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.machine import Machine
from support.workspace import WorkspaceBuilder
from uno_devserver import __version__

HERE = [["disco"], ["start"], ["stop"], ["list"], ["cleanup"], ["health"], ["login"]]
PROXY = [["mcp", "start"], ["mcp", "serve"], ["--mcp-app"]]
REGISTRATION = [["mcp", "status"], ["mcp", "install", "cursor"], ["mcp", "uninstall", "cursor"]]
FAILING = [["mcp", "status", "nobody"], ["mcp", "install", "nobody"], ["mcp", "uninstall", "nobody"]]
LEVELS = ["Trace", "Debug", "Information", "Warning", "Error", "Critical", "None", "trace", "WARNING"]


def _id(argv: list[str]) -> str:
    return " ".join(argv)


# --- help and version ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["-l", "Trace", "--help"], ["--help", "--json"]], ids=_id)
def test_help_goes_to_stdout_and_names_every_command(machine: Machine, argv: list[str]) -> None:
    result = machine.run(*argv)

    assert result.exit_code == 0
    words = {"start", "stop", "list", "cleanup", "disco", "health", "login", "mcp", "status", "install", "uninstall"}
    words |= {"serve", "--mcp-app", "--log-level", "-l", "--file-log", "-fl", "--solution-dir", "--version", "--json"}
    missing = [word for word in words if word not in result.stdout]
    assert not missing


@pytest.mark.parametrize("command", [*HERE, *PROXY, *REGISTRATION], ids=_id)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_of_a_command_exits_0_wherever_it_stands(machine: Machine, command: list[str], option: str) -> None:
    after = machine.run(*command, option)
    before = machine.run(option, *command)

    assert (after.exit_code, before.exit_code) == (0, 0)
    assert after.stdout == before.stdout
    assert "Usage:" in after.stdout


def test_help_of_disco_names_its_options(machine: Machine) -> None:
    result = machine.run("disco", "--help")

    for option in ("--addins-only", "--force-msbuild-discovery", "--force", "--json", "--solution-dir"):
        assert option in result.stdout


def test_help_is_given_even_when_the_command_does_not_exist(machine: Machine) -> None:
    result = machine.run("frobnicate", "--help")

    assert result.exit_code == 0
    assert "Usage:" in result.stdout


@pytest.mark.parametrize("argv", [["--version"], ["-l", "Error", "--version"], ["disco", "--version"]], ids=_id)
def test_version_is_one_line_on_stdout(machine: Machine, argv: list[str]) -> None:
    result = machine.run(*argv)

    assert (result.exit_code, result.stdout) == (0, f"{__version__}\n")


# --- commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", FAILING, ids=_id)
def test_a_command_that_fails_says_why_and_what_to_do_and_exits_1(machine: Machine, command: list[str]) -> None:
    result = machine.run(*command)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert "\nnext: " in result.stderr


@pytest.mark.parametrize("command", FAILING, ids=_id)
def test_an_error_is_a_json_object_on_stdout_when_json_is_asked_for(machine: Machine, command: list[str]) -> None:
    result = machine.run(*command, "--json")

    assert result.exit_code == 1
    assert set(result.json) == {"error"}
    assert set(result.json["error"]) == {"code", "message", "nextStep"}
    assert all(result.json["error"].values())


@pytest.mark.parametrize("option", ["--json=1", "--JSON=yes"])
def test_json_that_is_asked_for_wrongly_is_told_as_json(machine: Machine, option: str) -> None:
    result = machine.run("health", option)

    assert (result.exit_code, result.json["error"]["code"], result.stderr) == (2, "BadValue", "")


def test_json_that_is_not_wanted_is_not_what_an_error_is(machine: Machine) -> None:
    result = machine.run("health", "--json=false", "--nonsense")

    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize(
    "argv",
    [
        [
            "start",
            "--httpPort",
            "5000",
            "--ppid",
            "1",
            "--solution",
            "A.sln",
            "--ideChannel",
            "x",
            "--metadata-updates",
        ],
        ["login", "--headless"],
    ],
    ids=_id,
)
def test_options_that_ides_pass_are_understood_before_anything_fails(machine: Machine, argv: list[str]) -> None:
    result = machine.run(*argv)

    assert result.exit_code == 1, result.stderr


def test_commands_ignore_case(machine: Machine) -> None:
    assert _lasting(machine.run("DISCO", "--json").json) == _lasting(machine.disco().json)


def _lasting(report: dict[str, object]) -> dict[str, object]:
    """Without what differs from run to run."""
    return {key: value for key, value in report.items() if not key.endswith("DurationMs")}


@pytest.mark.parametrize(("typed", "meant"), [("disc", "disco"), ("strat", "start"), ("mcp instal", "mcp install")])
def test_an_unknown_command_exits_2_and_suggests_the_nearest(machine: Machine, typed: str, meant: str) -> None:
    result = machine.run(*typed.split())

    assert (result.exit_code, result.stdout) == (2, "")
    assert f"'{typed}'" in result.stderr
    assert f"'{meant}'" in result.stderr


def test_a_mistyped_mcp_app_is_told_what_was_meant(machine: Machine) -> None:
    result = machine.run("--mcp-ap")

    assert result.exit_code == 2
    assert "Did you mean '--mcp-app'?" in result.stderr


@pytest.mark.parametrize(
    "argv",
    [
        ["frobnicate"],
        ["mcp"],
        ["mcp", "frobnicate"],
        ["mcp", "start", "stray"],
        ["disco", "--mcp-app"],
        ["mcp", "start", "--port", "0"],
        ["--mcp-app", "--port", "many"],
        ["mcp", "serve", "--port"],
        ["mcp", "start", "--http", "70000"],
        ["mcp", "start", "--inspector", "70000"],
        ["--mcp-app", "--inspector=page"],
        ["mcp", "start", "--inspector", "-5"],
        ["mcp", "start", "--inspector="],
        ["mcp", "start", "--upstream-url", "ftp://127.0.0.1/mcp"],
        ["mcp", "start", "--upstream-url", "http://"],
        ["mcp", "start", "--upstream-url", "http://user:password@127.0.0.1/mcp"],
        ["mcp", "start", "--upstream-url", "http://127.0.0.1/mcp", "--metadata-updates"],
        ["mcp", "start", "--upstream-url", "http://127.0.0.1/mcp", "--port", "5000"],
        ["mcp", "start", "--port", "5000", "--", "python", "server.py"],
        ["mcp", "start", "--"],
        ["--mcp-app", "--", " "],
        ["list", "--frobnicate"],
        ["list", "extra"],
        ["mcp", "status", "one", "two"],
        ["--frobnicate"],
        ["disco", "--solution-dir"],
        ["disco", "--file-log"],
        ["disco", "-fl"],
        ["disco", "-fl", ""],
        ["disco", "-fl", "  "],
        ["disco", "--log-level"],
        ["stop", "--pid"],
    ],
    ids=_id,
)
def test_a_wrong_call_exits_2_with_the_next_step_in_text_and_in_json(machine: Machine, argv: list[str]) -> None:
    text = machine.run(*argv)
    machine_readable = machine.run("--json", *argv)

    assert (text.exit_code, machine_readable.exit_code) == (2, 2)
    assert text.stdout == ""
    assert text.stderr.startswith("error: ")
    assert "\nnext: " in text.stderr
    assert set(machine_readable.json["error"]) == {"code", "message", "nextStep"}


def test_a_password_in_a_url_is_refused_at_once_and_not_repeated(machine: Machine) -> None:
    result = machine.run("mcp", "start", "--upstream-url", "https://user:secret@host/path-secret/mcp?key=secret")

    assert result.exit_code == 2
    assert "as in the URL of https://host/…, is not supported" in result.stderr
    assert "behind '--'" in result.stderr
    assert "secret" not in result.stderr


# --- global options -----------------------------------------------------------------------------------------------


def test_global_options_stand_before_or_after_the_command(workspace: WorkspaceBuilder) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    machine = workspace.machine
    elsewhere = machine.root

    before = machine.run("--json", "-l", "Error", "--solution-dir", str(workspace.root), "disco", cwd=elsewhere)
    after = machine.run("disco", "--json", "-l", "Error", "--solution-dir", str(workspace.root), cwd=elsewhere)

    assert before.json["selectedSolutionPath"] == str(workspace.root / "App.slnx")
    assert _lasting(before.json) == _lasting(after.json)


def test_a_relative_solution_dir_is_taken_from_the_current_folder(workspace: WorkspaceBuilder) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")

    result = workspace.machine.disco("--solution-dir", workspace.root.name, cwd=workspace.root.parent)

    assert result.json["requestedWorkingDirectory"] == str(workspace.root)
    assert result.json["selectionSource"] == "UserSelected"


def test_a_solution_dir_that_does_not_exist_gives_a_result(machine: Machine) -> None:
    result = machine.disco("--solution-dir", str(machine.root / "nowhere"))

    assert result.json["resolutionKind"] == "NoCandidates"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("option", ["-l", "--log-level"])
def test_every_log_level_keeps_stdout_for_the_result(workspace: WorkspaceBuilder, option: str, level: str) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    workspace.file("App/obj/App.csproj.nuget.g.targets", "<Project><broken")

    result = workspace.machine.disco(option, level)

    assert "RestoreFileInvalid" in result.issue_codes, "there is something to log"


def test_a_level_that_does_not_exist_is_reported_and_the_command_runs(workspace: WorkspaceBuilder) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")

    result = workspace.machine.disco("-l", "chatty")

    assert result.json["resolutionKind"] == "CurrentDirectory"
    assert "chatty" in result.stderr


def test_the_log_file_takes_the_date_and_a_relative_name_without_a_folder(workspace: WorkspaceBuilder) -> None:
    machine = workspace.machine

    result = machine.disco("-l", "Trace", "-fl", "log-{Date}.txt", cwd=machine.temp)

    assert result.json["resolutionKind"] == "NoCandidates"
    [log] = machine.temp.glob("log-*.txt")
    assert time.strftime("%Y") in log.name
    assert "{Date}" not in log.name


def test_the_log_file_holds_what_stderr_shows(workspace: WorkspaceBuilder) -> None:
    machine = workspace.machine
    log = machine.temp / "new folder" / "log.txt"

    result = machine.run("disco", "--addins-only", "--file-log", str(log))

    lines = [line.removeprefix("warn: ") for line in result.stderr.splitlines()]
    assert lines
    assert all(line in log.read_text("utf-8") for line in lines)


@pytest.mark.parametrize("unwritable", ["/dev/null/log.txt", "{temp}"])
def test_a_log_file_that_cannot_be_written_is_a_warning(workspace: WorkspaceBuilder, unwritable: str) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    path = unwritable.format(temp=workspace.machine.temp)

    result = workspace.machine.disco("-fl", path)

    assert result.json["resolutionKind"] == "CurrentDirectory"
    assert path in result.stderr


def test_a_full_disk_does_not_stop_the_command(workspace: WorkspaceBuilder) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")

    result = workspace.machine.disco("-fl", "/dev/full", "-l", "chatty")

    assert result.json["resolutionKind"] == "NoCandidates"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is simulated by Linux's own device")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_result_that_cannot_be_written_is_a_failure_that_says_so(options: tuple[str, ...], tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "uno_devserver", "disco", *options],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
        )

    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == "error: The result could not be written: No space left on device."


def test_disco_ignores_options_it_does_not_know_as_visual_studio_passes_some(workspace: WorkspaceBuilder) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    machine = workspace.machine
    machine.install_dotnet()

    result = machine.run("disco", "--solution", str(workspace.root / "App.slnx"), "--json")

    assert result.exit_code == 0
    assert result.json["hostPath"]


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [sys.executable, "-m", "uno_devserver", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.close()
        complaint = process.stderr.read() if process.stderr else b""

    assert complaint == b""


def test_an_option_that_is_passed_on_is_mentioned_if_it_looks_mistyped(machine: Machine) -> None:
    result = machine.run("start", "--htpPort", "5000", "--solution", "nowhere.sln", "--metadata-updates", "true")

    assert "'--htpPort' is passed on. Did you mean '--httpPort'?" in result.stderr
    assert "metadata-updates" not in result.stderr


def test_a_folder_without_uno_is_told_where_its_addins_are(machine: Machine) -> None:
    folder = machine.workspace / ".devtools" / "addins"
    folder.mkdir(parents=True)
    (folder.parent / "host.config.jsonc").write_text("{}")

    result = machine.run("disco", "--addins-only")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "loaded by 'start'" in result.stderr


# --- interrupted --------------------------------------------------------------------------------------------------

# Ctrl+C at the moment in which a module is imported.
INTERRUPTED = """
import sys
class CtrlC:
    @staticmethod
    def find_spec(name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, CtrlC)
from uno_devserver.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["uno_devserver.cli.main", "uno_devserver.cli.parse", "uno_devserver.cli.list"])
def test_ctrl_c_at_any_moment_ends_it_without_a_word(machine: Machine, module: str) -> None:
    code = INTERRUPTED.format(module=module)

    result = subprocess.run([sys.executable, "-c", code, "list"], cwd=machine.home, capture_output=True, timeout=20)

    assert (result.returncode, result.stdout, result.stderr) == (130, b"", b"")


def test_a_program_that_reads_json_gets_its_document_also_after_ctrl_c(machine: Machine) -> None:
    code = INTERRUPTED.format(module="uno_devserver.cli.list")

    result = subprocess.run(
        [sys.executable, "-c", code, "list", "--json"], cwd=machine.home, capture_output=True, timeout=20
    )

    assert (result.returncode, json.loads(result.stdout)["error"]["code"]) == (130, "Interrupted")


def test_json_that_is_asked_of_the_program_behind_two_dashes_is_not_asked_of_us(machine: Machine) -> None:
    starting = machine.spawn("start", "--solution", "missing.sln", "--", "--json")

    out, errors = starting.communicate(timeout=20)
    assert (starting.returncode, out) == (1, "")
    assert errors.startswith("error: There is no solution ")
