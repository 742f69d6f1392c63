"""Restored workspaces for the benchmark, shaped as NuGet writes them.

Each size has one NuGet cache and two workspaces that differ in what a restore left in obj/. One package in 50 is an
add-in, one in 10 has build logic that is none, one in 25 has a tools folder for other reasons. What is complete is
used again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WORK = Path(__file__).parent / "work"
MAX_REFERENCES = 60
LAYOUT = 5  # raise it when the files below change: workspaces of another layout are built again

SIZES = (200, 500, 2000)
ASSETS_ONLY, ALL_FILES = "assets only", "all files of a restore"

SDK_VERSION = "6.5.31"
FRAMEWORK = "net10.0"
ENTRY_BYTES = 10_000  # of a package in `libraries`, nearly all of it the list of its files
LIBRARY_FRAMEWORKS = (
    "net462",
    "netstandard2.0",
    "net6.0",
    "net7.0",
    "net8.0",
    "net9.0",
    "net10.0",
    "net10.0-android36.0",
)
CULTURES = ("cs", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt-BR", "ru", "sv", "tr", "uk", "zh-Hans", "zh-Hant")


@dataclass(frozen=True)
class Case:
    size: int
    variant: str

    @property
    def folder(self) -> Path:
        return WORK / str(self.size)

    @property
    def nuget(self) -> Path:
        return self.folder / "nuget"

    @property
    def workspace(self) -> Path:
        return self.folder / self.variant.split()[0]

    @property
    def expected_file(self) -> Path:
        return self.folder / "expected.txt"


def build_all() -> None:
    """Every size, each complete or not there: the stamp is written last, and names where the paths inside point to."""
    (WORK / "home").mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        case = Case(size, ASSETS_ONLY)
        stamp, meaning = case.folder / "complete", f"layout {LAYOUT} in {WORK}\n"
        if stamp.exists() and stamp.read_text("utf-8") == meaning:
            continue
        shutil.rmtree(case.folder, ignore_errors=True)
        build(size)
        stamp.write_text(meaning, "utf-8")


def build(size: int) -> None:
    packages = [*_uno_packages(), *(_package(index) for index in range(size - len(_uno_packages())))]
    case = Case(size, ASSETS_ONLY)
    for package in packages:
        _write_all(case.nuget / package.path, {**package.metadata, **package.files})
    _write_all(case.nuget / "uno.sdk" / SDK_VERSION, {"targets/netstandard2.0/packages.json": _packages_json()})
    for variant in (ASSETS_ONLY, ALL_FILES):
        _build_workspace(Case(size, variant), packages)
    add_ins = [str(case.nuget / package.path / package.add_in) for package in packages if package.add_in]
    case.expected_file.write_text("\n".join(add_ins) + "\n", "utf-8")


@dataclass(frozen=True)
class Package:
    id: str
    version: str
    files: Mapping[str, str]  # those that are on disk; the assemblies in lib/ are only listed, nothing reads them
    add_in: str | None = None

    @property
    def path(self) -> str:
        return f"{self.id}/{self.version}".lower()

    @property
    def sha512(self) -> str:
        return base64.b64encode(hashlib.sha512(self.path.encode()).digest()).decode()

    @property
    def metadata(self) -> dict[str, str]:
        """The files that NuGet adds to every package."""
        lower = self.id.lower()
        nuspec = f"<package><metadata><id>{self.id}</id><version>{self.version}</version></metadata></package>"
        return {
            ".nupkg.metadata": json.dumps({"version": 2, "contentHash": self.sha512, "source": "local"}, indent=2),
            f"{lower}.{self.version}.nupkg.sha512": self.sha512,
            f"{lower}.nuspec": nuspec,
        }

    @property
    def has_tools(self) -> bool:
        return any(name.startswith("tools/") for name in self.files)

    def imports(self, ending: str) -> list[str]:
        """What MSBuild imports of it."""
        return [name for name in self.files if name.startswith("buildTransitive/") and name.endswith(ending)]


def _uno_packages() -> list[Package]:
    host = "tools/rc/host/net10.0/Uno.UI.RemoteControl.Host.dll"
    return [
        Package("Uno.WinUI", "6.5.153", _build_files("Uno.WinUI")),
        Package("Uno.WinUI.DevServer", "6.5.153", {host: "MZ"}),
        _with_include("Uno.Settings.DevServer", "1.8.0"),
        _with_property("Uno.UI.App.Mcp", "1.1.0"),
    ]


def _package(index: int) -> Package:
    name = f"Contoso.{('Data', 'Views', 'Logging', 'Graphics', 'Hosting')[index // 7 % 5]}.Part{index:04}"
    version = f"{1 + index % 9}.{index % 4}.{index % 30}"
    if index % 50 == 0:
        return (_with_include, _with_property, _with_manifest)[index // 50 % 3](name, version)
    if index % 10 == 5:
        return Package(name, version, _build_files(name))
    if index % 25 == 7:
        return Package(name, version, {"tools/install.ps1": "param($installPath, $toolsPath, $package, $project)\n"})
    return Package(name, version, {})


def _with_include(name: str, version: str) -> Package:
    dll = f"tools/devserver/{name}.dll"
    include = f'<UnoRemoteControlAddIns Include="$(MSBuildThisFileDirectory)../{dll}" />'
    targets = f"<Project>\n  <ItemGroup>\n    {include}\n  </ItemGroup>\n</Project>\n"
    return Package(name, version, {dll: "MZ", f"buildTransitive/{name}.targets": targets}, dll)


def _with_property(name: str, version: str) -> Package:
    dll = f"tools/devserver/{name}.Server.dll"
    path, variable = f"$(MSBuildThisFileDirectory)../{dll}", f"_{name.replace('.', '')}Path"
    targets = f"""<Project xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
  <PropertyGroup>
    <{variable} Condition="Exists('{path}')">{path}</{variable}>
  </PropertyGroup>
  <ItemGroup>
    <UnoRemoteControlAddIns Include="$({variable})" Condition="'$({variable})' != ''" />
  </ItemGroup>
