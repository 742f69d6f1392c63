"""A short tour of what works: an Uno workspace is discovered; an agent on pipes gets tools before there is a server,
uses them, and keeps its session while the server is killed and healed, and while its code is edited. Each step says how
long it took.

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
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    print(f"  {PROGRAM} start --solution-dir examples/workspace     # a server that stays")
    print("  $EDITOR docs/proxy.md      # how an AI client gets these tools")
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
    print("\n2. A workspace without .NET, with an add-in in .devtools/addins/todos.py. You agree that it may run.")
    shutil.copytree(EXAMPLE, stage.root / "workspace", ignore=shutil.ignore_patterns("__pycache__"))
    stage.run("trust")

    print("\n3. An AI client starts the proxy there, for the first time. It is answered before any server exists.")
    with stage.agent() as agent:
        tools = agent.tools()
        expect("uno_health" in tools, f"the tools are {tools}")
        print(f"   {len(tools)} tools of the proxy itself: {', '.join(tools)}")
        while not {"find_todos", "mcpStatus"} <= set(tools):
            agent.hear("notifications/tools/list_changed")
            tools = agent.tools()
        print(f"   {len(tools)} tools, with those of the server that was started behind: find_todos and count_todos,")
        print("   and mcpStatus, which is there where code is reloaded")
        counted = agent.call("count_todos")
        expect(sum(counted.values()) > 0, f"count_todos found {counted}")
        print(f"   count_todos: {counted}")

    print("\n4. The client quits, and nothing is left running. Started again, it has all tools at once.")
    expect(stage.servers() == [], "a server is left")
    with stage.agent("--wait-calls") as agent:
        tools = agent.tools()
        expect("find_todos" in tools and stage.servers(quiet=True) == [], f"the tools are {tools}")
        print(
            f"   {len(tools)} tools from the catalogue; the server is still being started, and this call waits for it:"
        )
        agent.call("count_todos")

        print("\n5. Somebody kills the server. The session stays, and the next call finds a new one.")
        first = stage.servers()[0]["processId"]
        kill(first)
        agent.call("count_todos")
        healed = stage.servers(quiet=True)[0]["processId"]
        expect(healed != first, "the server was not replaced")
        print(f"   process {first} is gone, process {healed} answers")

        print("\n6. You edit the add-in: HACK is a word like any other now. The next call is answered by the new code.")
        edit(stage.root / "workspace/.devtools/addins/todos.py", "TODO|FIXME|HACK", "TODO|FIXME")
        counted = agent.call("count_todos")
        expect("HACK" not in counted, f"count_todos found {counted}")
        edited = stage.servers(quiet=True)[0]["processId"]
        expect(edited != healed, "the server was not replaced")
        print(f"   count_todos: {counted}, by process {edited}")

        print("\n7. One workspace, one server: the command line finds the one that the agent uses.")
        found = json.loads(stage.run("start", "--json").stdout)
        expect((found["outcome"], found["processId"]) == ("reused", edited), f"start said {found}")
        health = json.loads(stage.run("health", "--json").stdout)
        expect(health["status"] == "Healthy", f"health is {health['status']}: {health['issues']}")
        print(f"   {found['outcome']}: process {edited}, {health['status']}, {health['toolCount']} tools")
    expect(stage.servers(quiet=True) == [], "a server is left")


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


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    expect(old in text, f"{path.name} has no {old}")
    path.write_text(text.replace(old, new), "utf-8")


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

    def servers(self, *, quiet: bool = False) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("list", "--json", quiet=quiet).stdout)["servers"]
        return found

    @contextmanager
    def agent(self, *arguments: str) -> Iterator[Agent]:
        """An AI client and the proxy that it has just started; it quits at the end of the block."""
        command = [PROGRAM, "--mcp-app", *arguments]
        print(f"   $ uno-devserver {' '.join(command[1:])}")
        started = time.perf_counter()
        with subprocess.Popen(
            command,
            cwd=self.root / "workspace",
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            hung = threading.Timer(30, process.kill)
            hung.start()
            try:
                yield Agent(process, started)
                assert process.stdin is not None
                process.stdin.close()
                started = time.perf_counter()
                process.wait()
                milliseconds = (time.perf_counter() - started) * 1000
                print(f"   The client quits: the proxy and its server are gone {milliseconds:.0f} ms later.")
            finally:
                hung.cancel()
                process.kill()


class Agent:
    """The least that speaks MCP over the pipes of a program that it starts."""

    def __init__(self, process: subprocess.Popen[str], started: float) -> None:
        self._process = process
        self._started = started
        self._last_id = 0
        client = {"name": "demo", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list")["tools"]]

    def call(self, tool: str, **arguments: Any) -> Any:
        result = self.ask("tools/call", name=tool, arguments=arguments)
        expect(not result.get("isError"), f"{tool} said {result}")
        return result["structuredContent"]

    def ask(self, method: str, **params: Any) -> Any:
        self._last_id += 1
        started = time.perf_counter() if self._last_id > 1 else self._started  # the first one counts from the launch
        assert self._process.stdin is not None
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        answer = self._await(lambda message: message.get("id") == self._last_id)
        what = f"{method} {params['name']}" if method == "tools/call" else method
        print(f"   > {what:<46} {(time.perf_counter() - started) * 1000:6.0f} ms")
        return answer["result"]

    def hear(self, method: str) -> None:
        self._await(lambda message: message.get("method") == method)
        print(f"   < {method:<46} {(time.perf_counter() - self._started) * 1000:6.0f} ms after the launch")

    def _await(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if wanted(message):
                return message
        raise Failed("the proxy ended")


if __name__ == "__main__":
    sys.exit(main())
