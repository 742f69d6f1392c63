"""Add-ins that real MSBuild names: `disco --force-msbuild-discovery`, and a Host that was not told its add-ins.

The project SDK is a stand-in with the two targets that the Uno SDK has; MSBuild finds it in the NuGet cache, runs them
and writes the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dotnet.sdk import PATIENCE
from support.bundled import BundledHost
from support.files import write
from support.machine import Machine, Result
from support.packages import DLL, GROUPS, sdk
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder
from uno_devserver.discovery.msbuild_query import MSBuildAnswer, ask_msbuild

VERSION = "6.5.31"
SDK_PROPS = '<Project>\n  <Import Project="Sdk.props" Sdk="Microsoft.NET.Sdk" />\n</Project>\n'
SDK_TARGETS = """<Project>
  <Import Project="Sdk.targets" Sdk="Microsoft.NET.Sdk" />
  <Target Name="UnoDumpTargetFrameworks">
    <WriteLinesToFile File="$(UnoDumpTargetFrameworksTargetFile)" Lines="$(TargetFramework);$(TargetFrameworks)"
                      Overwrite="false" Encoding="Unicode" />
  </Target>
  <Target Name="UnoDumpRemoteControlAddIns">
    <WriteLinesToFile File="$(UnoDumpRemoteControlAddInsTargetFile)" Lines="@(UnoRemoteControlAddIns)"
                      Overwrite="false" Encoding="Unicode" />
  </Target>
