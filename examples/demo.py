"""A short tour of what works: an Uno workspace is discovered; a workspace without .NET gets a server, which is used,
killed and healed. Each step says what happened and how long it took.

Everything lives in a temporary folder, and nothing is left running. Run it with `make demo`; it exits with 1 if a step
does not do what it says.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

PROGRAM = str(Path(sys.executable).with_name("uno-devserver"))
EXAMPLE = Path(__file__).parent / "workspace"

UNO_WORKSPACE = {
    "uno/global.json": '{ "msbuild-sdks": { "Uno.Sdk": "6.5.31" } }',
    "uno/App.slnx": '<Solution>\n  <Project Path="src/App/App.csproj" />\n</Solution>\n',
    "uno/src/App/App.csproj": """<Project Sdk="Uno.Sdk">
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


class Failed(Exception):
    """A step did not do what it says."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="uno-devserver-demo-") as folder:
        root = Path(folder)
        stage = Stage(root)
        try:
            discover(stage)
            serve(stage)
        except Failed as failure:
            print(f"\nThe demo failed: {failure}", file=sys.stderr)
            return 1
        finally:
            stage.run("stop", "--all", quiet=True)
    print("\nTry next, in this folder:")
    print(f"  {PROGRAM} start --solution-dir examples/workspace")
    print("  $EDITOR docs/addins.md     # an add-in of your own, in two minutes")
    return 0


def discover(stage: Stage) -> None:
    print("1. An Uno workspace, and a NuGet cache with its SDK, its Host and two add-ins. What does it run?")
    for name, content in UNO_WORKSPACE.items():
        path = stage.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    found = stage.run("disco", "--addins-only", "--json", folder="uno")
    names = [Path(path).name for path in json.loads(found.stdout)]
    expect(names == ["Uno.Settings.DevServer.dll", "Acme.DevTools.dll"], f"disco found {names}")
    print(f"   {', '.join(names)}: read from disk. MSBuild takes 10-30 s for the same answer.")


def serve(stage: Stage) -> None:
    print("\n2. A workspace without .NET, with an add-in of its own in .devtools/addins/todos.py, gets a server.")
    shutil.copytree(EXAMPLE, stage.root / "workspace", ignore=shutil.ignore_patterns("__pycache__"))
    first = json.loads(stage.run("start", "--json").stdout)
    expect(first["outcome"] == "started", f"start said {first['outcome']}")
    print(f"   process {first['processId']}, {first['mcpEndpoint']}")

    print("\n3. An agent asks what it offers, and calls a tool.")
    agent = Agent(first["mcpEndpoint"])
    tools = [tool["name"] for tool in agent.ask("tools/list")["tools"]]
    expect("find_todos" in tools, f"the tools are {tools}")
    print(f"   {len(tools)} tools: {', '.join(tools)}")
    counted = agent.ask("tools/call", name="count_todos", arguments={})["structuredContent"]
    expect(sum(counted.values()) > 0, f"count_todos found {counted}")
    print(f"   count_todos: {counted}")

    print("\n4. Start again: one workspace, one server.")
    again = json.loads(stage.run("start", "--json").stdout)
    expect((again["outcome"], again["processId"]) == ("reused", first["processId"]), f"start said {again}")
    print(f"   {again['outcome']}: process {again['processId']}")

    print("\n5. Somebody kills it. Nothing stale is left, and the next start heals the workspace.")
    kill(first["processId"])
    listed = json.loads(stage.run("list", "--json").stdout)["servers"]
    expect(listed == [], f"list still shows {listed}")
    healed = json.loads(stage.run("start", "--json").stdout)
    expect(healed["outcome"] == "started", f"start said {healed['outcome']}")
    health = json.loads(stage.run("health", "--json").stdout)
    expect(health["status"] == "Healthy", f"health is {health['status']}: {health['issues']}")
    print(f"   process {healed['processId']} serves now: {health['status']}, {health['toolCount']} tools")

    print("\n6. Stop: nothing is left running.")
    stage.run("stop")
    expect(json.loads(stage.run("list", "--json").stdout)["servers"] == [], "a server is left")


def kill(pid: int) -> None:
    """End a process without a warning, and wait until the system has done it."""
    victim = psutil.Process(pid)
    victim.kill()
    deadline = time.monotonic() + 10
    try:
        while victim.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.001)
    except psutil.NoSuchProcess:
        pass


def expect(truth: bool, otherwise: str) -> None:
    if not truth:
        raise Failed(otherwise)


class Stage:
    """The folders of the demo, and nothing of this machine's own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("UNO_DEVSERVER_")},
            "NUGET_PACKAGES": str(root / "packages"),
            "HOME": str(root),
            "XDG_DATA_HOME": str(root / "state"),
            "LOCALAPPDATA": str(root / "state"),
        }

    def run(self, *arguments: str, folder: str = "workspace", quiet: bool = False) -> subprocess.CompletedProcess[str]:
        command = [PROGRAM, *arguments]
        cwd = self.root / folder if (self.root / folder).is_dir() else self.root
        started = time.perf_counter()
        done = subprocess.run(command, cwd=cwd, env=self._environ, text=True, capture_output=True)
        milliseconds = (time.perf_counter() - started) * 1000
        if not quiet:
            print(f"   $ uno-devserver {' '.join(arguments):<32} {milliseconds:6.0f} ms")
            expect(done.returncode == 0, f"{arguments[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done


class Agent:
    """The least that speaks MCP over Streamable HTTP."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = ""
        client = {"name": "demo", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)

    def ask(self, method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        request = urllib.request.Request(self._url, json.dumps(message).encode(), headers)
        started = time.perf_counter()
        with urllib.request.urlopen(request, timeout=30) as answer:
            self._session = answer.headers["Mcp-Session-Id"] or self._session
            events = answer.headers["Content-Type"].startswith("text/event-stream")
            lines = answer.read().decode().splitlines()
        data = [line.removeprefix("data:") for line in lines if line.startswith("data:") and line != "data:"]
        print(f"   > {method:<46} {(time.perf_counter() - started) * 1000:6.0f} ms")
        return json.loads(data[-1] if events else "".join(lines))["result"]


if __name__ == "__main__":
    sys.exit(main())
