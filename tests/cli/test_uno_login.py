"""`login`: the Settings application is started with the right arguments, goes on by itself, or has the terminal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.dotnet import write_program
from support.machine import DATA_HOME, WINDOWS, Machine
from support.packages import CORE, GROUPS, host, settings
from support.terminals import Terminal
from support.workspace import WorkspaceBuilder
from uno_devserver.cli.parse import parse
from uno_devserver.cli.uno_login import run

WAIT_SECONDS = 20.0
PRLIMIT = shutil.which("prlimit")

# Notes how it was called, then does what the test wants.
_DOTNET = """#!{python} -IS
import json, os, sys, time
session = os.getsid(0) if hasattr(os, "getsid") else None
call = {{"argv": sys.argv[1:], "pid": os.getpid(), "session": session, "tty": os.isatty(0)}}
with open({calls!r} + ".new", "w") as stream:
    json.dump(call, stream)
os.replace({calls!r} + ".new", {calls!r})
{behaviour}
"""


class Settings:
    """The dotnet of the machine, as far as the Settings application is concerned."""

    def __init__(self, machine: Machine) -> None:
        self._dotnet = machine.install_dotnet().root / "dotnet"
        self._calls = machine.root / "call.json"
        self.does("pass")

    def does(self, behaviour: str) -> None:
        script = _DOTNET.format(python=sys.executable, calls=str(self._calls), behaviour=behaviour)
        write_program(self._dotnet, script)

    @property
    def called(self) -> bool:
        return self._calls.exists()

    @property
    def call(self) -> dict[str, Any]:
        call: dict[str, Any] = json.loads(self._calls.read_text("utf-8"))
        return call


@pytest.fixture
def application(workspace: WorkspaceBuilder) -> Iterator[Settings]:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    application = Settings(workspace.machine)
    yield application
    if application.called:
        try:
            os.kill(application.call["pid"], signal.SIGKILL)
        except OSError:
            pass  # it has ended: the usual case


def _program(machine: Machine) -> str:
    return str(machine.nuget / "uno.settings.devserver" / "1.8.0" / "tools" / "manager" / "Uno.Settings.dll")


# --- with a window --------------------------------------------------------------------------------------------------


def test_the_application_is_started_by_dotnet_with_all_arguments(machine: Machine, application: Settings) -> None:
    result = machine.run("login", "now", "--tenant", "a b", "--log-level", "Debug", "--", "-x")

    assert result.exit_code == 0, result.stderr
    assert application.call["argv"] == [_program(machine), "login", "now", "--tenant", "a b", "-x"]


def test_an_application_with_a_window_keeps_running(
    machine: Machine, application: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.does("time.sleep(60)")
    _become(machine, monkeypatch)

    result = run(parse(["login"]), grace_seconds=0.5)

    _until(lambda: application.called)
    call = application.call
    assert result.exit_code == 0
    assert result.data == {"processId": call["pid"], "exitCode": None}
    assert f"process {call['pid']}" in str(result.text)
    assert call["session"] == call["pid"] != os.getsid(0), "it does not end with our terminal"
    os.kill(call["pid"], 0)


def _become(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command in this process, on that machine."""
    assert machine.dotnet
    monkeypatch.chdir(machine.workspace)
    monkeypatch.setenv("NUGET_PACKAGES", str(machine.nuget))
    monkeypatch.setenv(DATA_HOME, str(machine.data))
    monkeypatch.setenv("PATH", str(machine.dotnet.root))


def test_an_application_that_ends_well_at_once_is_a_success(machine: Machine, application: Settings) -> None:
    application.does("print('already signed in')")

    result = machine.run("login", "--json")

    assert (result.exit_code, result.json["exitCode"]) == (0, 0)


def test_a_failing_application_is_quoted(machine: Machine, application: Settings) -> None:
    application.does("sys.stdout.write('out '); sys.stdout.flush(); sys.exit('no display' + 'x' * 100_000)")

    result = machine.run("login")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "ended with exit code 1. It printed:\nout no display" in result.stderr
    assert len(result.stderr) < 3000
    assert "login --headless" in result.stderr


def test_an_application_that_fails_without_output_is_reported(machine: Machine, application: Settings) -> None:
    application.does("os._exit(7)")

    result = machine.run("login", "--json")

    assert (result.exit_code, result.json["error"]["code"]) == (1, "SettingsFailed")
    assert "exit code 7. It printed nothing." in result.json["error"]["message"]


def test_a_dotnet_that_cannot_be_run_is_named(machine: Machine, application: Settings) -> None:
    assert machine.dotnet
    (machine.dotnet.root / "dotnet").write_bytes(b"\x00 no program")

    result = machine.run("login")

    assert result.exit_code == 1
    assert f"{machine.dotnet.root}/dotnet could not be started" in result.stderr


