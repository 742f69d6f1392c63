"""A short tour of what works: makes an example workspace with a package cache, and lets `disco` look at it.

Everything lives in a temporary folder. Run it with `make demo`; it exits with 1 if a step does not do what it says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILES = {
    "workspace/global.json": '{ "msbuild-sdks": { "Uno.Sdk": "6.5.31" } }',
    "workspace/App.slnx": '<Solution>\n  <Project Path="src/App/App.csproj" />\n</Solution>\n',
    "workspace/src/App/App.csproj": """<Project Sdk="Uno.Sdk">
  <PropertyGroup><TargetFrameworks>net10.0-desktop;net10.0-browserwasm</TargetFrameworks></PropertyGroup>
</Project>
""",
    "packages/uno.sdk/6.5.31/targets/netstandard2.0/packages.json": json.dumps(
        [
            {"group": "Core", "version": "6.5.153", "packages": ["Uno.WinUI.DevServer"]},
            {"group": "Settings", "version": "1.8.0", "packages": ["Uno.Settings.DevServer"]},
            {"group": "Tools", "version": "2.0.0", "packages": ["Acme.DevTools"]},
        ]
    ),
    "packages/uno.winui.devserver/6.5.153/tools/rc/host/net10.0/Uno.UI.RemoteControl.Host.dll": "a program",
    "packages/uno.settings.devserver/1.8.0/buildTransitive/Uno.Settings.DevServer.targets": """<Project>
  <ItemGroup>
    <UnoRemoteControlAddIns Include="$(MSBuildThisFileDirectory)..\\tools\\devserver\\Uno.Settings.DevServer.dll" />
  </ItemGroup>
</Project>
""",
    "packages/uno.settings.devserver/1.8.0/tools/devserver/Uno.Settings.DevServer.dll": "an add-in",
    "packages/uno.settings.devserver/1.8.0/tools/manager/Uno.Settings.dll": "a program",
    "packages/acme.devtools/2.0.0/devserver-addin.json": json.dumps(
        {"version": 1, "addins": [{"entryPoint": "tools/devserver/Acme.DevTools.dll", "minHostVersion": "6.0"}]}
    ),
    "packages/acme.devtools/2.0.0/tools/devserver/Acme.DevTools.dll": "an add-in",
}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="uno-devserver-demo-") as folder:
        root = Path(folder)
        for name, content in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        workspace = root / "workspace"

        print("An Uno workspace, its projects below src/, and a NuGet cache with three packages. No .NET, no build.\n")
        print("$ uno-devserver disco")
        print(_disco(root, workspace).stdout)

        started = time.perf_counter()
        result = _disco(root, workspace, "--addins-only", "--json")
        elapsed = (time.perf_counter() - started) * 1000
        found = [Path(path).name for path in json.loads(result.stdout)]
        print("$ uno-devserver disco --addins-only --json")
        print(f"{found} in {elapsed:.0f} ms, from process start to end. MSBuild takes 10-30 s for the same answer.\n")
        print("Next: run 'uno-devserver disco' in a workspace of yours, and 'make bench' to measure.")
        return 0 if found == ["Uno.Settings.DevServer.dll", "Acme.DevTools.dll"] else 1


def _disco(root: Path, workspace: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "NUGET_PACKAGES": str(root / "packages"), "XDG_DATA_HOME": str(root / "state")}
    command = [str(Path(sys.executable).with_name("uno-devserver")), "disco", *options]
    return subprocess.run(command, cwd=workspace, env=environ, text=True, stdout=subprocess.PIPE, check=False)


if __name__ == "__main__":
    sys.exit(main())
