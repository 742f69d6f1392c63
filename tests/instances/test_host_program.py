"""Which Host and add-ins a workspace gets, and what of it needs the user's consent."""

from __future__ import annotations

import os

import pytest

from support.packages import app_mcp, host, settings
from support.workspace import WorkspaceBuilder
from uno_devserver.instances.host_program import NO_ADDINS, HostOptions, LaunchPlan, ProgramKind, plan_launch
from uno_devserver.workspace.resolver import resolve

ADDIN = ".devtools/addins/greeter.py"


def _plan(workspace: WorkspaceBuilder, *, trusted: bool) -> LaunchPlan:
    return plan_launch(HostOptions(trusted=trusted), resolve(str(workspace.root)), workspace.machine.variables())


@pytest.mark.parametrize(("trusted", "addins"), [(True, None), (False, NO_ADDINS)])
def test_a_host_is_left_to_ask_msbuild_only_where_the_user_agreed_to_the_build(
    workspace: WorkspaceBuilder, trusted: bool, addins: str | None
) -> None:
    """An SDK without a list of its packages: what restore brought is a Host, and nobody can say what else there is."""
    workspace.machine.install_dotnet()
    workspace.uno_sdk(groups=None).project("App/App.csproj", [host()]).solution("App.slnx")

    planned = _plan(workspace, trusted=trusted)

    assert (planned.program.kind, planned.addins) == (ProgramKind.DOTNET, addins)
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
    workspace.file(ADDIN, "")

    planned = _plan(workspace, trusted=trusted)

    assert planned.program.kind is ProgramKind.BUNDLED
    assert planned.addins == (str(workspace.root / ADDIN) if trusted else NO_ADDINS)


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

    assert (planned.program.kind is ProgramKind.DOTNET) is trusted
    assert (str(brought) in (planned.addins or "")) is trusted
    assert ("WorkspaceNotTrusted" in [issue.code for issue in planned.issues]) is not trusted
