"""NuGet packages as they lie in a packages folder after a restore, one function per shape that matters here."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.files import write_all

DLL = b"MZ\x90\x00 stands for an assembly"
MSBUILD_XML = 'xmlns="http://schemas.microsoft.com/developer/msbuild/2003"'


@dataclass(frozen=True)
class Package:
    id: str
    version: str
    files: Mapping[str, str | bytes] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The folder below the packages folder: NuGet writes both parts in lower case."""
        return f"{self.id.lower()}/{self.version.lower()}"

    @property
    def has_tools(self) -> bool:
        return any(name.startswith("tools/") for name in self.files)

    @property
    def all_files(self) -> dict[str, str | bytes]:
        """With the files that NuGet itself leaves in every package folder."""
        nuspec = f"<package><metadata><id>{self.id}</id><version>{self.version}</version></metadata></package>\n"
        return {
            ".nupkg.metadata": '{\n  "version": 2,\n  "contentHash": "eA==",\n  "source": "feed"\n}',
            f"{self.id.lower()}.nuspec": nuspec,
            f"{self.id.lower()}.{self.version.lower()}.nupkg.sha512": "eA==",
            **self.files,
        }

    def imports(self, extension: str) -> list[str]:
        """The `.props` or `.targets` that NuGet imports: named like the package; `buildTransitive/` hides `build/`."""
        for folder in ("buildTransitive", "build"):
            wanted = f"{folder}/{self.id}.{extension}".lower()
            found = [name for name in self.files if name.lower() == wanted]
            if found:
                return found
        return []

    def with_files(self, files: Mapping[str, str | bytes]) -> Package:
        return Package(self.id, self.version, {**self.files, **files})

    def without_files(self, *names: str) -> Package:
        assert set(names) <= set(self.files), names
        return Package(self.id, self.version, {name: text for name, text in self.files.items() if name not in names})

    def dll(self, cache: Path, name: str | None = None) -> str:
        """Where its add-in lies in that packages folder."""
        return str(cache / self.path / "tools" / "devserver" / (name or f"{self.id}.dll"))

    def pack(self, folder: Path) -> Path:
        """The .nupkg that is published."""
        path = folder / f"{self.id}.{self.version}.nupkg"
        with zipfile.ZipFile(path, "w") as file:
            for name, content in self.all_files.items():
                file.writestr(name, content)
        return path

    def write(self, cache: Path) -> Path:
        write_all(cache / self.path, self.all_files)
        return cache / self.path


def targets(include: str, *, item_condition: str = "", group_condition: str = "") -> str:
    group = f' Condition="{group_condition}"' if group_condition else ""
    item = f' Condition="{item_condition}"' if item_condition else ""
    return f"""<Project>
  <ItemGroup{group}>
    <UnoRemoteControlAddIns Include="{include}"{item} />
  </ItemGroup>
</Project>
"""


def direct_add_in(name: str, version: str = "1.0.0", *, dll: str | None = None) -> Package:
    """The first seed example: the item names the DLL."""
    file = dll or f"{name}.dll"
    text = targets(f"$(MSBuildThisFileDirectory)../tools/devserver/{file}")
    return Package(name, version, {f"buildTransitive/{name}.targets": text, f"tools/devserver/{file}": DLL})


def property_add_in(name: str, version: str = "1.0.0", *, dll: str | None = None) -> Package:
    """The second seed example: a property guarded by exists(), blanks round its value, an item that uses it."""
    file = dll or f"{name}.dll"
    path = f"$(MSBuildThisFileDirectory)../tools/devserver/{file}"
    text = f"""<Project {MSBUILD_XML}>
  <PropertyGroup>
    <_ServerProcessorPath Condition="exists('{path}')">
      {path}
    </_ServerProcessorPath>
  </PropertyGroup>
  <ItemGroup>
    <UnoRemoteControlAddIns Include="$(_ServerProcessorPath)" />
  </ItemGroup>
</Project>
"""
    return Package(name, version, {f"buildTransitive/{name}.targets": text, f"tools/devserver/{file}": DLL})


def manifest_add_in(
    name: str,
    version: str = "1.0.0",
    *,
    entries: Sequence[Mapping[str, Any]] | None = None,
    manifest_version: object = 1,
) -> Package:
    """A package that says itself what its entry points are."""
    entries = [{"entryPoint": f"tools/devserver/{name}.dll"}] if entries is None else entries
    manifest = json.dumps({"version": manifest_version, "addins": entries}, indent=2)
    return Package(name, version, {"devserver-addin.json": manifest, f"tools/devserver/{name}.dll": DLL})


def build_add_in(name: str, version: str = "1.0.0") -> Package:
    """From before the buildTransitive convention."""
    text = targets(f"$(MSBuildThisFileDirectory)../tools/devserver/{name}.dll")
    return Package(name, version, {f"build/{name}.targets": text, f"tools/devserver/{name}.dll": DLL})


def tools_only(name: str, version: str = "1.0.0") -> Package:
    """DLLs for the Host, and nothing that says which of them is the entry point."""
    return Package(name, version, {f"tools/devserver/{name}.dll": DLL, "tools/devserver/Dependency.dll": DLL})


def library(name: str, version: str = "1.0.0") -> Package:
    """Most packages: nothing for the Host."""
    return Package(name, version, {f"lib/net10.0/{name}.dll": DLL})


def settings(version: str = "1.8.0") -> Package:
    """Uno.Settings.DevServer: an add-in, and the settings application."""
    package = direct_add_in("Uno.Settings.DevServer", version)
    return package.with_files({"tools/manager/Uno.Settings.dll": DLL})


def app_mcp(version: str = "1.1.0") -> Package:
    return property_add_in("Uno.UI.App.Mcp", version, dll="Uno.UI.App.Mcp.Server.dll")


def host(version: str = "6.5.153", frameworks: Sequence[str] = ("net9.0", "net10.0")) -> Package:
    """Uno.WinUI.DevServer: the Host, one folder per target framework."""
    files: dict[str, str | bytes] = {}
    for framework in frameworks:
        files[f"tools/rc/host/{framework}/Uno.UI.RemoteControl.Host.dll"] = DLL
        files[f"tools/rc/host/{framework}/DevServer.Custom.Targets"] = "<Project />\n"
    return Package("Uno.WinUI.DevServer", version, files)


@dataclass(frozen=True)
class Group:
    """One entry of an SDK's packages.json."""

    name: str
    version: str
    packages: Sequence[str]
    version_override: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"group": self.name, "version": self.version, "packages": list(self.packages)}
        if self.version_override:
            entry["versionOverride"] = dict(self.version_override)
        return entry


CORE = Group("Core", "6.5.153", ["Uno.WinUI", "Uno.WinUI.DevServer"])
SETTINGS = Group("settings", "1.8.0", ["Uno.Settings.DevServer"])
APP_MCP = Group("AppMcp", "1.1.0", ["Uno.UI.App.Mcp"])
GROUPS = (CORE, SETTINGS, APP_MCP)

PACKAGES_JSON = "targets/netstandard2.0/packages.json"


def sdk(name: str, version: str, groups: Sequence[Group] | None) -> Package:
    """The project SDK; before 6.0 it had no packages.json (`groups` None)."""
    files: dict[str, str | bytes] = {"Sdk/Sdk.props": "<Project />\n", "Sdk/Sdk.targets": "<Project />\n"}
    if groups is not None:
        files[PACKAGES_JSON] = json.dumps([group.as_json() for group in groups], indent=2)
    return Package(name, version, files)
