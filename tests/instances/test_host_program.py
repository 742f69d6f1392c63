"""Which Host and add-ins a workspace gets, what of it needs the user's consent, and the words that start it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from support.packages import app_mcp, host, settings
from support.workspace import WorkspaceBuilder
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.instances.host_program import (
    NO_ADDINS,
    HostProgram,
    LaunchPlan,
    addin_paths,
    addins_value,
    bundled_host,
    command_line,
    dotnet_host,
    host_at,
    plan_launch,
)
from uno_devserver.instances.launch import StartRequest
from uno_devserver.issues import UserError
from uno_devserver.workspace.resolver import resolve
from uno_devserver.workspace.trust import TRUST_VARIABLE

from .start_requests import start_request

GOLDEN = Path(__file__).parent.parent / "golden" / "host" / "start"
PYTHON_ADDIN = ".devtools/addins/greeter.py"
SOLUTION = "{DIR}/App.sln"
ADDIN = "{CACHE}/sample.addin/1.0.0/tools/devserver/Sample.AddIn.dll"
DOTNET = HostProgram(HostKind.DOTNET, ("/usr/bin/dotnet", "/p/Host.dll"))

# --- the plan -------------------------------------------------------------------------------------------------------


def _plan(workspace: WorkspaceBuilder, *, trusted: bool, **settings: Any) -> LaunchPlan:
    request = StartRequest(resolve(str(workspace.root)), **settings)
    return plan_launch(request, {**workspace.machine.variables(), TRUST_VARIABLE: "1" if trusted else ""})


@pytest.mark.parametrize("flag", ["--force-msbuild-discovery", "/Force-MSBuild-Discovery=true"])
def test_a_proxys_host_asks_msbuild_only_where_the_user_agreed_to_the_build(
    workspace: WorkspaceBuilder, flag: str
) -> None:
    """The options of a proxy may stand in a file of the repository."""
    settings = {"forwarded": (flag,), "by_user": False}

    with pytest.raises(UserError, match="would run the build of"):
        _plan(workspace, trusted=False, **settings)
    assert _plan(workspace, trusted=True, **settings).program.kind is HostKind.BUNDLED


@pytest.mark.parametrize(("trusted", "addins"), [(True, None), (False, NO_ADDINS)])
def test_a_host_is_left_to_ask_msbuild_only_where_the_user_agreed_to_the_build(
    workspace: WorkspaceBuilder, trusted: bool, addins: str | None
) -> None:
    """An SDK without a list of its packages: what restore brought is a Host, and nobody can say what else there is."""
    workspace.machine.install_dotnet()
    workspace.uno_sdk(groups=None).project("App/App.csproj", [host()]).solution("App.slnx")

    planned = _plan(workspace, trusted=trusted)

    assert (planned.program.kind, planned.addins) == (HostKind.DOTNET, addins)
    codes = [issue.code for issue in planned.issues]
    assert ("WorkspaceNotTrusted" in codes) is not trusted


@pytest.mark.parametrize("trusted", [True, False])
def test_addins_of_packages_need_no_consent(workspace: WorkspaceBuilder, trusted: bool) -> None:
    workspace.machine.install_dotnet()
    workspace.uno_6_5().project("App/App.csproj", [app_mcp(), settings()]).solution("App.slnx")

    planned = _plan(workspace, trusted=trusted)

    assert planned.addins is not None
    names = {os.path.basename(path) for path in planned.addins.split(";")}
    assert names == {"Uno.UI.App.Mcp.Server.dll", "Uno.Settings.DevServer.dll"}
    assert "WorkspaceNotTrusted" not in [issue.code for issue in planned.issues]


@pytest.mark.parametrize("trusted", [True, False])
def test_python_addins_of_the_workspace_need_the_users_consent(workspace: WorkspaceBuilder, trusted: bool) -> None:
    workspace.file(PYTHON_ADDIN, "")

    planned = _plan(workspace, trusted=trusted)

    assert planned.program.kind is HostKind.BUNDLED
    assert planned.addins == (str(workspace.root / PYTHON_ADDIN) if trusted else NO_ADDINS)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("named_by", ["nuget.config", "restore"])
def test_packages_that_a_workspace_brings_along_need_the_users_consent(
    workspace: WorkspaceBuilder, trusted: bool, named_by: str
) -> None:
    """A repository can hold packages, and the files that say where packages are."""
    machine, brought = workspace.machine, workspace.root / "packages"
    machine.install_dotnet()
    machine.nuget = brought
    workspace.uno_6_5().project("App/App.csproj", [app_mcp(), host()]).solution("App.slnx")
    if named_by == "nuget.config":
        workspace.nuget_config("packages")

    planned = _plan(workspace, trusted=trusted)

    assert (planned.program.kind is HostKind.DOTNET) is trusted
    assert (str(brought) in (planned.addins or "")) is trusted
    assert ("WorkspaceNotTrusted" in [issue.code for issue in planned.issues]) is not trusted


def test_a_link_of_the_workspace_to_a_package_of_the_user_needs_consent_too(workspace: WorkspaceBuilder) -> None:
    """.NET reads other files beside the path that it is given, and those are the repository's."""
    machine, users, brought = workspace.machine, workspace.machine.nuget, workspace.root / "packages"
    machine.install_dotnet()
    machine.nuget = brought
    workspace.uno_6_5().project("App/App.csproj", [app_mcp(), host()]).solution("App.slnx").nuget_config("packages")
    machine.nuget = users
    for assembly in brought.rglob("*.dll"):
        restored = users / "some.library" / "1.0.0" / assembly.name
        restored.parent.mkdir(parents=True, exist_ok=True)
        assembly.rename(restored)
        assembly.symlink_to(restored)

    planned = _plan(workspace, trusted=False)

    assert planned.program.kind is HostKind.BUNDLED
    assert str(brought) not in (planned.addins or "")
    assert "WorkspaceNotTrusted" in [issue.code for issue in planned.issues]


