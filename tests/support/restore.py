"""What `dotnet restore` leaves in a project's obj folder, in the shapes that NuGet 7 writes.

Five files: project.assets.json (version 4), <project>.nuget.g.props and .g.targets (with a byte order mark),
<project>.nuget.dgspec.json and project.nuget.cache.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.files import write
from support.packages import MSBUILD_XML, Package

_HEAD = f'\ufeff<?xml version="1.0" encoding="utf-8" standalone="no"?>\n<Project ToolsVersion="14.0" {MSBUILD_XML}'
_ON = "'$(ExcludeRestorePackageImports)' != 'true'"


@dataclass(frozen=True)
class Restored:
    """One project's restore; `packages` by target framework, `missing` the references that could not be resolved."""

    project: Path
    packages: Mapping[str, Sequence[Package]]
    cache: Path
    fallback: Path | None = None
    missing: Sequence[Package] = ()
    folder: Path | None = None

    @property
    def success(self) -> bool:
        return not self.missing

    @property
    def obj(self) -> Path:
        return self.folder or self.project.parent / "obj"

    @property
    def frameworks(self) -> list[str]:
        return list(self.packages)

    def write(self, only: Collection[str] = ("assets", "g", "cache", "dgspec")) -> None:
        name = self.project.name
        if "assets" in only:
            write(self.obj / "project.assets.json", json.dumps(self._assets(), indent=2))
        if "g" in only:
            write(self.obj / f"{name}.nuget.g.props", self._props())
            write(self.obj / f"{name}.nuget.g.targets", self._targets())
        if "dgspec" in only:
            write(self.obj / f"{name}.nuget.dgspec.json", json.dumps(self._dgspec(), indent=2))
        if "cache" in only:
            write(self.obj / "project.nuget.cache", json.dumps(self._cache(), indent=2))

    def _folder_of(self, package: Package) -> Path:
        """NuGet does not copy a package that a fallback folder already has."""
        if self.fallback and (self.fallback / package.path).is_dir():
            return self.fallback / package.path
        return self.cache / package.path

    def _all(self) -> list[Package]:
        unique = {package.path: package for packages in self.packages.values() for package in packages}
        return sorted(unique.values(), key=lambda package: package.id)

    def _assets(self) -> dict[str, Any]:
        return {
            "version": 4,
            "targets": {
                framework: {f"{package.id}/{package.version}": _target(package) for package in packages}
                for framework, packages in self.packages.items()
            },
            "libraries": {f"{package.id}/{package.version}": _library(package) for package in self._all()},
            "projectFileDependencyGroups": {
                framework: [f"{package.id} >= {package.version}" for package in [*packages, *self.missing]]
                for framework, packages in self.packages.items()
            },
            "packageFolders": {str(folder): {} for folder in (self.cache, self.fallback) if folder},
            "project": self._project(),
            **({} if self.success else {"logs": [_missing_log(package) for package in self.missing]}),
        }

    def _project(self) -> dict[str, Any]:
        path = str(self.project)
        return {
            "version": "1.0.0",
            "restore": {
                "projectUniqueName": path,
                "projectName": self.project.stem,
                "projectPath": path,
                "packagesPath": str(self.cache),
                "outputPath": f"{self.obj}/",
                "projectStyle": "PackageReference",
                **({"crossTargeting": True} if len(self.packages) > 1 else {}),
                **({"fallbackFolders": [str(self.fallback)]} if self.fallback else {}),
                "originalTargetFrameworks": self.frameworks,
                "sources": {"feed": {}},
                "frameworks": {
                    name: {"framework": name, "targetAlias": name, "projectReferences": {}} for name in self.packages
                },
                "SdkAnalysisLevel": "10.0.400",
            },
            "frameworks": {
                name: {
                    "framework": name,
                    "targetAlias": name,
                    "dependencies": {
                        package.id: {"target": "Package", "version": f"[{package.version}, )"}
                        for package in [*packages, *self.missing]
                    },
                    "frameworkReferences": {"Microsoft.NETCore.App": {"privateAssets": "all"}},
                    "packagesToPrune": {},
                }
                for name, packages in self.packages.items()
            },
        }

    def _dgspec(self) -> dict[str, Any]:
        path = str(self.project)
        return {"format": 1, "restore": {path: {}}, "projects": {path: self._project()}}

    def _cache(self) -> dict[str, Any]:
        return {
            "version": 2,
            "dgSpecHash": "Nc9IEHj67ZA=",
            "success": self.success,
            "projectFilePath": str(self.project),
            "expectedPackageFiles": [
                f"{self._folder_of(package)}/{package.path.replace('/', '.')}.nupkg.sha512" for package in self._all()
            ],
            "logs": [{**_missing_log(package), "projectPath": str(self.project)} for package in self.missing],
        }

    def _props(self) -> str:
        folders = ";".join(str(folder) for folder in (self.cache, self.fallback) if folder)
        fixed = {
            "RestoreSuccess": str(self.success),
            "RestoreTool": "NuGet",
            "ProjectAssetsFile": "$(MSBuildThisFileDirectory)project.assets.json",
            "NuGetPackageRoot": str(self.cache),
            "NuGetPackageFolders": folders,
            "NuGetProjectStyle": "PackageReference",
            "NuGetToolVersion": "7.0.0",
        }
        lines = [f'  <PropertyGroup Condition=" {_ON} ">', *map(_property, fixed, fixed.values()), "  </PropertyGroup>"]
        lines += [f'  <ItemGroup Condition=" {_ON} ">', f'    <SourceRoot Include="{self.cache}/" />', "  </ItemGroup>"]
        lines += self._import_groups("props")
        for framework, packages in self.packages.items():
            tools = [package for package in _import_order(packages) if package.has_tools]
            if tools:
                lines.append(f'  <PropertyGroup Condition=" {self._condition(framework)} ">')
                lines += [_property(_path_property(package), str(self._folder_of(package))) for package in tools]
                lines.append("  </PropertyGroup>")
        return f"{_HEAD}>\n" + "\n".join(lines) + "\n</Project>"

    def _targets(self) -> str:
        groups = self._import_groups("targets")
        return f"{_HEAD}>\n" + "\n".join(groups) + "\n</Project>" if groups else f"{_HEAD} />"

    def _import_groups(self, extension: str) -> list[str]:
        lines: list[str] = []
        for framework, packages in self.packages.items():
            imports = [
                self._import(package, name)
                for package in _import_order(packages)
                for name in package.imports(extension)
            ]
            if imports:
                lines += [f'  <ImportGroup Condition=" {self._condition(framework)} ">', *imports, "  </ImportGroup>"]
        return lines

    def _import(self, package: Package, name: str) -> str:
        folder = self._folder_of(package)
        root = (
            str(folder)
            if self.fallback and folder.is_relative_to(self.fallback)
            else f"$(NuGetPackageRoot)/{package.path}"
        )
        return f"""    <Import Project="{root}/{name}" Condition="Exists('{root}/{name}')" />"""

    def _condition(self, framework: str) -> str:
        return f"'$(TargetFramework)' == '{framework}' AND {_ON}" if len(self.packages) > 1 else _ON


def _target(package: Package) -> dict[str, Any]:
    imports = [*package.imports("props"), *package.imports("targets")]
    return {"type": "package", **({"build": {name: {} for name in imports}} if imports else {})}


def _library(package: Package) -> dict[str, Any]:
    return {
        "sha512": "eA==",
        "type": "package",
        "path": package.path,
        **({"hasTools": True} if package.has_tools else {}),
        "files": sorted(package.all_files),
    }


def _missing_log(package: Package) -> dict[str, Any]:
    return {
        "code": "NU1101",
        "level": "Error",
        "message": f"Unable to find package {package.id}.",
        "libraryId": package.id,
    }


def _import_order(packages: Sequence[Package]) -> list[Package]:
    """Independent packages come in descending order of their ids."""
    return sorted(packages, key=lambda package: package.id, reverse=True)


def _path_property(package: Package) -> str:
    return "Pkg" + package.id.replace(".", "_")


def _property(name: str, value: str) -> str:
    return f"    <{name} Condition=\" '$({name})' == '' \">{value}</{name}>"
