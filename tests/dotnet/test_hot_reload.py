"""A C# server behind the proxy, edited while it serves: its code, a referenced project, a linked file, its properties.

The SDK of these tests is older than 8.0.100, so that our own evaluation says what the code is and what is started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dotnet.sdk import HERE
from support.files import write, write_all
from support.machine import Machine
from support.proxies import Message, Proxies, ProxyClient
from support.reloading import state_of, text_of
from support.waiting import wait_for
from uno_devserver.hotreload.build_command import build_of
from uno_devserver.hotreload.build_run import run_build
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

PROJECT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>netcoreapp3.1</TargetFramework>
  </PropertyGroup>
  <ItemGroup>
    <ProjectReference Include="../Lib/Lib.csproj" />
    <Compile Include="../Shared/**/*.cs" />
  </ItemGroup>
</Project>
"""
LIBRARY = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>netcoreapp3.1</TargetFramework></PropertyGroup>
  {}
</Project>
"""
PROPS = "<Project><PropertyGroup><Product>{}</Product></PropertyGroup></Project>"
BUILD_SECONDS = 120.0  # for a build, which takes 1 to 3 s on a machine with nothing else to do
TEXT = 'public static class {} {{ public static string Text => "{}"; }}\n'


class CSharpServer:
    """A server whose answer has a word of each of its parts."""

    def __init__(self, machine: Machine) -> None:
        self.root = machine.workspace
        write(self.root / ".devtools" / "host.config.jsonc", '{"mcpServerRoot": "../Server"}')
        reference = '<ItemGroup><ProjectReference Include="../Core/Core.csproj" /></ItemGroup>'
        write_all(
            self.root,
            {
                "Server/Server.csproj": PROJECT,
                "Server/Program.cs": (HERE / "server" / "Program.cs").read_text("utf-8"),
                "Lib/Lib.csproj": LIBRARY.format(reference),
                "Core/Core.csproj": LIBRARY.format(""),
                "Server/Properties/launchSettings.json": json.dumps({"profiles": {"S": {"commandName": "Project"}}}),
            },
        )
        for part in PARTS:
            self.say(part, "one")

    def say(self, part: str, word: str) -> None:
        write(self.root / PARTS[part], PROPS.format(word) if part == "props" else TEXT.format(part.title(), word))

    @property
    def output(self) -> Path:
        return self.root / "Server" / "bin" / "Debug" / "netcoreapp3.1"


pytestmark = pytest.mark.timeout(600)  # several builds, on a machine that may be busy

PARTS = {
    "server": "Server/ServerText.cs",
    "lib": "Lib/Lib.cs",
    "core": "Core/Core.cs",
    "linked": "Shared/deep/Linked.cs",
    "props": "Directory.Build.props",
}


@pytest.fixture
def server(net_machine: Machine) -> CSharpServer:
    # Processes that builds leave for the next one would outlive the test.
    net_machine.environment |= {"UseSharedCompilation": "false", "MSBUILDDISABLENODEREUSE": "1"}
    return CSharpServer(net_machine)


@pytest.fixture
def client(net_machine: Machine, server: CSharpServer) -> Iterator[ProxyClient]:
    """A client of a proxy whose server was never built before."""
    net_machine.environment["UNO_DEVSERVER_TRUST"] = "1"
    with Proxies(net_machine) as proxies:
        client = proxies.start()
        client.initialize()
        client.wait_connected(seconds=BUILD_SECONDS)
        yield client


def _call(client: ProxyClient, tool: str = "say") -> Message:
    result: Message = client.answer(_begin(client, tool), BUILD_SECONDS)["result"]
    return result


def _begin(client: ProxyClient, tool: str, **arguments: str) -> int | str:
    return client.begin("tools/call", {"name": tool, "arguments": arguments})


def _answer(client: ProxyClient) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(_call(client)["content"][0]["text"])
    return answer


def _renewed(client: ProxyClient) -> dict[str, Any]:
    assert state_of(_call(client)) == "restarting"
    assert state_of(_call(client, "mcpStatus")) == "ready"
    return _answer(client)


def test_an_edit_of_any_part_is_built_and_runs_at_the_next_call(client: ProxyClient, server: CSharpServer) -> None:
    first = _answer(client)
    assert {part: first[part] for part in PARTS} == dict.fromkeys(PARTS, "one")

    for part in PARTS:
        server.say(part, "two")
        assert _renewed(client)[part] == "two", part

    write(server.root / "Server" / "New.cs", "class New {}\n")
    last = _renewed(client)
    server.say("lib", "three")
    server.say("lib", "two")
    assert _answer(client) == last


def test_the_program_runs_itself_from_a_copy_of_the_output(client: ProxyClient, server: CSharpServer) -> None:
    first = _answer(client)
    copies = server.root / "Server" / "obj" / "uno-devserver"
    assert Path(first["folder"]).parent == copies
    assert os.readlink(f"/proc/{first['process']}/exe") == os.path.join(first["folder"], "Server")

    for number in range(2):
        server.say("server", f"edit {number}")
        last = _renewed(client)

    assert Path(last["folder"]).parent == copies
    assert len(list(copies.iterdir())) == 2


def test_a_build_changes_no_files_that_an_old_server_still_loads(
    client: ProxyClient, server: CSharpServer, tmp_path: Path
) -> None:
    swaps = {"mcpServerRoot": "../Server", "hotReload": {"strategy": "swap"}, "pipeline": {"concurrency": 2}}
    write(server.root / ".devtools" / "host.config.jsonc", json.dumps(swaps))
    client.wait_health(lambda report: (report["proxy"]["hotReload"] or {}).get("strategy") == "swap", "one of swaps")
    gate = tmp_path / "gate"
    late = _begin(client, "sayLate", gate=str(gate))
    wait_for((tmp_path / "gate.begun").exists, "the call on the old server", BUILD_SECONDS)

    server.say("lib", "two")
    new = _answer(client)
    assert not client.has_answer(late)
    gate.touch()
    old = json.loads(client.answer(late)["result"]["content"][0]["text"])

    assert (old["lib"], new["lib"]) == ("one", "two")
    assert old["process"] != new["process"]


def test_a_broken_edit_tells_each_error_once_and_the_old_code_answers_with_a_note(
    client: ProxyClient, server: CSharpServer
) -> None:
    write(server.root / PARTS["lib"], "public static class Lib { public static string Text => nope; }\n")

    failed, noted = _call(client), _call(client)

    assert state_of(failed) == "buildFailed"
    assert text_of(failed).count("CS0103") == 1
    assert "Build FAILED" not in text_of(failed)
    assert json.loads(noted["content"][0]["text"])["lib"] == "one"
    assert state_of(noted) == "buildFailed"
    server.say("lib", "mended")
    assert _renewed(client)["lib"] == "mended"


def test_code_is_built_without_a_restore_and_a_project_file_with_one(client: ProxyClient, server: CSharpServer) -> None:
    assets = server.root / "Lib" / "obj" / "project.assets.json"
    _answer(client)
    restored = assets.stat().st_mtime_ns
    server.say("core", "two")
    _renewed(client)
    assert assets.stat().st_mtime_ns == restored

    project = server.root / "Lib" / "Lib.csproj"
    named = project.read_text("utf-8").replace("</TargetFramework>", "</TargetFramework><Version>2.0.0</Version>")
    write(project, named)
    _renewed(client)

    assert assets.stat().st_mtime_ns > restored


def test_a_checkout_there_and_back_builds_nothing(client: ProxyClient, server: CSharpServer) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(server.root)]

    def run(*words: str) -> None:
        subprocess.run([*git, *words], check=True, capture_output=True)

    write(server.root / ".gitignore", "bin/\nobj/\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one"), ("checkout", "-qb", "other")):
        run(*words)
    server.say("lib", "two")
    run("commit", "-qam", "two")
    run("checkout", "-q", "other~1")
    first, built = _answer(client), (server.output / "Server.dll").stat().st_mtime_ns

    run("checkout", "-q", "other")
    run("checkout", "-q", "other~1")

    assert _answer(client) == first
    assert (server.output / "Server.dll").stat().st_mtime_ns == built


async def test_the_server_of_the_compiler_stays_for_the_next_build(net_machine: Machine) -> None:
    server = CSharpServer(net_machine)
    environ = net_machine.variables()
    package = WatchedPackage(Role.SERVER, str(server.root / "Server"))
    helpers = []
    for word in ("two", "three"):
        server.say("lib", word)
        build = build_of(package, environ, "linux")
        assert build is not None
        assert await run_build(build, environ, str(net_machine.root / "build.log"), BUILD_SECONDS) is None
        helpers.append(_compilers(net_machine))

    for pid in helpers[1]:
        os.kill(pid, signal.SIGKILL)
    assert len(helpers[0]) == 1
    assert helpers[0] == helpers[1]


def _compilers(machine: Machine) -> list[int]:
    """The ids of the servers of the compiler that run with this machine's environment."""
    mark = f"HOST_LOG={machine.environment['HOST_LOG']}".encode()
    found = []
    for process in Path("/proc").iterdir():
        try:
            is_compiler = process.name.isdigit() and b"VBCSCompiler" in (process / "cmdline").read_bytes()
            if is_compiler and mark in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            pass  # it has ended, or is another user's
    return found
