"""A Uno workspace on disk, built up step by step in the words of its author.

    WorkspaceBuilder(machine).uno_sdk().project("src/App/App.csproj", [app_mcp()]).solution("App.slnx")

Every step writes at once and returns the builder. Packages named by a project are put into the NuGet cache and
restored for it, unless the test says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from support.files import write
from support.machine import Machine
from support.packages import GROUPS, Group, Package, app_mcp, host, sdk, settings
from support.restore import Restored

_CSPROJ_KIND = "{9A19103F-16F7-4668-BE54-9A1E7A4F7556}"


class WorkspaceBuilder:
    def __init__(self, machine: Machine, folder: str = ".") -> None:
        self.machine = machine
        self.root = machine.workspace / folder
        self._projects: list[str] = []

    def file(self, path: str, content: str | bytes) -> Self:
        write(self.root / path, content)
        return self

    def global_json(self, sdks: Mapping[str, str] | None = None, *, dotnet: Mapping[str, Any] | None = None) -> Self:
        content = {**({"sdk": dotnet} if dotnet else {}), **({"msbuild-sdks": sdks} if sdks else {})}
        return self.file("global.json", json.dumps(content, indent=2))

    def package(self, *packages: Package, cache: Path | None = None) -> Self:
        for package in packages:
            package.write(cache or self.machine.nuget)
        return self

    def uno_sdk(
        self,
        version: str = "6.5.31",
        *,
        name: str = "Uno.Sdk",
        groups: Sequence[Group] | None = GROUPS,
        cache: Path | None = None,
    ) -> Self:
        """global.json and the SDK package with its packages.json, and nothing that this lists."""
        return self.global_json({name: version}).package(sdk(name, version, groups), cache=cache)

    def uno_6_5(self, *, name: str = "Uno.Sdk", version: str = "6.5.31") -> Self:
        """Everything of a current SDK: Host, settings, and the app tools."""
        return self.uno_sdk(version, name=name).package(host(), settings(), app_mcp())

    def uno_6_2(self) -> Self:
        """6.0 to 6.4: a packages.json without the app tools, and a Host for .NET 8 at best."""
        groups = (Group("Core", "6.2.120", ["Uno.WinUI", "Uno.WinUI.DevServer"]),)
        return self.uno_sdk("6.2.39", groups=groups).package(host("6.2.120", ["net8.0"]))

    def uno_5(self) -> Self:
        """5.x: neither packages.json nor Host."""
        return self.uno_sdk("5.6.54", groups=None)

    def project(
        self,
        path: str,
        packages: Sequence[Package] = (),
        *,
        frameworks: Sequence[str] = ("net10.0",),
        restored: bool = True,
        restore_files: Collection[str] = ("assets", "g", "cache", "dgspec"),
        missing: Sequence[Package] = (),
        fallback: Path | None = None,
        sdk: str = "Uno.Sdk",
    ) -> Self:
        """A project that references `packages`; with `restored` they are cached and its obj folder is written."""
        write(self.root / path, csproj([*packages, *missing], frameworks, sdk))
        self._projects.append(path)
        if restored:
            for package in packages:
                if not (fallback and (fallback / package.path).is_dir()):
                    package.write(self.machine.nuget)
            by_framework = dict.fromkeys(frameworks, packages)
            project = self.root / path
            Restored(project, by_framework, self.machine.nuget, fallback, missing).write(restore_files)
        return self

    def edit_project(self, path: str, packages: Sequence[Package], frameworks: Sequence[str] = ("net10.0",)) -> Self:
        """Change the project file after its restore."""
        write(self.root / path, csproj(packages, frameworks))
        return self

    def solution(self, name: str, projects: Sequence[str] | None = None) -> Self:
        """A .sln or .slnx with these projects, or with all projects made so far."""
        projects = self._projects if projects is None else projects
        text = slnx(projects) if name.endswith(".slnx") else sln(projects)
        return self.file(name, text)

    def nuget_config(self, packages_folder: str | None = None) -> Self:
        config = ""
        if packages_folder:
            config = f'  <config>\n    <add key="globalPackagesFolder" value="{packages_folder}" />\n  </config>\n'
        sources = '  <packageSources>\n    <clear />\n    <add key="feed" value="feed" />\n  </packageSources>\n'
        xml = '<?xml version="1.0" encoding="utf-8"?>\n'
        return self.file("nuget.config", f"{xml}<configuration>\n{config}{sources}</configuration>\n")


def csproj(packages: Sequence[Package], frameworks: Sequence[str] = ("net10.0",), sdk: str = "Uno.Sdk") -> str:
    name = "TargetFrameworks" if len(frameworks) > 1 else "TargetFramework"
    references = "".join(
        f'    <PackageReference Include="{package.id}" Version="{package.version}" />\n' for package in packages
    )
    return f"""<Project Sdk="{sdk}">
  <PropertyGroup>
    <{name}>{";".join(frameworks)}</{name}>
    <OutputType>Exe</OutputType>
  </PropertyGroup>
  <ItemGroup>
{references}  </ItemGroup>
</Project>
"""


def slnx(projects: Sequence[str]) -> str:
    lines = [f'  <Project Path="{path}" />' for path in projects]
    configurations = '  <Configurations>\n    <Platform Name="Any CPU" />\n  </Configurations>'
    return "\n".join(["<Solution>", configurations, *lines, "</Solution>", ""])


def sln(projects: Sequence[str]) -> str:
    """As Visual Studio writes it: a byte order mark, an empty line, backslashes, tabs and CRLF."""
    head = [
        "\ufeff",
        "Microsoft Visual Studio Solution File, Format Version 12.00",
        "# Visual Studio Version 17",
        "VisualStudioVersion = 17.0.31903.59",
        "MinimumVisualStudioVersion = 10.0.40219.1",
    ]
    entries: list[str] = []
    settings: list[str] = []
    for number, path in enumerate(projects, 1):
        project_id = f"{{00000000-0000-0000-0000-{number:012d}}}"
        windows_path = path.replace("/", "\\")
        entries.append(f'Project("{_CSPROJ_KIND}") = "{Path(path).stem}", "{windows_path}", "{project_id}"')
        entries.append("EndProject")
        for build in ("Debug", "Release"):
            settings.append(f"\t\t{project_id}.{build}|Any CPU.ActiveCfg = {build}|Any CPU")
            settings.append(f"\t\t{project_id}.{build}|Any CPU.Build.0 = {build}|Any CPU")
    tail = [
        "Global",
        "\tGlobalSection(SolutionConfigurationPlatforms) = preSolution",
        "\t\tDebug|Any CPU = Debug|Any CPU",
        "\t\tRelease|Any CPU = Release|Any CPU",
        "\tEndGlobalSection",
        "\tGlobalSection(ProjectConfigurationPlatforms) = postSolution",
        *settings,
        "\tEndGlobalSection",
        "EndGlobal",
        "",
    ]
    return "\r\n".join([*head, *entries, *tail])
