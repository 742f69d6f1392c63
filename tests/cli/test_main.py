"""The command line as a user or an IDE types it: help, global options, errors, exit codes and streams."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import uno_devserver
from support.machine import Machine
from support.servers import Registry
from support.workspace import WorkspaceBuilder
from uno_devserver import __version__
from uno_devserver.cli.main import main

HERE = ["disco", "start", "stop", "list", "cleanup", "health", "login"]
PROXY = ["mcp start", "mcp serve", "--mcp-app"]
REGISTRATION = ["mcp status", "mcp install cursor", "mcp uninstall cursor"]
FAILING = ["mcp status nobody", "mcp install nobody", "mcp uninstall nobody"]
LEVELS = ["Trace", "Debug", "Information", "Warning", "Error", "Critical", "None", "trace", "WARNING"]
FULL_DISK = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's device of a full disk")


@pytest.fixture
def app(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    return workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")


# --- help and version ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["", "--help", "-h", "-l Trace --help", "--help --json", "frobnicate --help"])
def test_help_goes_to_stdout_and_names_every_command(machine: Machine, typed: str) -> None:
    result = machine.run(*typed.split())

    assert result.exit_code == 0
    words = {"start", "stop", "list", "cleanup", "disco", "health", "login", "mcp", "status", "install", "uninstall"}
    words |= {"serve", "--mcp-app", "--log-level", "-l", "--file-log", "-fl", "--solution-dir", "--version", "--json"}
    missing = [word for word in (*words, "Usage:") if word not in result.stdout]
    assert not missing


@pytest.mark.parametrize("command", [*HERE, *PROXY, *REGISTRATION])
def test_help_of_a_command_exits_0_wherever_it_stands(machine: Machine, command: str) -> None:
    after, before = machine.run(*command.split(), "--help"), machine.run("-h", *command.split())

    assert (after.exit_code, before.exit_code) == (0, 0)
    assert after.stdout == before.stdout
    assert "Usage:" in after.stdout


@pytest.mark.parametrize("typed", ["--version", "-l Error --version", "disco --version"])
def test_version_is_one_line_on_stdout(machine: Machine, typed: str) -> None:
    result = machine.run(*typed.split())

    assert (result.exit_code, result.stdout) == (0, f"{__version__}\n")


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", FAILING)
def test_a_command_that_fails_exits_1_with_the_next_step_in_text_and_in_json(machine: Machine, command: str) -> None:
    text, as_json = machine.run(*command.split()), machine.run(*command.split(), "--json")

    assert (text.exit_code, text.stdout, as_json.exit_code) == (1, "", 1)
    assert re.match(r"error: .+\nnext: ", text.stderr)
    assert set(as_json.json) == {"error"}
    assert set(as_json.json["error"]) == {"code", "message", "nextStep"}
    assert all(as_json.json["error"].values())


@pytest.mark.parametrize(
    "typed",
    [
        "frobnicate",
        "mcp",
        "mcp frobnicate",
        "mcp start stray",
        "disco --mcp-app",
        "mcp start --port 0",
        "--mcp-app --port many",
        "mcp serve --port",
        "mcp start --http 70000",
        "mcp start --inspector 70000",
        "--mcp-app --inspector=page",
        "mcp start --inspector -5",
        "mcp start --inspector=",
        "mcp start --upstream-url ftp://127.0.0.1/mcp",
        "mcp start --upstream-url http://",
        "mcp start --upstream-url http://user:password@127.0.0.1/mcp",
        "mcp start --upstream-url http://127.0.0.1/mcp --metadata-updates",
        "mcp start --upstream-url http://127.0.0.1/mcp --port 5000",
        "mcp start --upstream-url http://127.0.0.1/mcp -- python server.py",
        "mcp start --port 5000 -- python server.py",
        "mcp start --",
        "--mcp-app -- <blank>",
        "list --frobnicate",
        "list extra",
        "mcp status one two",
        "--frobnicate",
        "disco --solution-dir",
        "disco --file-log",
        "disco -fl",
        "disco -fl <empty>",
        "disco -fl <blank>",
        "disco --log-level",
        "stop --pid",
    ],
)
def test_a_wrong_call_exits_2_with_the_next_step_as_text_and_json(
    capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    argv = [{"<empty>": "", "<blank>": " "}.get(word, word) for word in typed.split()]

    codes = main(argv), main(["--json", *argv])

    assert codes == (2, 2)
    output = capsys.readouterr()
    assert re.match(r"error: .+\nnext: ", output.err)
    assert set(json.loads(output.out)["error"]) == {"code", "message", "nextStep"}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("disc", "'disco'"),
        ("strat", "'start'"),
        ("helth", "'health'"),
        ("mcp instal", "'mcp install'"),
        ("mcp doktor", "'mcp doctor'"),
        ("complete", "'completion'"),
        ("disco --addin-only", "'--addins-only'"),
        ("mcp install cursor --dryrun", "'--dry-run'"),
        ("mcp install cursr", "'cursor'"),
        ("--jsn", "'--json'"),
        ("--mcp-ap", "Did you mean '--mcp-app'?"),
        ("mcp status --scope user", "'mcp install', 'mcp uninstall', 'mcp restore' have it"),
    ],
)
def test_what_was_probably_meant_is_suggested(machine: Machine, typed: str, meant: str) -> None:
    assert meant in machine.run(*typed.split()).stderr


@pytest.mark.parametrize("option", ["--runner", "--scope", "--channel"])
def test_a_missing_value_is_named_with_those_that_there_are(machine: Machine, option: str) -> None:
    result = machine.run("mcp", "install", "cursor", option)

    assert result.exit_code == 2
    assert re.search(rf"next: Write {option} \S+\. It is one of: \w+, \w+", result.stderr)


@pytest.mark.parametrize("option", ["--json=1", "--JSON=yes"])
def test_a_wrong_value_of_json_is_reported_as_json(machine: Machine, option: str) -> None:
    result = machine.run("health", option)

    assert (result.exit_code, result.json["error"]["code"], result.stderr) == (2, "BadValue", "")


def test_an_error_is_text_if_json_is_turned_off(machine: Machine) -> None:
    result = machine.run("health", "--json=false", "--nonsense")

    assert (result.exit_code, result.stdout) == (2, "")


def test_json_behind_two_dashes_is_an_option_of_another_program(machine: Machine) -> None:
    result = machine.spawn("start", "--solution", "missing.sln", "--", "--json")

    out, errors = result.communicate(timeout=20)

    assert (result.returncode, out) == (1, "")
    assert errors.startswith("error: There is no solution ")


@pytest.mark.parametrize(
    "typed", ["start --httpPort 5000 --ppid 1 --solution A.sln --ideChannel x --metadata-updates", "login --headless"]
)
def test_options_that_ides_pass_are_understood_before_anything_fails(machine: Machine, typed: str) -> None:
    result = machine.run(*typed.split())

    assert result.exit_code == 1, result.stderr


def test_a_password_in_a_url_is_refused_at_once_and_not_repeated(machine: Machine) -> None:
    result = machine.run("mcp", "start", "--upstream-url", "https://user:secret@host/path-secret-7f3a/mcp?key=secret")

    assert result.exit_code == 2
    assert "as in the URL of https://host/…, is not supported" in result.stderr
    assert "use --header 'Authorization: Basic ${NAME}'" in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://user:secret@host:99999/",
            "http://host:x/",
            "http://host:0/",
            "http://[::1",
            "http://us:se[cret@host/x",
        ),
        *("http://host/secret x", "http://host/\x1b[2Jsecret", "http://host/\n", "http://host/?key=…", "http://:80/"),
    ],
)
def test_what_cannot_be_a_url_is_refused_at_once_and_not_repeated(machine: Machine, url: str) -> None:
    result = machine.run("mcp", "start", "--upstream-url", url)

    assert (result.exit_code, "Write it as http://127.0.0.1:8000/mcp." in result.stderr) == (2, True)
    assert "secret" not in result.stderr
    assert "cret" not in result.stderr


def test_a_forwarded_option_is_reported_if_it_looks_mistyped(machine: Machine) -> None:
    result = machine.run("start", "--htpPort", "5000", "--solution", "nowhere.sln", "--metadata-updates", "true")

    assert "'--htpPort' is passed on. Did you mean '--httpPort'?" in result.stderr
    assert "metadata-updates" not in result.stderr


@pytest.mark.parametrize(
    ("command", "last"),
    [("list", "No active DevServers found."), ("stop", None), ("cleanup", "Cleanup not completed.")],
)
def test_a_registry_that_cannot_be_read_is_a_failure(
    machine: Machine, registry: Registry, command: str, last: str | None
) -> None:
    registry.folder.parent.mkdir(parents=True)
    registry.folder.write_text("a file")

    result = machine.run(command)

    assert result.exit_code == 1
    assert result.stderr == f"warn: The registry {registry} cannot be read: Not a directory.\n"
    assert last is None or last in result.stdout


# --- the next step of every error ---------------------------------------------------------------------------------

SOURCES = Path(uno_devserver.__file__).parent
# A next step begins with one of these.
VERBS = {"Ask", "Change", "Check", "Choose", "Correct", "Create", "End", "Give", "Install", "Leave", "Let", "Look"}
VERBS |= {"Make", "Move", "Name", "Put", "Read", "Remove", "Repair", "Report", "Run", "See", "Set", "Start", "Stop"}
VERBS |= {"Take", "Try", "Update", "Use", "Wait", "Write"}


def _next_steps() -> Iterator[tuple[str, str]]:
    """Where a UserError is made, and the beginning of its next step, as far as the source has it."""
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            known = {
                target.id: node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for call in ast.walk(function):
                step = _step_of(call)
                if isinstance(step, ast.Name):
                    step = known.get(step.id, step)
                text = _beginning(step)
                if text is not None:
                    yield f"{path.relative_to(SOURCES)}:{call.lineno}", text  # type: ignore[attr-defined]


def _step_of(call: ast.AST) -> ast.expr | None:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    position = {"UserError": 2, "_usage": 1}.get(call.func.id)
    return call.args[position] if position is not None and len(call.args) > position else None


def _beginning(step: ast.expr | None) -> str | None:
    if isinstance(step, ast.JoinedStr) and step.values:
        step = step.values[0]
    return step.value if isinstance(step, ast.Constant) and isinstance(step.value, str) else None


def test_the_next_step_of_every_error_says_what_to_do() -> None:
    steps = list(_next_steps())

    weak = [(where, text) for where, text in steps if re.split(r"[\s,:]", text)[0] not in VERBS]
    assert weak == []
    assert len(steps) > 50, "they are no longer found"


# --- global options -----------------------------------------------------------------------------------------------


def test_global_options_stand_before_or_after_the_command(app: WorkspaceBuilder) -> None:
    options = ("--json", "-l", "Error", "--solution-dir", str(app.root))

    before = app.machine.run(*options, "disco", cwd=app.machine.root).json
    after = app.machine.run("disco", *options, cwd=app.machine.root).json

    assert before["selectedSolutionPath"] == str(app.root / "App.slnx")
    assert _lasting(before) == _lasting(after)


def _lasting(report: dict[str, object]) -> dict[str, object]:
    """Without what differs from run to run."""
    return {key: value for key, value in report.items() if not key.endswith("DurationMs")}


def test_a_relative_solution_dir_is_taken_from_the_current_folder(app: WorkspaceBuilder) -> None:
    result = app.machine.disco("--solution-dir", app.root.name, cwd=app.root.parent)

    assert result.json["requestedWorkingDirectory"] == str(app.root)
    assert result.json["selectionSource"] == "UserSelected"


def test_a_solution_dir_that_does_not_exist_gives_a_result(machine: Machine) -> None:
    result = machine.disco("--solution-dir", str(machine.root / "nowhere"))

    assert result.json["resolutionKind"] == "NoCandidates"


def test_every_log_level_keeps_stdout_for_the_result(app: WorkspaceBuilder) -> None:
    app.file("App/obj/App.csproj.nuget.g.targets", "<Project><broken")

    for number, level in enumerate(LEVELS):
        result = app.machine.disco(("-l", "--log-level")[number % 2], level)

        assert "RestoreFileInvalid" in result.issue_codes, "there is something to log"


def test_a_level_that_does_not_exist_is_reported_and_the_command_runs(app: WorkspaceBuilder) -> None:
    result = app.machine.disco("-l", "chatty")

    assert result.json["resolutionKind"] == "CurrentDirectory"
    assert "chatty" in result.stderr


def test_the_log_file_takes_the_date_and_a_relative_name_without_a_folder(machine: Machine) -> None:
    result = machine.disco("-l", "Trace", "-fl", "log-{Date}.txt", cwd=machine.temp)

    assert result.json["resolutionKind"] == "NoCandidates"
    [log] = machine.temp.glob("log-*.txt")
    assert time.strftime("%Y") in log.name
    assert "{Date}" not in log.name


def test_the_log_file_holds_what_stderr_shows(machine: Machine) -> None:
    log = machine.temp / "new folder" / "log.txt"

    result = machine.run("disco", "--addins-only", "--file-log", str(log))

    lines = [line.removeprefix("warn: ") for line in result.stderr.splitlines()]
    assert lines
    assert all(line in log.read_text("utf-8") for line in lines)


@pytest.mark.parametrize("unwritable", ["/dev/null/log.txt", "{temp}"])
def test_a_log_file_that_cannot_be_written_is_a_warning(app: WorkspaceBuilder, unwritable: str) -> None:
    path = unwritable.format(temp=app.machine.temp)

    result = app.machine.disco("-fl", path)

    assert result.json["resolutionKind"] == "CurrentDirectory"
    assert path in result.stderr


@FULL_DISK
def test_a_full_disk_does_not_stop_the_command(machine: Machine) -> None:
    result = machine.disco("-fl", "/dev/full", "-l", "chatty")

    assert result.json["resolutionKind"] == "NoCandidates"


# --- streams and interrupts ---------------------------------------------------------------------------------------


@FULL_DISK
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_result_that_cannot_be_written_is_a_failure_that_says_so(options: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "uno_devserver", "disco", *options]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)

    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == "error: The result could not be written: No space left on device."


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [sys.executable, "-m", "uno_devserver", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.close()
        complaint = process.stderr.read() if process.stderr else b""

    assert complaint == b""


# Ctrl+C at the moment in which a module is imported.
INTERRUPTED = """
import sys
class CtrlC:
    @staticmethod
    def find_spec(name, *_):
        if name == "uno_devserver.cli.{module}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, CtrlC)
from uno_devserver.__main__ import main
sys.exit(main())
"""


def _interrupted(machine: Machine, module: str, *argv: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", INTERRUPTED.format(module=module), *argv]
    return subprocess.run(command, cwd=machine.home, capture_output=True, timeout=20)


@pytest.mark.parametrize("module", ["main", "parse", "list"])
def test_ctrl_c_at_any_moment_ends_it_without_a_word(machine: Machine, module: str) -> None:
    result = _interrupted(machine, module, "list")

    assert (result.returncode, result.stdout, result.stderr) == (130, b"", b"")


def test_a_program_that_reads_json_gets_its_document_also_after_ctrl_c(machine: Machine) -> None:
    result = _interrupted(machine, "list", "list", "--json")

    assert (result.returncode, json.loads(result.stdout)["error"]["code"]) == (130, "Interrupted")