</Project>
"""
    return Package(name, version, {dll: "MZ", f"buildTransitive/{name}.targets": targets}, dll)


def _with_manifest(name: str, version: str) -> Package:
    dll = f"tools/devserver/{name}.dll"
    manifest = json.dumps({"version": 1, "addins": [{"entryPoint": dll}]}, indent=2)
    return Package(name, version, {dll: "MZ", "devserver-addin.json": manifest}, dll)


def _build_files(name: str) -> dict[str, str]:
    """Build logic as many packages have it, and no add-in."""
    word = name.replace(".", "")
    props = f"""<Project>
  <PropertyGroup>
    <{word}Enabled Condition="'$({word}Enabled)' == ''">true</{word}Enabled>
    <{word}Root>$([MSBuild]::NormalizeDirectory('$(MSBuildThisFileDirectory)..'))</{word}Root>
  </PropertyGroup>
</Project>
"""
    targets = f"""<Project>
  <UsingTask TaskName="{name}.Generate" AssemblyFile="$({word}Root)tasks/{name}.dll" />
  <ItemGroup Condition="'$({word}Enabled)' == 'true'">
    <CompilerVisibleProperty Include="{word}Enabled" />
    <AdditionalFiles Include="$(MSBuildProjectDirectory)/*.{word}.json" Visible="false" />
  </ItemGroup>
  <Target Name="{word}Generate" BeforeTargets="CoreCompile" Condition="'$({word}Enabled)' == 'true'">
    <Generate Files="@(AdditionalFiles)" Output="$(IntermediateOutputPath){word}.g.cs">
      <Output TaskParameter="Generated" ItemName="Compile" />
    </Generate>
  </Target>
