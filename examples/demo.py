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

        print("An Uno workspace with its project below src/, and a NuGet cache with its SDK, its Host and two add-ins.")
        print("No build runs. Without .NET the Host is found but cannot be chosen: disco says so and exits with 1.\n")
        print("$ uno-devserver disco", flush=True)
        table = _disco(root, capture=False)

        started = time.perf_counter()
        result = _disco(root, "--addins-only", "--json")
        elapsed = (time.perf_counter() - started) * 1000
        print(f"\n$ uno-devserver disco --addins-only --json\n{result.stdout}")
        print(f"That took {elapsed:.0f} ms, from process start to end. MSBuild takes 10-30 s for the same answer.\n")
        print(f"Next: run '{_program()} disco' in a workspace of yours, and 'make bench' to measure.")

        found = [Path(path).name for path in json.loads(result.stdout)]
        expected = ["Uno.Settings.DevServer.dll", "Acme.DevTools.dll"]
        return 0 if found == expected and table.returncode in (0, 1) else 1


def _disco(root: Path, *options: str, capture: bool = True) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "NUGET_PACKAGES": str(root / "packages"), "XDG_DATA_HOME": str(root / "state")}
    return subprocess.run(
        [_program(), "disco", "--log-level", "Error", *options],
        cwd=root / "workspace",
        env=environ,
        text=True,
        stdout=subprocess.PIPE if capture else None,
        check=False,
    )


def _program() -> str:
    return str(Path(sys.executable).with_name("uno-devserver"))


if __name__ == "__main__":
    sys.exit(main())