# --- the command line -----------------------------------------------------------------------------------------------


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A PATH with a dotnet."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dotnet").touch(mode=0o755)
    return {"PATH": str(tmp_path / "bin")}


def test_a_host_is_told_only_what_there_is_to_tell() -> None:
    assert command_line(DOTNET, start_request("/ws"), 5000, None) == [*DOTNET.command, "--httpPort", "5000"]


def test_the_order_is_that_of_all_launchers() -> None:
    forwarded = ("--metadata-updates", "true")
    request = start_request("/ws", "/ws/A b.sln", parent=7, ide_channel="chan", forwarded=forwarded)

    assert command_line(DOTNET, request, 5000, "/a;/b")[2:] == [
        *("--httpPort", "5000"),
        *("--ppid", "7"),
        *("--solution", "/ws/A b.sln"),
        *("--ideChannel", "chan"),
        *("--addins", "/a;/b"),
        *("--metadata-updates", "true"),
    ]


def test_only_the_bundled_host_is_told_its_folder() -> None:
    line = command_line(bundled_host(), start_request("/ws"), 0, None)

    assert line[:4] == [sys.executable, "-P", "-m", "uno_devserver.host"]
    assert line[-2:] == ["--workingDir", "/ws"]


def test_a_library_is_run_by_dotnet_and_rolled_forward_where_it_has_to_be(environ: dict[str, str]) -> None:
    dotnet = environ["PATH"] + "/dotnet"

    assert dotnet_host("/p/Host.dll", environ, roll_forward=False).command == (dotnet, "/p/Host.dll")
    assert dotnet_host("/p/Host.dll", environ, roll_forward=False).environment == ()
    assert dotnet_host("/p/Host.dll", environ, roll_forward=True).environment == (("DOTNET_ROLL_FORWARD", "Major"),)


def test_a_program_is_run_as_it_is() -> None:
    assert dotnet_host("C:/p/Host.exe", {}, roll_forward=False).command == ("C:/p/Host.exe",)


def test_a_library_without_dotnet_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "Host.DLL").touch()

    with pytest.raises(UserError) as error:
        host_at(str(tmp_path / "Host.DLL"), {"PATH": ""})

    assert error.value.code == "DotNetNotFound"
    assert "--host bundled" in error.value.next_step


@pytest.mark.parametrize(
    ("record", "port", "channel"),
    [("start", 5651, None), ("start-with-ppid", 46617, None), ("idechannel-cli", 5651, "chan-s")],
)
def test_the_words_are_those_that_the_net_tool_was_seen_to_use(record: str, port: int, channel: str | None) -> None:
    """It prints them joined by blanks; `{PPID}` and the like stand where a process id was."""
    said = json.loads((GOLDEN / f"{record}.json").read_text("utf-8"))["stdout"]
    recorded = next(line for line in said.splitlines() if line.startswith("Starting DevServer in direct mode: "))
    program = HostProgram(HostKind.DOTNET, ("dotnet", "{HOSTDIR}/Uno.UI.RemoteControl.Host.dll"))

    words = command_line(program, start_request("{DIR}", SOLUTION, ide_channel=channel), port, ADDIN)

    without_parent = re.sub(r" --ppid \{\w+\}", "", recorded)
    assert without_parent.partition(": ")[2] == " ".join(words)
    assert ("--ppid" in recorded) == (record != "start")


@pytest.mark.parametrize(
    ("paths", "workspace", "value", "lost"),
    [
        ([], "/ws", ";", ()),
        (["/a/One.dll", "/a b/ü.py"], "/ws", "/a/One.dll;/a b/ü.py", ()),
        (["/a;b/ws/x.py", "/c/y.py"], "/a;b/ws", "x.py;/c/y.py", ()),
        (["/a;b/cache/x.dll"], "/a;b/ws", "../cache/x.dll", ()),
        (["/a;b/x.py", "/c/y.py"], "/ws", "/c/y.py", ("/a;b/x.py",)),
        (["/ws/x;y.py"], "/ws", ";", ("/ws/x;y.py",)),
    ],
)
def test_addins_are_one_value_and_a_semicolon_in_a_path_is_avoided_if_it_can_be(
    paths: list[str], workspace: str, value: str, lost: tuple[str, ...]
) -> None:
    assert addins_value(paths, workspace) == (value, lost)


@pytest.mark.parametrize(
    ("value", "paths"),
    [(None, ()), ("", ()), (";", ()), (" ; ", ()), ("/a", ("/a",)), (" /a ;;/b c; ", ("/a", "/b c"))],
)
def test_a_value_is_read_as_the_host_reads_it(value: str | None, paths: tuple[str, ...]) -> None:
    assert addin_paths(value) == paths