</Project>
"""
    return {f"buildTransitive/{name}.props": props, f"buildTransitive/{name}.targets": targets}


def _packages_json() -> str:
    core = {"group": "Core", "version": "6.5.153", "packages": ["Uno.WinUI", "Uno.WinUI.DevServer"]}
    settings = {"group": "settings", "version": "1.8.0", "packages": ["Uno.Settings.DevServer"]}
    app_mcp = {"group": "AppMcp", "version": "1.1.0", "packages": ["Uno.UI.App.Mcp"]}
    return json.dumps([core, settings, app_mcp], indent=2)


def _build_workspace(case: Case, packages: Sequence[Package]) -> None:
    project = case.workspace / "src/App/App.csproj"
    # Most packages of a large project come through others; people write some dozens of references themselves.
    direct = packages[::5][:MAX_REFERENCES]
    references = "".join(f'    <PackageReference Include="{p.id}" Version="{p.version}" />\n' for p in direct)
    body = f"  <PropertyGroup>\n    <TargetFramework>{FRAMEWORK}</TargetFramework>\n  </PropertyGroup>\n"
    files = {
        "global.json": json.dumps({"msbuild-sdks": {"Uno.Sdk": SDK_VERSION}}, indent=2),
        "App.slnx": '<Solution>\n  <Project Path="src/App/App.csproj" />\n</Solution>\n',
        "src/App/App.csproj": f'<Project Sdk="Uno.Sdk">\n{body}  <ItemGroup>\n{references}  </ItemGroup>\n</Project>\n',
        "src/App/obj/project.assets.json": json.dumps(_assets(case, project, packages, direct), indent=2),
    }
    if case.variant == ALL_FILES:
        files["src/App/obj/App.csproj.nuget.g.props"] = _generated_props(case, packages)
        files["src/App/obj/App.csproj.nuget.g.targets"] = _generated_targets(packages)
        files["src/App/obj/project.nuget.cache"] = json.dumps(_nuget_cache(case, project, packages), indent=2)
    _write_all(case.workspace, files)


def _assets(case: Case, project: Path, packages: Sequence[Package], direct: Sequence[Package]) -> dict[str, object]:
    ordered = sorted(packages, key=lambda package: package.id.lower())
    restore = {
        "projectUniqueName": str(project),
        "projectName": "App",
        "projectPath": str(project),
        "packagesPath": str(case.nuget),
        "outputPath": f"{project.parent}/obj/",
        "projectStyle": "PackageReference",
        "configFilePaths": [f"{WORK}/home/.nuget/NuGet/NuGet.Config"],
        "originalTargetFrameworks": [FRAMEWORK],
        "sources": {"local": {}},
        "frameworks": {FRAMEWORK: {"framework": FRAMEWORK, "targetAlias": FRAMEWORK, "projectReferences": {}}},
        "warningProperties": {"warnAsError": ["NU1605"]},
        "restoreAuditProperties": {"enableAudit": "true", "auditLevel": "low", "auditMode": "all"},
        "SdkAnalysisLevel": "9.0.100",
    }
    dependencies = {package.id: {"target": "Package", "version": f"[{package.version}, )"} for package in direct}
    return {
        "version": 3,
        "targets": {FRAMEWORK: {f"{package.id}/{package.version}": _target_entry(package) for package in ordered}},
        "libraries": {f"{package.id}/{package.version}": _library_entry(package) for package in ordered},
        "projectFileDependencyGroups": {FRAMEWORK: [f"{package.id} >= {package.version}" for package in direct]},
        "packageFolders": {str(case.nuget): {}},
        "project": {
            "version": "1.0.0",
            "restore": restore,
            "frameworks": {
                FRAMEWORK: {
                    "framework": FRAMEWORK,
                    "targetAlias": FRAMEWORK,
                    "dependencies": dependencies,
                    "imports": ["net461", "net462", "net47", "net471", "net472", "net48", "net481"],
                    "assetTargetFallback": True,
                    "warn": True,
                    "frameworkReferences": {"Microsoft.NETCore.App": {"privateAssets": "all"}},
                    "packagesToPrune": {},
                }
            },
        },
    }


def _target_entry(package: Package) -> dict[str, object]:
    assembly = {f"lib/net8.0/{package.id}.dll": {"related": ".xml"}}
    build: dict[str, object] = {name: {} for name in (*package.imports(".props"), *package.imports(".targets"))}
    entry: dict[str, object] = {"type": "package", "compile": assembly, "runtime": assembly}
    return {**entry, "build": build} if build else entry


def _library_entry(package: Package) -> dict[str, object]:
    name = package.id
    assemblies = [f"{name}.dll", f"{name}.xml", *(f"{culture}/{name}.resources.dll" for culture in CULTURES)]
    listed = [f"lib/{framework}/{file}" for framework in LIBRARY_FRAMEWORKS for file in assemblies]
    while sum(len(line) + len('        "",\n') for line in listed) > ENTRY_BYTES:
        listed.pop()
    entry: dict[str, object] = {"sha512": package.sha512, "type": "package", "path": package.path}
    if package.has_tools:
        entry["hasTools"] = True
    return {**entry, "files": sorted([*package.metadata, ".signature.p7s", *package.files, *listed])}


NOT_EXCLUDED = "Condition=\" '$(ExcludeRestorePackageImports)' != 'true' \""
XML_START = """\ufeff<?xml version="1.0" encoding="utf-8" standalone="no"?>
<Project ToolsVersion="14.0" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
"""


def _generated_props(case: Case, packages: Sequence[Package]) -> str:
    values = {
        "RestoreSuccess": "True",
        "RestoreTool": "NuGet",
        "ProjectAssetsFile": "$(MSBuildThisFileDirectory)project.assets.json",
        "NuGetPackageRoot": str(case.nuget),
        "NuGetPackageFolders": str(case.nuget),
        "NuGetProjectStyle": "PackageReference",
        "NuGetToolVersion": "7.0.0",
    }
    paths = {f"Pkg{p.id.replace('.', '_')}": str(case.nuget / p.path) for p in _descending(packages) if p.has_tools}
    return (
        f"{XML_START}{_properties(values)}"
        f'  <ItemGroup {NOT_EXCLUDED}>\n    <SourceRoot Include="{case.nuget}/" />\n  </ItemGroup>\n'
        f"{_imports(packages, '.props')}{_properties(paths)}</Project>"
    )


def _generated_targets(packages: Sequence[Package]) -> str:
    return f"{XML_START}{_imports(packages, '.targets')}</Project>"


def _properties(values: Mapping[str, str]) -> str:
    lines = "".join(f"    <{n} Condition=\" '$({n})' == '' \">{value}</{n}>\n" for n, value in values.items())
    return f"  <PropertyGroup {NOT_EXCLUDED}>\n{lines}  </PropertyGroup>\n"


def _imports(packages: Sequence[Package], ending: str) -> str:
    paths = [f"$(NuGetPackageRoot)/{p.path}/{name}" for p in _descending(packages) for name in p.imports(ending)]
    lines = "".join(f'    <Import Project="{path}" Condition="Exists(\'{path}\')" />\n' for path in paths)
    return f"  <ImportGroup {NOT_EXCLUDED}>\n{lines}  </ImportGroup>\n"


def _descending(packages: Sequence[Package]) -> list[Package]:
    """The order in which NuGet lists packages that do not depend on each other."""
    return sorted(packages, key=lambda package: package.id.lower(), reverse=True)


def _nuget_cache(case: Case, project: Path, packages: Sequence[Package]) -> dict[str, object]:
    ordered = sorted(packages, key=lambda package: package.id.lower())
    hashes = [f"{case.nuget}/{p.path}/{p.id.lower()}.{p.version}.nupkg.sha512" for p in ordered]
    head = {"version": 2, "dgSpecHash": "AAAAAAAAAAA=", "success": True, "projectFilePath": str(project)}
    return {**head, "expectedPackageFiles": hashes, "logs": []}


def _write_all(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