</Project>
"""
GREETER = '''
from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    @addin.tool(read_only=True)
    def greet(name: str) -> str:
        """Says hello."""
        return f"hello {name}"
'''


def _project(frameworks: str, *addins: Path | str) -> str:
    name = "TargetFrameworks" if ";" in frameworks else "TargetFramework"
    items = "".join(f'    <UnoRemoteControlAddIns Include="{path}" />\n' for path in addins)
    return f"""<Project Sdk="Uno.Sdk">
  <PropertyGroup>
    <{name}>{frameworks}</{name}>
  </PropertyGroup>
  <ItemGroup>
{items}  </ItemGroup>
</Project>
"""


@pytest.fixture
def uno(net_workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    package = sdk("Uno.Sdk", VERSION, GROUPS).with_files({"Sdk/Sdk.props": SDK_PROPS, "Sdk/Sdk.targets": SDK_TARGETS})
    return net_workspace.global_json({"Uno.Sdk": VERSION}).package(package)


def _ask_msbuild(uno: WorkspaceBuilder) -> Result:
    return uno.machine.run("disco", "--json", "--force-msbuild-discovery", cwd=uno.root, timeout=PATIENCE)


def test_the_addins_of_all_projects_are_those_that_msbuild_writes(uno: WorkspaceBuilder) -> None:
    folder = uno.machine.root / "Größe 1 ✓"
    first, second = write(folder / "First one.dll", DLL), write(folder / "Second.dll", DLL)
    uno.file("A/A.csproj", _project("netcoreapp3.1", first, second))
    uno.file("B/B.csproj", _project("netcoreapp3.1", str(second).replace("Second", "SECOND"), second))
    uno.solution("My App.sln", ["A/A.csproj", "B/B.csproj"])

    result = _ask_msbuild(uno)

    assert sorted(result.add_ins) == [str(first), str(second)]
    assert result.json["addInsDiscoveryMethod"] == "msbuild"


def test_each_target_framework_is_tried_until_one_has_addins(uno: WorkspaceBuilder) -> None:
    addin = write(uno.machine.root / "addins" / "Late.dll", DLL)
    project = _project("netstandard2.1;netcoreapp3.1", addin)
    only = "<ItemGroup Condition=\"'$(TargetFramework)' == 'netcoreapp3.1'\">"
    uno.file("App/App.csproj", project.replace("<ItemGroup>", only)).solution("App.sln", ["App/App.csproj"])

    assert _ask_msbuild(uno).add_ins == [str(addin)]


def test_the_user_file_of_a_project_counts_after_it_and_before_directory_build_targets(uno: WorkspaceBuilder) -> None:
    """For those who read the files as for MSBuild."""
    folder = uno.machine.root / "addins"
    addin = str(write(folder / "Body.NETCoreApp.dll", DLL))
    project = _project("netcoreapp3.1").replace("<TargetFramework>", "<Name>Body</Name><TargetFramework>")
    name = "<Name>$(Name).$(TargetFrameworkIdentifier.Substring(1))</Name>"
    user = f"<Project><PropertyGroup>{name}</PropertyGroup></Project>"
    item = f'<UnoRemoteControlAddIns Include="{folder}/$(Now).dll" />'
    after = f"<Project><PropertyGroup><Now>$(Name)</Now></PropertyGroup><ItemGroup>{item}</ItemGroup></Project>"
    uno.file("App/App.csproj", project).file("App/App.csproj.user", user).file("Directory.Build.targets", after)
    uno.solution("App.sln", ["App/App.csproj"])

    assert _ask_msbuild(uno).add_ins == [addin]
    assert uno.machine.disco().add_ins == [addin]


def test_disco_verify_shows_what_only_a_target_of_the_build_adds(uno: WorkspaceBuilder) -> None:
    folder = uno.machine.root / "addins"
    read, added = write(folder / "Read.dll", DLL), write(folder / "Added.dll", DLL)
    uno.file("App/App.csproj", _project("netcoreapp3.1", read)).solution("App.sln", ["App/App.csproj"])

    same = _verified(uno)
    item = f'<ItemGroup><UnoRemoteControlAddIns Include="{added}" /></ItemGroup>'
    target = f'<Target Name="Add" BeforeTargets="UnoDumpRemoteControlAddIns">{item}</Target>'
    uno.file("Directory.Build.targets", f"<Project>{target}</Project>")
    other = _verified(uno)

    assert same == {"agrees": True, "onlyRead": [], "onlyMSBuild": [], "problems": []}
    assert other == {"agrees": False, "onlyRead": [], "onlyMSBuild": [str(added)], "problems": []}


def _verified(uno: WorkspaceBuilder) -> dict[str, Any]:
    environ = {"UNO_DEVSERVER_TRUST": "1"}
    result = uno.machine.run("disco", "--verify", "--json", cwd=uno.root, env=environ, timeout=PATIENCE)
    return {name: result.json["verification"][name] for name in ("agrees", "onlyRead", "onlyMSBuild", "problems")}


@pytest.mark.parametrize("name", ["a; b, c", "100% $(HOME) @(x)", "it's %3B ü ✓", "star * mark ?"])
def test_odd_characters_in_the_path_of_the_answer_do_not_lose_it(uno: WorkspaceBuilder, name: str) -> None:
    addin = write(uno.machine.root / "addins" / "One.dll", DLL)
    uno.file("App/App.csproj", _project("netcoreapp3.1", addin)).solution("App.sln", ["App/App.csproj"])
    data = uno.machine.root / name
    data.mkdir()
    uno.machine.environment["XDG_DATA_HOME"] = str(data)

    assert _ask_msbuild(uno).add_ins == [str(addin)]
    assert [path for path in data.rglob("*") if path.is_file() and path.suffix == ".txt"] == []


def test_the_hosts_own_targets_are_used_wherever_they_lie(uno: WorkspaceBuilder) -> None:
    addin = write(uno.machine.root / "addins" / "One.dll", DLL)
    targets = SDK_TARGETS.replace('  <Import Project="Sdk.targets" Sdk="Microsoft.NET.Sdk" />\n', "")
    custom = write(uno.machine.root / "50% a; b, $(c) 'ü'" / "DevServer.Custom.Targets", targets)
    uno.file("App/App.csproj", _project("netcoreapp3.1", addin).replace("Uno.Sdk", "Microsoft.NET.Sdk"))
    solution = str(uno.solution("App.sln", ["App/App.csproj"]).root / "App.sln")
    host = str(custom.with_name("Host.dll"))

    answer = ask_msbuild(solution, (), host, str(uno.machine.root / "scratch"), uno.machine.environment)

    assert answer == MSBuildAnswer((str(addin),))


def test_a_build_that_fails_is_told_in_the_words_of_msbuild(uno: WorkspaceBuilder) -> None:
    broken = _project("netcoreapp3.1").replace("</Project>", '  <Import Project="nowhere.props" />\n</Project>')
    uno.file("App/App.csproj", broken).solution("App.sln", ["App/App.csproj"])

    issue = _ask_msbuild(uno).issue("MSBuildDiscoveryFailed")

    assert "MSB4019" in issue["message"]
    assert "nowhere.props" in issue["message"]


def test_a_host_that_was_not_told_its_addins_loads_those_that_msbuild_names(uno: WorkspaceBuilder) -> None:
    addin = write(uno.machine.root / "Größe" / "greeter.py", GREETER)
    uno.file("App/App.csproj", _project("netcoreapp3.1", addin)).solution("App.sln", ["App/App.csproj"])
    environ = {**uno.machine.environment, "UNO_DEVSERVER_TRUST": "1"}

    with BundledHost(uno.machine.root, "--solution", str(uno.root / "App.sln"), environ=environ) as host:
        report = wait_for(lambda: _settled(host), seconds=PATIENCE)
        result = host.call("greet", name="MSBuild")

    assert [(each["assemblyPath"], each["loaded"]) for each in report["addIns"]] == [(str(addin), True)]
    assert result["content"][0]["text"] == "hello MSBuild"


def _settled(host: BundledHost) -> dict[str, object] | None:
    report: dict[str, object] = host.ask("GET", "/health").json
    return None if report["loading"] else report


def test_nothing_of_msbuild_is_left_running(uno: WorkspaceBuilder) -> None:
    """Several projects are built by several processes, which MSBuild keeps for the next build."""
    for name in "ABCD":
        uno.file(f"{name}/{name}.csproj", _project("netcoreapp3.1;netstandard2.1"))
    uno.solution("App.sln", [f"{name}/{name}.csproj" for name in "ABCD"])

    _ask_msbuild(uno)

    # Kept ones would live for 15 minutes; a killed one is gone when the system gets to it.
    wait_for(lambda: not _processes_on(uno.machine), "the end of all processes")


def _processes_on(machine: Machine) -> list[str]:
    """The command lines of all processes that have this machine's environment."""
    mark = f"HOST_LOG={machine.environment['HOST_LOG']}".encode()
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text("utf-8", "replace"))
        except OSError:
            pass  # it has ended, or is another user's
    return found