@pytest.mark.skipif(PRLIMIT is None, reason="needs prlimit of util-linux")
def test_where_no_file_can_be_written_it_says_so(machine: Machine, application: Settings) -> None:
    result = machine.run("login", prefix=[str(PRLIMIT), "--fsize=0"])

    assert result.exit_code == 1
    assert "No temporary file can be made for the output" in result.stderr
    assert not application.called


# --- headless -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "code"), [("pass", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), 15)", 15 if WINDOWS else 143)]
)
def test_headless_passes_the_exit_code_on_and_prints_nothing_of_its_own(
    machine: Machine, application: Settings, behaviour: str, code: int
) -> None:
    application.does(f"print('device code 42', flush=True)\n{behaviour}")

    result = machine.run("login", "--headless")

    assert (result.exit_code, result.stdout, result.stderr) == (code, "device code 42\n", "")
    assert application.call["argv"] == [_program(machine), "login", "--headless"]


def test_headless_gives_the_application_the_terminal_and_what_is_typed(machine: Machine, application: Settings) -> None:
    application.does("print('you typed ' + input(), flush=True)")
    terminal = Terminal(machine, "login", "--HEADLESS")

    terminal.press(b"hello\n")

    assert "you typed hello" in terminal.end()
    assert (terminal.process.returncode, application.call["tty"]) == (0, True)


def test_headless_with_json_leaves_standard_output_to_the_result(machine: Machine, application: Settings) -> None:
    application.does("print('device code 42', flush=True); sys.exit(3)")

    result = machine.run("login", "--headless", "--json")

    assert (result.exit_code, result.json["exitCode"], result.stderr) == (3, 3, "device code 42\n")


def test_ctrl_c_is_handled_by_the_application_in_the_terminal(machine: Machine, application: Settings) -> None:
    application.does(
        "import signal\n"
        "signal.signal(signal.SIGINT, lambda *_: (os.write(1, b'signing out\\n'), os._exit(5)))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "uno_devserver", "login", "--headless"],
        cwd=machine.workspace,
        env=machine.variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all that share it
        assert process.stdout.read() == "signing out\n"
        assert process.wait(WAIT_SECONDS) == 5


# --- where it is not there ------------------------------------------------------------------------------------------


def _not_restored(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    return workspace.uno_sdk(groups=GROUPS).package(host()).project("App/App.csproj")


def _incomplete(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    partial = settings().without_files("tools/manager/Uno.Settings.dll")
    return workspace.uno_sdk().package(host(), partial).project("App/App.csproj")


def _without_settings(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    return workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj")


def _without_sdk(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    return workspace.global_json({"Uno.Sdk": "6.5.31"}).project("App/App.csproj", restored=False)


@pytest.mark.parametrize(
    ("made", "message", "next_step"),
    [
        (_not_restored, "uno.settings.devserver 1.8.0, is not restored", "dotnet restore"),
        (_incomplete, "is incomplete: ", "--force"),
        (_without_settings, "packages.json does not name uno.settings.devserver", "Choose a newer Uno.Sdk"),
        (_without_sdk, "Uno.Sdk 6.5.31", "dotnet restore"),
        (None, "There is no .sln or .slnx file", "--solution-dir"),
    ],
)
def test_an_error_names_what_is_missing(
    workspace: WorkspaceBuilder,
    made: Callable[[WorkspaceBuilder], WorkspaceBuilder] | None,
    message: str,
    next_step: str,
) -> None:
    workspace.machine.install_dotnet()
    if made is not None:
        made(workspace).solution("App.slnx")

    result = workspace.machine.run("login", "--json")

    error = result.json["error"]
    assert (result.exit_code, error["code"]) == (1, "SettingsNotFound")
    assert message in error["message"]
    assert next_step in error["nextStep"]


def test_without_dotnet_it_says_that_it_needs_it(workspace: WorkspaceBuilder) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")

    result = workspace.machine.run("login", "--json")

    assert (result.exit_code, result.json["error"]["code"]) == (1, "DotNetNotFound")


def test_of_several_solutions_any_will_do(machine: Machine, workspace: WorkspaceBuilder, application: Settings) -> None:
    workspace.solution("Other.slnx")

    assert machine.run("login").exit_code == 0
    assert application.call["argv"] == [_program(machine), "login"]


def test_solution_dir_leads_to_the_application(machine: Machine, application: Settings, tmp_path: Path) -> None:
    result = machine.run("login", "--solution-dir", str(machine.workspace), cwd=tmp_path)

    assert result.exit_code == 0
    assert application.call["argv"] == [_program(machine), "login"]


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)
