"""The files of the demo as Python texts, so that an installed wheel contains them."""

from __future__ import annotations

APP = "app"  # the workspace of the AI client
ADD_IN = f"{APP}/.devtools/addins/todos.py"
CLIENT_CONFIG = f"{APP}/.cursor/mcp.json"

UNO = "uno"  # an Uno workspace, whose restored packages are in the folder below
PACKAGES = "packages"
UNO_ADD_INS = ("Uno.Settings.DevServer.dll", "Acme.DevTools.dll")

FILES = {
    f"{UNO}/global.json": '{ "msbuild-sdks": { "Uno.Sdk": "6.5.31" } }\n',
    f"{UNO}/App.slnx": '<Solution>\n  <Project Path="src/App/App.csproj" />\n</Solution>\n',
    f"{UNO}/src/App/App.csproj": """<Project Sdk="Uno.Sdk">
  <PropertyGroup><TargetFrameworks>net10.0-desktop;net10.0-browserwasm</TargetFrameworks></PropertyGroup>
</Project>
""",
    f"{PACKAGES}/uno.sdk/6.5.31/targets/netstandard2.0/packages.json": """[
  { "group": "Core", "version": "6.5.153", "packages": ["Uno.WinUI.DevServer"] },
  { "group": "Settings", "version": "1.8.0", "packages": ["Uno.Settings.DevServer"] },
  { "group": "Tools", "version": "2.0.0", "packages": ["Acme.DevTools"] }
]
""",
    f"{PACKAGES}/uno.winui.devserver/6.5.153/tools/rc/host/net10.0/Uno.UI.RemoteControl.Host.dll": "a program",
    # One package names its add-in in an MSBuild file, the other in a manifest.
    f"{PACKAGES}/uno.settings.devserver/1.8.0/buildTransitive/Uno.Settings.DevServer.targets": """<Project>
  <ItemGroup>
    <UnoRemoteControlAddIns Include="$(MSBuildThisFileDirectory)..\\tools\\devserver\\Uno.Settings.DevServer.dll" />
  </ItemGroup>
</Project>
""",
    f"{PACKAGES}/uno.settings.devserver/1.8.0/tools/devserver/Uno.Settings.DevServer.dll": "an add-in",
    f"{PACKAGES}/acme.devtools/2.0.0/devserver-addin.json": """{
  "version": 1,
  "addins": [{ "entryPoint": "tools/devserver/Acme.DevTools.dll", "minHostVersion": "6.0" }]
}
""",
    f"{PACKAGES}/acme.devtools/2.0.0/tools/devserver/Acme.DevTools.dll": "an add-in",
    f"{APP}/weather.py": """# TODO: ask the station, not the sky
# FIXME: it is colder in the shade
# HACK: adds what the sensor loses
def temperature() -> float:
    return 20.0 + 1.5  # TODO: measure
""",
    # The tool's answer contains the process id of the Host, by which the demo recognises another Host.
    ADD_IN: '''"""Counts the open ends in the sources of a workspace."""

import os
import re
from collections import Counter
from pathlib import Path

from uno_devserver.host.addins import AddIn

WORDS = "TODO|FIXME|HACK"


def register(addin: AddIn) -> None:
    @addin.tool(read_only=True)
    def count_todos() -> dict[str, object]:
        """Count the TODO, FIXME and HACK comments in the sources of this workspace."""
        sources = [file.read_text("utf-8") for file in Path(addin.workspace).glob("*.py")]
        return {"counts": Counter(re.findall(WORDS, "".join(sources))), "process": os.getpid()}
''',
    CLIENT_CONFIG: """{
  // What the team uses. This comment stays, and so does the comma below.
  "mcpServers": {
    "weather": { "command": "weather-mcp" }, // ask Ann
  }
}
""",
}

TOOL = "count_todos"
COUNTS = {"TODO": 2, "FIXME": 1, "HACK": 1}
EDIT = ('WORDS = "TODO|FIXME|HACK"', 'WORDS = "TODO|FIXME"')
COUNTS_AFTER_EDIT = {"TODO": 2, "FIXME": 1}
