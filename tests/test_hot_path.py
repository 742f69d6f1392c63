"""The modules that are imported before the first answer, which decide how fast it comes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support.machine import DATA_HOME

# What may be imported to answer, and below it what these import themselves. Every other module has to be worth its
# milliseconds: `dataclasses` alone takes ten, as long as the bare interpreter.
ALLOWED = {"__future__", "binascii", "enum", "json", "re", "time", "uno_devserver"}
ALLOWED |= {"_collections", "_functools", "_json", "_operator", "_sre", "_struct", "collections", "copyreg"}
ALLOWED |= {"_types", "functools", "itertools", "keyword", "operator", "reprlib", "types"}  # `_types` is built in

PROGRAM = """
import sys
before = set(sys.modules)
from uno_devserver.cli.main import main
code = main(sys.argv[1:])
sys.stderr.write("\\n".join(sorted(set(sys.modules) - before)))
sys.exit(code)
"""


def _imported_by(workspace: Path, *arguments: str) -> set[str]:
    environ = {**os.environ, "NUGET_PACKAGES": str(workspace / "packages"), DATA_HOME: str(workspace / "state")}
    # Short enough for sockets: else `cleanup` would look for left ones in the folder that all tests share.
    with tempfile.TemporaryDirectory(prefix="u") as temp:
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            cwd=workspace,
            env={**environ, "TMPDIR": temp},
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 0, result.stderr
    return set(result.stderr.split())


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    package = tmp_path / "packages" / "acme.addin" / "1.0.0"
    obj = tmp_path / "src" / "App" / "obj"
    files = {
        tmp_path / "global.json": '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}',
        tmp_path / "App.slnx": '<Solution><Project Path="src/App/App.csproj" /></Solution>',
        tmp_path / "src" / "App" / "App.csproj": """<Project Sdk="Uno.Sdk">
            <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup></Project>""",
        tmp_path / "packages" / "uno.sdk" / "6.5.31" / "targets" / "netstandard2.0" / "packages.json": "[]",
        obj / "App.csproj.nuget.g.props": f"""<Project><PropertyGroup>
            <NuGetPackageRoot>{tmp_path}/packages</NuGetPackageRoot></PropertyGroup></Project>""",
        obj / "App.csproj.nuget.g.targets": """<Project><ImportGroup>
            <Import Project="$(NuGetPackageRoot)/acme.addin/1.0.0/buildTransitive/Acme.AddIn.targets"
             Condition="Exists('$(NuGetPackageRoot)/acme.addin/1.0.0/buildTransitive/Acme.AddIn.targets')" />
            </ImportGroup></Project>""",
        package / "buildTransitive" / "Acme.AddIn.targets": """<Project><ItemGroup>
            <UnoRemoteControlAddIns Include="$(MSBuildThisFileDirectory)../tools/devserver/Acme.dll" />
            </ItemGroup></Project>""",
        package / "tools" / "devserver" / "Acme.dll": "MZ",
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def test_discovery_of_addins_imports_nothing_that_it_does_not_need(workspace: Path) -> None:
    imported = _imported_by(workspace, "disco", "--addins-only")

    assert "uno_devserver.discovery.addin_search" in imported
    assert {name.partition(".")[0] for name in imported} - ALLOWED == set()


@pytest.mark.parametrize("command", ["list", "stop", "cleanup"])
def test_a_registry_without_servers_is_looked_at_without_importing_anything(workspace: Path, command: str) -> None:
    imported = _imported_by(workspace, command)

    assert "uno_devserver.instances.registry" in imported
    assert {name.partition(".")[0] for name in imported} - ALLOWED == set()


def test_asking_for_the_version_does_not_load_discovery(workspace: Path) -> None:
    imported = _imported_by(workspace, "--version")

    assert not [name for name in imported if name.startswith(("uno_devserver.discovery", "uno_devserver.msbuild"))]


def test_a_module_in_the_current_folder_is_not_taken_for_pythons_own(workspace: Path) -> None:
    for name in ("json.py", "re.py", "enum.py", "difflib.py"):
        (workspace / name).write_text("raise SystemExit('code of the workspace ran')")

    result = subprocess.run(
        [sys.executable, "-m", "uno_devserver", "disco", "--json"], cwd=workspace, capture_output=True, text=True
    )

    assert "code of the workspace ran" not in result.stdout + result.stderr
    assert result.stdout.startswith("{")
